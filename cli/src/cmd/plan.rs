//! `baton plan`: what a model would do on a machine, without loading weights.

use std::env;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use planner::preview::{Preview, Question, Sweep};

use crate::args::PlanArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::settings::{UsageError, machine, planned_model};

pub(crate) fn run(args: PlanArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let machine = machine(args.machine.as_deref())?;
    let model = planned_model(&args.model, interrupt)?;
    let question = Question { model: model.as_ref(), machine: &machine, method: args.strategy };
    let sweep = Sweep {
        budgets: args.vram,
        contexts: args.ctx,
        n_prompt: args.prompt,
        n_gen: args.generated,
    };
    let preview = Preview::of(question, &sweep)?;
    if let Some(path) = &args.svg {
        write(path, &preview.svg())?;
    }
    if let Some(path) = &args.save {
        write(path, &preview.save()?.to_toml())?;
    }
    let mut out = io::stdout().lock();
    let printed = if args.json {
        writeln!(out, "{}", preview.json())
    } else {
        let colour = out.is_terminal() && env::var_os("NO_COLOR").is_none();
        write!(out, "{}", preview.text(colour))
    };
    printed.and_then(|()| out.flush()).map_err(Failure::output)
}

fn write(path: &Path, text: &str) -> Result<(), UsageError> {
    fs::write(path, text).map_err(|source| UsageError::Write { path: path.to_owned(), source })
}
