//! Builds the devices that an engine runs on. The only file that names them.

use std::fmt;
use std::num::NonZeroUsize;

use backend_cpu::{CpuBackend, CpuOptions, Isa, KernelTable, Pace, SimOptions, SimulatedGpu};
use engine_core::backend::{Backend, Backends};

use crate::args::{DeviceArgs, DeviceName, Rates};
use crate::failure::Failure;
use crate::settings::UsageError;

/// The devices as the user wants them. Says so if one of them is simulated.
pub(crate) fn backends(args: &DeviceArgs) -> Result<Backends, Failure> {
    Ok(described(args)?.0)
}

/// The same, and what computes in them.
pub(crate) fn described(args: &DeviceArgs) -> Result<(Backends, Description), Failure> {
    let options = cpu_options(args)?;
    // Kernels asked for are the CPU's: a slow CPU beside a fast GPU is what most machines are.
    let sim = sim_options(args, KernelTable::detect())?;
    let description = Description {
        threads: options.threads,
        isa: options.kernels.isa().to_string(),
        simulated: sim.map(|sim| Simulated { gpu: sim, cpu: options.pace }),
    };
    let cpu = Box::new(CpuBackend::new(options).map_err(Failure::input)?);
    let gpu = sim.map(SimulatedGpu::new).transpose().map_err(Failure::input)?;
    if let Some(simulated) = &description.simulated {
        tell!("{simulated}");
    }
    let gpu = gpu.map(|gpu| Box::new(gpu) as Box<dyn Backend>);
    Ok((Backends { cpu, gpu }, description))
}

/// What computes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Description {
    /// Threads of the CPU.
    pub(crate) threads: NonZeroUsize,
    /// Instruction set of its kernels.
    pub(crate) isa: String,
    /// The GPU, where it is simulated.
    pub(crate) simulated: Option<Simulated>,
}

/// A GPU that is not there. Displayed, it says so.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Simulated {
    gpu: SimOptions,
    /// What the CPU beside it is slowed down to.
    cpu: Option<Pace>,
}

impl fmt::Display for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SimOptions { vram, pcie, threads, pace, .. } = self.gpu;
        let plural = if threads.get() == 1 { "" } else { "s" };
        write!(f, "the GPU is simulated: {vram} at {pcie}, {threads} thread{plural} of the CPU")?;
        for (device, pace) in [("the GPU", pace), ("the CPU", self.cpu)] {
            if let Some(Pace { memory, compute }) = pace {
                write!(f, "; {device} slowed down to {memory} and {compute}")?;
            }
        }
        Ok(())
    }
}

fn cpu_options(args: &DeviceArgs) -> Result<CpuOptions, UsageError> {
    let mut options = CpuOptions::default();
    if let Some(threads) = args.threads {
        options.threads = threads;
    }
    if let Some(name) = &args.isa {
        options.kernels = kernels(name)?;
    }
    options.pace = args.sim.and_then(|sim| sim.cpu).map(pace);
    Ok(options)
}

fn pace(rates: Rates) -> Pace {
    let Rates { memory, compute } = rates;
    Pace { memory, compute }
}

/// What to simulate, if anything.
fn sim_options(args: &DeviceArgs, kernels: KernelTable) -> Result<Option<SimOptions>, UsageError> {
    for device in &args.device {
        if let DeviceName::Cuda(number) = *device {
            return Err(UsageError::NoCuda { number });
        }
    }
    if !args.device.contains(&DeviceName::Sim) {
        return if args.sim.is_some() { Err(UsageError::SimNotAsked) } else { Ok(None) };
    }
    let (parts, default) = (args.sim.unwrap_or_default(), SimOptions::default());
    Ok(Some(SimOptions {
        vram: parts.vram.unwrap_or(default.vram),
        pcie: parts.pcie.unwrap_or(default.pcie),
        threads: parts.threads.unwrap_or(default.threads),
        kernels,
        pace: parts.gpu.map(pace),
        ..default
    }))
}

/// The kernels of the instruction set of that name.
fn kernels(name: &str) -> Result<KernelTable, UsageError> {
    let plain = |name: &str| name.to_lowercase().replace(['-', ' '], "");
    match Isa::ALL.iter().find(|isa| plain(&isa.to_string()) == plain(name)) {
        Some(&isa) => KernelTable::for_isa(isa).ok_or(UsageError::NoIsa { name: isa.to_string() }),
        None => {
            let known: Vec<String> = Isa::ALL.iter().map(ToString::to_string).collect();
            Err(UsageError::UnknownIsa { name: name.to_owned(), known: known.join(", ") })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sim(device: Vec<DeviceName>, sim: Option<&str>) -> Result<Option<SimOptions>, UsageError> {
        let sim = sim.map(|parts| parts.parse().expect("valid"));
        sim_options(&DeviceArgs { device, sim, threads: None, isa: None }, KernelTable::detect())
    }

    #[test]
    fn a_gpu_is_simulated_when_asked_for() {
        use DeviceName::{Auto, Cpu, Cuda, Sim};
        assert_eq!(sim(vec![Auto], None).expect("fine"), None);
        let default = Some(SimOptions::default());
        assert_eq!(sim(vec![Cpu, Sim], None).expect("fine"), default);
        let as_in_the_help = "vram=1GiB,pcie=2GB/s,threads=1";
        assert_eq!(sim(vec![Sim], Some(as_in_the_help)).expect("fine"), default);
        assert!(matches!(sim(vec![Auto], Some("threads=2")), Err(UsageError::SimNotAsked)));
        assert!(matches!(sim(vec![Sim, Cuda(3)], None), Err(UsageError::NoCuda { number: 3 })));
    }

    #[test]
    fn what_is_slowed_down_is_told() {
        let parts = "gpu=5GB/s:80GFLOPS,cpu=1GB/s:10GFLOPS".parse().expect("valid");
        let device = vec![DeviceName::Sim];
        let args = DeviceArgs { device, sim: Some(parts), threads: None, isa: None };
        let gpu = sim_options(&args, KernelTable::detect()).expect("fine").expect("asked for");
        let cpu = cpu_options(&args).expect("fine").pace;
        let told = Simulated { gpu, cpu }.to_string();
        let rates = "; the GPU slowed down to 5.0 GB/s and 80 GFLOPS; the CPU slowed down to 1.0 GB/s and 10 GFLOPS";
        assert!(told.ends_with(rates), "{told}");
    }

    #[test]
    fn an_instruction_set_goes_by_its_name() {
        assert_eq!(
            kernels("Scalar").expect("every CPU has it"),
            kernels("scalar").expect("the same")
        );
        let error = kernels("avx9").expect_err("unknown").to_string();
        assert!(error.contains("known: scalar"), "{error}");
    }
}
