//! Tokens of a prompt and of its answer, of which some may be chosen before they are handed over.

use crate::tokenizer::TokenId;

/// The prompt, then the answer as far as it is chosen.
pub(super) struct Transcript {
    tokens: Vec<TokenId>,
    n_prompt: usize,
    n_given: usize,
}

impl Transcript {
    /// No answer yet.
    pub(super) fn new(prompt: Vec<TokenId>) -> Transcript {
        Transcript { n_prompt: prompt.len(), tokens: prompt, n_given: 0 }
    }

    /// All tokens.
    pub(super) fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// The prompt, and the answer as far as it is chosen.
    pub(super) fn parts(&self) -> (&[TokenId], &[TokenId]) {
        self.tokens.split_at(self.n_prompt)
    }

    /// Tokens of the prompt.
    pub(super) fn n_prompt(&self) -> usize {
        self.n_prompt
    }

    /// Tokens of the answer that were handed over.
    pub(super) fn n_given(&self) -> usize {
        self.n_given
    }

    /// Whether tokens of the answer are chosen and not yet handed over.
    pub(super) fn has_next(&self) -> bool {
        self.n_prompt + self.n_given < self.tokens.len()
    }

    /// Adds the next token of the answer.
    pub(super) fn choose(&mut self, token: TokenId) {
        self.tokens.push(token);
    }

    /// The next token of the answer to hand over.
    ///
    /// # Panics
    /// If none is chosen.
    pub(super) fn give(&mut self) -> TokenId {
        let token = self.tokens[self.n_prompt + self.n_given];
        self.n_given += 1;
        token
    }
}
