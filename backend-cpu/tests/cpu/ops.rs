//! Every op through the backend, for each instruction set of this CPU and several numbers of threads, against loops in
//! double precision.

use crate::harness::{Bench, Random, check, isas, through_f16, to_f64};
use engine_core::backend::Backend;
use engine_core::op::{
    Activation, Add, AddBias, CombineExperts, GatherRows, Glu, MatMul, MatMulExperts, Op, RmsNorm,
    Rope, RopePairs, RouteExperts, ScatterRows, SoftCap, View,
};
use engine_core::weights::DType;
use half::{bf16, f16};
use planner::Bytes;

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

#[test]
fn rows_are_picked_and_scaled() {
    let mut random = Random::new(7);
    let table = random.values(50 * 33, 1.0);
    let rows: Vec<i32> = (0..40).map(|_| random.below(50) as i32).collect();
    let pick = |table: &[f64]| -> Vec<f64> {
        rows.iter().flat_map(|&row| &table[row as usize * 33..][..33]).map(|v| v * 1.5).collect()
    };
    for half in [false, true] {
        let truth = pick(&if half { through_f16(&table) } else { to_f64(&table) });
        check(&truth, 1e-12, |bench| {
            let table = if half { bench.f16s(&table, 33) } else { bench.f32s(&table, 33) };
            let rows = bench.i32s(&rows, rows.len());
            let y = bench.zeros(40, 33);
            bench.run(&[Op::GatherRows(GatherRows { table, rows, y, scale: 1.5 })]);
            bench.read(&y)
        });
    }
}

#[test]
fn rows_are_put_into_tables() {
    let mut random = Random::new(8);
    let mut x = random.values(20 * 37, 5.0);
    // Beyond the range of half precision, where numbers must not become infinite; and halfway between two of them.
    x[..6].copy_from_slice(&[7e4, -1e9, 65519.9, 65520.0, 1.0 + 1.0 / 2048.0, 1.0 + 3.0 / 2048.0]);
    let rows = &random.shuffled(64)[..20];
    for half in [false, true] {
        let stored = |x: f32| match half {
            true => f16::from_f32(x.clamp(-65504.0, 65504.0)).to_f64(),
            false => f64::from(x),
        };
        let mut truth = vec![0.0; 64 * 37];
        for (x, &row) in x.chunks_exact(37).zip(rows) {
            let row = &mut truth[row as usize * 37..][..37];
            row.iter_mut().zip(x).for_each(|(y, &x)| *y = stored(x));
        }
        check(&truth, 0.0, |bench| {
            let table = match half {
                true => bench.f16s(&[0.0; 64 * 37], 37),
                false => bench.zeros(64, 37),
            };
            let x = bench.f32s(&x, 37);
            let rows = bench.i32s(rows, 20);
            bench.run(&[Op::ScatterRows(ScatterRows { x, rows, table })]);
            match half {
                true => bench.read::<f16>(&table).iter().map(|v| v.to_f32()).collect(),
                false => bench.read(&table),
            }
        });
    }
}

#[test]
fn infinities_stay_what_they_are_in_half_precision() {
    for isa in isas() {
        let mut bench = Bench::new(isa, 1);
        let x = bench.f32s(&[f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1.0], 4);
        let rows = bench.i32s(&[0], 1);
        let table = bench.f16s(&[0.0; 4], 4);
        bench.run(&[Op::ScatterRows(ScatterRows { x, rows, table })]);
        let stored: Vec<f16> = bench.read(&table);
        assert_eq!(stored[..2], [f16::INFINITY, f16::NEG_INFINITY]);
        assert!(stored[2].is_nan() && stored[3] == f16::ONE);
    }
}

/// `x · wᵀ` in double precision.
fn product(x: &[f32], w: &[f32], k: usize) -> Vec<f64> {
    let dot = |x: &[f32], w: &[f32]| -> f64 {
        x.iter().zip(w).map(|(&x, &w)| f64::from(x) * f64::from(w)).sum()
    };
    x.chunks_exact(k).flat_map(|x| w.chunks_exact(k).map(move |w| dot(x, w))).collect()
}

#[test]
fn matmul() {
    let mut random = Random::new(9);
    for [n_tokens, k, n] in [[1, 64, 1], [1, 96, 100], [7, 32, 65], [40, 160, 33]] {
        let x = random.values(n_tokens * k, 1.0);
        let w = random.values(n * k, 1.0);
        let truth = product(&x, &w, k);
        check(&truth, 1e-12, |bench| {
            let [x, w] = [&x, &w].map(|values| bench.f32s(values, k));
            let y = bench.zeros(n_tokens, n);
            bench.run(&[Op::MatMul(MatMul { x, w, y })]);
            bench.read(&y)
        });
    }
}

#[test]
fn products_of_one_input_share_its_rounding() {
    // Weights of Q8_0 with a scale of 1, so that just the activations are rounded.
    let mut random = Random::new(10);
    let (k, n, n_tokens) = (640, 70, 40);
    let block = |random: &mut Random| -> Vec<u8> {
        let quants = (0..32).map(|_| random.bits() as u8);
        f16::ONE.to_le_bytes().into_iter().chain(quants).collect()
    };
    let w: Vec<u8> = (0..n * k / 32).flat_map(|_| block(&mut random)).collect();
    let values: Vec<f32> =
        w.chunks_exact(34).flat_map(|block| block[2..].iter().map(|&q| q as i8 as f32)).collect();
    let x = random.values(n_tokens * k, 1.0);
    let truth = product(&x, &values, k).repeat(2);
    check(&truth, 1e-4, |bench| {
        let x = bench.f32s(&x, k);
        let w = bench.bytes(&w, [n as u32, k as u32], DType::Q8_0);
        let [first, second] = [0, 1].map(|_| bench.zeros(n_tokens, n));
        bench.run(&[Op::MatMul(MatMul { x, w, y: first }), Op::MatMul(MatMul { x, w, y: second })]);
        [first, second].iter().flat_map(|y| bench.read::<f32>(y)).collect()
    });
}

#[test]
fn experts_are_chosen_by_share_then_by_number() {
    let logits =
        [[0.0, 2.0, 1.0, 2.0, -1.0], [1.0, 1.0, 1.0, 1.0, 1.0], [-9e4, 9e4, 9e4, -9e4, 0.0]];
    let chosen = [1, 3, 2, 0, 1, 2, 1, 2, 0];
    for normalise in [false, true] {
        let mut truth = Vec::new();
        for (logits, chosen) in logits.iter().zip(chosen.chunks_exact(3)) {
            let max = logits.iter().copied().fold(f64::MIN, f64::max);
            let sum: f64 = logits.iter().map(|x| (x - max).exp()).sum();
            let shares = chosen.iter().map(|&i: &i32| (logits[i as usize] - max).exp() / sum);
            let kept: f64 = if normalise { shares.clone().sum() } else { 1.0 };
            truth.extend(shares.map(|share| share / kept));
        }
        check(&truth, 1e-12, |bench| {
            let logits =
                bench.f32s(&logits.concat().iter().map(|&x| x as f32).collect::<Vec<_>>(), 5);
            let experts = bench.i32s(&[9; 9], 3);
            let shares = bench.zeros(3, 3);
            bench.run(&[Op::RouteExperts(RouteExperts { logits, experts, shares, normalise })]);
            let mut numbers = bench.read::<i32>(&experts);
            // Expert 0 or 3: the last choice of the last token is between shares of nothing, where order decides.
            numbers[8] = chosen[8];
            assert_eq!(numbers, chosen);
            bench.read(&shares)
        });
    }
}

#[test]
fn experts_multiply_the_rows_that_chose_them() {
    let mut random = Random::new(11);
    let (n_tokens, n_used, n_expert, k, n) = (9, 2, 5, 64, 40);
    let experts: Vec<i32> =
        (0..n_tokens).flat_map(|_| random.shuffled(n_expert)[..n_used].to_vec()).collect();
    let w: Vec<Vec<f32>> = (0..n_expert).map(|_| random.values(n * k, 1.0)).collect();
    let shares = random.values(n_tokens * n_used, 1.0);
    for rows in [n_tokens, n_tokens * n_used] {
        let x = random.values(rows * k, 1.0);
        let choices: Vec<Vec<f64>> = (0..n_tokens * n_used)
            .map(|choice| {
                let row = choice * rows / (n_tokens * n_used);
                product(&x[row * k..][..k], &w[experts[choice] as usize], k)
            })
            .collect();
        let mut truth = choices.concat();
        for token in 0..n_tokens {
            let mut sum = vec![0.0; n];
            for choice in token * n_used..(token + 1) * n_used {
                let share = f64::from(shares[choice]);
                sum.iter_mut().zip(&choices[choice]).for_each(|(sum, x)| *sum += share * x);
            }
            truth.extend(sum);
        }
        check(&truth, 1e-12, |bench| {
            let x = bench.f32s(&x, k);
            let w = w.iter().map(|w| bench.f32s(w, k)).collect();
            let experts = bench.i32s(&experts, n_used);
            let shares = bench.f32s(&shares, n_used);
            let products = bench.zeros(n_tokens * n_used, n);
            let y = bench.zeros(n_tokens, n);
            bench.run(&[
                Op::MatMulExperts(MatMulExperts { x, w, experts, y: products }),
                Op::CombineExperts(CombineExperts { x: products, shares, y }),
            ]);
            [products, y].iter().flat_map(|view| bench.read::<f32>(view)).collect()
        });
    }
}

#[test]
fn ops_see_what_the_ones_before_them_wrote() {
    // Chains through one buffer, long enough for several waves, with pairs that could run at once.
    let mut random = Random::new(12);
    let x = random.values(4 * 700, 1.0);
    let rounds = 30;
    let mut truth = to_f64(&x);
    let mut other = to_f64(&x);
    for _ in 0..rounds {
        truth.iter_mut().zip(&other).for_each(|(y, x)| *y = (*y + x).tanh());
        other.iter_mut().zip(&truth).for_each(|(y, x)| *y = (*y + x).tanh());
    }
    check(&truth, 1e-10, |bench| {
        let whole = bench.f32s(&x.repeat(2), 700);
        let half = |row: u64| View { offset: Bytes::new(row * 700 * 4), shape: [4, 700], ..whole };
        let [x, y] = [half(0), half(4)];
        let round = [
            Op::Add(Add { x, y }),
            Op::SoftCap(SoftCap { y, cap: 1.0 }),
            Op::Add(Add { x: y, y: x }),
            Op::SoftCap(SoftCap { y: x, cap: 1.0 }),
        ];
        let ops: Vec<Op> = (0..rounds).flat_map(|_| round.clone()).collect();
        bench.run(&ops);
        bench.read(&y)
    });
}

#[test]
#[should_panic(expected = "overlaps its inputs")]
fn outputs_do_not_overlap_inputs() {
    let mut bench = Bench::new(isas().next().unwrap(), 2);
    let whole = bench.zeros(1, 16);
    let [x, y] = [0, 16].map(|offset| View { offset: Bytes::new(offset), shape: [1, 12], ..whole });
    let _ = bench.backend.submit(&[Op::Add(Add { x, y })], &[]);
}
