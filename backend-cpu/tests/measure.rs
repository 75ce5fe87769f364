//! Measuring this machine: every figure there, whatever it is; and a second device, which is simulated.

use std::num::NonZeroUsize;
use std::time::Duration;

use backend_cpu::{CpuBackend, CpuOptions, SimOptions, SimulatedGpu};
use engine_core::Cancel;
use engine_core::backend::Backend;
use engine_core::measure::{
    Devices, Effort, MeasureError, Measured, Progress, Size, Subject, Watcher, measure,
};
use planner::{AttentionShape, Bytes, Format, MachineProfile, ProductKind};

/// So little work that each figure is measured the least number of times.
fn effort(formats: &[Format]) -> Effort {
    let matrix = |kib: u64, columns| Size { weights: Bytes::new(kib << 10), columns };
    Effort {
        time: Duration::ZERO,
        figure: Duration::ZERO,
        pool: Bytes::mib(8),
        formats: Some(formats.to_vec()),
        products: vec![matrix(16, 256), matrix(64, 512)],
        product_tokens: vec![1, 4],
        experts: vec![matrix(16, 256)],
        expert_tokens: vec![1, 2],
        heads: vec![AttentionShape { n_head: 4, n_kv_head: 2, key_dim: 16, value_dim: 16 }],
        attention_tokens: vec![1, 8],
        attention_cells: vec![8, 32],
    }
}

fn backend() -> CpuBackend {
    let options = CpuOptions { threads: NonZeroUsize::MIN, ..CpuOptions::default() };
    CpuBackend::new(options).expect("a thread")
}

fn subject() -> Subject {
    Subject { name: "test".into(), provenance: "a test".into(), cpu: "some CPU".into(), threads: 1 }
}

fn run(
    effort: &Effort,
    gpu: Option<&mut SimulatedGpu>,
    cancel: Cancel,
) -> (Result<Measured, MeasureError>, Vec<(usize, usize)>) {
    let (mut cpu, mut seen) = (backend(), Vec::new());
    let mut on_progress = |progress: Progress| seen.push((progress.done, progress.total));
    let watcher = Watcher { cancel, on_progress: &mut on_progress };
    let gpu = gpu.map(|gpu| gpu as &mut dyn Backend);
    let measured = measure(Devices { cpu: &mut cpu, gpu }, &subject(), effort, watcher);
    (measured, seen)
}

#[test]
fn a_profile_of_the_cpu_is_read_back() {
    let (measured, seen) = run(&effort(&[Format::Q4_1, Format::F16]), None, Cancel::default());
    let profile = measured.expect("a profile").profile;
    let kernels = &profile.cpu.kernels;
    let found: Vec<_> = kernels.products.iter().map(|times| (times.format, times.kind)).collect();
    let of = |format| {
        [(format, ProductKind::Dense), (format, ProductKind::Dense), (format, ProductKind::Experts)]
    };
    assert_eq!(found, [of(Format::Q4_1), of(Format::F16)].concat());
    // Only what must be there is measured when there is no time.
    assert!(kernels.products.iter().all(|times| times.points[0].n_tokens == 1));
    assert!(!kernels.attention[0].points.is_empty());
    let text = profile.to_toml();
    assert_eq!(MachineProfile::from_toml(&text).expect("a valid profile"), profile);
    assert!(seen.iter().all(|(done, total)| done < total));
}

#[test]
fn a_wish_to_stop_is_heard() {
    let cancel = Cancel::default();
    cancel.cancel();
    let (measured, seen) = run(&effort(&[Format::Q4_1]), None, cancel);
    assert!(matches!(measured, Err(MeasureError::Cancelled)));
    assert_eq!(seen.len(), 1);
}

#[test]
fn a_second_device_gets_a_link() {
    let mut gpu = SimulatedGpu::new(SimOptions::default()).expect("threads");
    let (measured, _) = run(&effort(&[Format::F32]), Some(&mut gpu), Cancel::default());
    let profile = measured.expect("a profile").profile;
    let gpu = profile.gpu.expect("a second device");
    assert_eq!((gpu.name.as_str(), gpu.vram, gpu.driver), ("sim", Bytes::gib(1), Bytes::ZERO));
    assert!(gpu.link.h2d.get() > 0.0 && gpu.link.handoff.get() >= 0.0);
    // Copies may come late but never early, the rates of which are written to four digits.
    let set = SimOptions::default().pcie.get() * 1.001;
    assert!(
        [gpu.link.h2d, gpu.link.h2d_while_cpu, gpu.link.d2h].iter().all(|rate| rate.get() <= set)
    );
    assert_eq!(gpu.kernels.products.len(), profile.cpu.kernels.products.len());
}

#[test]
fn all_formats_are_measured_unless_some_are_named() {
    let (measured, _) = run(&Effort { formats: None, ..effort(&[]) }, None, Cancel::default());
    let products = measured.expect("a profile").profile.cpu.kernels.products;
    for &format in Format::ALL {
        assert!(products.iter().any(|times| times.format == format), "{format}");
    }
}
