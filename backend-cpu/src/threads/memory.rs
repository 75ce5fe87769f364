//! Memory that is lent out in pieces: many readers or one writer for each byte, checked when it is lent.

use std::cell::RefCell;
use std::ops::Range;

/// Bytes of a cache line, at whose start memory begins.
const LINE: usize = 64;

/// The unit of allocation: as large as alignments go for which the system hands out zeroed pages as they are touched,
/// instead of writing them all at once.
type Unit = u128;

/// Bytes of zeros at first, aligned to a cache line. Like a `RefCell`, but per range of bytes; and what is lent counts as
/// in use until [`reclaim`](Memory::reclaim), whose `&mut` shows that nobody has it any more.
pub(crate) struct Memory {
    /// Owned, from a box. A pointer, because a reference to the whole would exclude the loans.
    units: *mut [Unit],
    /// Bytes before the first cache line.
    skipped: usize,
    len: usize,
    loans: RefCell<Vec<Loan>>,
}

/// Bytes that are in use.
struct Loan {
    range: Range<usize>,
    writes: bool,
}

/// The bytes asked for are in use in a way that excludes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Conflict;

impl Memory {
    /// `len` bytes, or `None` when the system has no room for them.
    pub(crate) fn new(len: usize) -> Option<Memory> {
        let n_units = len.checked_add(LINE)?.div_ceil(size_of::<Unit>());
        let mut units = bytemuck::allocation::try_zeroed_slice_box::<Unit>(n_units).ok()?;
        let skipped = units.as_mut_ptr().cast::<u8>().align_offset(LINE);
        Some(Memory { units: Box::into_raw(units), skipped, len, loans: RefCell::default() })
    }

    /// Number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// All bytes, none of them lent.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the units are owned, and `&mut self` shows that nothing is lent.
        let units = unsafe { &mut *self.units };
        &mut bytemuck::cast_slice_mut(units)[self.skipped..][..self.len]
    }

    /// Ends all loans.
    pub(crate) fn reclaim(&mut self) {
        self.loans.get_mut().clear();
    }

    /// Lends bytes to read.
    ///
    /// # Panics
    /// If `range` is not inside the memory.
    pub(crate) fn lend(&self, range: Range<usize>) -> Result<&[u8], Conflict> {
        let start = self.enter(Loan { range: range.clone(), writes: false })?;
        // SAFETY: the range is inside the allocation, which `&self` keeps; no loan of these bytes writes, and none will
        // before `reclaim`, which the borrow returned here keeps from being called.
        Ok(unsafe { std::slice::from_raw_parts(start, range.len()) })
    }

    /// Lends bytes to write.
    ///
    /// # Panics
    /// If `range` is not inside the memory.
    #[expect(clippy::mut_from_ref, reason = "the loans see to it that a byte has one writer")]
    pub(crate) fn lend_mut(&self, range: Range<usize>) -> Result<&mut [u8], Conflict> {
        let start = self.enter(Loan { range: range.clone(), writes: true })?;
        // SAFETY: as in `lend`, and there is no other loan of these bytes at all.
        Ok(unsafe { std::slice::from_raw_parts_mut(start, range.len()) })
    }

    /// Whether any of these bytes are lent out for writing.
    pub(crate) fn is_written(&self, range: Range<usize>) -> bool {
        self.loans.borrow().iter().any(|loan| loan.writes && overlap(&loan.range, &range))
    }

    /// Notes a loan that conflicts with no other, and returns where its bytes start.
    fn enter(&self, loan: Loan) -> Result<*mut u8, Conflict> {
        let range = loan.range.clone();
        assert!(
            range.start <= range.end && range.end <= self.len,
            "bytes {range:?} are not inside a buffer of {}",
            self.len
        );
        let mut loans = self.loans.borrow_mut();
        let excludes =
            |other: &Loan| (loan.writes || other.writes) && overlap(&range, &other.range);
        if loans.iter().any(excludes) {
            return Err(Conflict);
        }
        loans.push(loan);
        Ok(self.units.cast::<u8>().wrapping_add(self.skipped + range.start))
    }
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start.max(b.start) < a.end.min(b.end)
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it came from a box and is given up here; nothing is lent any more.
        drop(unsafe { Box::from_raw(self.units) });
    }
}

// SAFETY: the units are owned as by a box.
unsafe impl Send for Memory {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zeroed_and_aligned() {
        let mut memory = Memory::new(100).unwrap();
        assert_eq!(memory.len(), 100);
        assert_eq!(memory.bytes(), [0; 100]);
        assert_eq!(memory.bytes().as_ptr() as usize % 64, 0);
    }

    #[test]
    fn a_byte_has_many_readers_or_one_writer() {
        let mut memory = Memory::new(128).unwrap();
        memory.bytes()[7] = 9;
        let first = memory.lend(0..64).unwrap();
        let second = memory.lend(4..8).unwrap();
        let third = memory.lend_mut(64..128).unwrap();
        third[0] = first[7] + second[3];
        assert_eq!(memory.lend_mut(63..65).unwrap_err(), Conflict);
        assert_eq!(memory.lend(127..128).unwrap_err(), Conflict);
        assert!(memory.lend_mut(64..64).is_ok(), "no bytes, no conflict");
        assert!(memory.is_written(127..128) && !memory.is_written(0..64));
        memory.reclaim();
        assert_eq!(memory.lend_mut(0..128).unwrap()[64], 18);
    }

    #[test]
    #[should_panic(expected = "bytes 0..129 are not inside a buffer of 128")]
    fn loans_stay_inside() {
        let _ = Memory::new(128).unwrap().lend(0..129);
    }

    #[test]
    fn too_much_is_refused() {
        assert!(Memory::new(usize::MAX / 2).is_none());
    }
}
