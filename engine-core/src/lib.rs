//! Baton's engine: reads a model file, lowers the model to ops, and runs them on backends.
//!
//! Data flows one way: `request → tokenizer → sequence → batch → schedule → executor → backend → logits → sampler →
//! tokenizer → event`. This crate never names a device kind or an instruction set.
#![deny(unsafe_code)]

pub mod backend;
pub mod op;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tokenizer;
pub mod weights;
