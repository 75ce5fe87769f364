//! The CPU's side: its memory, in which the model's files are used in place.

use super::memory::DeviceMemory;
use crate::backend::Backend;

/// The CPU and its memory.
pub(super) struct Cpu {
    pub(super) backend: Box<dyn Backend>,
    pub(super) memory: DeviceMemory,
}
