//! From flags to checked settings: what the flags of a command mean together, and on this machine.

mod answer;
mod input;
mod model;
mod placing;
mod plan;
mod profile;

pub(crate) use self::answer::AnswerSettings;
pub(crate) use self::input::{read_file, read_prompt, read_stdin};
pub(crate) use self::model::{ModelRef, known_model};
pub(crate) use self::placing::place;
pub(crate) use self::plan::{machine, planned_model};
pub(crate) use self::profile::ProfileSettings;

use std::io;
use std::path::PathBuf;

use planner::{ModelFileError, ProfileError, SavedPlanError};
use thiserror::Error;

use self::model::known_names;
use self::plan::{known_machines, known_planned_models};
use self::profile::known_formats;

/// What the user asked for makes no sense, or cannot be done on this machine.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum UsageError {
    #[error("no model is known by the name {name}; known: {}", known_names())]
    UnknownModel { name: String },
    #[error("no model is known by the name {name}; known: {}", known_planned_models())]
    UnknownPlannedModel { name: String },
    #[error("no machine is known by the name {name}; known: {}", known_machines())]
    UnknownMachine { name: String },
    #[error(
        "this machine has no profile yet; measure it with `baton profile`, or plan for another one with --machine: {}",
        known_machines()
    )]
    NoProfile,
    #[error("{path}", path = path.display())]
    BadProfile { path: PathBuf, source: ProfileError },
    #[error("{path}", path = path.display())]
    BadDescription { path: PathBuf, source: ModelFileError },
    #[error("{model} is a model, but there is no prompt; put one behind it, in quotes")]
    NoPrompt { model: String },
    #[error("there are no kernels for {name}; known: {known}")]
    UnknownIsa { name: String, known: String },
    #[error("this CPU has no {name}; leave --isa out for the best set that it has")]
    NoIsa { name: String },
    #[error("this build has no CUDA backend, so there is no cuda:{number}; known: auto, cpu, sim")]
    NoCuda { number: u32 },
    #[error("--sim describes the device sim, which is not asked for; add --device sim")]
    SimNotAsked,
    #[error("{flag} says how a GPU is used, and none takes part; add --device")]
    NoGpuAsked { flag: &'static str },
    #[error("{path}", path = path.display())]
    BadPlan { path: PathBuf, source: SavedPlanError },
    #[error("no format of weights has the name {name}; known: {}", known_formats())]
    UnknownFormat { name: String },
    #[error("this user has no configuration folder; say where to write with --output")]
    NoConfigFolder,
    #[error("token id {id} is not in the vocabulary of {n_vocab} tokens")]
    UnknownId { id: u32, n_vocab: usize },
    #[error(
        "the text has {found} tokens, of which {needed} are needed; give a longer one, a smaller --ctx, or --whole"
    )]
    TextTooShort { found: usize, needed: usize },
    #[error("cannot read {from}")]
    Read { from: String, source: io::Error },
    #[error("{from} is not UTF-8 text: byte {at} is wrong")]
    NotText { from: String, at: usize },
    #[error("cannot write {path}", path = path.display())]
    Write { path: PathBuf, source: io::Error },
}
