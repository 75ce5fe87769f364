//! Ops that only pass over memory: the fixed time of an op, and the rate of memory beyond it.

use planner::{Bytes, BytesPerSec, Seconds};

use super::bench::Bench;
use super::error::MeasureError;
use super::figure::Figure;
use super::stopwatch::{Stopwatch, rounded};
use crate::backend::Res;
use crate::op::{Activation, Add, Glu, Op, RmsNorm, Rope, RopePairs, ScatterRows, View};
use crate::weights::DType;

/// Figures that are measured here.
pub(super) const N_FIGURES: usize = 2;

/// Tokens of a decode pass and of a prefill pass, between which the line is drawn.
const FEW: u32 = 1;
const MANY: u32 = 512;

/// Sizes of a layer of a model of a billion parameters.
const N_EMBD: u32 = 1024;
const N_FF: u32 = 2816;
const KEY_WIDTH: u32 = 256;
const HEAD_DIM: u32 = 64;

/// What ops take that only pass over memory: `op + bytes / memory`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LightTimes {
    /// Fixed time of an op.
    pub(super) op: Seconds,
    /// Rate of memory.
    pub(super) memory: BytesPerSec,
}

impl LightTimes {
    /// The time of one op.
    pub(super) fn of(&self, op: &Op) -> f64 {
        self.op.get() + (op.bytes() / self.memory).get()
    }

    /// The line through the times of `n_ops` ops on few bytes and on many.
    fn through(n_ops: usize, few: (Bytes, f64), many: (Bytes, f64)) -> LightTimes {
        let bytes = (many.0.get() - few.0.get()) as f64;
        // Noise may turn the line around; then all time is that of memory.
        let rate =
            if many.1 > few.1 { bytes / (many.1 - few.1) } else { many.0.get() as f64 / many.1 };
        let fixed = (few.1 - few.0.get() as f64 / rate) / n_ops as f64;
        LightTimes {
            op: Seconds::new(rounded(fixed.max(0.0))),
            memory: BytesPerSec::new(rounded(rate)),
        }
    }
}

/// Measures the light ops of a typical layer with one token and with a prefill pass.
pub(super) fn measure(
    bench: &mut Bench<'_>,
    watch: &mut Stopwatch<'_>,
) -> Result<LightTimes, MeasureError> {
    let mut time = |n_tokens| {
        let layer = light_ops(bench, n_tokens)?;
        let bytes = layer.iter().map(Op::bytes).sum();
        let mut repeated = bench.repeated(|_, ops| ops.extend(layer.iter().cloned()))?;
        let sample = watch.measure(Figure::Light { n_tokens }, || repeated.time())?;
        bench.clear();
        Ok::<_, MeasureError>((layer.len(), (bytes, sample.seconds)))
    };
    let (n_ops, few) = time(FEW)?;
    let (_, many) = time(MANY)?;
    Ok(LightTimes::through(n_ops, few, many))
}

/// The light ops of a layer in its order.
///
/// Products and attention are missing between them, so arrays overlap in such a way that ops wait for each other as they do
/// in a layer.
fn light_ops(bench: &mut Bench<'_>, n_tokens: u32) -> Res<Vec<Op>> {
    let n = n_tokens;
    let part = |view: View, columns: u32| View { shape: [n, columns], ..view };
    let residual = bench.floats(n, N_EMBD)?;
    let gate = bench.floats(n, N_FF)?;
    let up = bench.floats(n, N_FF)?;
    let (hidden, q, k) = (part(gate, N_EMBD), part(gate, N_EMBD), part(residual, KEY_WIDTH));
    let v = bench.floats(n, KEY_WIDTH)?;
    let tables =
        [bench.zeros([n, KEY_WIDTH], DType::F16)?, bench.zeros([n, KEY_WIDTH], DType::F16)?];
    let rows = bench.numbers(&Vec::from_iter(0..n), n)?;
    let positions = bench.numbers(&Vec::from_iter(0..3 * n), 3)?;
    let inv_freq = bench.floats(1, HEAD_DIM / 2)?;
    let weight = bench.floats(1, N_EMBD)?;
    let norm = norm(residual, weight, hidden);
    let rope = |x| {
        let pairs = RopePairs::Halves;
        Op::Rope(Rope { x, positions, inv_freq, head_dim: HEAD_DIM, pairs, magnitude: 1.0 })
    };
    let scatter = |x, table| Op::ScatterRows(ScatterRows { x, rows, table });
    let add = Op::Add(Add { x: hidden, y: residual });
    Ok(vec![
        norm.clone(),
        rope(q),
        rope(k),
        scatter(k, tables[0]),
        scatter(v, tables[1]),
        add.clone(),
        norm,
        Op::Glu(Glu { gate, up, y: gate, activation: Activation::Silu }),
        add,
    ])
}

/// A norm as models have it before each block.
pub(super) fn norm(x: View, weight: View, y: View) -> Op {
    Op::RmsNorm(RmsNorm { x, weight, y, eps: 1e-5, weight_offset: 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_goes_through_both_times() {
        let times = LightTimes::through(2, (Bytes::new(100), 3.0), (Bytes::new(500), 7.0));
        assert_eq!(times.memory, BytesPerSec::new(100.0));
        assert_eq!(times.op, Seconds::new(1.0));
    }

    #[test]
    fn noise_gives_no_negative_times() {
        let times = LightTimes::through(2, (Bytes::new(100), 7.0), (Bytes::new(500), 5.0));
        assert!(times.op.get() >= 0.0 && times.memory.get() > 0.0);
    }
}
