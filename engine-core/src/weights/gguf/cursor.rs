//! Takes little-endian numbers and byte strings off the front of a file, never past its end.

/// The file ended before something that it promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Short {
    /// Where the missing thing starts.
    pub at: u64,
    /// Its length in bytes, saturating.
    pub needed: u64,
    /// Bytes from there to the end of the file.
    pub left: u64,
}

/// A position in a file's bytes.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes, at: 0 }
    }

    /// Bytes taken so far.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// The next `n` bytes.
    pub(super) fn take(&mut self, n: u64) -> Result<&'a [u8], Short> {
        let rest = &self.bytes[self.at..];
        let taken = usize::try_from(n).ok().and_then(|n| rest.get(..n));
        let taken = taken.ok_or_else(|| self.short(n))?;
        self.at += taken.len();
        Ok(taken)
    }

    /// The next `N` bytes.
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Short> {
        let taken = self.take(N as u64)?;
        Ok(taken.try_into().expect("take gives exactly what was asked for"))
    }

    pub(super) fn u32(&mut self) -> Result<u32, Short> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Short> {
        self.array().map(u64::from_le_bytes)
    }

    /// A byte string behind its length.
    pub(super) fn string(&mut self) -> Result<&'a [u8], Short> {
        let length = self.u64()?;
        self.take(length)
    }

    /// A count of things that follow, each at least `min_bytes` long: as many as the rest of the file can hold.
    pub(super) fn count(&mut self, min_bytes: u64) -> Result<usize, Short> {
        let count = self.u64()?;
        self.holds(count, min_bytes)
    }

    /// `count` as an index, when the rest of the file can hold so many things of at least `min_bytes`.
    pub(super) fn holds(&self, count: u64, min_bytes: u64) -> Result<usize, Short> {
        let needed = count.saturating_mul(min_bytes);
        if needed > self.left() {
            return Err(self.short(needed));
        }
        Ok(usize::try_from(count).expect("not more things than bytes in memory"))
    }

    fn left(&self) -> u64 {
        (self.bytes.len() - self.at) as u64
    }

    fn short(&self, needed: u64) -> Short {
        Short { at: self.at as u64, needed, left: self.left() }
    }
}
