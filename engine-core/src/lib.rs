//! Baton's engine: reads a model file, lowers the model to ops, and runs them on backends.
//!
//! Data flows one way: `request → tokenizer → sequence → batch → schedule → executor → backend → logits → sampler →
//! tokenizer → event`. This crate never names a device kind or an instruction set.
//!
//! An [`Engine`] is loaded once, with the [`Backend`](backend::Backend)s that compute; a [`Session`] on it is one
//! sequence of tokens; [`Session::generate`] answers a [`Request`] with an iterator of [`Event`]s, one for each token
//! and a last one with [`Stats`]:
//! ```no_run
//! use engine_core::backend::{Backend, Backends};
//! use engine_core::{Engine, EngineError, EngineOptions, Event, Prompt, Request};
//!
//! fn answer(cpu: impl Backend + 'static) -> Result<(), EngineError> {
//!     let options = EngineOptions::default();
//!     let mut engine = Engine::load("model.gguf".as_ref(), &options, Backends::cpu_only(cpu))?;
//!     let mut session = engine.session();
//!     for event in session.generate(&Request::from(Prompt::user("Why is the sky blue?")))? {
//!         match event? {
//!             Event::Token { text, .. } => print!("{text}"),
//!             Event::Done { reason, stats } => println!("\n{reason:?}: {:?} TPS", stats.tps()),
//!         }
//!     }
//!     Ok(())
//! }
//! ```
//! `examples/generate.rs` is a whole program.
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
