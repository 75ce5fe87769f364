//! Reads the header of one safetensors file, and checks that it describes the file exactly.
//!
//! Every byte behind the header must belong to one tensor: gaps, overlaps and trailing bytes are refused, as the
//! reference implementation refuses them. Tensors of any type are listed; Baton computes with F32, F16 and BF16.
//!
//! Source of the format: README of the safetensors repository.

mod fault;
mod header;
mod layout;

pub use fault::SafetensorsFault;
pub use header::SafetensorsHeader;
