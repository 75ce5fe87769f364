//! The flags that say what computes.

use std::num::NonZeroUsize;
use std::str::FromStr;

use planner::typed::{self, AmountError};
use planner::{Bytes, BytesPerSec, FlopsPerSec};
use thiserror::Error;

/// What computes.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Engine")]
pub(crate) struct DeviceArgs {
    /// Devices: auto (the best there is, today the CPU), cpu, sim (a simulated GPU); the CPU takes part in any case
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "auto")]
    pub(crate) device: Vec<DeviceName>,
    /// What --device sim simulates, any of its parts [default: vram=1GiB,pcie=2GB/s,threads=1]; with
    /// gpu=5GB/s:80GFLOPS,cpu=1GB/s:10GFLOPS devices are slowed down to such rates
    #[arg(long, value_name = "PARTS")]
    pub(crate) sim: Option<SimParts>,
    /// CPU threads [default: one for each fast core that this process may use]
    #[arg(short = 'j', long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
    /// CPU kernels to use, as in scalar or avx2, for checks [default: the best for this CPU]
    #[arg(long, value_name = "SET")]
    pub(crate) isa: Option<String>,
}

impl DeviceArgs {
    /// Whether a GPU takes part.
    pub(crate) fn has_gpu(&self) -> bool {
        self.device.iter().any(|device| matches!(device, DeviceName::Sim | DeviceName::Cuda(_)))
    }

    /// Gives a simulated GPU more memory where it would have less than that.
    pub(crate) fn simulate_at_least(&mut self, least: Bytes) {
        if let Some(SimParts { vram: Some(vram), .. }) = &mut self.sim {
            *vram = least.max(*vram);
        }
    }
}

/// A device as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeviceName {
    /// Whatever is best.
    Auto,
    /// The CPU.
    Cpu,
    /// The NVIDIA GPU of that number.
    Cuda(u32),
    /// A simulated GPU.
    Sim,
}

/// A name that no device has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no device has the name {name}; known: auto, cpu, cuda:0, sim")]
pub(crate) struct UnknownDevice {
    name: String,
}

impl FromStr for DeviceName {
    type Err = UnknownDevice;

    fn from_str(name: &str) -> Result<DeviceName, UnknownDevice> {
        match name {
            "auto" => Ok(DeviceName::Auto),
            "cpu" => Ok(DeviceName::Cpu),
            "sim" => Ok(DeviceName::Sim),
            _ => {
                let number = name.strip_prefix("cuda:").and_then(|number| number.parse().ok());
                number.map(DeviceName::Cuda).ok_or_else(|| UnknownDevice { name: name.to_owned() })
            }
        }
    }
}

/// What to simulate. Absent parts are those of the default.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct SimParts {
    /// Memory of the device.
    pub(crate) vram: Option<Bytes>,
    /// Rate of the link.
    pub(crate) pcie: Option<BytesPerSec>,
    /// Threads that compute.
    pub(crate) threads: Option<NonZeroUsize>,
    /// What the device is slowed down to.
    pub(crate) gpu: Option<Rates>,
    /// What the CPU beside it is slowed down to.
    pub(crate) cpu: Option<Rates>,
}

/// How fast a device reads memory, and how fast it computes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rates {
    pub(crate) memory: BytesPerSec,
    pub(crate) compute: FlopsPerSec,
}

/// Why a description of a simulated GPU was not understood.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub(crate) enum SimError {
    #[error("{part} is no KEY=VALUE; known keys: vram, pcie, threads, gpu, cpu")]
    NoPart { part: String },
    #[error("{key} is not simulated; known: vram, pcie, threads, gpu, cpu")]
    UnknownKey { key: String },
    #[error("{key} is given twice")]
    Twice { key: &'static str },
    #[error("{key}={value}: {why}")]
    Amount { key: &'static str, value: String, why: AmountError },
    #[error("{key}={value}: expected two rates, such as 5GB/s:80GFLOPS")]
    Rates { key: &'static str, value: String },
    #[error("threads={value}: expected a number of threads, at least 1")]
    Threads { value: String },
}

impl FromStr for SimParts {
    type Err = SimError;

    fn from_str(text: &str) -> Result<SimParts, SimError> {
        let mut parts = SimParts::default();
        for part in text.split(',') {
            let no_part = || SimError::NoPart { part: part.to_owned() };
            let (key, value) = part.split_once('=').ok_or_else(no_part)?;
            match key {
                "vram" => set(&mut parts.vram, "vram", amount("vram", value, typed::size)?)?,
                "pcie" => set(&mut parts.pcie, "pcie", amount("pcie", value, typed::rate)?)?,
                "threads" => {
                    let wrong = |_| SimError::Threads { value: value.to_owned() };
                    set(&mut parts.threads, "threads", value.parse().map_err(wrong)?)?;
                }
                "gpu" => set(&mut parts.gpu, "gpu", rates("gpu", value)?)?,
                "cpu" => set(&mut parts.cpu, "cpu", rates("cpu", value)?)?,
                _ => return Err(SimError::UnknownKey { key: key.to_owned() }),
            }
        }
        Ok(parts)
    }
}

fn amount<T>(
    key: &'static str,
    value: &str,
    read: impl Fn(&str) -> Result<T, AmountError>,
) -> Result<T, SimError> {
    read(value).map_err(|why| SimError::Amount { key, value: value.to_owned(), why })
}

fn rates(key: &'static str, value: &str) -> Result<Rates, SimError> {
    let one = || SimError::Rates { key, value: value.to_owned() };
    let (memory, compute) = value.split_once(':').ok_or_else(one)?;
    let (memory, compute) =
        (amount(key, memory, typed::rate)?, amount(key, compute, typed::flops)?);
    Ok(Rates { memory, compute })
}

fn set<T>(part: &mut Option<T>, key: &'static str, value: T) -> Result<(), SimError> {
    match part.replace(value) {
        None => Ok(()),
        Some(_) => Err(SimError::Twice { key }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_names() {
        use DeviceName::{Auto, Cpu, Cuda, Sim};
        for (name, device) in [("auto", Auto), ("cpu", Cpu), ("sim", Sim), ("cuda:1", Cuda(1))] {
            assert_eq!(name.parse(), Ok(device));
        }
        for name in ["", "gpu", "cuda", "cuda:x", "CPU"] {
            assert!(name.parse::<DeviceName>().is_err(), "{name}");
        }
    }

    #[test]
    fn parts_come_in_any_order_and_may_be_left_out() {
        let parts: SimParts = "threads=2,vram=64MiB,pcie=2.5GB/s".parse().expect("valid");
        let two = NonZeroUsize::new(2);
        let (vram, pcie) = (Some(Bytes::mib(64)), Some(BytesPerSec::new(2.5e9)));
        assert_eq!(parts, SimParts { vram, pcie, threads: two, ..SimParts::default() });
        let parts: SimParts = "pcie=2.5GB/s".parse().expect("valid");
        assert_eq!(parts, SimParts { pcie, ..SimParts::default() });
        let parts: SimParts = "gpu=5GB/s:80GFLOPS".parse().expect("valid");
        let (memory, compute) = (BytesPerSec::new(5e9), FlopsPerSec::new(80e9));
        assert_eq!(parts.gpu, Some(Rates { memory, compute }));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let message = |text: &str| text.parse::<SimParts>().expect_err("wrong").to_string();
        assert!(message("vram=64MB").starts_with("vram=64MB: expected a size with its suffix"));
        assert!(message("pcie=2").starts_with("pcie=2: expected a rate of at least 1MB/s"));
        assert_eq!(message("threads=0"), "threads=0: expected a number of threads, at least 1");
        assert_eq!(message("vram=1GiB,vram=2GiB"), "vram is given twice");
        let known = "vram, pcie, threads, gpu, cpu";
        assert_eq!(message("ram=1GiB"), format!("ram is not simulated; known: {known}"));
        assert_eq!(message(""), format!(" is no KEY=VALUE; known keys: {known}"));
        assert!(message("gpu=5GB/s").starts_with("gpu=5GB/s: expected two rates"));
        assert!(message("cpu=1GB/s:9").starts_with("cpu=9: expected a rate of at least 1GFLOPS"));
    }
}
