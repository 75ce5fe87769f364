//! The KV cache: how cells are laid out in a buffer, and which cell holds which token. No device calls.
//!
//! A cell is room for one token in one layer; cell `c` of a layer is row `c` of its K and V arrays. Layers with the same
//! window form a group, in which a token has the same cell in every layer. Sequences hold lists of cells, so several share
//! one cache without owning fixed parts of it.

mod cells;
mod group;
mod layout;

pub use cells::{KvCells, KvError, SeqId};
pub use layout::{KvGroups, KvViews};
