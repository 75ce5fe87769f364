//! The planner by itself: predictions from a model's sizes and a machine's profile, without weights and without a GPU.
#![forbid(unsafe_code)]

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Parser;
use planner::flags::PreviewFlags;
use planner::{MachineProfile, ModelShape, library};

/// Predicts how fast a model will run, and where each of its shards should live
#[derive(Debug, Parser)]
#[command(name = "planner", version, max_term_width = 110)]
struct Args {
    /// Built-in model, or TOML description of one
    #[arg(long, value_name = "NAME|FILE")]
    model: String,
    /// Built-in machine, or profile of one
    #[arg(long, value_name = "NAME|FILE")]
    machine: String,
    #[command(flatten)]
    preview: PreviewFlags,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "planner: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn run(args: &Args) -> anyhow::Result<()> {
    let (model, machine) = (model(&args.model)?, machine(&args.machine)?);
    let mut out = io::stdout().lock();
    let answer = args.preview.answer(&model, &machine, out.is_terminal())?;
    for (path, text) in &answer.files {
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    out.write_all(answer.text.as_bytes())?;
    Ok(())
}

fn model(name: &str) -> anyhow::Result<ModelShape> {
    if let Some(model) = library::model(built_in(name, "models")) {
        return Ok(model);
    }
    let text = read(name, "model", library::model_names())?;
    ModelShape::from_toml(&text).with_context(|| name.to_owned())
}

fn machine(name: &str) -> anyhow::Result<MachineProfile> {
    if let Some(machine) = library::machine(built_in(name, "machines")) {
        return Ok(machine);
    }
    let text = read(name, "machine", library::machine_names())?;
    MachineProfile::from_toml(&text).with_context(|| name.to_owned())
}

/// Files of this crate may be given from any folder, by the path that they have in the crate.
fn built_in<'a>(name: &'a str, folder: &str) -> &'a str {
    if Path::new(name).exists() {
        return "";
    }
    let file = name.strip_prefix(folder).and_then(|name| name.strip_prefix('/'));
    file.and_then(|name| name.strip_suffix(".toml")).unwrap_or(name)
}

fn read(
    name: &str,
    kind: &str,
    known: impl Iterator<Item = &'static str>,
) -> anyhow::Result<String> {
    let path = Path::new(name);
    if !path.exists() {
        let known: Vec<&str> = known.collect();
        bail!(
            "there is no file {name}, and no {kind} is known by that name; known: {}",
            known.join(", ")
        );
    }
    fs::read_to_string(path).with_context(|| format!("cannot read {name}"))
}
