//! Activations rounded to bytes, once for all ops that are prepared together.

use engine_core::op::View;

use crate::kernels::activations::{BLOCK, Q8Block};
use crate::table::KernelTable;
use crate::threads::{Crew, MatrixMut};

/// Rounded copies of views.
#[derive(Default)]
pub(crate) struct Quantised {
    /// The first `in_use` are of ops being prepared; the rest keep their memory for later.
    slots: Vec<Slot>,
    in_use: usize,
}

struct Slot {
    view: View,
    blocks: Vec<Q8Block>,
}

/// Names a rounded view.
#[derive(Clone, Copy)]
pub(super) struct SlotId(usize);

impl Quantised {
    /// Forgets all views, since their memory may change.
    pub(crate) fn clear(&mut self) {
        self.in_use = 0;
    }

    pub(super) fn blocks(&self, slot: SlotId) -> &[Q8Block] {
        &self.slots[slot.0].blocks
    }

    /// The slot that holds `view`, whose values are `x`; rounds them if none does.
    pub(super) fn slot_of(
        &mut self,
        view: &View,
        x: &[f32],
        kernels: KernelTable,
        crew: &mut Crew<'_>,
    ) -> SlotId {
        let held = self.slots[..self.in_use].iter().position(|slot| slot.view == *view);
        SlotId(held.unwrap_or_else(|| {
            if self.in_use == self.slots.len() {
                self.slots.push(Slot { view: *view, blocks: Vec::new() });
            }
            let slot = &mut self.slots[self.in_use];
            slot.view = *view;
            slot.blocks.resize(x.len() / BLOCK, bytemuck::Zeroable::zeroed());
            quantise(x, &mut slot.blocks, kernels, crew);
            self.in_use += 1;
            self.in_use - 1
        }))
    }
}

/// Values below which rounding them costs less than calling the other threads.
const ALONE: usize = 16 * 1024;

/// Blocks that a thread rounds at a time.
const TILE_BLOCKS: usize = 64;

fn quantise(x: &[f32], blocks: &mut [Q8Block], kernels: KernelTable, crew: &mut Crew<'_>) {
    if x.len() <= ALONE {
        return kernels.quantise(x, blocks);
    }
    let tiles = MatrixMut::new(blocks, 1).cut(TILE_BLOCKS, 1);
    crew.run(&|_| {
        while let Some(mut tile) = tiles.take() {
            let values = tile.rows().start * BLOCK..tile.rows().end * BLOCK;
            kernels.quantise(&x[values], tile.values());
        }
    });
}
