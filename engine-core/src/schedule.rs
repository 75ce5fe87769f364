//! A plan as ordered steps: which shards run where, one after the other.

use std::ops::Range;

use crate::model::Shard;

/// Where a step runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// Host memory, computed by the CPU.
    Cpu,
}

/// The longest run of consecutive shards on one device: one submission of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// Who runs it.
    pub device: Device,
    /// Which shards, by their place in running order.
    pub shards: Range<usize>,
}

/// One thing that the executor does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Runs shards on a device.
    Run(Split),
}

/// The steps of a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// All shards of the model in running order.
    pub shards: Vec<Shard>,
    /// What to do, in order.
    pub steps: Vec<Step>,
}

impl Schedule {
    /// Runs every shard of a model with `n_layer` layers on the CPU.
    pub fn all_cpu(n_layer: u32) -> Schedule {
        let shards = Shard::all(n_layer);
        let split = Split { device: Device::Cpu, shards: 0..shards.len() };
        Schedule { shards, steps: vec![Step::Run(split)] }
    }
}
