//! What was measured on a machine, and the time of an op read off it. Knows no model and no placement.

mod check;
mod curve;
mod kernels;
mod machine;

pub use machine::{
    AttentionPoint, AttentionTimes, CpuProfile, GpuProfile, Kernels, Link, MachineProfile,
    PROFILE_SCHEMA, ProductKind, ProductPoint, ProductTimes,
};
