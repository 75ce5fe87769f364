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

fn quantise_block(x: &[f32; BLOCK]) -> Q8Block {
    // Compared as bits, so that NaN counts as larger than infinity instead of being skipped.
    let largest = x.iter().map(|v| v.abs().to_bits()).max().expect("a block is not empty");
    let scale = f32::from_bits(largest) / 127.0;
    // Below this the inverse is infinite; such values count as zero.
    let inverse = if scale < f32::MIN_POSITIVE { 0.0 } else { 1.0 / scale };
    let values = x.map(|v| (v * inverse).round_ties_even() as i8);
    let sum = |half: &[i8]| half.iter().map(|&v| i32::from(v)).sum::<i32>() as f32 * scale;
    let sums = [sum(&values[..BLOCK / 2]), sum(&values[BLOCK / 2..])];
    Q8Block { values, scale, sums }
}
