//! The loop that answers a request: prefill, decode, stop rules.

use std::time::Instant;

use planner::Seconds;

use super::answer_text::AnswerText;
use super::{Event, FinishReason, Session};
use crate::error::EngineError;
use crate::request::ValidRequest;
use crate::stats::Stats;
use crate::tokenizer::TokenId;

/// An answer in progress: an iterator over its events. After an error or [`Event::Done`] there are no more.
pub struct Generation<'s, 'e> {
    session: &'s mut Session<'e>,
    request: ValidRequest,
    answer: Vec<TokenId>,
    state: State,
    text: AnswerText,
    times: Times,
    n_reused: u32,
}

/// What comes next.
#[derive(Debug, Clone, Copy)]
enum State {
    Prefill,
    /// Run this token of the answer.
    Decode(TokenId),
    /// Report the end.
    Ended(FinishReason),
    Silent,
}

#[derive(Debug)]
struct Times {
    accepted: Instant,
    prefill: Seconds,
    first_token: Option<Instant>,
    last_token: Option<Instant>,
}

impl<'s, 'e> Generation<'s, 'e> {
    pub(super) fn new(
        session: &'s mut Session<'e>,
        request: ValidRequest,
        accepted: Instant,
    ) -> Self {
        let text = AnswerText::new(&request);
        let times = Times { accepted, prefill: Seconds::ZERO, first_token: None, last_token: None };
        let (answer, state) = (Vec::new(), State::Prefill);
        Generation { session, request, answer, state, text, times, n_reused: 0 }
    }

    fn step(&mut self) -> Result<Event, EngineError> {
        let ran = match self.state {
            State::Prefill => self.prefill(),
            State::Decode(token) => self.run(&[token]),
            State::Ended(reason) => {
                self.state = State::Silent;
                return Ok(Event::Done { reason, stats: self.stats() });
            }
            State::Silent => unreachable!("the iterator ends before"),
        };
        match ran {
            Ok(token) => Ok(self.take(token)),
            Err(EngineError::Cancelled) => {
                self.state = State::Silent;
                Ok(Event::Done { reason: FinishReason::Cancelled, stats: self.stats() })
            }
            Err(error) => Err(error),
        }
    }

    fn prefill(&mut self) -> Result<TokenId, EngineError> {
        let start = Instant::now();
        let prompt = &self.request.prompt;
        let common = self.session.tokens().iter().zip(prompt).take_while(|(a, b)| a == b).count();
        // The last token is run even if it was before: its logits are wanted.
        let kept = self.session.keep(common.min(prompt.len() - 1));
        self.n_reused = kept as u32;
        let tokens = prompt[kept..].to_vec();
        let token = self.run(&tokens);
        self.times.prefill = start.elapsed().into();
        token
    }

    /// Runs tokens and chooses the one that follows.
    fn run(&mut self, tokens: &[TokenId]) -> Result<TokenId, EngineError> {
        let last = self.session.tokens().len() + tokens.len() - 1;
        let ValidRequest { sampler, prompt, .. } = &mut self.request;
        let answer = &self.answer;
        let mut chosen = None;
        self.session.run(
            tokens,
            |index| index == last,
            |logits| {
                chosen = Some(sampler.choose(logits, prompt, answer)?);
                Ok(())
            },
        )?;
        Ok(chosen.expect("logits of the last token were asked for"))
    }

    /// Adds a token to the answer and decides how to go on.
    fn take(&mut self, id: TokenId) -> Event {
        let now = Instant::now();
        self.times.first_token.get_or_insert(now);
        self.times.last_token = Some(now);
        self.answer.push(id);
        let tokenizer = self.session.engine().tokenizer();
        let (mut text, ended) = if tokenizer.end_of_turn().contains(&id) {
            (String::new(), Some(FinishReason::EndOfTurn))
        } else {
            self.text.push(tokenizer, id)
        };
        let ended = ended.or_else(|| self.limit_reached());
        if ended.is_some_and(|reason| reason != FinishReason::Stop) {
            text += &self.text.finish();
        }
        self.state = ended.map_or(State::Decode(id), State::Ended);
        Event::Token { id, text }
    }

    fn limit_reached(&self) -> Option<FinishReason> {
        let n_answer = self.answer.len();
        let n_ctx = self.session.engine().n_ctx() as usize;
        if self.request.max_tokens.is_some_and(|max| n_answer >= max as usize) {
            Some(FinishReason::MaxTokens)
        } else if self.request.prompt.len() + n_answer > n_ctx {
            // The last token was sampled but has no cell.
            Some(FinishReason::ContextFull)
        } else {
            None
        }
    }

    fn stats(&self) -> Stats {
        let Times { accepted, prefill, first_token, last_token } = self.times;
        let between = |start: Option<Instant>, end: Option<Instant>| match (start, end) {
            (Some(start), Some(end)) => Seconds::from(end - start),
            _ => Seconds::ZERO,
        };
        Stats {
            n_prompt: self.request.prompt.len() as u32,
            n_reused: self.n_reused,
            n_generated: self.answer.len() as u32,
            ttft: between(Some(accepted), first_token),
            prefill,
            decode: between(first_token, last_token),
        }
    }
}

impl Iterator for Generation<'_, '_> {
    type Item = Result<Event, EngineError>;

    fn next(&mut self) -> Option<Self::Item> {
        if matches!(self.state, State::Silent) {
            return None;
        }
        let event = self.step();
        if event.is_err() {
            self.state = State::Silent;
        }
        Some(event)
    }
}
