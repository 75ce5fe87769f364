//! A whole machine: its devices one after the other, and the way between them.

use planner::{
    Bytes, BytesPerSec, CpuProfile, GpuProfile, MachineProfile, PROFILE_SCHEMA, ProductKind,
    ProductTimes, Seconds,
};

use super::effort::Effort;
use super::error::MeasureError;
use super::figure::Noisy;
use super::kernels::{self, DeviceTimes, formats};
use super::link::{self, LinkTimes};
use super::pool;
use super::stopwatch::{ROUNDS, Stopwatch, Watcher, rounded};
use crate::backend::Backend;

/// The devices of a machine.
pub struct Devices<'a> {
    /// Computes in host memory.
    pub cpu: &'a mut dyn Backend,
    /// Has memory of its own.
    pub gpu: Option<&'a mut dyn Backend>,
}

/// What only whoever made the devices knows about the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Short name of the machine.
    pub name: String,
    /// How and when it was measured.
    pub provenance: String,
    /// Name of the processor.
    pub cpu: String,
    /// Threads that compute.
    pub threads: u32,
}

/// What came out.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The machine.
    pub profile: MachineProfile,
    /// Figures whose measurements lie further apart than a plan should rest on.
    pub noisy: Vec<Noisy>,
}

/// Measures a machine. The time of a request before its first pass depends on its text and is given as zero.
///
/// # Errors
/// A device that fails or lacks a format, a wish to stop, times that make no sense.
pub fn measure(
    devices: Devices<'_>,
    subject: &Subject,
    effort: &Effort,
    watcher: Watcher<'_>,
) -> Result<Measured, MeasureError> {
    let Devices { cpu, mut gpu } = devices;
    let ram = cpu.memory()?.total;
    // Before anything is stored there.
    let vram = gpu.as_ref().map(|gpu| gpu.memory()).transpose()?;
    let wanted = effort.formats.as_deref();
    let cpu_formats = formats(cpu, wanted)?;
    let gpu_formats = gpu.as_ref().map(|gpu| formats(&**gpu, wanted)).transpose()?;

    let n_cpu = effort.n_kernel_figures(cpu_formats.len());
    let n_gpu = gpu_formats
        .as_ref()
        .map_or(0, |formats| effort.n_kernel_figures(formats.len()) + link::N_FIGURES);
    let mut watch = Stopwatch::start(effort, n_cpu + n_gpu, watcher);
    let region = pool::weights(effort.pool);

    let mut round = || -> Result<Round, MeasureError> {
        watch.begin_round();
        watch.begin_part(n_cpu);
        let of_cpu = kernels::measure(cpu, &region, &mut watch, effort, &cpu_formats)?;
        let (Some(gpu), Some(formats)) = (&mut gpu, &gpu_formats) else {
            return Ok(Round { cpu: of_cpu, gpu: None });
        };
        watch.begin_part(n_gpu);
        let of_gpu = kernels::measure(*gpu, &region, &mut watch, effort, formats)?;
        let of_link = link::measure(cpu, *gpu, &region, &mut watch)?;
        Ok(Round { cpu: of_cpu, gpu: Some((of_gpu, of_link)) })
    };
    let mut rounds = (0..ROUNDS).map(|_| round()).collect::<Result<Vec<_>, _>>()?;
    let together = rounds.iter().filter_map(|round| Some(round.gpu.as_ref()?.1.dram.get()));
    let together = together.fold(0.0, f64::max);
    // Its figures are what all rounds come to.
    let last = rounds.pop().expect("there is more than one round");
    let DeviceTimes { kernels, pass } = last.cpu;
    let alone = fastest_read(&kernels.products);
    let dram = BytesPerSec::new(alone.get().max(together));
    let gpu = match (gpu, vram, last.gpu) {
        (Some(gpu), Some(vram), Some((DeviceTimes { kernels, .. }, LinkTimes { link, .. }))) => {
            let driver = vram.total.saturating_sub(vram.free);
            Some(GpuProfile {
                name: gpu.name().to_owned(),
                vram: vram.total,
                driver,
                link,
                kernels,
            })
        }
        _ => None,
    };
    let profile = MachineProfile {
        schema: PROFILE_SCHEMA,
        name: subject.name.clone(),
        provenance: subject.provenance.clone(),
        pass,
        request: Seconds::ZERO,
        cpu: CpuProfile { name: subject.cpu.clone(), threads: subject.threads, ram, dram, kernels },
        gpu,
    };
    profile.check()?;
    Ok(Measured { profile, noisy: watch.into_noisy() })
}

/// What a round found out.
struct Round {
    cpu: DeviceTimes,
    gpu: Option<(DeviceTimes, LinkTimes)>,
}

/// The highest rate at which one token read weights: what memory gives at least.
fn fastest_read(products: &[ProductTimes]) -> BytesPerSec {
    let rate = |times: &ProductTimes| {
        times.points.first().map_or(0.0, |one| (times.weights / one.seconds).get())
    };
    let largest = products
        .iter()
        .filter(|times| times.kind == ProductKind::Dense)
        .map(|times| times.weights)
        .max()
        .unwrap_or(Bytes::ZERO);
    // A small matrix may come from a cache in part: only the largest ones tell of memory.
    let from_memory = products.iter().filter(|times| times.weights * 2 > largest);
    BytesPerSec::new(rounded(from_memory.map(rate).fold(0.0, f64::max)))
}
