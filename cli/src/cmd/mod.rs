//! One file per command.

mod inspect;
mod pull;

use crate::args::Command;
use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// Runs one command to its end.
pub(crate) fn run(command: Command, interrupt: &Interrupt) -> Result<(), Failure> {
    match command {
        Command::Inspect(args) => inspect::run(args, interrupt),
        Command::Pull(args) => pull::run(args, interrupt),
    }
}
