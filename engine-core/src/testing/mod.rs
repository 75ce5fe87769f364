//! Made-up models and files, for the tests of this crate and others (feature `testing`).

mod gguf_writer;

pub use gguf_writer::GgufWriter;
