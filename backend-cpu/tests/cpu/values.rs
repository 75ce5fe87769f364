//! Ops on values and rows by themselves: norms, rope, gates, sums, bounds.

use crate::harness::{Random, check, through_f16, to_f64};
use engine_core::op::{Activation, Add, AddBias, Glu, Op, RmsNorm, Rope, RopePairs, SoftCap};
use engine_core::weights::DType;
use half::{bf16, f16};

/// Shapes with one row, many rows, and columns that no vector length divides.
const SHAPES: [[usize; 2]; 6] = [[1, 1], [1, 576], [3, 17], [5, 64], [33, 100], [2, 5003]];

#[test]
fn rms_norm() {
    for [rows, columns] in SHAPES {
        // The last size is far beyond half precision; its squares must not overflow.
        for (size, weight_offset) in [(1.0, 0.0), (1e-4, 1.0), (3e5, 0.0)] {
            let mut random = Random::new(1);
            let x = random.values(rows * columns, size);
            let weight = random.values(columns, 2.0);
            let eps = 1e-5;
            let mut truth = to_f64(&x);
            for row in truth.chunks_exact_mut(columns) {
                let mean = row.iter().map(|x| x * x).sum::<f64>() / columns as f64;
                for (x, &weight) in row.iter_mut().zip(&weight) {
                    *x *= f64::from(weight + weight_offset) / (mean + f64::from(eps)).sqrt();
                }
            }
            for in_place in [false, true] {
                check(&truth, 1e-12, |bench| {
                    let x = bench.f32s(&x, columns);
                    let weight = bench.f32s(&weight, columns);
                    let y = if in_place { x } else { bench.zeros(rows, columns) };
                    bench.run(&[Op::RmsNorm(RmsNorm { x, weight, y, eps, weight_offset })]);
                    bench.read(&y)
                });
            }
        }
    }
}

#[test]
fn weights_of_norms_and_biases_are_stored_in_any_float_format() {
    let mut random = Random::new(2);
    let x = random.values(2 * 70, 1.0);
    let weight = random.values(70, 2.0);
    let halves: Vec<f16> = weight.iter().map(|&w| f16::from_f32(w)).collect();
    let brains: Vec<bf16> = weight.iter().map(|&w| bf16::from_f32(w)).collect();
    let formats = [
        (DType::F32, bytemuck::cast_slice(&weight), to_f64(&weight)),
        (DType::F16, bytemuck::cast_slice(&halves), through_f16(&weight)),
        (DType::BF16, bytemuck::cast_slice(&brains), brains.iter().map(|w| w.to_f64()).collect()),
    ];
    for (dtype, bytes, weight) in formats {
        let mut truth = to_f64(&x);
        for row in truth.chunks_exact_mut(70) {
            let mean = row.iter().map(|x| x * x).sum::<f64>() / 70.0;
            row.iter_mut().zip(&weight).for_each(|(x, w)| *x = *x / mean.sqrt() * w + w);
        }
        check(&truth, 1e-12, |bench| {
            let x = bench.f32s(&x, 70);
            let weight = bench.bytes(bytes, [1, 70], dtype);
            bench.run(&[
                Op::RmsNorm(RmsNorm { x, weight, y: x, eps: 0.0, weight_offset: 0.0 }),
                Op::AddBias(AddBias { bias: weight, y: x }),
            ]);
            bench.read(&x)
        });
    }
}

#[test]
fn rope() {
    let mut random = Random::new(3);
    for (n_tokens, n_head, head_dim, n_pairs) in [(1, 1, 2, 1), (5, 3, 14, 5), (40, 4, 64, 32)] {
        let x = random.values(n_tokens * n_head * head_dim, 2.0);
        let positions: Vec<i32> = (0..3 * n_tokens).map(|_| random.below(4000) as i32).collect();
        for n_axes in [1, 3] {
            // Angles are in single precision by definition, so frequencies here make them exact.
            let inv_freq: Vec<f32> =
                (0..n_axes * n_pairs).map(|_| (random.below(64) as f32) / 256.0).collect();
            for pairs in [RopePairs::Adjacent, RopePairs::Halves] {
                let magnitude = 1.25;
                let mut truth = to_f64(&x);
                for (row, head) in truth.chunks_exact_mut(head_dim).enumerate() {
                    for i in 0..n_pairs {
                        let position = &positions[row / n_head * 3..];
                        let angle: f64 = (0..n_axes)
                            .map(|axis| {
                                f64::from(position[axis]) * f64::from(inv_freq[axis * n_pairs + i])
                            })
                            .sum();
                        let (a, b) = match pairs {
                            RopePairs::Adjacent => (2 * i, 2 * i + 1),
                            RopePairs::Halves => (i, i + n_pairs),
                        };
                        let (sin, cos) = angle.sin_cos();
                        let [x, y] = [head[a], head[b]];
                        head[a] = magnitude * (x * cos - y * sin);
                        head[b] = magnitude * (x * sin + y * cos);
                    }
                }
                check(&truth, 1e-12, |bench| {
                    let x = bench.f32s(&x, n_head * head_dim);
                    let positions = bench.i32s(&positions, 3);
                    let inv_freq = bench.f32s(&inv_freq, n_pairs);
                    bench.run(&[Op::Rope(Rope {
                        x,
                        positions,
                        inv_freq,
                        head_dim: head_dim as u32,
                        pairs,
                        magnitude: magnitude as f32,
                    })]);
                    bench.read(&x)
                });
            }
        }
    }
}

/// Values of every size, the extremes with them.
fn wide_values(random: &mut Random, n: usize) -> Vec<f32> {
    let mut values = random.values(n, 12.0);
    for (i, extreme) in
        [0.0, -0.0, 1e-30, -1e-30, 90.0, -90.0, 1e5, -1e5, 1e30].into_iter().enumerate()
    {
        if let Some(value) = values.get_mut(3 * i) {
            *value = extreme;
        }
    }
    values
}

fn activate(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::GeluTanh => {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
            0.5 * x * (1.0 + inner.tanh())
        }
    }
}

#[test]
fn glu() {
    for [rows, columns] in SHAPES {
        let mut random = Random::new(4);
        let gate = wide_values(&mut random, rows * columns);
        let up = random.values(rows * columns, 3.0);
        for activation in [Activation::Silu, Activation::GeluTanh] {
            let value = |(&g, &u)| activate(activation, f64::from(g)) * f64::from(u);
            let truth: Vec<f64> = gate.iter().zip(&up).map(value).collect();
            for output in 0..3 {
                check(&truth, 1e-12, |bench| {
                    let gate = bench.f32s(&gate, columns);
                    let up = bench.f32s(&up, columns);
                    let y = [gate, up, bench.zeros(rows, columns)][output];
                    bench.run(&[Op::Glu(Glu { gate, up, y, activation })]);
                    bench.read(&y)
                });
            }
        }
    }
}

#[test]
fn sums() {
    for [rows, columns] in SHAPES {
        let mut random = Random::new(5);
        let [x, y] = [1.0, 3.0].map(|size| random.values(rows * columns, size));
        let bias = random.values(columns, 2.0);
        let sum = |i: usize| f64::from(x[i]) + f64::from(y[i]) + f64::from(bias[i % columns]);
        let truth: Vec<f64> = (0..x.len()).map(sum).collect();
        check(&truth, 1e-12, |bench| {
            let x = bench.f32s(&x, columns);
            let y = bench.f32s(&y, columns);
            let bias = bench.f32s(&bias, columns);
            bench.run(&[Op::Add(Add { x, y }), Op::AddBias(AddBias { bias, y })]);
            bench.read(&y)
        });
    }
}

#[test]
fn soft_cap() {
    for [rows, columns] in SHAPES {
        let y = wide_values(&mut Random::new(6), rows * columns);
        let truth: Vec<f64> = y.iter().map(|&y| 30.0 * (f64::from(y) / 30.0).tanh()).collect();
        check(&truth, 1e-12, |bench| {
            let y = bench.f32s(&y, columns);
            bench.run(&[Op::SoftCap(SoftCap { y, cap: 30.0 })]);
            bench.read(&y)
        });
    }
}
