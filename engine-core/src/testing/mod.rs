//! Made-up models, files and devices, for the tests of this crate and others (feature `testing`).

mod faulty;
pub mod fuzz;
mod gguf_writer;
mod recording;

pub use faulty::{Call, Fault, Faulty};
pub use gguf_writer::GgufWriter;
pub use recording::{Journal, Recording};
