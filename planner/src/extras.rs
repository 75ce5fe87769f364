//! How passes are run besides one ubatch at a time with each shard on one device ([`Extras`]), and what of it Baton's
//! engine does not have yet, so that what it would bring can be predicted ([`Switches`]).

use serde::{Deserialize, Serialize};

use crate::shard::ShardCost;
use crate::units::Bytes;

/// One option of an engine that Baton's does not have yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Switch {
    /// Of an FFN on the CPU the GPU computes some of the rows at the same time.
    SplitFfn,
}

impl Switch {
    /// All of them.
    pub const ALL: [Switch; 1] = [Switch::SplitFfn];

    /// Its name as typed.
    pub const fn name(self) -> &'static str {
        match self {
            Switch::SplitFfn => "split-ffn",
        }
    }
}

/// The options that a prediction may use; none by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Switches {
    /// [`Switch::SplitFfn`].
    pub split_ffn: bool,
}

impl FromIterator<Switch> for Switches {
    fn from_iter<I: IntoIterator<Item = Switch>>(switches: I) -> Switches {
        let mut on = Switches::default();
        for switch in switches {
            match switch {
                Switch::SplitFfn => on.split_ffn = true,
            }
        }
        on
    }
}

/// How passes are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Extras {
    /// Ubatches that a shard computes in its turn, one after the other, so that one copy serves them all: a pass is so
    /// many of them. Their residuals wait in VRAM meanwhile.
    pub ubatches: u32,
    /// How an FFN that is placed on the CPU is split.
    pub split: Option<Split>,
}

impl Default for Extras {
    fn default() -> Extras {
        Extras { ubatches: 1, split: None }
    }
}

/// The share of an FFN's rows (of gate and up, and as many columns of down) that the GPU computes while the CPU computes
/// the rest; both have a part of each sum, and the parts are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Split {
    /// Of sixteen equal parts of the rows the GPU computes so many: from 1 to 15.
    pub sixteenths: u32,
    /// Where the GPU has them from.
    pub rows: Rows,
}

/// Where the GPU has its rows of a split FFN from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rows {
    /// They stay in VRAM.
    Pinned,
    /// They are copied just in time, through the ring. Experts of which a pass reads only some are not split so.
    Streamed,
}

impl Split {
    /// The splits that are tried.
    pub(crate) fn all() -> impl Iterator<Item = Split> {
        let shares = [1, 2, 3, 4, 6, 8, 10, 12, 14];
        let both = [Rows::Pinned, Rows::Streamed].into_iter();
        both.flat_map(move |rows| shares.map(|sixteenths| Split { sixteenths, rows }))
    }

    /// The GPU's share, from 0 to 1.
    pub(crate) fn share(self) -> f64 {
        f64::from(self.sixteenths) / 16.0
    }

    /// The GPU's part of an FFN's weights.
    pub(crate) fn of(self, weights: Bytes) -> Bytes {
        Bytes::new((weights.get() * u64::from(self.sixteenths)).div_ceil(16))
    }

    /// What of an FFN stays in VRAM.
    pub(crate) fn pinned(self, ffn: &ShardCost) -> Bytes {
        match self.rows {
            Rows::Pinned => self.of(ffn.weights),
            Rows::Streamed => Bytes::ZERO,
        }
    }
}
