//! Baton's engine: reads a model file, lowers the model to ops, and runs them on backends.
//!
//! Data flows one way: `request → tokenizer → sequence → batch → schedule → executor → backend → logits → sampler →
//! tokenizer → event`. This crate never names a device kind or an instruction set.
#![deny(unsafe_code)]

mod arena;
pub mod backend;
mod batch;
mod cancel;
mod cost;
mod engine;
mod error;
mod executor;
mod kv;
pub mod measure;
pub mod model;
pub mod op;
pub mod perplexity;
mod planned;
mod request;
mod runner;
mod sampler;
mod schedule;
mod scratch;
mod session;
mod stats;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tokenizer;
pub mod trace;
pub mod weights;

pub use cancel::Cancel;
pub use engine::{Engine, EngineOptions, KvFormat, Placing, Plans, Vram, open_tokenizer};
pub use error::EngineError;
pub use executor::{MemoryNeed, PlanFault};
pub use planned::PlannedModel;
pub use request::{Prompt, Request, Speculation};
pub use sampler::{Sampler, SamplerError, Sampling};
pub use session::{Event, FinishReason, Generation, Session};
pub use stats::{Speculated, Stats};
