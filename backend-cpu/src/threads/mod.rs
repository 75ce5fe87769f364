//! What several threads may touch at once: the threads themselves, memory lent out in pieces, and matrices cut into
//! tiles. The unsafe code here makes the rest of the crate safe; nothing here knows an op.

mod memory;
mod team;
mod tiles;

pub(crate) use memory::{Conflict, Memory};
pub(crate) use team::{Crew, Team};
pub(crate) use tiles::{MatrixMut, Tile, Tiles};
