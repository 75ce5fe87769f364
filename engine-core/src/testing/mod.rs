//! Made-up models and files, for the tests of this crate and others (feature `testing`).

pub mod fuzz;
mod gguf_writer;

pub use gguf_writer::GgufWriter;
