//! A large region of memory that looks like weights of any format, handed out part by part.

use std::sync::Arc;

use planner::Bytes;

use crate::backend::{Backend, BackendError, BufferId, HostRegion, HostSlice, Res};
use crate::op::View;
use crate::weights::DType;

/// Where parts start: as tensors of a file do, and a multiple of what any format needs.
const ALIGNMENT: u64 = 64;

/// Every float of 16 or 32 bits made of bytes from 0x28 to 0x2f is a small normal number, and so is every scale of a
/// block: no product of any format is slow because of what the values are.
const LEAST_BYTE: u64 = u64::from_ne_bytes([0x28; 8]);
const BYTE_BITS: u64 = u64::from_ne_bytes([0x07; 8]);

/// A region of host memory that looks like weights.
pub(super) fn weights(size: Bytes) -> Arc<HostRegion> {
    // Source: Marsaglia, "Xorshift RNGs", 2003.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = (0..size.get().div_ceil(8)).flat_map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (LEAST_BYTE | state & BYTE_BITS).to_ne_bytes()
    });
    HostRegion::new(words.collect::<Vec<u8>>())
}

/// The region as a device sees it.
pub(super) struct Pool {
    buffer: BufferId,
    size: Bytes,
    next: Bytes,
}

impl Pool {
    /// Lets `backend` use `region` in place, or gives it a copy where it cannot.
    pub(super) fn new(backend: &mut dyn Backend, region: &Arc<HostRegion>) -> Res<Pool> {
        let slice = HostSlice::whole(Arc::clone(region));
        let size = Bytes::from(region.bytes().len());
        let buffer = match backend.import(slice.clone()) {
            Err(BackendError::Unsupported { .. }) => {
                let buffer = backend.alloc(size)?;
                let rows = u32::try_from(size.get() / ALIGNMENT).expect("a pool is far smaller");
                let shape = [rows, ALIGNMENT as u32];
                let view = View { buffer, offset: Bytes::ZERO, shape, dtype: DType::I8 };
                let copied = backend.upload(slice, &view, &[])?;
                backend.wait(copied)?;
                buffer
            }
            imported => imported?,
        };
        Ok(Pool { buffer, size, next: Bytes::ZERO })
    }

    /// The next part, which was last used when everything else had been used since.
    ///
    /// # Panics
    /// If the pool is smaller.
    pub(super) fn part(&mut self, shape: [u32; 2], dtype: DType) -> View {
        let mut view = View { buffer: self.buffer, offset: self.next, shape, dtype };
        let size = view.bytes();
        assert!(size <= self.size, "{size} of a pool of {}", self.size);
        if self.next + size > self.size {
            view.offset = Bytes::ZERO;
        }
        self.next = (view.offset + size).align_up(ALIGNMENT);
        view
    }

    pub(super) fn buffer(&self) -> BufferId {
        self.buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_and_begin_again() {
        let size = Bytes::new(1024);
        let mut pool = Pool { buffer: BufferId(0), size, next: Bytes::ZERO };
        let mut next = || pool.part([3, 32], DType::F32).offset.get();
        assert_eq!([next(), next(), next(), next()], [0, 384, 0, 384]);
    }

    #[test]
    fn values_are_small_and_normal() {
        let region = weights(Bytes::new(1 << 16));
        let halves = region.bytes().as_chunks::<2>().0.iter();
        assert!(
            halves.map(|&h| half::f16::from_ne_bytes(h)).all(|x| x.is_normal() && x.to_f32() < 1.0)
        );
        let floats = region.bytes().as_chunks::<4>().0.iter();
        assert!(floats.map(|&f| f32::from_ne_bytes(f)).all(|x| x.is_normal() && x < 1.0));
    }
}
