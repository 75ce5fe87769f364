//! Ops of one list: what they may share, and when they see what others wrote.

use crate::harness::{Bench, Random, check, isas, to_f64};
use engine_core::op::{Add, Op, SoftCap, View};
use planner::Bytes;

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
