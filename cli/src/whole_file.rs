//! A file that appears under its name only when it is whole.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::settings::UsageError;

/// A file in the making. Dropped before its end, it is removed.
pub(crate) struct WholeFile {
    path: PathBuf,
    partial: PathBuf,
    file: BufWriter<File>,
}

impl WholeFile {
    /// Starts the file that will be at `path`.
    pub(crate) fn create(path: &Path) -> Result<WholeFile, UsageError> {
        let mut partial = OsString::from(path);
        partial.push(".partial");
        let file = File::create(&partial).map_err(failed(path))?;
        let (path, partial) = (path.to_owned(), partial.into());
        Ok(WholeFile { path, partial, file: BufWriter::new(file) })
    }

    /// Adds bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), UsageError> {
        self.file.write_all(bytes).map_err(failed(&self.path))
    }

    /// Gives the whole file its name.
    pub(crate) fn finish(mut self) -> Result<(), UsageError> {
        let flushed = self.file.flush();
        flushed.and_then(|()| fs::rename(&self.partial, &self.path)).map_err(failed(&self.path))
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        // After a good end it has another name already.
        let _ = fs::remove_file(&self.partial);
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> UsageError {
    move |source| UsageError::Write { path: path.to_owned(), source }
}
