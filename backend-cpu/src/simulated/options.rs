//! What is simulated, and what is to go wrong.

use std::num::NonZeroUsize;

use planner::{Bytes, BytesPerSec};

use crate::pace::Pace;
use crate::table::KernelTable;

/// A simulated GPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimOptions {
    /// Memory of the device. Buffers beyond it are refused.
    pub vram: Bytes,
    /// Rate of copies to the device, and of those from it: the two directions do not slow each other down. Above zero; a
    /// rate that host memory does not reach is not reached here either.
    pub pcie: BytesPerSec,
    /// Threads that compute, besides the one that copies.
    pub threads: NonZeroUsize,
    /// The kernels.
    pub kernels: KernelTable,
    /// What they are slowed down to, if at all.
    pub pace: Option<Pace>,
    /// What goes wrong.
    pub faults: Faults,
}

impl Default for SimOptions {
    /// 1 GiB at 2 GB/s, one thread with the kernels of [`KernelTable::detect`], and nothing goes wrong.
    fn default() -> SimOptions {
        SimOptions {
            vram: Bytes::gib(1),
            pcie: BytesPerSec::new(2e9),
            threads: NonZeroUsize::MIN,
            kernels: KernelTable::detect(),
            pace: None,
            faults: Faults::default(),
        }
    }
}

/// Which call of a kind fails, counted from 1. It does nothing but fail, and later calls work again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults {
    /// Of `alloc`, for want of memory.
    pub alloc: Option<u64>,
    /// Of `upload`.
    pub copy: Option<u64>,
    /// Of `submit`.
    pub submit: Option<u64>,
}

/// Counts one call; true if it is the one to fail.
pub(super) fn fails(calls_left: &mut Option<u64>) -> bool {
    *calls_left = calls_left.and_then(|n| n.checked_sub(1));
    calls_left.take_if(|n| *n == 0).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_call_fails() {
        let mut third = Some(3);
        assert_eq!([(); 5].map(|()| fails(&mut third)), [false, false, true, false, false]);
        assert!(!fails(&mut None));
        assert!(!fails(&mut Some(0)), "calls are counted from 1");
    }
}
