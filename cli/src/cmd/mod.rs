//! One file per command.

mod answer;
mod chat;
mod inspect;
mod perplexity;
mod plan;
mod profile;
mod pull;
mod run;
mod tokenize;

use crate::args::Command;
use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// Runs one command to its end.
pub(crate) fn run(command: Command, interrupt: &Interrupt) -> Result<(), Failure> {
    match command {
        Command::Run(args) => run::run(args, interrupt),
        Command::Chat(args) => chat::run(args, interrupt),
        Command::Tokenize(args) => tokenize::run(args, interrupt),
        Command::Perplexity(args) => perplexity::run(args, interrupt),
        Command::Plan(args) => plan::run(args, interrupt),
        Command::Inspect(args) => inspect::run(args, interrupt),
        Command::Profile(args) => profile::run(args, interrupt),
        Command::Pull(args) => pull::run(args, interrupt),
    }
}
