//! The loop that answers a request: prefill, decode, stop rules. Proposed tokens are checked here; whose they are and how
//! many it does not know.

use std::time::Instant;

use planner::Seconds;

use super::answer_text::AnswerText;
use super::speculator::Speculator;
use super::transcript::Transcript;
use super::{Event, FinishReason, Session};
use crate::error::EngineError;
use crate::request::ValidRequest;
use crate::sampler::Sampler;
use crate::stats::Stats;
use crate::tokenizer::TokenId;

/// An answer in progress: an iterator over its events. After an error or [`Event::Done`] there are no more.
pub struct Generation<'s, 'e> {
    session: &'s mut Session<'e>,
    sampler: Sampler,
    max_tokens: Option<u32>,
    transcript: Transcript,
    speculator: Option<Speculator>,
    state: State,
    text: AnswerText,
    times: Times,
    n_reused: u32,
}

/// What comes next.
#[derive(Debug, Clone, Copy)]
enum State {
    Prefill,
    /// Hand over a token of the answer.
    Decode,
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
        Generation {
            session,
            sampler: request.sampler,
            max_tokens: request.max_tokens,
            transcript: Transcript::new(request.prompt),
            speculator: Speculator::of(request.speculation),
            state: State::Prefill,
            text,
            times,
            n_reused: 0,
        }
    }

    fn step(&mut self) -> Result<Event, EngineError> {
        let ran = match self.state {
            State::Prefill => self.prefill(),
            State::Decode => self.decode(),
            State::Ended(reason) => {
                self.state = State::Silent;
                return Ok(Event::Done { reason, stats: self.stats() });
            }
            State::Silent => unreachable!("the iterator ends before"),
        };
        match ran {
            Ok(()) => Ok(self.give()),
            Err(EngineError::Cancelled) => {
                self.state = State::Silent;
                Ok(Event::Done { reason: FinishReason::Cancelled, stats: self.stats() })
            }
            Err(error) => Err(error),
        }
    }

    fn prefill(&mut self) -> Result<(), EngineError> {
        let start = Instant::now();
        let prompt = self.transcript.tokens();
        let common = self.session.tokens().iter().zip(prompt).take_while(|(a, b)| a == b).count();
        // The last token is run even if it was before: its logits are wanted.
        let kept = self.session.keep(common.min(prompt.len() - 1));
        self.n_reused = kept as u32;
        let ran = self.run(&[]);
        self.times.prefill = start.elapsed().into();
        ran.map(|_| ())
    }

    /// Sees to it that there is a token to hand over.
    fn decode(&mut self) -> Result<(), EngineError> {
        if self.transcript.has_next() {
            let cancelled = self.session.cancel().is_cancelled();
            return if cancelled { Err(EngineError::Cancelled) } else { Ok(()) };
        }
        let start = Instant::now();
        let proposed = self.propose();
        let n_chosen = self.run(&proposed)?;
        if let Some(speculator) = &mut self.speculator {
            speculator.learn(proposed.len(), n_chosen - 1, start.elapsed().into());
        }
        Ok(())
    }

    /// Tokens that may be the next ones of the answer; they fit into a pass, the KV cache and the answer.
    fn propose(&mut self) -> Vec<TokenId> {
        let Some(speculator) = &self.speculator else { return Vec::new() };
        let n_given = self.transcript.n_given();
        // One more than those that are right is chosen.
        let of_answer = self.max_tokens.map_or(usize::MAX, |max| max as usize - n_given - 1);
        let room = self.session.most_proposed().min(of_answer);
        let ends = self.session.engine().tokenizer().end_of_turn();
        speculator.propose(self.transcript.tokens(), room, ends)
    }

    /// Runs the tokens that were not run yet and those proposed to follow them, and chooses tokens of the answer as long
    /// as they are the proposed ones, and one more. What was proposed in vain is forgotten. Gives how many were chosen.
    fn run(&mut self, proposed: &[TokenId]) -> Result<usize, EngineError> {
        let Generation { session, sampler, transcript, .. } = self;
        let n_known = transcript.tokens().len();
        let tokens = [&transcript.tokens()[session.tokens().len()..], proposed].concat();
        let mut rest = Some(proposed);
        session.run(
            &tokens,
            |index| index + 1 >= n_known,
            |logits| {
                let Some(expected) = rest else { return Ok(()) };
                let (prompt, answer) = transcript.parts();
                match sampler.choose(logits, prompt, answer) {
                    Ok(token) => {
                        transcript.choose(token);
                        rest = expected.strip_prefix(&[token]);
                        Ok(())
                    }
                    // It is met again after the tokens before it are handed over.
                    Err(_) if transcript.tokens().len() > n_known => {
                        rest = None;
                        Ok(())
                    }
                    Err(error) => Err(error.into()),
                }
            },
        )?;
        // All but the token chosen last, whose logits are wanted next.
        let n_right = transcript.tokens().len() - 1;
        if session.tokens().len() > n_right {
            let n_kept = session.keep(n_right);
            assert_eq!(
                n_kept, n_right,
                "layers with a window keep cells for all of the largest pass"
            );
        }
        Ok(transcript.tokens().len() - n_known)
    }

    /// Hands over the next token of the answer and decides how to go on.
    fn give(&mut self) -> Event {
        let now = Instant::now();
        self.times.first_token.get_or_insert(now);
        self.times.last_token = Some(now);
        let id = self.transcript.give();
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
        self.state = ended.map_or(State::Decode, State::Ended);
        Event::Token { id, text }
    }

    fn limit_reached(&self) -> Option<FinishReason> {
        let n_answer = self.transcript.n_given();
        let n_ctx = self.session.engine().n_ctx() as usize;
        if self.max_tokens.is_some_and(|max| n_answer >= max as usize) {
            Some(FinishReason::MaxTokens)
        } else if self.transcript.n_prompt() + n_answer > n_ctx {
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
            n_prompt: self.transcript.n_prompt() as u32,
            n_reused: self.n_reused,
            n_generated: self.transcript.n_given() as u32,
            ttft: between(Some(accepted), first_token),
            prefill,
            decode: between(first_token, last_token),
            speculated: self.speculator.as_ref().map(Speculator::counts),
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
