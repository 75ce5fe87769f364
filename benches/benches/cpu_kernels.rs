//! Matrix products of the CPU: every instruction set that this one has, every format, from one token to a prompt.
//!
//! One token reads the weights once and should be as fast as the memory; many should be as fast as the arithmetic. So
//! each line ends with the share of what the same threads reach when they do nothing but read, or nothing but multiply
//! and add: bytes for rounded activations, f32 for float weights.

use std::cell::Cell;
use std::time::{Duration, Instant};

use backend_cpu::kernels::activations::{Activations, BLOCK, Form, Q8Block, Rows};
use backend_cpu::kernels::args::{ColumnsMut, TokenRows, WeightRows};
use backend_cpu::kernels::dequant::dequantise_row;
use backend_cpu::{Isa, KernelTable};
use benches::inputs::Numbers;
use benches::peaks::{Peaks, on_threads};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use engine_core::weights::DType;

/// Tokens in a pass, with a matrix that takes a while: for few tokens one that no cache holds.
const PASSES: [Pass; 4] = [
    Pass { n_tokens: 1, n: 16384, k: 4096 },
    Pass { n_tokens: 4, n: 16384, k: 4096 },
    Pass { n_tokens: 64, n: 2048, k: 2048 },
    Pass { n_tokens: 512, n: 2048, k: 2048 },
];

/// Passes of more tokens take the scalar kernels minutes.
const MOST_SCALAR_TOKENS: usize = 4;

#[derive(Clone, Copy)]
struct Pass {
    n_tokens: usize,
    n: usize,
    k: usize,
}

/// One product, with everything it needs.
struct Product {
    pass: Pass,
    dtype: DType,
    weights: Vec<u8>,
    floats: Vec<f32>,
    blocks: Vec<Q8Block>,
}

impl Product {
    fn new(dtype: DType, pass: Pass) -> Self {
        let Pass { n_tokens, n, k } = pass;
        let mut numbers = Numbers::new(1);
        let weights = numbers.weights(dtype, n, k);
        let floats = numbers.floats(n_tokens * k);
        let mut blocks = vec![bytemuck::Zeroable::zeroed(); n_tokens * k / BLOCK];
        KernelTable::detect().quantise(&floats, &mut blocks);
        Product { pass, dtype, weights, floats, blocks }
    }

    fn form(&self) -> Form {
        Form::of(self.dtype).expect("a format with arithmetic")
    }

    fn activations(&self) -> Activations<'_> {
        match self.form() {
            Form::F32 => Activations::F32(Rows::new(&self.floats, self.pass.k)),
            Form::Q8 => Activations::Q8(Rows::new(&self.blocks, self.pass.k / BLOCK)),
        }
    }

    /// Seconds to compute it, the weight rows shared by the threads.
    fn run(&self, kernels: KernelTable, threads: usize, y: &mut [f32]) -> f64 {
        let Pass { n_tokens, n, k } = self.pass;
        let w = WeightRows::new(&self.weights, self.dtype, k);
        let share = n / threads;
        let mut rest = Some(ColumnsMut::all(y, n));
        let mut parts = Vec::new();
        for i in 0..threads {
            let all = rest.take().expect("a rest after each part");
            let width = if i + 1 < threads { share } else { all.width() };
            let (part, others) = all.split_at(width);
            parts.push((w.rows(i * share..i * share + width), part));
            rest = Some(others);
        }
        on_threads(parts, |(w, mut y)| {
            kernels.matmul(w, self.activations(), TokenRows::First(n_tokens), &mut y);
        })
    }

    /// # Panics
    /// If a result is not what decoded weights give in f64.
    fn check(&self, y: &[f32]) {
        let Pass { n_tokens, n, k } = self.pass;
        let w = WeightRows::new(&self.weights, self.dtype, k);
        let mut row = vec![0.0; k];
        for t in [0, n_tokens - 1] {
            let x: Vec<f64> = match self.activations() {
                Activations::F32(x) => x.row(t).iter().map(|&x| x.into()).collect(),
                Activations::Q8(x) => {
                    let values = |b: &Q8Block| b.values.map(|v| f64::from(b.scale) * f64::from(v));
                    x.row(t).iter().flat_map(values).collect()
                }
            };
            for i in [0, n / 2, n - 1] {
                dequantise_row(self.dtype, w.row(i), &mut row);
                let products = row.iter().zip(&x).map(|(&w, x)| f64::from(w) * x);
                let size: f64 = products.clone().map(f64::abs).sum();
                let error = (products.sum::<f64>() - f64::from(y[t * n + i])).abs();
                assert!(error < size * 1e-5, "{} row {i} token {t}: off by {error:e}", self.dtype);
            }
        }
    }

    /// The rate that `seconds` mean, and its share of the peak, in words.
    fn report(&self, seconds: f64, peaks: &Peaks) -> String {
        let bytes = self.weights.len() as f64 / seconds;
        let ops = 2.0 * (self.pass.n * self.pass.k * self.pass.n_tokens) as f64 / seconds;
        let peak_ops = match self.form() {
            Form::F32 => peaks.float_ops,
            Form::Q8 => peaks.byte_ops,
        };
        format!(
            "best {:.1} GB/s = {:.0} % of reading, {:.0} GFLOP/s = {:.0} % of arithmetic",
            bytes / 1e9,
            bytes / peaks.read * 100.0,
            ops / 1e9,
            ops / peak_ops * 100.0
        )
    }
}

fn matmul(c: &mut Criterion) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let peaks = Peaks::measure(threads);
    println!("{peaks}");
    let mut group = c.benchmark_group("matmul");
    group.sample_size(10).warm_up_time(Duration::from_millis(200));
    group.measurement_time(Duration::from_secs(1));
    for &isa in Isa::ALL {
        let Some(kernels) = KernelTable::for_isa(isa) else { continue };
        for &dtype in DType::ALL.iter().filter(|&&dtype| Form::of(dtype).is_some()) {
            for pass in PASSES {
                if isa == Isa::Scalar && pass.n_tokens > MOST_SCALAR_TOKENS {
                    continue;
                }
                // Made when it turns out that this one is asked for.
                let mut product = None;
                let best = Cell::new(f64::INFINITY);
                let flops = 2 * pass.n * pass.k * pass.n_tokens;
                group.throughput(Throughput::Elements(flops as u64));
                let id = BenchmarkId::new(format!("{isa}/{dtype}"), pass.n_tokens);
                group.bench_function(id, |b| {
                    let product = product.get_or_insert_with(|| Product::new(dtype, pass));
                    let mut y = vec![0.0; pass.n_tokens * pass.n];
                    product.run(kernels, threads, &mut y);
                    product.check(&y);
                    b.iter_custom(|times| {
                        let start = Instant::now();
                        for _ in 0..times {
                            best.set(best.get().min(product.run(kernels, threads, &mut y)));
                        }
                        start.elapsed()
                    });
                });
                if let Some(product) = product {
                    println!("{}", product.report(best.get(), &peaks));
                }
            }
        }
    }
    group.finish();
}

criterion_group!(benches, matmul);
criterion_main!(benches);
