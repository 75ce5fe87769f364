//! What a caller hears of an answer.

use crate::stats::Stats;
use crate::tokenizer::TokenId;

/// What happens while a request is answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// One more token of the answer.
    Token {
        /// The token.
        id: TokenId,
        /// Text that became certain with it; often empty. All texts joined are the answer.
        text: String,
    },
    /// The answer is complete. The last event.
    Done {
        /// Why it ended.
        reason: FinishReason,
        /// Counts and times.
        stats: Stats,
    },
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
    /// The model ended its turn.
    EndOfTurn,
    /// A stop string came up.
    Stop,
    /// The answer has as many tokens as were asked for.
    MaxTokens,
    /// The KV cache is full.
    ContextFull,
    /// The caller asked to stop.
    Cancelled,
}
