//! Logits to a token.
//!
//! In order: penalties, temperature, top-k, top-p, min-p, then one draw. Greedy decoding (temperature 0) takes the
//! largest logit after the penalties, the lower id of equal ones, and has no random part.

mod candidates;
mod draw;
mod penalties;
mod sampling;

pub use draw::Sampler;
pub use sampling::{SamplerError, Sampling};
