//! Where a shard lives, and the token-count buckets plans are made for.

use serde::{Deserialize, Serialize};

/// Where one shard of the model lives and which device computes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// In host memory, computed by the CPU.
    Cpu,
    /// Stays in VRAM, computed by the GPU.
    Pinned,
    /// In host memory, copied to a VRAM slot just in time, computed by the GPU.
    Streamed,
}

/// The token-count bucket of a pass: a pass uses the smallest tier that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Tier(u32);

impl Tier {
    /// The buckets plans are built for, in tokens per pass. A plan is the best for as many as its tier holds; from 4 on
    /// tiers double, so that no pass is run with a plan for more than twice its tokens.
    pub const ALL: [Tier; 11] = [
        Tier(1),
        Tier(4),
        Tier(8),
        Tier(16),
        Tier(32),
        Tier(64),
        Tier(128),
        Tier(256),
        Tier(512),
        Tier(1024),
        Tier(2048),
    ];

    /// The smallest tier that holds `n_tokens`, or `None` when no tier is large enough.
    pub fn holding(n_tokens: u32) -> Option<Tier> {
        Tier::ALL.into_iter().find(|tier| tier.0 >= n_tokens)
    }

    /// Most tokens a pass of this tier may have.
    pub const fn n_tokens(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smallest_tier_that_holds() {
        assert_eq!(Tier::holding(1), Some(Tier(1)));
        assert_eq!(Tier::holding(2), Some(Tier(4)));
        assert_eq!(Tier::holding(512), Some(Tier(512)));
        assert_eq!(Tier::holding(4096), None);
    }
}
