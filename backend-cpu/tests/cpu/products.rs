//! Matrix products, and those of experts.

use crate::harness::{Random, check};
use engine_core::op::{CombineExperts, MatMul, MatMulExperts, Op, RouteExperts};
use engine_core::weights::DType;
use half::f16;

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
