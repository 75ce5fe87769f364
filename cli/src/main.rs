//! The `baton` command: reads flags, calls the engine, prints.
//!
//! Answers and data go to stdout, everything else to stderr. No maths and no file formats live here.
#![forbid(unsafe_code)]

/// Prints a line to stderr for the user. That nobody reads it any more is no failure.
macro_rules! tell {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($arg)*);
    }};
}

mod args;
mod cache;
mod cmd;
mod devices;
mod failure;
mod fetch;
mod host;
mod interrupt;
mod models;
mod report;
mod settings;
mod whole_file;

use std::panic;
use std::process::ExitCode;

use clap::Parser;

use crate::args::Args;
use crate::failure::{Failure, INTERNAL};
use crate::interrupt::Interrupt;

fn main() -> ExitCode {
    let args = Args::parse();
    // A panic is a bug in Baton: it has told its place, and ends the program like any internal failure.
    let Ok(result) = panic::catch_unwind(|| run(args)) else {
        return ExitCode::from(INTERNAL);
    };
    let Err(failure) = result else {
        return ExitCode::SUCCESS;
    };
    if let Some(message) = failure.message() {
        tell!("baton: {message}");
    }
    ExitCode::from(failure.exit_code())
}

fn run(args: Args) -> Result<(), Failure> {
    let interrupt = Interrupt::listen().map_err(|error| Failure::Internal(error.into()))?;
    cmd::run(args.command, &interrupt)
}
