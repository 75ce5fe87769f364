//! Rows picked out of tables and put into them.

use crate::harness::{Bench, Random, check, isas, through_f16, to_f64};
use engine_core::op::{GatherRows, Op, ScatterRows};
use half::f16;

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
