//! A member of the lattice in a few numbers, and its neighbours.

use crate::placement::Placement;

/// A layout in a few numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Counts {
    pub(super) output: Placement,
    pub(super) attention: Part,
    pub(super) ffn: Part,
    /// Slots of the largest streamed shard in the ring.
    pub(super) n_slots: u32,
}

impl Counts {
    /// What two members differ in that no few steps lead over.
    pub(super) fn kind(&self) -> [bool; 4] {
        let Counts { output, attention, ffn, n_slots } = self;
        [*output == Placement::Pinned, attention.streamed > 0, ffn.streamed > 0, *n_slots > 1]
    }

    /// The same told apart finer, of a model with so many layers.
    pub(super) fn fine_kind(&self, n_layer: u32) -> [u32; 6] {
        let Counts { output, attention, ffn, n_slots } = self;
        let yes = u32::from;
        [
            yes(*output == Placement::Pinned),
            yes(attention.streamed > 0),
            yes(ffn.streamed > 0),
            yes(ffn.pinned > 0),
            *n_slots,
            4 * attention.pinned / n_layer,
        ]
    }
}

/// How many shards of a list are pinned, and of the others streamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Part {
    pub(super) pinned: u32,
    pub(super) streamed: u32,
}

impl Part {
    /// All on the CPU.
    pub(super) const NONE: Part = Part { pinned: 0, streamed: 0 };

    /// So many pinned, or as many as leave the streamed ones in peace. Where all others are streamed they still are.
    pub(super) fn with_pinned(self, pinned: u32, n: u32) -> Part {
        if self.streamed > 0 && self.pinned + self.streamed == n {
            return Part { pinned, streamed: n - pinned };
        }
        Part { pinned: pinned.min(n - self.streamed), ..self }
    }

    pub(super) fn with_one_less(self, n: u32) -> Part {
        self.with_pinned(self.pinned.saturating_sub(1), n)
    }

    /// Parts of `n` shards a step of `size` away.
    pub(super) fn steps(self, size: u32, n: u32) -> [Part; 6] {
        let Part { pinned, streamed } = self;
        let (less, more) = (pinned.saturating_sub(size), pinned + size);
        let steps = [
            Part { pinned: less, streamed },
            Part { pinned: less, streamed: streamed + (pinned - less) },
            Part { pinned: more, streamed },
            Part { pinned: more, streamed: streamed.saturating_sub(size) },
            Part { pinned, streamed: streamed.saturating_sub(size) },
            Part { pinned, streamed: streamed + size },
        ];
        steps.map(|part| {
            let pinned = part.pinned.min(n);
            Part { pinned, streamed: part.streamed.min(n - pinned) }
        })
    }
}
