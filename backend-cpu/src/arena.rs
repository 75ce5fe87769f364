//! Buffers by number, and views of them resolved to slices. Knows no op.
//!
//! Where several threads use the same buffers, each has an arena of its own that holds them under the same numbers.

use std::cell::RefCell;
use std::ops::Range;

use bytemuck::Pod;
use engine_core::backend::{BufferId, HostSlice};
use engine_core::op::View;
use engine_core::weights::DType;
use half::f16;

use crate::threads::{Conflict, MatrixMut, Memory};

/// All buffers of a backend. Every view given to it must lie inside its buffer and, but for bytes, be of the format
/// asked for and aligned to it; anything else is a bug of the caller and panics.
#[derive(Default)]
pub(crate) struct Arena {
    buffers: Vec<Option<Buffer>>,
    /// Own buffers of which something is lent, each once.
    lent: RefCell<Vec<BufferId>>,
}

enum Buffer {
    Own(Memory),
    Imported(HostSlice),
}

impl Arena {
    /// A new buffer of zeros, or `None` when the system has no room for it.
    pub(crate) fn alloc(&mut self, len: usize) -> Option<BufferId> {
        Some(self.add(Buffer::Own(Memory::new(len)?)))
    }

    /// A read-only buffer that is `slice` itself.
    pub(crate) fn import(&mut self, slice: HostSlice) -> BufferId {
        self.add(Buffer::Imported(slice))
    }

    fn add(&mut self, buffer: Buffer) -> BufferId {
        let vacant = self.buffers.iter().position(Option::is_none);
        let index = vacant.unwrap_or_else(|| {
            self.buffers.push(None);
            self.buffers.len() - 1
        });
        self.buffers[index] = Some(buffer);
        BufferId(index.try_into().expect("far fewer than 2³² buffers are ever made"))
    }

    /// Has the system provide all memory of an own buffer now, and not page by page as it is first written.
    pub(crate) fn touch(&mut self, id: BufferId) {
        const PAGE: usize = 4096;
        if let Buffer::Own(memory) = self.buffer(id) {
            self.note_loan(id);
            let bytes = memory.lend_mut(0..memory.len()).expect("nothing of a new buffer is lent");
            bytes.iter_mut().step_by(PAGE).for_each(|byte| *byte = 0);
        }
        self.reclaim();
    }

    /// A further holder of an own buffer, for the arena of another thread.
    pub(crate) fn share(&mut self, id: BufferId) -> Memory {
        match self.buffers.get_mut(id.0 as usize) {
            Some(Some(Buffer::Own(memory))) => memory.share(),
            _ => panic!("{id:?} is no buffer of its own"),
        }
    }

    /// Takes a buffer of another arena under the number that it has there.
    pub(crate) fn hold(&mut self, id: BufferId, memory: Memory) {
        let index = id.0 as usize;
        if self.buffers.len() <= index {
            self.buffers.resize_with(index + 1, || None);
        }
        assert!(self.buffers[index].is_none(), "{id:?} is held twice");
        self.buffers[index] = Some(Buffer::Own(memory));
    }

    /// Gives a buffer back. Returns how many bytes of memory that frees.
    pub(crate) fn free(&mut self, id: BufferId) -> usize {
        let buffer = self.buffers.get_mut(id.0 as usize).and_then(Option::take);
        match buffer.unwrap_or_else(|| panic!("{id:?} is freed but does not exist")) {
            Buffer::Own(memory) => memory.len(),
            Buffer::Imported(_) => 0,
        }
    }

    /// Ends all loans of memory that this arena made.
    pub(crate) fn reclaim(&mut self) {
        for id in self.lent.get_mut().drain(..) {
            if let Some(Buffer::Own(memory)) = &mut self.buffers[id.0 as usize] {
                memory.reclaim();
            }
        }
    }

    /// Whether any of a view's bytes are lent out for writing.
    pub(crate) fn is_written(&self, view: &View) -> bool {
        let start = view.offset.as_usize();
        match self.buffer(view.buffer) {
            Buffer::Own(memory) => memory.is_written(start..start + view.bytes().as_usize()),
            Buffer::Imported(_) => false,
        }
    }

    /// The stored bytes of a view of any format.
    pub(crate) fn bytes(&self, view: &View) -> Result<&[u8], Conflict> {
        let start = view.offset.as_usize();
        let range = start..start + view.bytes().as_usize();
        match self.buffer(view.buffer) {
            Buffer::Own(memory) => {
                self.note_loan(view.buffer);
                memory.lend(range)
            }
            Buffer::Imported(slice) => {
                let bytes = slice.bytes();
                Ok(bytes.get(range.clone()).unwrap_or_else(|| {
                    panic!("bytes {range:?} are not inside a buffer of {}", bytes.len())
                }))
            }
        }
    }

    /// The values of an f32 view.
    pub(crate) fn f32s(&self, view: &View) -> Result<&[f32], Conflict> {
        check_format(view, DType::F32);
        Ok(cast(self.bytes(view)?, view))
    }

    /// The values of an f16 view.
    pub(crate) fn f16s(&self, view: &View) -> Result<&[f16], Conflict> {
        check_format(view, DType::F16);
        Ok(cast(self.bytes(view)?, view))
    }

    /// The values of a view of numbers.
    pub(crate) fn i32s(&self, view: &View) -> Result<&[i32], Conflict> {
        check_format(view, DType::I32);
        Ok(cast(self.bytes(view)?, view))
    }

    /// An f32 view to write.
    pub(crate) fn f32s_mut(&self, view: &View) -> Result<MatrixMut<'_, f32>, Conflict> {
        check_format(view, DType::F32);
        self.matrix_mut(view)
    }

    /// An f16 view to write.
    pub(crate) fn f16s_mut(&self, view: &View) -> Result<MatrixMut<'_, f16>, Conflict> {
        check_format(view, DType::F16);
        self.matrix_mut(view)
    }

    /// A view of numbers to write.
    pub(crate) fn i32s_mut(&self, view: &View) -> Result<MatrixMut<'_, i32>, Conflict> {
        check_format(view, DType::I32);
        self.matrix_mut(view)
    }

    /// Where the first `len` bytes of a view lie in its buffer.
    ///
    /// # Panics
    /// If the view does not have so many.
    pub(crate) fn range(&self, view: &View, len: usize) -> Range<usize> {
        let (start, room) = (view.offset.as_usize(), view.bytes().as_usize());
        let size = match self.buffer(view.buffer) {
            Buffer::Own(memory) => memory.len(),
            Buffer::Imported(slice) => slice.bytes().len(),
        };
        let end = start + room;
        assert!(end <= size, "bytes {start}..{end} are not inside a buffer of {size}");
        assert!(len <= room, "{len} bytes do not fit {room}");
        start..start + len
    }

    /// Shows the first `len` bytes of a view to `read`, with nothing else lent before or after.
    pub(crate) fn show(&mut self, view: &View, len: usize, read: impl FnOnce(&[u8])) {
        self.reclaim();
        let range = self.range(view, len);
        match self.buffer(view.buffer) {
            Buffer::Own(memory) => {
                self.note_loan(view.buffer);
                read(memory.lend(range).expect("nothing else is lent"));
            }
            Buffer::Imported(slice) => read(&slice.bytes()[range]),
        }
        self.reclaim();
    }

    /// Lets `write` fill the first `len` bytes of a view, with nothing else lent before or after.
    pub(crate) fn fill(&mut self, view: &View, len: usize, write: impl FnOnce(&mut [u8])) {
        self.reclaim();
        let range = self.range(view, len);
        match self.buffer(view.buffer) {
            Buffer::Own(memory) => {
                self.note_loan(view.buffer);
                write(memory.lend_mut(range).expect("nothing else is lent"));
            }
            Buffer::Imported(_) => panic!("{:?} is read-only", view.buffer),
        }
        self.reclaim();
    }

    fn note_loan(&self, id: BufferId) {
        let mut lent = self.lent.borrow_mut();
        if !lent.contains(&id) {
            lent.push(id);
        }
    }

    fn matrix_mut<T: Pod>(&self, view: &View) -> Result<MatrixMut<'_, T>, Conflict> {
        let start = view.offset.as_usize();
        let bytes = match self.buffer(view.buffer) {
            Buffer::Own(memory) => {
                self.note_loan(view.buffer);
                memory.lend_mut(start..start + view.bytes().as_usize())?
            }
            Buffer::Imported(_) => panic!("{:?} is read-only", view.buffer),
        };
        let values = bytemuck::try_cast_slice_mut(bytes)
            .unwrap_or_else(|error| panic!("{view:?} cannot be used in place: {error}"));
        Ok(MatrixMut::new(values, view.columns() as usize))
    }

    fn buffer(&self, id: BufferId) -> &Buffer {
        let buffer = self.buffers.get(id.0 as usize).and_then(Option::as_ref);
        buffer.unwrap_or_else(|| panic!("{id:?} does not exist"))
    }
}

fn check_format(view: &View, dtype: DType) {
    assert_eq!(view.dtype, dtype, "{view:?} has another format than its op wants");
}

fn cast<'a, T: Pod>(bytes: &'a [u8], view: &View) -> &'a [T] {
    bytemuck::try_cast_slice(bytes)
        .unwrap_or_else(|error| panic!("{view:?} cannot be used in place: {error}"))
}

#[cfg(test)]
mod tests {
    use engine_core::backend::HostRegion;
    use planner::Bytes;

    use super::*;

    fn view(buffer: BufferId, offset: u64, shape: [u32; 2], dtype: DType) -> View {
        View { buffer, offset: Bytes::new(offset), shape, dtype }
    }

    #[test]
    fn numbers_of_freed_buffers_are_used_again() {
        let mut arena = Arena::default();
        let [a, b] = [64, 128].map(|len| arena.alloc(len).unwrap());
        assert_ne!(a, b);
        assert_eq!(arena.free(a), 64);
        assert_eq!(arena.alloc(8), Some(a));
    }

    #[test]
    fn what_is_written_is_read() {
        let mut arena = Arena::default();
        let buffer = arena.alloc(64).unwrap();
        let whole = view(buffer, 0, [2, 8], DType::F32);
        arena.f32s_mut(&whole).unwrap().values()[15] = 3.0;
        assert_eq!(arena.f32s(&whole), Err(Conflict));
        arena.reclaim();
        assert_eq!(arena.f32s(&view(buffer, 32, [1, 8], DType::F32)).unwrap()[7], 3.0);
        let place = view(buffer, 4, [1, 1], DType::I32);
        arena.fill(&place, 4, |bytes| bytes.copy_from_slice(&7i32.to_le_bytes()));
        assert_eq!(arena.i32s(&view(buffer, 0, [1, 2], DType::I32)).unwrap(), [0, 7]);
    }

    #[test]
    fn arenas_hold_a_buffer_under_the_same_number() {
        let [mut here, mut there] = [Arena::default(), Arena::default()];
        let [_, buffer] = [64, 128].map(|len| here.alloc(len).unwrap());
        there.hold(buffer, here.share(buffer));
        let place = view(buffer, 64, [1, 1], DType::I32);
        there.fill(&place, 4, |bytes| bytes.copy_from_slice(&7i32.to_le_bytes()));
        assert_eq!(here.i32s(&place).unwrap(), [7]);
        here.free(buffer);
        there.show(&place, 2, |bytes| assert_eq!(bytes, &7i16.to_le_bytes()));
    }

    #[test]
    fn imported_memory_is_read_in_place() {
        let mut arena = Arena::default();
        let region = HostRegion::new(vec![1u8, 2, 3, 4]);
        let buffer = arena.import(HostSlice::new(region.clone(), 1..4).unwrap());
        let bytes = arena.bytes(&view(buffer, 1, [1, 2], DType::I8)).unwrap();
        assert_eq!(bytes.as_ptr(), region.bytes()[2..].as_ptr());
        assert_eq!(arena.free(buffer), 0);
    }

    #[test]
    #[should_panic(expected = "BufferId(0) is read-only")]
    fn imported_memory_is_not_written() {
        let mut arena = Arena::default();
        let slice = HostSlice::new(HostRegion::new(vec![0u8; 4]), 0..4).unwrap();
        let buffer = arena.import(slice);
        let _ = arena.f32s_mut(&view(buffer, 0, [1, 1], DType::F32));
    }

    #[test]
    #[should_panic(expected = "bytes 32..72 are not inside a buffer of 64")]
    fn views_lie_inside_their_buffer() {
        let mut arena = Arena::default();
        let buffer = arena.alloc(64).unwrap();
        let _ = arena.f32s(&view(buffer, 32, [1, 10], DType::F32));
    }

    #[test]
    #[should_panic(expected = "another format")]
    fn formats_are_checked() {
        let mut arena = Arena::default();
        let buffer = arena.alloc(64).unwrap();
        let _ = arena.f32s(&view(buffer, 0, [1, 1], DType::F16));
    }

    #[test]
    #[should_panic(expected = "cannot be used in place")]
    fn values_are_aligned() {
        let mut arena = Arena::default();
        let buffer = arena.alloc(64).unwrap();
        let _ = arena.f32s(&view(buffer, 2, [1, 1], DType::F32));
    }

    #[test]
    #[should_panic(expected = "BufferId(3) does not exist")]
    fn unknown_buffers_are_named() {
        let _ = Arena::default().f32s(&view(BufferId(3), 0, [1, 1], DType::F32));
    }
}
