//! Softmax attention.
//!
//! Many tokens that see the same cells are worked on together, with a token and head in each lane, so that a cell is read
//! once for all of them (`tile`). A token by itself has its cells in the lanes, and they may be cut into pieces (`cells`).

mod cells;
mod product;
mod tile;

use half::f16;

pub(crate) use cells::attend_cells;
pub(crate) use tile::attend_tokens;

use super::Vector;
use crate::kernels::heads::Heads;

/// How keys and values are stored.
trait Stored: Copy {
    fn load<U: Vector>(unit: U, x: &[Self]) -> U::V;
    fn load_some<U: Vector>(unit: U, x: &[Self]) -> U::V;
}

impl Stored for f32 {
    #[inline(always)]
    fn load<U: Vector>(unit: U, x: &[f32]) -> U::V {
        unit.load(x)
    }

    #[inline(always)]
    fn load_some<U: Vector>(unit: U, x: &[f32]) -> U::V {
        unit.load_some(x, 0.0)
    }
}

impl Stored for f16 {
    #[inline(always)]
    fn load<U: Vector>(unit: U, x: &[f16]) -> U::V {
        unit.load_f16(x)
    }

    #[inline(always)]
    fn load_some<U: Vector>(unit: U, x: &[f16]) -> U::V {
        unit.load_some_f16(x)
    }
}

/// Keys or values of one head in all cells.
#[derive(Clone, Copy)]
struct HeadRows<'a, T> {
    values: &'a [T],
    n_kv_head: usize,
    kv_head: usize,
    dim: usize,
}

impl<'a, T> HeadRows<'a, T> {
    #[inline(always)]
    fn row(&self, cell: i32) -> &'a [T] {
        let cell = usize::try_from(cell).expect("cells count from 0");
        &self.values[(cell * self.n_kv_head + self.kv_head) * self.dim..][..self.dim]
    }
}

impl Heads<'_> {
    /// Keys and values of head `kv_head`.
    #[inline(always)]
    fn rows<'a, T>(&self, kv_head: usize, k: &'a [T], v: &'a [T]) -> [HeadRows<'a, T>; 2] {
        let Heads { n_kv_head, key_dim, value_dim, .. } = *self;
        [
            HeadRows { values: k, n_kv_head, kv_head, dim: key_dim },
            HeadRows { values: v, n_kv_head, kv_head, dim: value_dim },
        ]
    }
}
