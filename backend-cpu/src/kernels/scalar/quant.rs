//! Rounds activations to blocks of bytes.

use crate::kernels::activations::{BLOCK, Q8Block};

/// Rounds values, 32 to a block, to the nearest multiple of 1/127 of the block's largest magnitude, ties to even.
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
    let (scale, inverse) = scale_of(largest);
    let values = x.map(|v| (v * inverse).round_ties_even() as i8);
    let sum = |values: &[i8]| values.iter().map(|&v| i32::from(v)).sum::<i32>() as f32 * scale;
    let (low, high) = values.split_at(BLOCK / 2);
    Q8Block { values, scale, sum: sum(&values), half_sums: [sum(low), sum(high)] }
}

/// The scale of a block whose largest magnitude has these bits, and its inverse.
pub(crate) fn scale_of(largest: u32) -> (f32, f32) {
    let scale = f32::from_bits(largest) / 127.0;
    // Below this the inverse is infinite; such values count as zero.
    (scale, if scale < f32::MIN_POSITIVE { 0.0 } else { 1.0 / scale })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_within_half_a_step() {
        let x: [f32; BLOCK] = std::array::from_fn(|i| (i as f32 - 20.3) * 1e5);
        let block = quantise_block(&x);
        assert_eq!(block.scale, x[0].abs() / 127.0);
        let rounded = block.values.map(|v| f32::from(v) * block.scale);
        for (x, rounded) in x.iter().zip(rounded) {
            assert!((x - rounded).abs() <= block.scale * 0.50001, "{x} became {rounded}");
        }
        let sum = |values: &[f32]| values.iter().sum::<f32>();
        let sums = [(block.sum, 0..32), (block.half_sums[0], 0..16), (block.half_sums[1], 16..32)];
        for (given, range) in sums {
            assert!((given - sum(&rounded[range])).abs() < block.scale * 1e-3);
        }
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
        assert_eq!(block.values[..2], [127, -127]);
        assert!(block.scale.is_finite() && block.sum == 0.0);
    }
}
