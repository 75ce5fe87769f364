//! A model file from the Hugging Face Hub.

use std::fs::File;
use std::panic;
use std::path::PathBuf;
use std::thread;

use hf_hub::api::Progress;
use hf_hub::api::sync::{ApiBuilder, ApiError};
use hf_hub::{Cache, Repo, RepoType};
use indicatif::ProgressBar;

use super::{Job, POLL, SourceError, Verified, verify};
use crate::models::HubFile;

pub(super) fn fetch(
    file: &HubFile,
    endpoint: Option<&str>,
    job: &Job<'_>,
) -> Result<Verified, SourceError> {
    let failed = |action| move |source| SourceError::Io { action, source };
    let folder = job.workspace.empty_folder("hub").map_err(failed("make a folder"))?;
    let path = download(file, endpoint, folder, job)?;
    verify::copy(File::open(path).map_err(failed("open the download"))?, job)
}

/// Downloads into `folder`, on a thread of its own: the library cannot be canceled, so at Ctrl-C it is left behind
/// and ends with the program.
fn download(
    file: &HubFile,
    endpoint: Option<&str>,
    folder: PathBuf,
    job: &Job<'_>,
) -> Result<PathBuf, SourceError> {
    let mut builder = ApiBuilder::from_cache(Cache::new(folder));
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint.to_owned());
    }
    let repo = Repo::with_revision(file.repo.into(), RepoType::Model, file.revision.into());
    let repo = builder.build()?.repo(repo);
    let (name, bar) = (file.file, Bar(job.bar.clone()));
    let worker = thread::spawn(move || repo.download_with_progress(name, bar));
    while !worker.is_finished() {
        if job.cancel.is_cancelled() {
            return Err(SourceError::Interrupted);
        }
        thread::sleep(POLL);
    }
    let downloaded: Result<PathBuf, ApiError> =
        worker.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked));
    Ok(downloaded?)
}

/// The library's progress on the job's bar.
struct Bar(ProgressBar);

impl Progress for Bar {
    fn init(&mut self, size: usize, _filename: &str) {
        self.0.set_length(size as u64);
    }

    fn update(&mut self, size: usize) {
        self.0.inc(size as u64);
    }

    fn finish(&mut self) {}
}
