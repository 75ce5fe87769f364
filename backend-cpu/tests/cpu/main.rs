//! The CPU backend from outside.
//!
//! Ops run through it for each instruction set of this CPU and several numbers of threads, against loops in double
//! precision.

mod attention;
mod backend;
mod harness;
mod order;
mod products;
mod rows;
mod values;
