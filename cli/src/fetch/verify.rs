//! Letting in only the right bytes: size and SHA-256 are checked while they are written.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use engine_core::Cancel;
use sha2::{Digest, Sha256};

use super::{Job, SourceError};
use crate::models::KnownModel;

/// A file that holds exactly the bytes of its model and has reached the disk.
#[derive(Debug)]
pub(crate) struct Verified(PathBuf);

impl Verified {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

/// Copies a model from `reader` to a new file of the job's workspace, and checks it.
pub(super) fn copy(reader: impl Read, job: &Job<'_>) -> Result<Verified, SourceError> {
    let path = job.workspace.path().join(job.model.file);
    let failed = |source| SourceError::Io { action: "write the model", source };
    let mut file = File::create(&path).map_err(failed)?;
    digest(reader, job.model, job.cancel, |bytes| file.write_all(bytes).map_err(failed))?;
    file.sync_all().map_err(failed)?;
    Ok(Verified(path))
}

/// Checks a file that is already in the cache.
pub(crate) fn check(path: &Path, model: &KnownModel, cancel: &Cancel) -> Result<(), SourceError> {
    let file = File::open(path).map_err(|source| SourceError::Io { action: "open it", source })?;
    digest(file, model, cancel, |_| Ok(()))
}

/// Reads all of `reader`, hands each piece on, and compares size and hash with the model's.
fn digest(
    mut reader: impl Read,
    model: &KnownModel,
    cancel: &Cancel,
    mut each: impl FnMut(&[u8]) -> Result<(), SourceError>,
) -> Result<(), SourceError> {
    let expected = model.size.get();
    let mut hash = Sha256::new();
    let mut left = expected;
    let mut buffer = vec![0; 1 << 20];
    loop {
        if cancel.is_cancelled() {
            return Err(SourceError::Interrupted);
        }
        let n = match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(source) => return Err(SourceError::Io { action: "read the download", source }),
        };
        left = left.checked_sub(n as u64).ok_or(SourceError::Size { expected, more: true })?;
        hash.update(&buffer[..n]);
        each(&buffer[..n])?;
    }
    if left > 0 {
        return Err(SourceError::Size { expected, more: false });
    }
    let got = hexadecimal(&hash.finalize());
    if got == model.sha256 {
        Ok(())
    } else {
        Err(SourceError::Hash { expected: model.sha256, got })
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
