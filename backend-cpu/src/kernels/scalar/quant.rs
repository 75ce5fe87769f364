//! Rounds activations to blocks of bytes.

use crate::kernels::activations::{BLOCK, Q8Block};

/// Steps from zero to a block's largest magnitude, one of which is chosen. Each makes that value exact and the others
/// fall differently; the best of four has a seventh less squared error than 127 alone, for normally distributed values.
pub(crate) const STEPS: [f32; 4] = [127.0, 126.0, 125.0, 124.0];

/// Rounds values, 32 to a block, to multiples of a scale: the largest magnitude over 127, 126, 125 or 124,
/// whichever gives the least squared error.
///
/// A block that holds an infinity or a NaN gets such a scale, so that it shows in the product. Rows may be done in any
/// order and by any thread: a block depends on its own values only.
///
/// # Panics
/// If `x` does not hold 32 values for each block of `out`.
pub fn quantise(x: &[f32], out: &mut [Q8Block]) {
    let (blocks, rest) = x.as_chunks::<BLOCK>();
    assert!(rest.is_empty() && blocks.len() == out.len(), "32 values for each block");
    for (x, out) in blocks.iter().zip(out) {
        *out = quantise_block(x);
    }
}

/// Rounds one block.
pub(crate) fn quantise_block(x: &[f32; BLOCK]) -> Q8Block {
    // Compared as bits, so that NaN counts as larger than infinity instead of being skipped.
    let largest = x.iter().map(|v| v.abs().to_bits()).max().expect("a block is not empty");
    let [first, others @ ..] = STEPS.map(|steps| Rounded::new(x, scale_of(largest, steps)));
    let Rounded { values, scale, .. } =
        others.into_iter().fold(first, |best, r| if r.error < best.error { r } else { best });
    let sum = |values: &[i8]| values.iter().map(|&v| i32::from(v)).sum::<i32>() as f32 * scale;
    let (low, high) = values.split_at(BLOCK / 2);
    Q8Block { values, scale, sum: sum(&values), half_sums: [sum(low), sum(high)] }
}

/// The scale with which the value with these bits, a block's largest, takes so many steps.
pub(crate) fn scale_of(largest: u32, steps: f32) -> f32 {
    f32::from_bits(largest) / steps
}

/// What turns values into 256ths of a step.
pub(crate) fn to_fractions(scale: f32) -> f32 {
    // Below this the inverse is infinite; such values count as zero.
    if scale < f32::MIN_POSITIVE { 0.0 } else { 256.0 / scale }
}

/// The squared error in terms of values, given it in 256ths of a step.
pub(crate) fn error_of(squares: i32, scale: f32) -> f32 {
    squares as f32 * scale * scale
}

struct Rounded {
    values: [i8; BLOCK],
    scale: f32,
    error: f32,
}

impl Rounded {
    fn new(x: &[f32; BLOCK], scale: f32) -> Self {
        let factor = to_fractions(scale);
        let fractions = x.map(|x| (x * factor).round_ties_even() as i32);
        // Saturating, as what is not finite may be as large as an integer gets.
        let values = fractions.map(|f| f.saturating_add(128) >> 8);
        // In integers, whose sum does not depend on its order.
        let squares = fractions.iter().zip(values).map(|(f, v)| (f - v * 256).pow(2)).sum();
        Rounded { values: values.map(|v| v as i8), scale, error: error_of(squares, scale) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_within_half_a_step() {
        let x: [f32; BLOCK] = std::array::from_fn(|i| (i as f32 - 20.3) * 1e5);
        let block = quantise_block(&x);
        assert!(STEPS.contains(&f32::from(block.values[0].abs())), "the largest is exact");
        let rounded = block.values.map(|v| f32::from(v) * block.scale);
        // Rounded to 256ths of a step on the way, so by half a 256th more; the rest is for f32.
        let most = block.scale * (0.5 + 0.5 / 256.0) * 1.00001;
        for (x, rounded) in x.iter().zip(rounded) {
            assert!((x - rounded).abs() <= most, "{x} became {rounded}");
        }
        let sum = |values: &[f32]| values.iter().sum::<f32>();
        let sums = [(block.sum, 0..32), (block.half_sums[0], 0..16), (block.half_sums[1], 16..32)];
        for (given, range) in sums {
            assert!((given - sum(&rounded[range])).abs() < block.scale * 1e-3);
        }
    }

    #[test]
    fn the_scale_is_the_best_of_four() {
        let x: [f32; BLOCK] = std::array::from_fn(|i| (i as f32 * 1.7).sin() * (1.0 + i as f32));
        let largest = x.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
        let error = |steps: f32| {
            let scale = largest / steps;
            (scale, x.map(|x| (x - (x / scale).round() * scale).powi(2)).iter().sum::<f32>())
        };
        let best = STEPS.map(error).into_iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        assert_eq!(quantise_block(&x).scale, best.0);
    }

    #[test]
    fn nothing_and_almost_nothing_are_zero() {
        for tiny in [0.0, -0.0, f32::from_bits(1), f32::MIN_POSITIVE] {
            assert_eq!(quantise_block(&[tiny; BLOCK]).values, [0; BLOCK]);
        }
    }

    #[test]
    fn the_largest_do_not_overflow() {
        let block = quantise_block(&[f32::MAX, f32::MIN].repeat(16).try_into().unwrap());
        assert_eq!(block.values[..2], [127, -127], "the first of equals");
        assert!(block.scale.is_finite() && block.sum == 0.0);
    }
}
