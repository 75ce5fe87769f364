//! What is to be decided: shards, machine, budget.

use crate::extras::Extras;
use crate::profile::MachineProfile;
use crate::shard::ShardCost;
use crate::units::{Bytes, BytesPerSec};

/// Where should each of these shards live?
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    /// What each shard costs in the pass that is planned for, in running order.
    pub shards: &'a [ShardCost],
    /// The machine.
    pub machine: &'a MachineProfile,
    /// VRAM that everything together may take; zero leaves the GPU alone.
    pub vram: Bytes,
    /// Activations that a hand-off moves, of one ubatch.
    pub residual: Bytes,
    /// The program that runs the plan.
    pub runtime: Runtime,
}

/// What a program that runs plans does where a plan leaves it open.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Runtime {
    /// The CPU computes the shards placed there, whatever the number of tokens.
    #[default]
    Baton,
    /// In a pass of many tokens shards placed on the CPU are copied to the GPU when their turn comes, and computed
    /// there: llama.cpp and what is built on it, from 32 tokens on.
    CopiesForBatches {
        /// Rate of these copies.
        rate: BytesPerSec,
    },
    /// Baton with passes of several ubatches, or with what its engine does not have yet.
    With(Extras),
}

impl Problem<'_> {
    /// How its program runs passes.
    pub(crate) fn extras(&self) -> Extras {
        match self.runtime {
            Runtime::With(extras) => extras,
            Runtime::Baton | Runtime::CopiesForBatches { .. } => Extras::default(),
        }
    }

    /// Activations of all ubatches of a pass.
    pub(crate) fn residuals(&self) -> Bytes {
        self.residual * u64::from(self.extras().ubatches)
    }

    /// VRAM for residuals that wait for a shard to be done with another ubatch.
    pub(crate) fn waiting_residuals(&self) -> Bytes {
        self.residual * u64::from(self.extras().ubatches - 1)
    }

    /// Seconds of a pass that no shard is the cause of.
    pub(crate) fn pass_overhead(&self) -> f64 {
        self.machine.pass.get() * f64::from(self.extras().ubatches)
    }
}
