//! What to plan for: a model of which only the sizes matter, and a machine.

use std::path::Path;

use engine_core::{EngineOptions, PlannedModel};
use planner::{MachineProfile, Model, ModelShape, library};

use super::model::{known_names, looks_like_path};
use super::profile::of_user;
use super::{ModelRef, UsageError, read_file};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::models;

/// The model that the user named: one that can be fetched, one of the built-in descriptions, or a path.
pub(crate) fn planned_model(name: &str, interrupt: &Interrupt) -> Result<Box<dyn Model>, Failure> {
    let path = Path::new(name);
    let fetchable = models::find(name).is_some();
    if !fetchable && let Some(model) = library::model(name) {
        return Ok(Box::new(model));
    }
    if path.extension().is_some_and(|extension| extension == "toml") {
        let model = ModelShape::from_toml(&read_file(path)?);
        let bad = |source| UsageError::BadDescription { path: path.to_owned(), source };
        return Ok(Box::new(model.map_err(bad)?));
    }
    if !fetchable && !path.exists() && !looks_like_path(path) {
        return Err(UsageError::UnknownPlannedModel { name: name.to_owned() }.into());
    }
    let path = ModelRef::parse(name)?.locate(interrupt)?;
    Ok(Box::new(PlannedModel::open(&path, &EngineOptions::default())?))
}

/// The machine that the user named, or else the one that this user has measured.
pub(crate) fn machine(name: Option<&str>) -> Result<MachineProfile, UsageError> {
    let Some(name) = name else {
        let path = of_user().filter(|path| path.exists()).ok_or(UsageError::NoProfile)?;
        return read_profile(&path);
    };
    if let Some(machine) = library::machine(name) {
        return Ok(machine);
    }
    let path = Path::new(name);
    let is_path = path.exists() || path.components().count() > 1;
    if is_path || path.extension().is_some_and(|extension| extension == "toml") {
        return read_profile(path);
    }
    Err(UsageError::UnknownMachine { name: name.to_owned() })
}

fn read_profile(path: &Path) -> Result<MachineProfile, UsageError> {
    MachineProfile::from_toml(&read_file(path)?)
        .map_err(|source| UsageError::BadProfile { path: path.to_owned(), source })
}

pub(super) fn known_machines() -> String {
    library::machine_names().collect::<Vec<_>>().join(", ")
}

pub(super) fn known_planned_models() -> String {
    [known_names()]
        .into_iter()
        .chain(library::model_names().map(str::to_owned))
        .collect::<Vec<_>>()
        .join(", ")
}
