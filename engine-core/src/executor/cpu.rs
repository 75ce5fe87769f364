//! The CPU's side: its memory, in which the model's files are used in place.

use super::memory::DeviceMemory;
use crate::backend::{Backend, BackendError};
use crate::scratch::Place;

/// The CPU and its memory.
pub(super) struct Cpu {
    pub(super) backend: Box<dyn Backend>,
    pub(super) memory: DeviceMemory,
}

impl Cpu {
    /// Takes memory for the residuals of ubatches that wait while another one is computed.
    pub(super) fn take_waiting(&mut self, n_ubatches: u32) -> Result<(), BackendError> {
        let pass = &self.memory.pass;
        let (_, room) = pass.waiting(n_ubatches, Place::NOWHERE);
        let start = Place::start_of(self.backend.alloc(room)?);
        self.memory.waiting = pass.waiting(n_ubatches, start).0;
        Ok(())
    }
}
