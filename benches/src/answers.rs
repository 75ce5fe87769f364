//! Answers to prompts that mean nothing, for timing.

use engine_core::tokenizer::TokenId;
use engine_core::{Engine, EngineError, Event, Prompt, Request, Stats};

/// Answers a prompt of `n_prompt` made-up tokens on an empty sequence.
///
/// # Errors
/// A prompt that does not fit the context; a device failure.
pub fn answer(
    engine: &mut Engine,
    n_prompt: u32,
    max_tokens: u32,
) -> Result<(Vec<TokenId>, Stats), EngineError> {
    let prompt = (0..n_prompt).map(|i| TokenId(1000 + i * 37 % 4000)).collect();
    let request = Request { max_tokens: Some(max_tokens), ..Request::from(Prompt::Tokens(prompt)) };
    let mut ids = Vec::new();
    for event in engine.session().generate(&request)? {
        match event? {
            Event::Token { id, .. } => ids.push(id),
            Event::Done { stats, .. } => return Ok((ids, stats)),
        }
    }
    unreachable!("an answer ends with Done")
}
