//! Settings of a sampler.

use thiserror::Error;

/// How a token is chosen. The default is [`GREEDY`](Self::GREEDY).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// Divides logits before the softmax; 0 is greedy.
    pub temperature: f32,
    /// Keeps the `k` most likely tokens; 0 keeps all.
    pub top_k: u32,
    /// Keeps the most likely tokens whose probabilities first sum to at least this; at least one; 1 keeps all.
    pub top_p: f32,
    /// Keeps tokens at least this times as likely as the most likely one; 0 keeps all.
    pub min_p: f32,
    /// Divides positive logits, and multiplies negative ones, of every token of the prompt or the answer; 1 is off.
    /// Source: Keskar et al., "CTRL", 2019.
    pub repeat_penalty: f32,
    /// Subtracted from the logit of every token of the answer; 0 is off.
    pub presence_penalty: f32,
    /// Subtracted from a token's logit once for each time it is in the answer; 0 is off.
    pub frequency_penalty: f32,
    /// How many of the last tokens penalties look at; all when absent.
    pub penalty_last_n: Option<u32>,
    /// Start of the random row. The same seed gives the same draws; absent, each run differs.
    pub seed: Option<u64>,
}

impl Default for Sampling {
    fn default() -> Sampling {
        Sampling::GREEDY
    }
}

impl Sampling {
    /// Greedy decoding without penalties.
    pub const GREEDY: Sampling = Sampling {
        temperature: 0.0,
        top_k: 0,
        top_p: 1.0,
        min_p: 0.0,
        repeat_penalty: 1.0,
        presence_penalty: 0.0,
        frequency_penalty: 0.0,
        penalty_last_n: None,
        seed: None,
    };

    /// Checks every setting.
    ///
    /// # Errors
    /// [`SamplerError::OutOfRange`], naming the first bad one.
    pub fn check(&self) -> Result<(), SamplerError> {
        const SHARE: &str = "from 0 to 1";
        let share = |x: f32| (0.0..=1.0).contains(&x);
        let rules = [
            ("temperature", self.temperature, self.temperature >= 0.0, "0 or more"),
            ("top-p", self.top_p, share(self.top_p), SHARE),
            ("min-p", self.min_p, share(self.min_p), SHARE),
            ("repeat penalty", self.repeat_penalty, self.repeat_penalty > 0.0, "more than 0"),
            ("presence penalty", self.presence_penalty, true, "a finite number"),
            ("frequency penalty", self.frequency_penalty, true, "a finite number"),
        ];
        for (setting, found, holds, range) in rules {
            if !holds || !found.is_finite() {
                return Err(SamplerError::OutOfRange { setting, found, range });
            }
        }
        Ok(())
    }
}

/// Why a token could not be chosen.
#[derive(Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum SamplerError {
    /// A setting outside what makes sense.
    #[error("{setting} is {found}; it must be {range}")]
    OutOfRange {
        /// The setting.
        setting: &'static str,
        /// Its value.
        found: f32,
        /// What would do.
        range: &'static str,
    },
    /// The model computed something that is not a number.
    #[error(
        "the model's logits hold a value that is not a number (token {token}); its weights or sums overflowed"
    )]
    NotANumber {
        /// The first such token.
        token: u32,
    },
}
