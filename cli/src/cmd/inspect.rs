//! `baton inspect`: what is in a model file, whether or not it can run.

use std::collections::BTreeMap;
use std::io::{self, Write};

use engine_core::weights::{Gguf, WeightFile};
use planner::Bytes;
use serde::Serialize;

use crate::args::InspectArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::report::{self, FormatUse, Full, TensorRow};
use crate::settings::ModelRef;

pub(crate) fn run(args: InspectArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let path = ModelRef::parse(&args.model)?.locate(interrupt)?;
    let gguf = Gguf::open(&path).map_err(Failure::input)?;
    let mut out = io::stdout().lock();
    let printed = if args.json { json(&mut out, &gguf) } else { tables(&mut out, &gguf) };
    printed.map_err(Failure::output)
}

fn tables(out: &mut impl Write, gguf: &Gguf) -> io::Result<()> {
    for WeightFile { path, region } in gguf.weights.files() {
        let size = Bytes::from(region.bytes().len());
        writeln!(out, "{}: GGUF version {}, {size}", path.display(), gguf.version)?;
    }
    let metadata: Vec<_> = gguf.metadata.iter().collect();
    writeln!(out, "\n{} metadata values", metadata.len())?;
    report::table(
        out,
        metadata.iter().map(|(key, value)| [key.to_string(), report::short(value)]),
        &[],
    )?;
    let tensors = gguf.weights.tensors();
    writeln!(out, "\n{} tensors, shapes with the slowest dimension first", tensors.len())?;
    report::table(out, tensors.iter().map(TensorRow::cells), &[3])?;
    writeln!(out, "\n{} in all", gguf.weights.total_bytes())?;
    report::table(out, FormatUse::all(tensors).iter().map(FormatUse::cells), &[1, 2])
}

/// A model file as JSON.
#[derive(Serialize)]
struct Contents<'a> {
    format: &'static str,
    version: u32,
    files: Vec<String>,
    metadata: BTreeMap<&'a str, Full<'a>>,
    tensors: Vec<TensorRow<'a>>,
    types: Vec<FormatUse>,
    bytes: Bytes,
}

fn json(out: &mut impl Write, gguf: &Gguf) -> io::Result<()> {
    let tensors = gguf.weights.tensors();
    let files = gguf.weights.files().iter().map(|file| file.path.display().to_string());
    let contents = Contents {
        format: "GGUF",
        version: gguf.version,
        files: files.collect(),
        metadata: gguf.metadata.iter().map(|(key, value)| (key, Full(value))).collect(),
        tensors: tensors.iter().map(TensorRow::new).collect(),
        types: FormatUse::all(tensors),
        bytes: gguf.weights.total_bytes(),
    };
    report::json(out, &contents)
}
