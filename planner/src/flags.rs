//! The flags of a preview, and what they ask for: one for the two programs that print previews. It reads and writes
//! nothing.

use std::path::PathBuf;

use crate::error::PlanError;
use crate::extras::Switch;
use crate::forecast::Method;
use crate::model::Model;
use crate::preview::{Preview, Question, Sweep};
use crate::profile::MachineProfile;
use crate::typed;
use crate::units::Bytes;

/// What is to be planned for, and how it is shown.
#[derive(Debug, Clone, clap::Args)]
pub struct PreviewFlags {
    /// VRAM budgets, as in 2GiB,8GiB; 0 leaves the GPU alone [default: from 2GiB up to the card's memory]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = typed::size)]
    pub vram: Vec<Bytes>,
    /// Contexts, as in 4096 or 1K,16K [default: what the model was made for, up to 8K]
    #[arg(short, long, value_name = "TOKENS", value_delimiter = ',', value_parser = typed::token_count)]
    pub ctx: Vec<u32>,
    /// Tokens of the prompt [default: what the answer leaves of the context]
    #[arg(long, value_name = "TOKENS", value_parser = typed::token_count)]
    pub prompt: Option<u32>,
    /// Tokens of the answer [default: an eighth of the context, at most 256]
    #[arg(long = "gen", value_name = "TOKENS", value_parser = typed::token_count)]
    pub generated: Option<u32>,
    /// How layouts are found: search, best-strategy, or a strategy such as static or whole-layers
    #[arg(long, value_name = "NAME", default_value = "search", value_parser = typed::method)]
    pub strategy: Method,
    /// Predicted only, the engine does not run it yet: let the search use split-ffn
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = typed::switch,
          conflicts_with_all = ["strategy", "save"])]
    pub allow: Vec<Switch>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub json: bool,
    /// Draw the plan of the last budget and context: VRAM, layers, and the first passes
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Save the plan of the last budget and context as TOML
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
}

/// What a program has to print and write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// For standard output; ends with a line break.
    pub text: String,
    /// Files with their text.
    pub files: Vec<(PathBuf, String)>,
}

impl PreviewFlags {
    /// Forecasts what the flags ask for. Tables are in ANSI colours on demand.
    ///
    /// # Errors
    /// As [`Preview::of`] and [`Preview::save`].
    pub fn answer(
        &self,
        model: &dyn Model,
        machine: &MachineProfile,
        colour: bool,
    ) -> Result<Answer, PlanError> {
        let switches = self.allow.iter().copied().collect();
        let question = Question { model, machine, method: self.strategy, switches };
        let sweep = Sweep {
            budgets: self.vram.clone(),
            contexts: self.ctx.clone(),
            n_prompt: self.prompt,
            n_gen: self.generated,
        };
        let preview = Preview::of(question, &sweep)?;
        let text = if self.json { preview.json() + "\n" } else { preview.text(colour) };
        let mut files = Vec::new();
        if let Some(path) = &self.svg {
            files.push((path.clone(), preview.svg()));
        }
        if let Some(path) = &self.save {
            files.push((path.clone(), preview.save()?.to_toml()));
        }
        Ok(Answer { text, files })
    }
}
