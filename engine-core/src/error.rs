//! Why a model could not be loaded or a request not be answered.

use std::path::PathBuf;

use planner::{Bytes, PlanError};
use thiserror::Error;

use crate::backend::BackendError;
use crate::executor::{ExecutorError, PlanFault, SetupError};
use crate::kv::KvError;
use crate::model::ModelError;
use crate::sampler::SamplerError;
use crate::tokenizer::{TemplateError, TokenizerError};
use crate::weights::OpenError;

/// Why a model could not be loaded or a request not be answered.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The files cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The files describe a model that cannot be run.
    #[error("{}: {error}", path.display())]
    Model {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        error: ModelError,
    },
    /// The files hold a tokenizer that cannot be used.
    #[error("{}: {error}", path.display())]
    BadTokenizer {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        error: TokenizerError,
    },
    /// A text cannot be tokenised.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The model's chat template refused a conversation.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A device failed or refused.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// A sampling setting is out of range, or the model computed nonsense.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// The KV cache is full.
    #[error(transparent)]
    Kv(#[from] KvError),
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// The weights, the KV cache and the activations do not fit in memory together.
    #[error(
        "a context of {n_ctx} tokens needs {needed} (weights {weights}, KV cache {kv}, activations {scratch}) but \
         {free} of memory are free; {}", fitting(*n_ctx_fitting)
    )]
    ContextTooLarge {
        /// Tokens asked for.
        n_ctx: u32,
        /// Memory that they need.
        needed: Bytes,
        /// Of it, for the mapped files.
        weights: Bytes,
        /// Of it, for KV cells.
        kv: Bytes,
        /// Of it, for activations and inputs.
        scratch: Bytes,
        /// Memory free.
        free: Bytes,
        /// The most tokens that would fit.
        n_ctx_fitting: u32,
    },
    /// The prompt leaves no room for an answer.
    #[error(
        "the prompt has {n_prompt} tokens; with a context of {n_ctx} it can have at most {}; shorten it or ask for \
         a larger context", n_ctx.saturating_sub(1)
    )]
    PromptTooLong {
        /// Tokens of the prompt.
        n_prompt: usize,
        /// Tokens of the context.
        n_ctx: u32,
    },
    /// There is nothing to continue: the prompt has no tokens.
    #[error("the prompt has no tokens")]
    EmptyPrompt,
    /// A token id that the model does not have.
    #[error("token id {id} is not in the vocabulary of {n_vocab} tokens")]
    UnknownToken {
        /// The id.
        id: u32,
        /// Size of the vocabulary.
        n_vocab: u32,
    },
    /// No plan can be made.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// There is a GPU, but nothing says how work is placed on it.
    #[error("a GPU takes part only with a machine profile, which says how fast it is")]
    NoPlacing,
    /// The rates of the GPU are not known.
    #[error(
        "the profile of {machine} has no GPU, and {gpu} is to be used; profile the machine with it"
    )]
    NoGpuInProfile {
        /// Name of the machine.
        machine: String,
        /// Name of the device.
        gpu: String,
    },
    /// A saved plan for another model, context or ubatch. Layers, KV cells, tokens of the largest pass.
    #[error("the plan is for {}; asked are {}", sizes(*planned), sizes(*asked))]
    PlanForOthers {
        /// What the plan is for.
        planned: (u32, u32, u32),
        /// What it was to be used for.
        asked: (u32, u32, u32),
    },
    /// A plan that the model's tensors do not fit.
    #[error("the plan for {n_tokens} tokens does not fit the model: {fault}")]
    PlanDoesNotFit {
        /// Tokens of the passes that it is for.
        n_tokens: u32,
        /// What does not fit.
        fault: PlanFault,
    },
    /// A setting outside what makes sense.
    #[error("{option} is {found}; it must be {range}")]
    OptionOutOfRange {
        /// The setting.
        option: &'static str,
        /// Its value.
        found: u32,
        /// What would do.
        range: &'static str,
    },
}

fn sizes((n_layer, n_ctx, n_tokens): (u32, u32, u32)) -> String {
    format!("{n_layer} layers, a context of {n_ctx} tokens, and passes of up to {n_tokens}")
}

fn fitting(n_ctx: u32) -> String {
    match n_ctx {
        0 => "none would fit".into(),
        n => format!("{n} tokens would fit"),
    }
}

impl From<ExecutorError> for EngineError {
    fn from(error: ExecutorError) -> EngineError {
        match error {
            ExecutorError::Backend(error) => EngineError::Backend(error),
            ExecutorError::Cancelled => EngineError::Cancelled,
        }
    }
}

impl From<SetupError> for EngineError {
    fn from(error: SetupError) -> EngineError {
        match error {
            SetupError::Backend(error) => EngineError::Backend(error),
            SetupError::Plan { n_tokens, fault } => EngineError::PlanDoesNotFit { n_tokens, fault },
        }
    }
}
