//! The backends from outside.
//!
//! Ops run through them for each instruction set of this CPU and several numbers of threads, against loops in double
//! precision.

mod attention;
mod backend;
mod gate;
mod harness;
mod order;
mod products;
mod rows;
mod simulated;
mod values;
