//! `baton profile`: measures this machine and writes down what it found.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use engine_core::Cancel;
use engine_core::backend::{Backend, Backends};
use engine_core::measure::{Devices, Measured, Progress, Watcher, measure};
use indicatif::{ProgressBar, ProgressStyle};
use planner::Bytes;

use crate::args::ProfileArgs;
use crate::devices;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::report::{self, ProfileReport};
use crate::settings::{ProfileSettings, UsageError};
use crate::whole_file::WholeFile;

/// Memory that measuring takes of a GPU, with some to spare. A simulated one is as fast whatever its memory.
const ROOM: Bytes = Bytes::mib(512);

pub(crate) fn run(mut args: ProfileArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    args.device.simulate_at_least(ROOM);
    let settings = ProfileSettings::check(&args)?;
    let (mut backends, description) = devices::described(&args.device)?;
    let cancel = Cancel::default();
    let _watch = interrupt.watch(&cancel);
    check_writable(&settings.path)?;

    let bar = progress_bar();
    let mut on_progress = |progress: Progress| {
        bar.set_length(progress.total as u64);
        bar.set_position(progress.done as u64);
        bar.set_message(progress.next.to_string());
    };
    let Backends { cpu, gpu } = &mut backends;
    let gpu = gpu.as_mut().map(|gpu| gpu.as_mut() as &mut dyn Backend);
    let devices = Devices { cpu: cpu.as_mut(), gpu };
    let watcher = Watcher { cancel, on_progress: &mut on_progress };
    let measured = measure(devices, &settings.subject(&description), &settings.effort, watcher);
    bar.finish_and_clear();
    let Measured { profile, noisy } = measured?;

    let mut file = WholeFile::create(&settings.path)?;
    file.write(profile.to_toml().as_bytes())?;
    file.finish()?;
    let report = ProfileReport { path: &settings.path, profile: &profile, noisy: &noisy };
    let mut out = io::stdout().lock();
    let printed =
        if args.json { report::json(&mut out, &report.json()) } else { report.print(&mut out) };
    printed.and_then(|()| out.flush()).map_err(Failure::output)?;
    if let Some(warning) = report.warning() {
        tell!("{warning}");
    }
    Ok(())
}

/// Makes the folder of the profile, and finds out that nothing can be written there before time is spent on measuring.
fn check_writable(path: &Path) -> Result<(), UsageError> {
    let failed = |source| UsageError::Write { path: path.to_owned(), source };
    if path.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    WholeFile::create(path).map(drop)
}

/// A bar on stderr; shows nothing where stderr is not a terminal.
fn progress_bar() -> ProgressBar {
    let style = ProgressStyle::with_template("[{wide_bar}] {pos} of {len}, {elapsed}, {msg:42}")
        .expect("the template is valid")
        .progress_chars("=> ");
    ProgressBar::no_length().with_style(style)
}
