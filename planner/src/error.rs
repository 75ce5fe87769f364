//! What can be wrong with what the planner is given.

use thiserror::Error;

use crate::units::Bytes;

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The budget holds no plan that uses the GPU at all.
    #[error("a VRAM budget of {have} is too small; the least that would work is {need}")]
    BudgetTooSmall {
        /// The budget.
        have: Bytes,
        /// The smallest that holds a plan.
        need: Bytes,
    },
    /// The model does not fit in the machine's memory.
    #[error("the model needs {need} of host memory; the machine has {have}")]
    RamTooSmall {
        /// Memory of the machine.
        have: Bytes,
        /// Weights and KV cells that stay on the host.
        need: Bytes,
    },
    /// A budget for a GPU that the machine lacks.
    #[error("{machine} has no GPU to give a VRAM budget for")]
    NoGpu {
        /// Name of the machine.
        machine: String,
    },
    /// A budget above the memory of the card.
    #[error("a VRAM budget of {asked} is more than the {vram} of {gpu}")]
    MoreThanVram {
        /// The budget.
        asked: Bytes,
        /// Memory of the card.
        vram: Bytes,
        /// Name of the card.
        gpu: String,
    },
    /// A request that is longer than its context.
    #[error(
        "a prompt of {n_prompt} and an answer of {n_gen} tokens do not fit in a context of {n_ctx}"
    )]
    ContextTooSmall {
        /// KV cells that there is room for.
        n_ctx: u32,
        /// Tokens of the prompt.
        n_prompt: u32,
        /// Tokens of the answer.
        n_gen: u32,
    },
    /// A named strategy that has no arrangement within the budget.
    #[error("strategy {strategy} does not fit in {have} of VRAM")]
    StrategyDoesNotFit {
        /// The strategy.
        strategy: &'static str,
        /// The budget.
        have: Bytes,
    },
}

/// Why a profile was refused.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// It is not a profile.
    #[error("not a machine profile: {}", .0.message())]
    Syntax(#[from] toml::de::Error),
    /// It is of another version.
    #[error("the profile has schema {found}; this program knows {known}")]
    Schema {
        /// Version of the file.
        found: u32,
        /// Version of this program.
        known: u32,
    },
    /// A figure that no machine has.
    #[error("{field} is {found}; expected {expected}")]
    BadValue {
        /// Where it stands.
        field: String,
        /// The figure.
        found: f64,
        /// What would be right.
        expected: &'static str,
    },
    /// Measurements that cannot be done without.
    #[error("{field} is missing")]
    Missing {
        /// Where they belong.
        field: String,
    },
    /// Points out of order, or one given twice.
    #[error("{field} must be in rising order, each once")]
    NotRising {
        /// Where they stand.
        field: String,
    },
}

/// Why a description of a model was refused.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum ModelFileError {
    /// It is not a description of a model.
    #[error("not a description of a model: {}", .0.message())]
    Syntax(#[from] toml::de::Error),
    /// A size that no model has.
    #[error("{field} is {found}; expected {expected}")]
    BadValue {
        /// Where it stands.
        field: &'static str,
        /// The size.
        found: u64,
        /// What would be right.
        expected: &'static str,
    },
}
