//! One sequence and the loop that answers requests on it: prefill, decode, stop rules. Yields events.

use std::time::Instant;

use planner::Seconds;

use crate::batch::BatchToken;
use crate::cancel::Cancel;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::kv::SeqId;
use crate::perplexity::Chunk;
use crate::request::{Request, ValidRequest};
use crate::stats::Stats;
use crate::tokenizer::{ControlText, StopFilter, StopText, TextStream, TokenId, Tokenizer};

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

    /// Answers a request. What the prompt has in common with the tokens already run is not run again.
    ///
    /// # Errors
    /// A request that cannot be met: it is checked here, before anything is computed.
    pub fn generate(&mut self, request: &Request) -> Result<Generation<'_, 'e>, EngineError> {
        let accepted = Instant::now();
        self.cancel.reset();
        let request = ValidRequest::check(request, self.engine)?;
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

    /// Keeps the first `len` tokens, or none where layers with a window no longer have all cells that the token after
    /// them sees. Gives how many are left.
    fn keep(&mut self, len: usize) -> usize {
        let kept = self.engine.parts().0.truncate(self.seq, len);
        self.tokens.truncate(kept);
        kept
    }

    /// Runs tokens that follow those already run. `wants_logits` is asked with each one's index in the sequence.
    fn run(
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
    fn new(session: &'s mut Session<'e>, request: ValidRequest, accepted: Instant) -> Self {
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
        let prompt = std::mem::take(&mut self.request.prompt);
        let common = self.session.tokens.iter().zip(&prompt).take_while(|(a, b)| a == b).count();
        // The last token is run even if it was before: its logits are wanted.
        let kept = self.session.keep(common.min(prompt.len() - 1));
        self.n_reused = kept as u32;
        self.request.prompt = prompt;
        let tokens = self.request.prompt[kept..].to_vec();
        let token = self.run(&tokens);
        self.times.prefill = start.elapsed().into();
        token
    }

    /// Runs tokens and chooses the one that follows.
    fn run(&mut self, tokens: &[TokenId]) -> Result<TokenId, EngineError> {
        let last = self.session.tokens.len() + tokens.len() - 1;
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
        let tokenizer = self.session.engine.tokenizer();
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
        let n_ctx = self.session.engine.n_ctx() as usize;
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

/// Text of an answer: whole characters only, up to the first stop string.
struct AnswerText {
    stream: TextStream,
    stop: StopFilter,
}

impl AnswerText {
    fn new(request: &ValidRequest) -> AnswerText {
        AnswerText {
            stream: TextStream::new(request.text_start, ControlText::Hide),
            stop: StopFilter::new(request.stop.iter().cloned()),
        }
    }

    fn push(&mut self, tokenizer: &Tokenizer, id: TokenId) -> (String, Option<FinishReason>) {
        let text = self.stream.push(tokenizer, id);
        self.filter(&text)
    }

    /// The rest that was held back.
    fn finish(&mut self) -> String {
        let rest = self.stream.finish();
        let (text, stopped) = self.filter(&rest);
        if stopped.is_some() { text } else { text + &self.stop.finish() }
    }

    fn filter(&mut self, text: &str) -> (String, Option<FinishReason>) {
        match self.stop.push(text) {
            StopText::More(text) => (text, None),
            StopText::Stopped(text) => (text, Some(FinishReason::Stop)),
        }
    }
}
