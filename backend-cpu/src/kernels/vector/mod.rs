//! Kernels on vectors of f32, written once for all vector units: [`Vector`] is what a unit must do.
//!
//! A value's result does not depend on where in a vector it lies: ends of rows go through the same operations, in
//! vectors that are filled up. So rows may be cut anywhere between values.

mod add;
mod attention;
mod convert;
mod glu;
mod math;
mod norm;
mod rope;
mod unit;

pub(super) use add::{add_scaled, scale};
pub(super) use attention::{attend, merge};
pub(super) use convert::to_f16;
pub(super) use glu::{glu, soft_cap};
pub(super) use norm::{rms_norm, softmax};
pub(super) use rope::rotate;
pub(super) use unit::{MOST, Vector};
