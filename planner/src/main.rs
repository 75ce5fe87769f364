//! The planner by itself: predictions from a model's sizes and a machine's profile, without weights and without a GPU.
#![forbid(unsafe_code)]

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Parser;
use planner::preview::{Preview, Question, Sweep};
use planner::{Bytes, MachineProfile, Method, ModelShape, library, typed};

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
    /// VRAM budgets, as in 2GiB,8GiB; 0 leaves the GPU alone [default: 2GiB, 4GiB, … up to the card's memory]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = typed::size)]
    vram: Vec<Bytes>,
    /// Contexts, as in 4096 or 1K,16K [default: what the model was made for, up to 8K]
    #[arg(long, value_name = "TOKENS", value_delimiter = ',', value_parser = typed::token_count)]
    ctx: Vec<u32>,
    /// Tokens of the prompt [default: what the answer leaves of the context]
    #[arg(long, value_name = "TOKENS", value_parser = typed::token_count)]
    prompt: Option<u32>,
    /// Tokens of the answer [default: an eighth of the context, at most 256]
    #[arg(long = "gen", value_name = "TOKENS", value_parser = typed::token_count)]
    generate: Option<u32>,
    /// How layouts are found: search, best-strategy, or the name of a strategy
    #[arg(long, value_name = "NAME", default_value = "search", value_parser = typed::method)]
    strategy: Method,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
    /// Draw the plan of the last cell
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Save the plan of the last cell as TOML
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
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
    let question = Question { model: &model, machine: &machine, method: args.strategy };
    let sweep = Sweep {
        budgets: args.vram.clone(),
        contexts: args.ctx.clone(),
        n_prompt: args.prompt,
        n_gen: args.generate,
    };
    let preview = Preview::of(question, &sweep)?;
    if let Some(path) = &args.svg {
        write(path, &preview.svg())?;
    }
    if let Some(path) = &args.save {
        write(path, &preview.save()?.to_toml())?;
    }
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{}", preview.json())?;
    } else {
        write!(out, "{}", preview.text(out.is_terminal()))?;
    }
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

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
