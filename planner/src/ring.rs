//! The ring: one region of VRAM whose slots streamed shards take turns in.
//!
//! Every streamed shard has a fixed slot, given out in running order from the start of the region; where the next one
//! does not fit before the end, it begins at the start again. A shard may be copied once the last shard that its slot
//! overlaps has been used. So what the timeline waits for is exactly what an executor has to wait for.

use crate::units::Bytes;

/// The slot of one streamed shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Slot {
    /// Index of the shard, in running order.
    pub shard: usize,
    /// Where in the ring it begins.
    pub offset: Bytes,
    /// Its size.
    pub size: Bytes,
    /// How many copies earlier the one was made that must have been used before this one may begin, counted over the
    /// end of a pass into the one before.
    pub after: usize,
}

/// Lays out a ring of `size` bytes for shards of these sizes, given in running order with their indices. `None` when
/// one does not fit.
pub(crate) fn lay_out(size: Bytes, shards: &[(usize, Bytes)]) -> Option<Vec<Slot>> {
    let mut slots = Vec::with_capacity(shards.len());
    let mut end = Bytes::ZERO;
    for &(shard, bytes) in shards {
        let offset = if end + bytes <= size { end } else { Bytes::ZERO };
        end = offset + bytes;
        if end > size {
            return None;
        }
        slots.push(Slot { shard, offset, size: bytes, after: 0 });
    }
    for i in 0..slots.len() {
        slots[i].after = last_overlapped(&slots, i);
    }
    Some(slots)
}

/// Whether slots are in running order and each waits for all that it overlaps.
pub(crate) fn is_safe(slots: &[Slot]) -> bool {
    let waits = |i: usize| (1..=last_overlapped(slots, i)).contains(&slots[i].after);
    slots.is_sorted_by(|a, b| a.shard < b.shard) && (0..slots.len()).all(waits)
}

/// How many copies before slot `i` the latest one was made that overlaps it; at the latest the slot itself, one pass
/// earlier.
fn last_overlapped(slots: &[Slot], i: usize) -> usize {
    let n = slots.len();
    let overlaps =
        |a: &Slot, b: &Slot| a.offset < b.offset + b.size && b.offset < a.offset + a.size;
    (1..=n).find(|back| overlaps(&slots[i], &slots[(i + n - back) % n])).unwrap_or(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(size: u64, sizes: &[u64]) -> Vec<(u64, usize)> {
        let shards: Vec<_> =
            sizes.iter().enumerate().map(|(i, &bytes)| (i, Bytes::new(bytes))).collect();
        let slots = lay_out(Bytes::new(size), &shards).expect("each fits");
        slots.iter().map(|slot| (slot.offset.get(), slot.after)).collect()
    }

    #[test]
    fn equal_shards_take_turns() {
        assert_eq!(slots(20, &[10, 10, 10, 10]), [(0, 2), (10, 2), (0, 2), (10, 2)]);
        assert_eq!(slots(10, &[10, 10]), [(0, 1), (0, 1)]);
        assert_eq!(slots(30, &[10, 10, 10, 10]), [(0, 1), (10, 4), (20, 4), (0, 3)]);
    }

    #[test]
    fn unequal_shards_wait_for_the_last_they_overlap() {
        assert_eq!(slots(12, &[4, 8, 4, 8]), [(0, 2), (4, 2), (0, 2), (4, 2)]);
        assert_eq!(slots(12, &[8, 4, 5, 6]), [(0, 1), (8, 2), (0, 2), (5, 2)]);
        assert_eq!(lay_out(Bytes::new(3), &[(0, Bytes::new(4))]), None);
    }
}
