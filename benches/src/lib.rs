//! What the benches share: seeded inputs, and what this machine can do at most.
//!
//! A bench checks results before it times anything, and reports rates with their share of the measured peak.

pub mod answers;
pub mod inputs;
pub mod peaks;
