//! Ops as data: what a backend can be asked to compute, on which views, with shapes that can be counted.
//!
//! All arrays are row-major and contiguous. Activations are f32; an op that reads weights takes any format its
//! backend supports. Indices are non-negative `I32`. An op owns no memory and knows no device.

mod count;
mod kinds;
mod view;
mod views;

pub use kinds::{
    Activation, Add, AddBias, Attention, CombineExperts, GatherRows, Glu, MatMul, MatMulExperts,
    Op, RmsNorm, Rope, RopePairs, RouteExperts, ScatterRows, SoftCap,
};
pub use view::View;
