//! Maps model files into memory, read-only. Holds the crate's only unsafe code and knows no file format.
#![allow(unsafe_code, reason = "mapping a file is unsafe, since other programs may change it")]

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::Mmap;
use thiserror::Error;

use crate::backend::HostRegion;

/// Why a file could not be mapped.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MapError {
    /// The system refused.
    #[error("{}: cannot be read: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// There is something at that path, but no ordinary file.
    #[error("{}: is not a file", path.display())]
    NotAFile {
        /// What was named.
        path: PathBuf,
    },
    /// The file has no bytes.
    #[error("{}: is empty (0 bytes); fetch it again", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// Maps a whole file read-only. Nothing is read until it is used, and pages are shared with other programs.
///
/// The duty that comes with it: as long as the region lives, nobody may write into the file or make it shorter.
/// Writing changes weights in the middle of a pass, and touching a page past a new end stops the program with
/// `SIGBUS`. Replacing the file is harmless (write the new one beside it, then rename), since the mapping keeps the
/// old one; that is how Baton itself puts fetched models in place.
///
/// # Errors
/// If there is no such file, it may not be read, is not an ordinary file, or is empty.
pub fn map_file(path: &Path) -> Result<Arc<HostRegion>, MapError> {
    let io_error = |source| MapError::Io { path: path.to_owned(), source };
    // Asked before opening: opening a pipe would wait for a writer.
    let found = std::fs::metadata(path).map_err(io_error)?;
    if !found.is_file() {
        return Err(MapError::NotAFile { path: path.to_owned() });
    }
    if found.len() == 0 {
        return Err(MapError::Empty { path: path.to_owned() });
    }
    let file = File::open(path).map_err(io_error)?;
    // SAFETY: the mapping is read-only and seen only as plain bytes, of which every value is valid; each reader checks
    // what it takes from them. That nobody changes the file meanwhile is the documented duty of whoever runs Baton:
    // no system offers a mapping that guarantees it, and copying instead would double the memory of every model.
    let mapped = unsafe { Mmap::map(&file) }.map_err(io_error)?;
    Ok(HostRegion::new(mapped))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_file_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights");
        std::fs::write(&path, b"some bytes").unwrap();
        assert_eq!(map_file(&path).unwrap().bytes(), b"some bytes");
    }

    #[test]
    fn what_cannot_be_mapped_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let empty = folder.path().join("empty");
        std::fs::write(&empty, b"").unwrap();
        assert!(matches!(map_file(&empty), Err(MapError::Empty { .. })));
        assert!(matches!(map_file(folder.path()), Err(MapError::NotAFile { .. })));
        assert!(matches!(map_file(&folder.path().join("none")), Err(MapError::Io { .. })));
    }
}
