//! What to measure and where to write it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use engine_core::measure::{Effort, Subject};
use jiff::ZonedDateTime;
use planner::Format;

use super::UsageError;
use crate::args::ProfileArgs;
use crate::devices::Description;
use crate::host;

/// How a machine is measured, checked.
#[derive(Debug, Clone)]
pub(crate) struct ProfileSettings {
    pub(crate) effort: Effort,
    /// Where the profile goes.
    pub(crate) path: PathBuf,
    full: bool,
}

impl ProfileSettings {
    pub(crate) fn check(args: &ProfileArgs) -> Result<ProfileSettings, UsageError> {
        let mut effort = if args.full { Effort::full() } else { Effort::quick() };
        if let Some(seconds) = args.seconds {
            effort.time = Duration::from_secs(seconds.into());
        }
        if !args.formats.is_empty() {
            // Each once, however often it was named.
            let formats: BTreeSet<Format> =
                args.formats.iter().map(|name| format_named(name)).collect::<Result<_, _>>()?;
            effort.formats = Some(formats.into_iter().collect());
        }
        let path = args.output.clone().or_else(of_user).ok_or(UsageError::NoConfigFolder)?;
        Ok(ProfileSettings { effort, path, full: args.full })
    }

    /// What the profile says about the machine.
    pub(crate) fn subject(&self, devices: &Description) -> Subject {
        let Description { threads, isa, simulated } = devices;
        let cpu = host::cpu_name();
        let gpu = simulated.map_or_else(String::new, |gpu| format!("; {gpu}"));
        let provenance = format!(
            "measured by baton {version} on {date} ({effort}): {threads} threads, {isa} kernels, {system}{gpu}",
            version = env!("CARGO_PKG_VERSION"),
            date = ZonedDateTime::now().date(),
            effort = if self.full { "full" } else { "quick" },
            system = host::system(),
        );
        let threads = u32::try_from(threads.get()).unwrap_or(u32::MAX);
        Subject { name: cpu.clone(), provenance, cpu, threads }
    }
}

/// The profile of this user's machine.
pub(super) fn of_user() -> Option<PathBuf> {
    Some(dirs::config_dir()?.join(Path::new("baton").join("machine.toml")))
}

fn format_named(name: &str) -> Result<Format, UsageError> {
    Format::named(&name.to_uppercase())
        .ok_or_else(|| UsageError::UnknownFormat { name: name.to_owned() })
}

pub(super) fn known_formats() -> String {
    let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
    names.join(", ")
}
