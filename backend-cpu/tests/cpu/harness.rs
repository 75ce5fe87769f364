//! A backend to try ops on, seeded values, and how far from the truth a result may be.

use std::num::NonZeroUsize;

use backend_cpu::{CpuBackend, CpuOptions, Isa, KernelTable, SimOptions, SimulatedGpu};
use engine_core::backend::Backend;
use engine_core::op::{Op, View};
use engine_core::weights::DType;
use half::f16;
use planner::{Bytes, BytesPerSec};

/// A backend whose arrays have a buffer each.
pub(crate) struct Bench {
    pub(crate) backend: Box<dyn Backend>,
}

/// Options of a simulated GPU whose link is faster than memory.
pub(crate) fn fast() -> SimOptions {
    SimOptions { pcie: BytesPerSec::new(1e12), ..SimOptions::default() }
}

impl Bench {
    pub(crate) fn new(isa: Isa, threads: usize) -> Bench {
        let kernels = KernelTable::for_isa(isa).expect("asked for a detected one");
        let threads = NonZeroUsize::new(threads).unwrap();
        Bench {
            backend: Box::new(
                CpuBackend::new(CpuOptions { threads, kernels, pace: None }).unwrap(),
            ),
        }
    }

    pub(crate) fn simulated(options: SimOptions) -> Bench {
        Bench { backend: Box::new(SimulatedGpu::new(options).unwrap()) }
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8], shape: [u32; 2], dtype: DType) -> View {
        let buffer = self.backend.alloc(Bytes::from(bytes.len())).unwrap();
        let view = View { buffer, offset: Bytes::ZERO, shape, dtype };
        assert_eq!(view.bytes(), Bytes::from(bytes.len()));
        self.backend.write(&view, bytes).unwrap();
        // Uploads do not wait for writes by themselves.
        let written = self.backend.submit(&[], &[]).unwrap();
        self.backend.wait(written).unwrap();
        view
    }

    pub(crate) fn f32s(&mut self, values: &[f32], columns: usize) -> View {
        let shape = [values.len() / columns, columns].map(|n| n as u32);
        self.bytes(bytemuck::cast_slice(values), shape, DType::F32)
    }

    pub(crate) fn f16s(&mut self, values: &[f32], columns: usize) -> View {
        let shape = [values.len() / columns, columns].map(|n| n as u32);
        let values: Vec<f16> = values.iter().map(|&value| f16::from_f32(value)).collect();
        self.bytes(bytemuck::cast_slice(&values), shape, DType::F16)
    }

    pub(crate) fn i32s(&mut self, values: &[i32], columns: usize) -> View {
        let shape = [values.len() / columns, columns].map(|n| n as u32);
        self.bytes(bytemuck::cast_slice(values), shape, DType::I32)
    }

    pub(crate) fn zeros(&mut self, rows: usize, columns: usize) -> View {
        self.f32s(&vec![0.0; rows * columns], columns)
    }

    pub(crate) fn run(&mut self, ops: &[Op]) {
        for op in ops {
            assert!(self.backend.supports(op), "{op:?}");
        }
        self.backend.submit(ops, &[]).unwrap();
    }

    pub(crate) fn read<T: bytemuck::Pod>(&mut self, view: &View) -> Vec<T> {
        let mut values = vec![T::zeroed(); view.len() as usize];
        let done = self.backend.submit(&[], &[]).unwrap();
        self.backend.read(view, bytemuck::cast_slice_mut(&mut values), &[done]).unwrap();
        values
    }
}

/// Instruction sets of this CPU.
pub(crate) fn isas() -> impl Iterator<Item = Isa> {
    Isa::ALL.iter().copied().filter(|&isa| KernelTable::for_isa(isa).is_some())
}

/// Numbers of threads to try.
pub(crate) const THREADS: [usize; 4] = [1, 2, 3, 7];

/// Runs `case` with every instruction set and number of threads; it builds an op's arrays, runs it and returns what it
/// gave. Neither threads nor the simulated GPU may change a bit; every instruction set must give `truth` within the
/// relative mean square error.
pub(crate) fn check(truth: &[f64], nmse: f64, case: impl Fn(&mut Bench) -> Vec<f32>) {
    for isa in isas() {
        let alone = case(&mut Bench::new(isa, 1));
        assert_eq!(alone.len(), truth.len(), "{isa}");
        let error = nmse_of(&alone, truth);
        assert!(error <= nmse, "{isa}: error {error:e} of at most {nmse:e}");
        let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        for threads in THREADS {
            let together = case(&mut Bench::new(isa, threads));
            assert_eq!(bits(&together), bits(&alone), "{isa}: {threads} threads change the result");
        }
        let kernels = KernelTable::for_isa(isa).expect("a detected one");
        let threads = NonZeroUsize::new(2).unwrap();
        let elsewhere = case(&mut Bench::simulated(SimOptions { kernels, threads, ..fast() }));
        assert_eq!(bits(&elsewhere), bits(&alone), "{isa}: the simulated GPU changes the result");
    }
}

/// `Σ (x − truth)² / Σ truth²`.
pub(crate) fn nmse_of(x: &[f32], truth: &[f64]) -> f64 {
    let error: f64 = x.iter().zip(truth).map(|(&x, truth)| (f64::from(x) - truth).powi(2)).sum();
    let size: f64 = truth.iter().map(|truth| truth * truth).sum();
    if error == 0.0 { 0.0 } else { error / size }
}

/// Seeded numbers. Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    /// Numbers spread over `-size..size`.
    pub(crate) fn values(&mut self, n: usize, size: f32) -> Vec<f32> {
        (0..n).map(|_| ((self.bits() >> 40) as f32 / (1 << 23) as f32 - 1.0) * size).collect()
    }

    /// `0..n` in any order.
    pub(crate) fn shuffled(&mut self, n: usize) -> Vec<i32> {
        let mut numbers: Vec<i32> = (0..n as i32).collect();
        for i in (1..n).rev() {
            numbers.swap(i, self.below(i + 1));
        }
        numbers
    }
}

pub(crate) fn to_f64(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

/// What is left of values once they are stored in half precision.
pub(crate) fn through_f16(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f16::from_f32(value).to_f64()).collect()
}
