//! Reads GGUF files, versions 2 and 3, little-endian, in one or several parts.
//!
//! Every number in a file may be a lie: sums and products are checked, nothing is allocated that the file's own length
//! does not justify, and bad files give errors that name what is wrong.
//!
//! Source of the format: the GGUF specification in the ggml repository, `docs/gguf.md`.

mod cursor;
mod fault;
mod header;
mod open;
mod value;

pub use fault::{GgufFault, Reading};
pub use header::GgufHeader;
pub use open::{Gguf, GgufError};
