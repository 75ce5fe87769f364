//! Attention of heads of one shape, over cells that come from memory.

use planner::{AttentionPoint, AttentionShape, AttentionTimes};

use super::bench::Bench;
use super::effort::Effort;
use super::error::MeasureError;
use super::figure::Figure;
use super::light::LightTimes;
use super::stopwatch::{Sample, Stopwatch};
use crate::backend::Res;
use crate::op::{Attention, Op};
use crate::weights::DType;

/// Measures one shape at each number of tokens and cells.
pub(super) fn measure(
    bench: &mut Bench<'_>,
    watch: &mut Stopwatch<'_>,
    effort: &Effort,
    light: LightTimes,
    shape: AttentionShape,
) -> Result<AttentionTimes, MeasureError> {
    let mut points: Vec<AttentionPoint> = Vec::new();
    for (n_tokens, n_kv) in effort.attention_points() {
        let work = |n_tokens: u32, n_kv: u32| f64::from(n_tokens) * f64::from(n_kv);
        let expected = points.last().map_or(0.0, |last| {
            last.seconds.get() * work(n_tokens, n_kv) / work(last.n_tokens, last.n_kv)
        });
        if !watch.allows(expected) && !points.is_empty() {
            watch.skip();
            continue;
        }
        let sample = point(bench, watch, light, shape, (n_tokens, n_kv))?;
        bench.clear();
        points.push(AttentionPoint {
            n_tokens,
            n_kv,
            seconds: sample.time(),
            spread: sample.spread(),
        });
    }
    Ok(AttentionTimes { shape, points })
}

/// The time of one attention, without the fixed time of an op.
fn point(
    bench: &mut Bench<'_>,
    watch: &mut Stopwatch<'_>,
    light: LightTimes,
    shape: AttentionShape,
    (n_tokens, n_kv): (u32, u32),
) -> Result<Sample, MeasureError> {
    let attention = over_no_cells(bench, shape, n_tokens, n_kv)?;
    let mut repeated = bench.repeated(|bench, ops| {
        let k = bench.cold([n_kv, shape.n_kv_head * shape.key_dim], DType::F16);
        let v = bench.cold([n_kv, shape.n_kv_head * shape.value_dim], DType::F16);
        ops.push(Op::Attention(Attention { k, v, ..attention }));
    })?;
    let figure = Figure::Attention { shape, n_tokens, n_kv };
    let sample = watch.measure(figure, || repeated.time())?;
    Ok(sample.less(light.op.get(), 1.0))
}

/// An attention whose cells have yet to be given. All write the same results, so that they run one after the other.
fn over_no_cells(
    bench: &mut Bench<'_>,
    shape: AttentionShape,
    n_tokens: u32,
    n_kv: u32,
) -> Res<Attention> {
    let q = bench.floats(n_tokens, shape.n_head * shape.key_dim)?;
    let spans: Vec<u32> = (1..=n_tokens).flat_map(|t| [0, n_kv - n_tokens + t]).collect();
    Ok(Attention {
        q,
        k: q,
        v: q,
        cells: bench.numbers(&Vec::from_iter(0..n_kv), n_kv)?,
        spans: bench.numbers(&spans, 2)?,
        out: bench.zeros([n_tokens, shape.n_head * shape.value_dim], DType::F32)?,
        n_head: shape.n_head,
        n_kv_head: shape.n_kv_head,
        scale: 1.0 / f64::from(shape.key_dim).sqrt() as f32,
        soft_cap: None,
        window: None,
    })
}
