//! One sequence: which of its tokens were run, and running more.

use std::time::Instant;

use super::Generation;
use crate::batch::BatchToken;
use crate::cancel::Cancel;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::kv::SeqId;
use crate::model::RopeConfig;
use crate::perplexity::Chunk;
use crate::request::{Request, ValidRequest};
use crate::tokenizer::TokenId;

/// One sequence of tokens. Its KV cells stay filled from request to request, so a conversation runs only what is new.
pub struct Session<'e> {
    engine: &'e mut Engine,
    seq: SeqId,
    /// Tokens that were run, and that the next one sees as far as windows let it.
    tokens: Vec<TokenId>,
    cancel: Cancel,
}

impl<'e> Session<'e> {
    pub(crate) fn new(engine: &'e mut Engine) -> Session<'e> {
        Session { engine, seq: SeqId(0), tokens: Vec::new(), cancel: Cancel::default() }
    }

    /// The engine it runs on.
    pub fn engine(&self) -> &Engine {
        self.engine
    }

    /// A flag that ends the answer in progress at the next safe point: between tokens, and within a long prefill
    /// between shards.
    pub fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.keep(0);
    }

    /// Answers a request. What the prompt has in common with the tokens already run is not run again, unless layers with
    /// a window have forgotten cells that it needs.
    ///
    /// # Errors
    /// A request that cannot be met: it is checked here, before anything is computed.
    pub fn generate(&mut self, request: &Request) -> Result<Generation<'_, 'e>, EngineError> {
        let accepted = Instant::now();
        self.cancel.reset();
        let request = ValidRequest::check(request, self.engine)?;
        self.engine.parts().0.executor_mut().expect_answer(request.max_tokens);
        Ok(Generation::new(self, request, accepted))
    }

    /// Runs a text as a sequence of its own and hands over the logits of its scored positions, in order.
    ///
    /// # Errors
    /// A text longer than the context; a device failure.
    pub fn score(
        &mut self,
        chunk: &Chunk,
        mut on_logits: impl FnMut(usize, &[f32]),
    ) -> Result<(), EngineError> {
        let n_ctx = self.engine.n_ctx();
        if chunk.tokens.len() > n_ctx as usize {
            return Err(EngineError::PromptTooLong { n_prompt: chunk.tokens.len(), n_ctx });
        }
        self.keep(0);
        let mut position = chunk.scored.start;
        self.run(
            &chunk.tokens,
            |index| chunk.scored.contains(&index),
            |logits| {
                on_logits(position, logits);
                position += 1;
                Ok(())
            },
        )
    }

    /// Tokens that were run.
    pub(super) fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// Keeps the first `len` tokens, or none where layers with a window no longer have all cells that the token after
    /// them sees. Gives how many are left.
    pub(super) fn keep(&mut self, len: usize) -> usize {
        let kept = self.engine.parts().0.truncate(self.seq, len);
        self.tokens.truncate(kept);
        kept
    }

    /// Most tokens that one pass can check besides the next one: it has logits for each of them, and any of them can be
    /// forgotten again. None where rotations depend on how long the pass makes the sequence, for then logits do too.
    pub(super) fn most_proposed(&mut self) -> usize {
        if self.engine.config().ropes.iter().any(RopeConfig::depends_on_length) {
            return 0;
        }
        let free = self.engine.n_ctx() as usize - self.tokens.len();
        self.engine.parts().0.most_checked().min(free).saturating_sub(1)
    }

    /// Runs tokens that follow those already run. `wants_logits` is asked with each one's index in the sequence.
    pub(super) fn run(
        &mut self,
        tokens: &[TokenId],
        wants_logits: impl Fn(usize) -> bool,
        on_logits: impl FnMut(&mut [f32]) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let start = self.tokens.len();
        let batch: Vec<BatchToken> = (start..)
            .zip(tokens)
            .map(|(i, &id)| BatchToken::text(id, self.seq, i as u32, wants_logits(i)))
            .collect();
        let (runner, _) = self.engine.parts();
        let result = runner.run(&batch, &self.cancel, on_logits);
        let n_run = runner.len(self.seq) - start;
        self.tokens.extend(&tokens[..n_run]);
        result
    }
}

impl Drop for Session<'_> {
    /// Gives the sequence's KV cells back.
    fn drop(&mut self) {
        self.keep(0);
    }
}
