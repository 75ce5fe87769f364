//! What the operating system says about this machine: cores worth using, memory that is free.

mod cores;
mod memory;

pub(crate) use cores::fast_cores;
pub(crate) use memory::memory;
