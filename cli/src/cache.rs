//! The user's folder of fetched models: where a model lies, who may write, and how a whole file gets in.
//!
//! A file under its final name is always whole and verified: it is written elsewhere in the folder and renamed.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use engine_core::Cancel;

use crate::fetch::{FetchError, Verified};
use crate::models::KnownModel;

/// How often a waiting pull looks whether the other one is done.
const LOCK_POLL: Duration = Duration::from_millis(100);

/// The folder that holds fetched models.
#[derive(Debug, Clone)]
pub(crate) struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// A cache in `folder`, which need not exist yet.
    pub(crate) fn new(folder: PathBuf) -> Cache {
        Cache { folder }
    }

    /// The cache of this user: `baton/models` in the cache folder of the system (XDG on Linux).
    pub(crate) fn of_user() -> Result<Cache, FetchError> {
        let base = dirs::cache_dir().ok_or(FetchError::NoCacheFolder)?;
        Ok(Cache::new(base.join("baton").join("models")))
    }

    /// Where `model` lies, or will lie.
    pub(crate) fn path(&self, model: &KnownModel) -> PathBuf {
        self.folder.join(model.file)
    }

    /// Where `model` lies, when it is there with its right size. Its hash was checked when it came in.
    pub(crate) fn find(&self, model: &KnownModel) -> Option<PathBuf> {
        let path = self.path(model);
        let size = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?.len();
        (size == model.size.get()).then_some(path)
    }

    /// Makes this the only pull of `model` and gives it an empty folder to work in.
    ///
    /// Waits while another program pulls the same model, and removes what a killed one left.
    pub(crate) fn workspace(
        &self,
        model: &KnownModel,
        cancel: &Cancel,
    ) -> Result<Workspace, FetchError> {
        fs::create_dir_all(&self.folder).map_err(failed("create", &self.folder))?;
        let lock = self.lock(model, cancel)?;
        let prefix = format!(".{}.partial-", model.file);
        self.remove_leftovers(&prefix)?;
        // A new name each time: a download of a killed program may still be writing to the old one.
        let folder = self.folder.join(format!("{prefix}{}", std::process::id()));
        fs::create_dir(&folder).map_err(failed("create", &folder))?;
        Ok(Workspace { folder, _lock: lock })
    }

    /// Gives a verified file its final name.
    pub(crate) fn install(
        &self,
        model: &KnownModel,
        file: Verified,
    ) -> Result<PathBuf, FetchError> {
        let path = self.path(model);
        fs::rename(file.path(), &path).map_err(failed("write", &path))?;
        Ok(path)
    }

    /// Takes `model` out of the cache.
    pub(crate) fn remove(&self, model: &KnownModel) -> Result<(), FetchError> {
        let path = self.path(model);
        fs::remove_file(&path).map_err(failed("remove", &path))
    }

    fn lock(&self, model: &KnownModel, cancel: &Cancel) -> Result<File, FetchError> {
        let path = self.folder.join(format!(".{}.lock", model.file));
        let file = File::create(&path).map_err(failed("create", &path))?;
        let mut told = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::Error(source)) => return Err(failed("lock", &path)(source)),
                Err(TryLockError::WouldBlock) if cancel.is_cancelled() => {
                    return Err(FetchError::Interrupted);
                }
                Err(TryLockError::WouldBlock) => {
                    if !told {
                        tell!("{} is being fetched by another baton; waiting", model.name);
                        told = true;
                    }
                    thread::sleep(LOCK_POLL);
                }
            }
        }
    }

    fn remove_leftovers(&self, prefix: &str) -> Result<(), FetchError> {
        let entries = fs::read_dir(&self.folder).map_err(failed("read", &self.folder))?;
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with(prefix) {
                let path = entry.path();
                fs::remove_dir_all(&path).map_err(failed("remove", &path))?;
            }
        }
        Ok(())
    }
}

/// A folder of one pull, on the file system of the cache; removed at the end. While it lives, no other pull of the
/// same model runs.
#[derive(Debug)]
pub(crate) struct Workspace {
    folder: PathBuf,
    _lock: File,
}

impl Workspace {
    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    /// A new empty folder inside, in place of one of that name.
    pub(crate) fn empty_folder(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.folder.join(name);
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        fs::create_dir(&path)?;
        Ok(path)
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next pull.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FetchError {
    move |source| FetchError::Io { action, path: path.to_owned(), source }
}
