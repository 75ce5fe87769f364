//! What to answer and how.

use std::hash::{BuildHasher, RandomState};

use engine_core::tokenizer::Message;
use engine_core::{Prompt, Request, Sampling, Speculation};

use crate::args::{AnswerArgs, SamplingArgs};
use crate::failure::Failure;

/// How answers are written, checked.
#[derive(Debug, Clone)]
pub(crate) struct AnswerSettings {
    /// Instruction before the conversation.
    pub(crate) system: Option<String>,
    /// Start of the random numbers, also when the user gave none, so that an answer can be had again.
    pub(crate) seed: u64,
    sampling: Sampling,
    /// Longest answer.
    pub(crate) max_tokens: Option<u32>,
    stop: Vec<String>,
    speculation: Speculation,
}

impl AnswerSettings {
    pub(crate) fn check(args: AnswerArgs) -> Result<AnswerSettings, Failure> {
        let AnswerArgs { system, max_tokens, stop, lookup, sampling } = args;
        let seed = sampling.seed.unwrap_or_else(any_seed);
        let sampling = sampling_of(&sampling, seed);
        sampling.check().map_err(Failure::input)?;
        let speculation = if lookup { Speculation::Lookup } else { Speculation::Off };
        Ok(AnswerSettings { system, seed, sampling, stop, max_tokens, speculation })
    }

    /// A request to answer `prompt` in this way.
    pub(crate) fn request(&self, prompt: Prompt) -> Request {
        Request {
            prompt,
            sampling: self.sampling,
            stop: self.stop.clone(),
            max_tokens: self.max_tokens,
            speculation: self.speculation,
        }
    }

    /// The start of a conversation: the instruction, if there is one.
    pub(crate) fn opening(&self) -> Vec<Message> {
        self.system.iter().map(|text| Message::new("system", text)).collect()
    }
}

fn sampling_of(args: &SamplingArgs, seed: u64) -> Sampling {
    Sampling {
        temperature: args.temperature,
        top_k: args.top_k,
        top_p: args.top_p,
        min_p: args.min_p,
        repeat_penalty: args.repeat_penalty,
        presence_penalty: args.presence_penalty,
        frequency_penalty: args.frequency_penalty,
        penalty_last_n: args.penalty_last_n,
        seed: Some(seed),
    }
}

/// A seed that differs from run to run, short enough to be typed again.
fn any_seed() -> u64 {
    RandomState::new().hash_one(()) >> 32
}
