//! Buffers as bytes, each use checked to lie inside.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::backend::{BufferId, HostSlice};
use crate::op::View;

/// Memory of one device.
#[derive(Debug, Default)]
pub(super) struct Memory {
    buffers: BTreeMap<BufferId, Buffer>,
    n_made: u32,
}

#[derive(Debug)]
enum Buffer {
    Own(Vec<u8>),
    /// Used in place.
    Host(HostSlice),
}

/// The bytes of a view in its buffer.
pub(super) fn range(view: &View) -> Range<u64> {
    view.offset.get()..view.offset.get() + view.bytes().get()
}

impl Memory {
    pub(super) fn alloc(&mut self, size: usize) -> BufferId {
        self.add(Buffer::Own(vec![0; size]))
    }

    pub(super) fn import(&mut self, src: HostSlice) -> BufferId {
        self.add(Buffer::Host(src))
    }

    fn add(&mut self, buffer: Buffer) -> BufferId {
        let id = BufferId(self.n_made);
        self.n_made += 1;
        self.buffers.insert(id, buffer);
        id
    }

    /// Gives the size of what was freed, if it was this memory's own.
    pub(super) fn free(&mut self, id: BufferId) -> usize {
        match self.buffers.remove(&id).expect("a buffer is freed once") {
            Buffer::Own(bytes) => bytes.len(),
            Buffer::Host(_) => 0,
        }
    }

    pub(super) fn bytes(&self, view: &View) -> &[u8] {
        let bytes = match self.buffers.get(&view.buffer) {
            Some(Buffer::Own(bytes)) => bytes,
            Some(Buffer::Host(slice)) => slice.bytes(),
            None => panic!("{view:?} is in no buffer"),
        };
        &bytes[usizes(range(view))]
    }

    pub(super) fn bytes_mut(&mut self, view: &View) -> &mut [u8] {
        match self.buffers.get_mut(&view.buffer) {
            Some(Buffer::Own(bytes)) => &mut bytes[usizes(range(view))],
            other => panic!("{view:?} is in no buffer that can be written: {other:?}"),
        }
    }

    /// The numbers of an I32 view.
    pub(super) fn numbers(&self, view: &View) -> Vec<u32> {
        let (numbers, _) = self.bytes(view).as_chunks::<4>();
        numbers.iter().map(|number| u32::from_le_bytes(*number)).collect()
    }
}

fn usizes(range: Range<u64>) -> Range<usize> {
    range.start as usize..range.end as usize
}
