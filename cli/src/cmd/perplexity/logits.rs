//! The file of logits: rows of 32-bit little-endian floats. It appears under its name when it is whole.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::settings::UsageError;

/// A file in the making. Dropped before its end, it is removed.
pub(super) struct LogitsFile {
    path: PathBuf,
    partial: PathBuf,
    file: BufWriter<File>,
}

impl LogitsFile {
    /// Starts the file that will be at `path`.
    pub(super) fn create(path: &Path) -> Result<LogitsFile, UsageError> {
        let mut partial = OsString::from(path);
        partial.push(".partial");
        let file = File::create(&partial).map_err(failed(path))?;
        let (path, partial) = (path.to_owned(), partial.into());
        Ok(LogitsFile { path, partial, file: BufWriter::new(file) })
    }

    /// Adds a row.
    pub(super) fn write(&mut self, row: &[f32]) -> Result<(), UsageError> {
        let mut write = || row.iter().try_for_each(|x| self.file.write_all(&x.to_le_bytes()));
        write().map_err(failed(&self.path))
    }

    /// Gives the whole file its name.
    pub(super) fn finish(mut self) -> Result<(), UsageError> {
        let flushed = self.file.flush();
        flushed.and_then(|()| fs::rename(&self.partial, &self.path)).map_err(failed(&self.path))
    }
}

impl Drop for LogitsFile {
    fn drop(&mut self) {
        // After a good end it has another name already.
        let _ = fs::remove_file(&self.partial);
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> UsageError {
    move |source| UsageError::Write { path: path.to_owned(), source }
}
