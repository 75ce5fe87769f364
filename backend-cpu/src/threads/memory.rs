//! Memory that is lent out in pieces: many readers or one writer for each byte, checked when it is lent.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

/// Bytes of a cache line, at whose start memory begins.
const LINE: usize = 64;

/// The unit of allocation: as large as alignments go for which the system hands out zeroed pages as they are touched,
/// instead of writing them all at once.
type Unit = u128;

/// A holder of memory: bytes of zeros at first, aligned to a cache line, freed with their last holder. Like a `RefCell`,
/// but per range of bytes; and what is lent counts as in use until the holder's [`reclaim`](Memory::reclaim), whose
/// `&mut` shows that nobody has it any more.
///
/// Each thread that uses the memory has a holder of its own, and their loans exclude each other. Between the loans of one
/// holder a conflict is an answer; between those of two it is a race that nobody ordered, and panics.
pub(crate) struct Memory {
    block: Arc<Block>,
    loans: RefCell<Vec<Loan>>,
    /// The number of this holder in the block's book; absent while it is the only one and so needs no book.
    holder: Option<u32>,
}

struct Block {
    /// Owned, from a box. A pointer, because a reference to the whole would exclude the loans.
    units: *mut [Unit],
    /// Bytes before the first cache line.
    skipped: usize,
    len: usize,
    book: Mutex<Book>,
}

/// What all holders have lent.
#[derive(Default)]
struct Book {
    loans: Vec<(u32, Loan)>,
    /// How many holders have a number.
    holders: u32,
}

/// Bytes that are in use.
#[derive(Debug, Clone)]
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
        let block = Block { units: Box::into_raw(units), skipped, len, book: Mutex::default() };
        Some(Memory { block: Arc::new(block), loans: RefCell::default(), holder: None })
    }

    /// Another holder of the same bytes.
    pub(crate) fn share(&mut self) -> Memory {
        // From here on the book must have all loans: there are none now.
        self.reclaim();
        self.holder.get_or_insert_with(|| self.block.new_holder());
        let holder = Some(self.block.new_holder());
        Memory { block: Arc::clone(&self.block), loans: RefCell::default(), holder }
    }

    /// Number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.block.len
    }

    /// Ends all loans of this holder.
    pub(crate) fn reclaim(&mut self) {
        self.loans.get_mut().clear();
        if let Some(this) = self.holder {
            self.block.book().loans.retain(|(holder, _)| *holder != this);
        }
    }

    /// Lends bytes to read.
    ///
    /// # Panics
    /// If `range` is not inside the memory, or another holder has lent some of it to write.
    pub(crate) fn lend(&self, range: Range<usize>) -> Result<&[u8], Conflict> {
        let start = self.enter(Loan { range: range.clone(), writes: false })?;
        // SAFETY: the range is inside the allocation, which `&self` keeps; no loan of these bytes writes, and none will
        // before `reclaim`, which the borrow returned here keeps from being called. With several holders, the book's
        // lock orders this after whatever the last writer did before its own `reclaim`.
        Ok(unsafe { std::slice::from_raw_parts(start, range.len()) })
    }

    /// Lends bytes to write.
    ///
    /// # Panics
    /// If `range` is not inside the memory, or another holder has lent some of it.
    #[expect(clippy::mut_from_ref, reason = "the loans see to it that a byte has one writer")]
    pub(crate) fn lend_mut(&self, range: Range<usize>) -> Result<&mut [u8], Conflict> {
        let start = self.enter(Loan { range: range.clone(), writes: true })?;
        // SAFETY: as in `lend`, and there is no other loan of these bytes at all.
        Ok(unsafe { std::slice::from_raw_parts_mut(start, range.len()) })
    }

    /// Whether this holder has lent any of these bytes out for writing.
    pub(crate) fn is_written(&self, range: Range<usize>) -> bool {
        let read = Loan { range, writes: false };
        self.loans.borrow().iter().any(|loan| loan.excludes(&read))
    }

    /// Notes a loan that conflicts with no other, and returns where its bytes start.
    fn enter(&self, loan: Loan) -> Result<*mut u8, Conflict> {
        let Block { len, skipped, units, .. } = *self.block;
        let Range { start, end } = loan.range;
        assert!(
            start <= end && end <= len,
            "bytes {start}..{end} are not inside a buffer of {len}"
        );
        let mut loans = self.loans.borrow_mut();
        if loans.iter().any(|other| other.excludes(&loan)) {
            return Err(Conflict);
        }
        if let Some(holder) = self.holder {
            self.block.enter(holder, &loan);
        }
        loans.push(loan);
        Ok(units.cast::<u8>().wrapping_add(skipped + start))
    }
}

impl Loan {
    /// Whether the two may not be out at once.
    fn excludes(&self, other: &Loan) -> bool {
        let (a, b) = (&self.range, &other.range);
        (self.writes || other.writes) && a.start.max(b.start) < a.end.min(b.end)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.reclaim();
    }
}

impl Block {
    fn new_holder(&self) -> u32 {
        let mut book = self.book();
        book.holders += 1;
        book.holders
    }

    /// Notes a loan in the book.
    ///
    /// # Panics
    /// If it conflicts with that of another holder.
    fn enter(&self, holder: u32, loan: &Loan) {
        let mut book = self.book();
        if book.loans.iter().any(|(other, noted)| *other != holder && noted.excludes(loan)) {
            drop(book);
            panic!("broken schedule: bytes {:?} are in use by another queue", loan.range);
        }
        book.loans.push((holder, loan.clone()));
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().expect("nothing panics with this lock held")
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: it came from a box and is given up here; without a holder nothing is lent any more.
        drop(unsafe { Box::from_raw(self.units) });
    }
}

// SAFETY: the units are owned as by a box.
unsafe impl Send for Block {}
// SAFETY: the units are reached through loans alone, which the locked book keeps from racing.
unsafe impl Sync for Block {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zeroed_and_aligned() {
        let memory = Memory::new(100).unwrap();
        assert_eq!(memory.len(), 100);
        let bytes = memory.lend(0..100).unwrap();
        assert_eq!(bytes, [0; 100]);
        assert_eq!(bytes.as_ptr() as usize % 64, 0);
    }

    #[test]
    fn a_byte_has_many_readers_or_one_writer() {
        let mut memory = Memory::new(128).unwrap();
        memory.lend_mut(7..8).unwrap()[0] = 9;
        memory.reclaim();
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
    fn holders_share_bytes_and_reclaim_their_own_loans() {
        let mut here = Memory::new(128).unwrap();
        let there = here.share();
        here.lend_mut(0..64).unwrap()[3] = 5;
        let there = std::thread::spawn(move || {
            there.lend_mut(64..128).unwrap()[0] = 6;
            there
        });
        let there = there.join().unwrap();
        here.reclaim();
        assert_eq!(here.lend(0..64).unwrap()[3], 5);
        assert_eq!(there.lend(0..4).unwrap()[3], 5, "both may read");
        drop(there);
        assert_eq!(here.lend(64..65).unwrap(), [6], "a loan ends with its holder");
    }

    #[test]
    #[should_panic(expected = "broken schedule: bytes 4..8 are in use by another queue")]
    fn a_race_between_holders_panics() {
        let mut here = Memory::new(128).unwrap();
        let there = here.share();
        let _ = here.lend(0..5);
        let _ = there.lend_mut(4..8);
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
