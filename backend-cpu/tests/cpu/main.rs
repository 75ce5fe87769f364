//! The CPU backend from outside.

mod attention;
mod backend;
mod harness;
mod ops;
