//! What a pass takes outside of all shards: its inputs written, its ops handed over, its logits read, a token chosen.

use std::time::Instant;

use planner::Seconds;

use super::bench::Bench;
use super::error::MeasureError;
use super::figure::Figure;
use super::light::{LightTimes, norm};
use super::stopwatch::Stopwatch;
use crate::sampler::{Sampler, Sampling};
use crate::weights::DType;

/// Figures that are measured here.
pub(super) const N_FIGURES: usize = 1;

/// Tokens of a typical vocabulary: between the 32 Ki of Llama 2 and the 152 Ki of Qwen.
const N_VOCAB: u32 = 1 << 16;

/// Arrays of inputs that a pass has written.
const N_INPUTS: usize = 6;

/// How tokens are mostly chosen: from the likeliest.
const SAMPLING: Sampling = Sampling {
    temperature: 0.4,
    top_k: 40,
    top_p: 0.95,
    min_p: 0.05,
    repeat_penalty: 1.0,
    presence_penalty: 0.0,
    frequency_penalty: 0.0,
    penalty_last_n: None,
    seed: Some(0),
};

/// Measures a pass of one token and next to no ops.
pub(super) fn measure(
    bench: &mut Bench<'_>,
    watch: &mut Stopwatch<'_>,
    light: LightTimes,
) -> Result<Seconds, MeasureError> {
    let logits = bench.floats(1, N_VOCAB)?;
    let input = bench.zeros([1, 1], DType::I32)?;
    let (x, weight) = (bench.floats(1, 32)?, bench.floats(1, 32)?);
    let op = norm(x, weight, x);
    let mut sampler = Sampler::new(SAMPLING)?;
    let mut bytes = vec![0; logits.bytes().as_usize()];
    let mut values = Vec::new();
    let sample = watch.measure(Figure::Pass, || {
        let start = Instant::now();
        for _ in 0..N_INPUTS {
            bench.backend().write(&input, &[0; 4])?;
        }
        bench.time(std::slice::from_ref(&op))?;
        bench.backend().read(&logits, &mut bytes, &[])?;
        values.clear();
        values.extend(bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)));
        sampler.choose(&mut values, &[], &[]).expect("the values are numbers");
        Ok(start.elapsed().as_secs_f64())
    })?;
    bench.clear();
    Ok(sample.less(light.of(&op), 1.0).time())
}
