//! Runs tokens of sequences through the model: ubatches, KV cells and the executor together.

use std::collections::BTreeMap;

use crate::batch::{BatchToken, PassInputs, ubatches};
use crate::cancel::Cancel;
use crate::error::EngineError;
use crate::executor::Executor;
use crate::kv::{KvCells, KvGroups, SeqId};
use crate::model::ModelConfig;
use crate::scratch::PassLimits;

/// A model with its KV cells.
pub(crate) struct Runner {
    executor: Executor,
    cells: KvCells,
    limits: PassLimits,
    n_vocab: usize,
    logits: Vec<f32>,
}

impl Runner {
    /// `config` and `limits` are those that the executor's memory was laid out for.
    pub(crate) fn new(executor: Executor, config: &ModelConfig, limits: PassLimits) -> Runner {
        let cells = KvCells::new(&KvGroups::of(&config.layers, limits), limits.n_cells);
        let n_vocab = config.n_vocab as usize;
        Runner { executor, cells, limits, n_vocab, logits: Vec::new() }
    }

    /// What runs the passes.
    pub(crate) fn executor(&self) -> &Executor {
        &self.executor
    }

    /// What runs the passes.
    pub(crate) fn executor_mut(&mut self) -> &mut Executor {
        &mut self.executor
    }

    /// Tokens of `seq` that were run.
    pub(crate) fn len(&self, seq: SeqId) -> usize {
        self.cells.len(seq)
    }

    /// Most tokens of a pass that gives the logits of each.
    pub(crate) fn most_checked(&self) -> usize {
        self.limits.n_tokens.min(self.limits.n_outputs) as usize
    }

    /// Forgets all but the first `len` tokens of `seq`, or all where it cannot go on from those. Gives how many are left.
    pub(crate) fn truncate(&mut self, seq: SeqId, len: usize) -> usize {
        self.cells.truncate(seq, len)
    }

    /// Runs `tokens`, each the next one of its sequence, and hands over the logits of those that want them, in order.
    ///
    /// # Errors
    /// No free cells, a device failure, or a cancelled run. Sequences then keep the tokens of the passes that were
    /// finished, or where ubatches are run together, of those before them.
    pub(crate) fn run(
        &mut self,
        tokens: &[BatchToken],
        cancel: &Cancel,
        mut on_logits: impl FnMut(&mut [f32]) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let ubatches: Vec<&[BatchToken]> = ubatches(tokens, self.limits).collect();
        let mut rest = &ubatches[..];
        while !rest.is_empty() {
            let (together, after) = rest.split_at(self.n_together(rest));
            self.run_together(together, after.len() as u32, cancel)?;
            for row in self.logits.chunks_exact_mut(self.n_vocab) {
                on_logits(row)?;
            }
            rest = after;
        }
        Ok(())
    }

    /// How many of the next ubatches may be run together: logits come of the last one alone.
    fn n_together(&self, ubatches: &[&[BatchToken]]) -> usize {
        let wants_none = |ubatch: &&&[BatchToken]| !ubatch.iter().any(|token| token.wants_logits);
        let n = ubatches.iter().take_while(wants_none).count() + 1;
        n.min(ubatches.len()).min(self.executor.most_ubatches() as usize)
    }

    fn run_together(
        &mut self,
        ubatches: &[&[BatchToken]],
        n_after: u32,
        cancel: &Cancel,
    ) -> Result<(), EngineError> {
        let before = self.cells.lengths(ubatches.iter().copied().flatten().map(|token| token.seq));
        let result = self.extend_and_run(ubatches, n_after, cancel);
        if result.is_err() {
            for (seq, len) in before {
                self.cells.truncate(seq, len);
            }
        }
        result
    }

    fn extend_and_run(
        &mut self,
        ubatches: &[&[BatchToken]],
        n_after: u32,
        cancel: &Cancel,
    ) -> Result<(), EngineError> {
        let mut inputs = Vec::with_capacity(ubatches.len());
        for ubatch in ubatches {
            self.extend(ubatch)?;
            inputs.push(PassInputs::gather(ubatch, &self.cells));
        }
        self.executor.run(&inputs, n_after, cancel, &mut self.logits)?;
        Ok(())
    }

    /// Gives each token of an ubatch a cell.
    fn extend(&mut self, ubatch: &[BatchToken]) -> Result<(), EngineError> {
        let mut n_new = BTreeMap::new();
        for token in ubatch {
            *n_new.entry(token.seq).or_default() += 1;
        }
        for (seq, n) in n_new {
            self.cells.extend(seq, n)?;
        }
        Ok(())
    }
}
