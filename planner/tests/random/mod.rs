//! Random machines and models, the same for the same seed.

use planner::{
    AttentionPoint, AttentionShape, AttentionTimes, Bytes, BytesPerSec, CpuProfile, Format,
    GpuProfile, Kernels, Link, MachineProfile, OpCost, PROFILE_SCHEMA, ProductKind, ProductPoint,
    ProductTimes, Seconds, Shard, ShardCost,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

const HEADS: AttentionShape =
    AttentionShape { n_head: 8, n_kv_head: 2, key_dim: 64, value_dim: 64 };

/// A source of random figures.
pub struct Random(ChaCha8Rng);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(ChaCha8Rng::seed_from_u64(seed))
    }

    /// From 0 to below 1.
    pub fn share(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Between two figures, evenly over their orders of magnitude.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.share())
    }

    /// One of `n`.
    pub fn below(&mut self, n: u32) -> u32 {
        (self.share() * f64::from(n)) as u32
    }

    /// A machine with a GPU.
    pub fn machine(&mut self) -> MachineProfile {
        let h2d = self.between(3e9, 60e9);
        let cpu = self.between(20e9, 150e9);
        MachineProfile {
            schema: PROFILE_SCHEMA,
            name: "random".into(),
            provenance: String::new(),
            pass: Seconds::new(1e-4),
            request: Seconds::ZERO,
            cpu: CpuProfile {
                name: "random".into(),
                threads: 8,
                ram: Bytes::gib(1 << 20),
                dram: BytesPerSec::new(cpu * self.between(1.0, 2.0)),
                kernels: self.kernels(cpu, 1e-6),
            },
            gpu: Some(GpuProfile {
                name: "random".into(),
                vram: Bytes::gib(1 << 20),
                driver: Bytes::mib(1),
                link: Link {
                    h2d: BytesPerSec::new(h2d),
                    h2d_while_cpu: BytesPerSec::new(h2d * self.between(0.5, 1.0)),
                    h2d_pageable: BytesPerSec::new(h2d / 3.0),
                    d2h: BytesPerSec::new(h2d),
                    d2h_while_cpu: BytesPerSec::new(h2d),
                    handoff: Seconds::new(self.between(1e-6, 1e-4)),
                    submit: Seconds::new(self.between(1e-6, 1e-4)),
                    overlap_loss: 0.5 * self.share(),
                },
                kernels: {
                    let rate = self.between(50e9, 1500e9);
                    self.kernels(rate, 4e-6)
                },
            }),
        }
    }

    fn kernels(&mut self, rate: f64, op: f64) -> Kernels {
        let many = self.between(2.0, 200.0);
        let size = Bytes::mib(16);
        let least = size.get() as f64 / rate;
        let point = |n_tokens, seconds| ProductPoint {
            n_tokens,
            seconds: Seconds::new(seconds),
            spread: None,
        };
        let cells = |n_tokens, n_kv, seconds| AttentionPoint {
            n_tokens,
            n_kv,
            seconds: Seconds::new(seconds),
            spread: None,
        };
        let attention = self.between(1e-9, 1e-7);
        Kernels {
            op: Seconds::new(op),
            memory: BytesPerSec::new(rate),
            products: vec![ProductTimes {
                format: Format::Q4_0,
                kind: ProductKind::Dense,
                weights: size,
                points: vec![point(1, least), point(512, least * many)],
            }],
            attention: vec![AttentionTimes {
                shape: HEADS,
                points: vec![
                    cells(1, 1024, attention * 1024.0),
                    cells(512, 1024, attention * 1024.0 * many),
                ],
            }],
        }
    }

    /// Shards of a model with so many layers, all alike or each of its own size.
    pub fn shards(&mut self, n_layer: u32, alike: bool, n_tokens: u32) -> Vec<ShardCost> {
        let mut layer = || {
            let n_kv = 1 + self.below(8192);
            let kv = Bytes::new((self.share() * 64.0 * 1048576.0) as u64);
            let attention = vec![
                self.product(1.0, 64.0, n_tokens),
                OpCost::Attention { shape: HEADS, n_tokens, n_kv },
            ];
            let ffn = vec![self.product(4.0, 256.0, n_tokens), self.product(4.0, 256.0, n_tokens)];
            (kv, attention, ffn)
        };
        let first = layer();
        let layers: Vec<_> =
            (0..n_layer).map(|_| if alike { first.clone() } else { layer() }).collect();
        let output = self.product(16.0, 512.0, 1);
        let cost = |shard, kv: Bytes, ops: Vec<OpCost>| ShardCost {
            shard,
            weights: ops.iter().map(OpCost::weights).sum(),
            unread: Bytes::ZERO,
            shared_with_output: false,
            kv,
            kv_used: Bytes::new(kv.get() / 2),
            scratch: Bytes::mib(1),
            ops,
        };
        let mut shards = vec![ShardCost {
            weights: output.weights(),
            ..cost(Shard::Embedding, Bytes::ZERO, vec![OpCost::Light { bytes: Bytes::new(4096) }])
        }];
        for (layer, (kv, attention, ffn)) in (0..).zip(layers) {
            shards.push(cost(Shard::Attention { layer }, kv, attention));
            shards.push(cost(Shard::Ffn { layer }, Bytes::ZERO, ffn));
        }
        shards.push(cost(Shard::Output, Bytes::ZERO, vec![output]));
        shards
    }

    fn product(&mut self, low_mib: f64, high_mib: f64, n_tokens: u32) -> OpCost {
        let weights = Bytes::new((self.between(low_mib, high_mib) * 1048576.0) as u64);
        OpCost::Product { format: Format::Q4_0, weights, n_tokens }
    }
}
