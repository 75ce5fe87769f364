//! `baton inspect`: what is in a model's files, whether or not it can run.

use std::collections::BTreeMap;
use std::io::{self, Write};

use engine_core::weights::{Checkpoint, ModelFiles};
use planner::Bytes;
use serde::Serialize;

use crate::args::InspectArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::report::{self, FormatUse, MetadataValue, TensorRow};
use crate::settings::ModelRef;

pub(crate) fn run(args: InspectArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let path = ModelRef::parse(args.model.model())?.locate(interrupt)?;
    let files = ModelFiles::open(&path)?;
    let mut out = io::stdout().lock();
    let printed = if args.json { json(&mut out, &files) } else { tables(&mut out, &files) };
    printed.map_err(Failure::output)
}

fn tables(out: &mut impl Write, files: &ModelFiles) -> io::Result<()> {
    let (format, weights) = (format(files), files.weights());
    for file in weights.files() {
        let size = Bytes::from(file.region.bytes().len());
        writeln!(out, "{}: {format}, {size}", file.path.display())?;
    }
    let metadata = metadata_rows(files);
    writeln!(out, "\n{} metadata values", metadata.len())?;
    report::table(out, metadata, &[])?;
    let tensors = weights.tensors();
    writeln!(out, "\n{} tensors, shapes with the slowest dimension first", tensors.len())?;
    report::table(out, tensors.iter().map(TensorRow::cells), &[3])?;
    writeln!(out, "\n{} in all", weights.total_bytes())?;
    report::table(out, FormatUse::all(tensors).iter().map(FormatUse::cells), &[1, 2])
}

/// A model's files as JSON.
#[derive(Serialize)]
struct Contents<'a> {
    format: String,
    files: Vec<String>,
    /// By key for GGUF; by file name for a Hugging Face folder.
    metadata: BTreeMap<&'a str, MetadataValue<'a>>,
    tensors: Vec<TensorRow<'a>>,
    types: Vec<FormatUse>,
    bytes: Bytes,
}

fn json(out: &mut impl Write, files: &ModelFiles) -> io::Result<()> {
    let weights = files.weights();
    let paths = weights.files().iter().map(|file| file.path.display().to_string());
    let contents = Contents {
        format: format(files),
        files: paths.collect(),
        metadata: metadata(files),
        tensors: weights.tensors().iter().map(TensorRow::new).collect(),
        types: FormatUse::all(weights.tensors()),
        bytes: weights.total_bytes(),
    };
    report::json(out, &contents)
}

fn format(files: &ModelFiles) -> String {
    match files {
        ModelFiles::Gguf(gguf) => format!("GGUF version {}", gguf.version),
        ModelFiles::Checkpoint(_) => "safetensors".to_owned(),
    }
}

fn metadata(files: &ModelFiles) -> BTreeMap<&str, MetadataValue<'_>> {
    match files {
        ModelFiles::Gguf(gguf) => {
            gguf.metadata.iter().map(|(key, value)| (key, MetadataValue::Gguf(value))).collect()
        }
        ModelFiles::Checkpoint(checkpoint) => {
            configs(checkpoint).map(|(file, value)| (file, MetadataValue::Json(value))).collect()
        }
    }
}

/// Metadata as rows of a table: a value a row, for a Hugging Face folder behind the name of its file.
fn metadata_rows(files: &ModelFiles) -> Vec<[String; 2]> {
    match files {
        ModelFiles::Gguf(gguf) => {
            let values = gguf.metadata.iter();
            values
                .map(|(key, value)| [key.to_owned(), MetadataValue::Gguf(value).short()])
                .collect()
        }
        ModelFiles::Checkpoint(checkpoint) => {
            let values = configs(checkpoint).flat_map(|(file, config)| {
                config.as_object().into_iter().flatten().map(move |entry| (file, entry))
            });
            let row = |(file, (key, value))| {
                [format!("{file}: {key}"), MetadataValue::Json(value).short()]
            };
            values.map(row).collect()
        }
    }
}

/// The JSON files that describe a checkpoint.
fn configs(checkpoint: &Checkpoint) -> impl Iterator<Item = (&'static str, &serde_json::Value)> {
    let generation = checkpoint.generation_config.as_ref();
    let generation = generation.map(|config| ("generation_config.json", config));
    [("config.json", &checkpoint.config)].into_iter().chain(generation)
}
