//! Descriptions of well-known models and machines, built into the program. Knows no files and no paths at run time.

use crate::model::ModelShape;
use crate::profile::MachineProfile;

/// A table of names and the texts of the files that bear them.
macro_rules! built_in {
    ($folder:literal: $($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../", $folder, "/", $name, ".toml")))),*]
    };
}

/// Name and text of each, by name.
type Table = &'static [(&'static str, &'static str)];

const MODELS: Table = built_in!("models":
    "cosmos-reason1-7b-q4_k",
    "devstral-2-123b-q4_k",
    "gpt-oss-120b-mxfp4",
    "gpt-oss-20b-mxfp4",
    "llama-3.1-8b-q4_k",
    "llama-3.3-70b-q4_k",
    "mistral-small-24b-q4_k",
    "nemo-4b-f16",
    "nemo-8b-f16",
    "qwen3-235b-a22b-q2_k",
    "qwen3-30b-a3b-q4_0",
    "qwen3-32b-q4_k",
    "qwen3-8b-q4_k",
);

const MACHINES: Table =
    built_in!("machines": "epyc-zen2-2c", "rtx-3060", "rtx-4070-laptop", "rtx-5070-ti", "rtx-5090");

/// Names and TOML texts of the models, in the order of their names.
pub fn models() -> &'static [(&'static str, &'static str)] {
    MODELS
}

/// Names and TOML texts of the machines, in the order of their names.
pub fn machines() -> &'static [(&'static str, &'static str)] {
    MACHINES
}

/// The model with this name, if there is one.
pub fn model(name: &str) -> Option<ModelShape> {
    let text = find(MODELS, name)?;
    Some(ModelShape::from_toml(text).expect("a test reads every built-in model"))
}

/// The machine with this name, if there is one.
pub fn machine(name: &str) -> Option<MachineProfile> {
    let text = find(MACHINES, name)?;
    Some(MachineProfile::from_toml(text).expect("a test reads every built-in machine"))
}

/// Names that [`model`] knows, in order.
pub fn model_names() -> impl Iterator<Item = &'static str> {
    MODELS.iter().map(|(name, _)| *name)
}

/// Names that [`machine`] knows, in order.
pub fn machine_names() -> impl Iterator<Item = &'static str> {
    MACHINES.iter().map(|(name, _)| *name)
}

fn find(table: Table, name: &str) -> Option<&'static str> {
    table.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
