//! A whole machine: its devices one after the other, and the way between them.

use std::sync::Arc;

use planner::{
    Bytes, BytesPerSec, CpuProfile, GpuProfile, MachineProfile, PROFILE_SCHEMA, ProductKind,
    ProductTimes, Seconds,
};

use super::effort::Effort;
use super::error::MeasureError;
use super::figure::Noisy;
use super::kernels::{self, DeviceTimes, Formats, formats};
use super::link::{self, LinkTimes};
use super::pool;
use super::stopwatch::{ROUNDS, Stopwatch, Watcher, rounded};
use crate::backend::{Backend, HostRegion};

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
    mut devices: Devices<'_>,
    subject: &Subject,
    effort: &Effort,
    watcher: Watcher<'_>,
) -> Result<Measured, MeasureError> {
    let ram = devices.cpu.memory()?.total;
    // Before anything is stored there.
    let vram = devices.gpu.as_ref().map(|gpu| gpu.memory()).transpose()?;
    let list = List::of(&devices, effort)?;
    let mut watch = Stopwatch::start(effort, list.n_cpu + list.n_gpu, watcher);
    let region = pool::weights(effort.pool);
    let mut round = || list.round(&mut devices, &region, &mut watch, effort);
    let mut rounds = (0..ROUNDS).map(|_| round()).collect::<Result<Vec<_>, _>>()?;
    let together = rounds.iter().filter_map(|round| Some(round.gpu.as_ref()?.1.dram.get()));
    let together = together.fold(0.0, f64::max);
    // Its figures are what all rounds come to.
    let last = rounds.pop().expect("there is more than one round");
    let DeviceTimes { kernels, pass } = last.cpu;
    let dram = BytesPerSec::new(fastest_read(&kernels.products).get().max(together));
    let gpu = match (devices.gpu, vram, last.gpu) {
        (Some(gpu), Some(vram), Some((DeviceTimes { kernels, .. }, LinkTimes { link, .. }))) => {
            let (name, driver) = (gpu.name().to_owned(), vram.total.saturating_sub(vram.free));
            Some(GpuProfile { name, vram: vram.total, driver, link, kernels })
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

/// What a round measures.
struct List {
    cpu: Formats,
    gpu: Option<Formats>,
    /// Figures of each.
    n_cpu: usize,
    n_gpu: usize,
}

impl List {
    fn of(devices: &Devices<'_>, effort: &Effort) -> Result<List, MeasureError> {
        let wanted = effort.formats.as_deref();
        let cpu = formats(devices.cpu, wanted)?;
        let gpu = devices.gpu.as_ref().map(|gpu| formats(&**gpu, wanted)).transpose()?;
        let n_cpu = effort.n_kernel_figures(cpu.len());
        let of_gpu = |gpu: &Formats| effort.n_kernel_figures(gpu.len()) + link::N_FIGURES;
        let n_gpu = gpu.as_ref().map_or(0, of_gpu);
        Ok(List { cpu, gpu, n_cpu, n_gpu })
    }

    fn round(
        &self,
        devices: &mut Devices<'_>,
        region: &Arc<HostRegion>,
        watch: &mut Stopwatch<'_>,
        effort: &Effort,
    ) -> Result<Round, MeasureError> {
        watch.begin_round();
        watch.begin_part(self.n_cpu);
        let of_cpu = kernels::measure(devices.cpu, region, watch, effort, &self.cpu)?;
        let (Some(gpu), Some(formats)) = (&mut devices.gpu, &self.gpu) else {
            return Ok(Round { cpu: of_cpu, gpu: None });
        };
        watch.begin_part(self.n_gpu);
        let of_gpu = kernels::measure(*gpu, region, watch, effort, formats)?;
        let of_link = link::measure(devices.cpu, *gpu, region, watch)?;
        Ok(Round { cpu: of_cpu, gpu: Some((of_gpu, of_link)) })
    }
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
