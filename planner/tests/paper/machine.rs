//! The paper's machine as some thirty figures, and the profile that they make.

use planner::{
    AttentionPoint, AttentionShape, AttentionTimes, Bytes, BytesPerSec, CpuProfile, Format,
    GpuProfile, Kernels, Link, MachineProfile, ModelShape, PROFILE_SCHEMA, ProductKind,
    ProductPoint, ProductTimes, Seconds,
};
use serde::{Deserialize, Serialize};

/// Declares the figures with their starting values, so that a fit can go through them by name.
macro_rules! figures {
    ($($(#[$doc:meta])* $name:ident = $start:expr),* $(,)?) => {
        /// Figures of the machine, in seconds, bytes and operations.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Figures { $($(#[$doc])* pub $name: f64),* }

        impl Figures {
            /// Where a fit begins: what such hardware usually does.
            pub fn start() -> Figures {
                Figures { $($name: $start),* }
            }

            /// The figure with this name.
            pub fn get_mut(&mut self, name: &str) -> &mut f64 {
                match name {
                    $(stringify!($name) => &mut self.$name,)*
                    _ => panic!("no figure {name}"),
                }
            }
        }
    };
}

figures! {
    /// Rates at which the CPU passes over weights of a format.
    cpu_f16 = 120e9,
    cpu_q4 = 80e9,
    cpu_q2 = 80e9,
    cpu_q6 = 30e9,
    cpu_op = 10e-6,
    /// CPU attention: time of one thread for one KV cell of one head, out of and in cache.
    cpu_cell = 0.18e-6,
    cpu_cell_cached = 0.13e-6,
    /// Rate at which the CPU passes over KV cells.
    cpu_kv = 60e9,
    gpu_memory = 1400e9,
    gpu_op = 4e-6,
    /// Rate at which the GPU passes over KV cells.
    gpu_kv = 900e9,
    /// Operations of GPU products: float16, experts in 4 and in 2 bits.
    gpu_f16 = 118e12,
    gpu_q4 = 25e12,
    gpu_q2 = 27e12,
    gpu_attention = 127e12,
    request = 0.05,
    pass = 0.3e-3,
    /// Copies: pageable, the same when the pages are first touched, page-locked, page-locked while the CPU computes.
    pageable = 12e9,
    first_touch = 8e9,
    h2d = 42e9,
    h2d_while_cpu = 34e9,
    submit = 0.1e-3,
    overlap_loss = 0.3,
    /// Of the authors' build against the one that made the baseline: slower attention in prefill, in decode, ops.
    own_attention = 1.0,
    own_kv = 1.0,
    own_op = 1.0,
    /// Rate at which it copies the KV cells of streamed attention, cell by cell.
    kv_copy = 30e9,
    dram = 150e9,
}

/// Which build made a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Build {
    /// The one of the baseline runs.
    Baseline,
    /// The authors' own, with pipelined sharding.
    Sharding,
}

/// Threads of the runs.
const THREADS: u32 = 16;

/// CPU cache that holds the KV cells of a layer; not fitted.
const CACHE: f64 = 16e6;

/// CPU operations per second in products of many rows; not fitted.
const CPU_FLOPS: f64 = 1.0e12;

/// VRAM that the authors' runs took besides what can be counted.
pub const RESERVE: Bytes = Bytes::mib(200);

impl Figures {
    /// The profile of the machine with a build, with attention measured for a model's heads.
    pub fn profile(&self, build: Build, shapes: &[AttentionShape]) -> MachineProfile {
        let own = |factor: f64| if build == Build::Sharding { factor } else { 1.0 };
        let submit = if build == Build::Sharding { self.submit } else { 0.0 };
        MachineProfile {
            schema: PROFILE_SCHEMA,
            name: "rtx-5090".into(),
            provenance: String::new(),
            pass: Seconds::new(self.pass),
            request: Seconds::new(self.request),
            cpu: CpuProfile {
                name: "16 threads, Windows".into(),
                threads: THREADS,
                ram: Bytes::gib(96),
                dram: BytesPerSec::new(self.dram),
                kernels: Kernels {
                    op: Seconds::new(self.cpu_op),
                    memory: BytesPerSec::new(self.cpu_f16),
                    products: self.cpu_products(),
                    attention: shapes.iter().map(|&shape| self.cpu_attention(shape)).collect(),
                },
            },
            gpu: Some(GpuProfile {
                name: "RTX 5090".into(),
                vram: Bytes::gib(32),
                driver: RESERVE,
                link: Link {
                    h2d: BytesPerSec::new(self.h2d),
                    h2d_while_cpu: BytesPerSec::new(self.h2d_while_cpu),
                    h2d_pageable: BytesPerSec::new(self.pageable),
                    d2h: BytesPerSec::new(self.h2d),
                    d2h_while_cpu: BytesPerSec::new(self.h2d_while_cpu),
                    handoff: Seconds::ZERO,
                    submit: Seconds::new(submit),
                    overlap_loss: self.overlap_loss,
                },
                kernels: Kernels {
                    op: Seconds::new(self.gpu_op * own(self.own_op)),
                    memory: BytesPerSec::new(self.gpu_memory),
                    products: self.gpu_products(),
                    attention: shapes
                        .iter()
                        .map(|&shape| {
                            self.gpu_attention(shape, own(self.own_attention), own(self.own_kv))
                        })
                        .collect(),
                },
            }),
        }
    }

    fn cpu_products(&self) -> Vec<ProductTimes> {
        let rates = [
            (Format::F32, self.cpu_f16),
            (Format::F16, self.cpu_f16),
            (Format::Q4_0, self.cpu_q4),
            (Format::Q2_K, self.cpu_q2),
            (Format::Q3_K, self.cpu_q2),
            (Format::Q4_K, self.cpu_q4),
            (Format::Q6_K, self.cpu_q6),
        ];
        let kinds = [ProductKind::Dense, ProductKind::Experts];
        let both = kinds.into_iter().flat_map(|kind| rates.map(|(f, rate)| (kind, f, rate)));
        both.flat_map(|(kind, format, rate)| roofline(kind, format, rate, CPU_FLOPS)).collect()
    }

    fn gpu_products(&self) -> Vec<ProductTimes> {
        let dense = [
            Format::F32,
            Format::F16,
            Format::Q4_0,
            Format::Q2_K,
            Format::Q3_K,
            Format::Q4_K,
            Format::Q6_K,
        ];
        let experts =
            [(Format::Q4_0, self.gpu_q4), (Format::Q2_K, self.gpu_q2), (Format::Q3_K, self.gpu_q2)];
        let dense = dense.map(|format| (ProductKind::Dense, format, self.gpu_f16));
        let experts = experts.map(|(format, flops)| (ProductKind::Experts, format, flops));
        let all = dense.into_iter().chain(experts);
        all.flat_map(|(kind, format, flops)| roofline(kind, format, self.gpu_memory, flops))
            .collect()
    }

    /// The layer's heads take turns on the threads; cells cost more once they do not fit in the cache.
    fn cpu_attention(&self, shape: AttentionShape) -> AttentionTimes {
        let cell_bytes = f64::from(2 * shape.n_kv_head * (shape.key_dim + shape.value_dim));
        let edge = (CACHE / cell_bytes) as u32;
        let mut cells = vec![256, edge, edge + edge / 4, edge + edge / 2];
        cells.extend([2 * edge, 3 * edge, 6 * edge, 16 * edge, 40 * edge]);
        let time = |n_tokens: u32, n_kv: u32| {
            let n_kv = f64::from(n_kv);
            let outside = (1.0 - CACHE / (cell_bytes * n_kv)).max(0.0);
            let cell = self.cpu_cell_cached + (self.cpu_cell - self.cpu_cell_cached) * outside;
            let rounds = (shape.n_head * n_tokens).div_ceil(THREADS);
            f64::from(rounds) * n_kv * cell + cell_bytes * n_kv / self.cpu_kv
        };
        grid(shape, &[1, 4, 16, 64], &cells, time)
    }

    /// Decode passes over the cells; prefill multiplies, in tiles of 32 heads.
    fn gpu_attention(&self, shape: AttentionShape, slower: f64, slower_kv: f64) -> AttentionTimes {
        let cell_bytes = f64::from(2 * shape.n_kv_head * (shape.key_dim + shape.value_dim));
        let heads = f64::from(shape.n_head.next_multiple_of(32));
        let time = |n_tokens: u32, n_kv: u32| {
            let n_kv = f64::from(n_kv);
            if n_tokens == 1 {
                return cell_bytes * n_kv * slower_kv / self.gpu_kv;
            }
            let flops = 4.0 * heads * f64::from(shape.key_dim) * f64::from(n_tokens) * n_kv;
            flops / self.gpu_attention * slower
        };
        grid(shape, &[1, 512, 2048], &[512, 131_072], time)
    }
}

fn grid(
    shape: AttentionShape,
    tokens: &[u32],
    cells: &[u32],
    time: impl Fn(u32, u32) -> f64,
) -> AttentionTimes {
    let pairs = tokens.iter().flat_map(|&n_tokens| cells.iter().map(move |&n_kv| (n_tokens, n_kv)));
    let point = |(n_tokens, n_kv)| AttentionPoint {
        n_tokens,
        n_kv,
        seconds: Seconds::new(time(n_tokens, n_kv)),
        spread: None,
    };
    AttentionTimes { shape, points: pairs.map(point).collect() }
}

/// Times of a small and of a large matrix, passed over at `rate`, or multiplied at `flops` where that takes longer.
fn roofline(kind: ProductKind, format: Format, rate: f64, flops: f64) -> [ProductTimes; 2] {
    [Bytes::mib(1), Bytes::mib(256)].map(|weights| {
        let per_token = 2.0 * 8.0 * weights.get() as f64 / format.bits_per_value() / flops;
        let least = weights.get() as f64 / rate;
        let edge = (least / per_token) as u32;
        let tokens = [1, edge, 8192];
        let rising = tokens.iter().enumerate().filter(|(i, n)| *i == 0 || **n > tokens[i - 1]);
        let point = |n_tokens: u32| ProductPoint {
            n_tokens,
            seconds: Seconds::new(least.max(per_token * f64::from(n_tokens))),
            spread: None,
        };
        let points = rising.map(|(_, &n)| point(n)).collect();
        ProductTimes { format, kind, weights, points }
    })
}

/// Heads of some models.
pub fn shapes<'a>(models: impl Iterator<Item = &'a ModelShape>) -> Vec<AttentionShape> {
    let mut shapes: Vec<AttentionShape> = models.map(|model| model.heads).collect();
    shapes.dedup();
    shapes
}
