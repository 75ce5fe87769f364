//! Turns weight rows of any format into f32: for looking up single rows, and as the plain statement of each format.
//!
//! Owns the meaning of the stored bits; the fast products decode them in their own way and are checked against this.
//! Layouts are those of the GGUF format; MXFP4 is of the Open Compute Project's "Microscaling Formats", 2023.

use engine_core::weights::DType;
use half::{bf16, f16};

/// Steps of IQ4_NL and IQ4_XS.
pub const IQ4_STEPS: [i8; 16] =
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// Twice the values of a 4-bit float (sign, two bits of exponent, one of fraction).
pub const E2M1_DOUBLED: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// Decodes one row.
///
/// # Panics
/// If the format has no arithmetic (see [`Form::of`](super::activations::Form::of)) or `bytes` and `out` are not the
/// same whole number of blocks.
pub fn dequantise_row(dtype: DType, bytes: &[u8], out: &mut [f32]) {
    match dtype {
        DType::F32 => by_block(bytes, out, |b, [y]| *y = f32::from_le_bytes(*b)),
        DType::F16 => by_block(bytes, out, |b, [y]| *y = f16::from_le_bytes(*b).to_f32()),
        DType::BF16 => by_block(bytes, out, |b, [y]| *y = bf16::from_le_bytes(*b).to_f32()),
        DType::Q4_0 => by_block(bytes, out, q4_0),
        DType::Q4_1 => by_block(bytes, out, q4_1),
        DType::Q5_0 => by_block(bytes, out, q5_0),
        DType::Q5_1 => by_block(bytes, out, q5_1),
        DType::Q8_0 => by_block(bytes, out, q8_0),
        DType::Q2_K => by_block(bytes, out, q2_k),
        DType::Q3_K => by_block(bytes, out, q3_k),
        DType::Q4_K => by_block(bytes, out, q4_k),
        DType::Q5_K => by_block(bytes, out, q5_k),
        DType::Q6_K => by_block(bytes, out, q6_k),
        DType::IQ4_NL => by_block(bytes, out, iq4_nl),
        DType::IQ4_XS => by_block(bytes, out, iq4_xs),
        DType::MXFP4 => by_block(bytes, out, mxfp4),
        _ => panic!("{dtype} has no arithmetic"),
    }
}

fn by_block<const BYTES: usize, const VALUES: usize>(
    bytes: &[u8],
    out: &mut [f32],
    decode: impl Fn(&[u8; BYTES], &mut [f32; VALUES]),
) {
    let (blocks, half_block) = bytes.as_chunks::<BYTES>();
    let (outs, half_out) = out.as_chunks_mut::<VALUES>();
    assert!(half_block.is_empty() && half_out.is_empty(), "whole blocks");
    assert_eq!(blocks.len(), outs.len(), "bytes and values of one row");
    for (block, out) in blocks.iter().zip(outs) {
        decode(block, out);
    }
}

fn half_at(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

/// The 4 bits of value `i` where the low halves of 16 bytes come before the high halves.
fn nibble(quants: &[u8], i: usize) -> u8 {
    (quants[i % 16] >> (i / 16 * 4)) & 15
}

/// Bit `i` of little-endian bytes.
fn bit(bytes: &[u8], i: usize) -> u8 {
    (bytes[i / 8] >> (i % 8)) & 1
}

fn fill<const N: usize>(out: &mut [f32; N], value: impl Fn(usize) -> f32) {
    *out = std::array::from_fn(value);
}

fn q4_0(block: &[u8; 18], out: &mut [f32; 32]) {
    let d = half_at(block, 0);
    fill(out, |i| d * (f32::from(nibble(&block[2..], i)) - 8.0));
}

fn q4_1(block: &[u8; 20], out: &mut [f32; 32]) {
    let (d, min) = (half_at(block, 0), half_at(block, 2));
    fill(out, |i| d * f32::from(nibble(&block[4..], i)) + min);
}

fn q5_0(block: &[u8; 22], out: &mut [f32; 32]) {
    let d = half_at(block, 0);
    let quant = |i| nibble(&block[6..], i) | bit(&block[2..6], i) << 4;
    fill(out, |i| d * (f32::from(quant(i)) - 16.0));
}

fn q5_1(block: &[u8; 24], out: &mut [f32; 32]) {
    let (d, min) = (half_at(block, 0), half_at(block, 2));
    let quant = |i| nibble(&block[8..], i) | bit(&block[4..8], i) << 4;
    fill(out, |i| d * f32::from(quant(i)) + min);
}

fn q8_0(block: &[u8; 34], out: &mut [f32; 32]) {
    let d = half_at(block, 0);
    fill(out, |i| d * f32::from(block[2 + i] as i8));
}

fn iq4_nl(block: &[u8; 18], out: &mut [f32; 32]) {
    let d = half_at(block, 0);
    fill(out, |i| d * f32::from(IQ4_STEPS[usize::from(nibble(&block[2..], i))]));
}

fn mxfp4(block: &[u8; 17], out: &mut [f32; 32]) {
    let d = half_power(block[0]);
    fill(out, |i| d * f32::from(E2M1_DOUBLED[usize::from(nibble(&block[1..], i))]));
}

/// Two to the power of `exponent - 128`: half of what the byte says, as the values are doubled.
pub fn half_power(exponent: u8) -> f32 {
    // The two smallest are subnormal.
    let bits = match exponent {
        0 => 1 << 21,
        1 => 1 << 22,
        e => u32::from(e - 1) << 23,
    };
    f32::from_bits(bits)
}

// The formats below hold 256 values as 8 runs of 32 or 16 runs of 16 with a small integer scale each.

/// The 2 bits of value `i`: 128 values share 32 bytes, the first 32 of them in the lowest bits.
fn pair(quants: &[u8], i: usize) -> u8 {
    (quants[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2)) & 3
}

/// The 4 bits of value `i`: 64 values share 32 bytes, the first 32 of them in the low halves.
fn nibble_of_64(quants: &[u8], i: usize) -> u8 {
    (quants[i / 64 * 32 + i % 32] >> (i / 32 % 2 * 4)) & 15
}

fn q2_k(block: &[u8; 84], out: &mut [f32; 256]) {
    let (d, d_min) = (half_at(block, 80), half_at(block, 82));
    fill(out, |i| {
        let scales = block[i / 16];
        let (scale, min) = (d * f32::from(scales & 15), d_min * f32::from(scales >> 4));
        scale * f32::from(pair(&block[16..80], i)) - min
    });
}

fn q3_k(block: &[u8; 110], out: &mut [f32; 256]) {
    let d = half_at(block, 108);
    let scales = &block[96..108];
    fill(out, |i| {
        let run = i / 16;
        let low = (scales[run % 8] >> (run / 8 * 4)) & 15;
        let high = (scales[8 + run % 4] >> (run / 4 * 2)) & 3;
        let scale = d * (f32::from(low | high << 4) - 32.0);
        let top = (block[i % 32] >> (i / 32)) & 1;
        scale * (f32::from(pair(&block[32..96], i) | top << 2) - 4.0)
    });
}

/// Scale and minimum of run `run` of Q4_K and Q5_K: 6 bits each, the last four runs' split over three places.
fn scale_and_min(scales: &[u8], run: usize) -> (u8, u8) {
    if run < 4 {
        (scales[run] & 63, scales[run + 4] & 63)
    } else {
        let low = scales[run + 4];
        ((low & 15) | (scales[run - 4] >> 6 << 4), (low >> 4) | (scales[run] >> 6 << 4))
    }
}

fn q4_k(block: &[u8; 144], out: &mut [f32; 256]) {
    let (d, d_min) = (half_at(block, 0), half_at(block, 2));
    fill(out, |i| {
        let (scale, min) = scale_and_min(&block[4..16], i / 32);
        let quant = nibble_of_64(&block[16..], i);
        d * f32::from(scale) * f32::from(quant) - d_min * f32::from(min)
    });
}

fn q5_k(block: &[u8; 176], out: &mut [f32; 256]) {
    let (d, d_min) = (half_at(block, 0), half_at(block, 2));
    fill(out, |i| {
        let (scale, min) = scale_and_min(&block[4..16], i / 32);
        let top = (block[16 + i % 32] >> (i / 32)) & 1;
        let quant = nibble_of_64(&block[48..], i) | top << 4;
        d * f32::from(scale) * f32::from(quant) - d_min * f32::from(min)
    });
}

fn q6_k(block: &[u8; 210], out: &mut [f32; 256]) {
    let d = half_at(block, 208);
    fill(out, |i| {
        let scale = d * f32::from(block[192 + i / 16] as i8);
        // 128 values share 64 bytes: the first 64 of them in the low halves.
        let low = (block[i / 128 * 64 + i % 64] >> (i / 64 % 2 * 4)) & 15;
        let high = pair(&block[128..192], i);
        scale * (f32::from(low | high << 4) - 32.0)
    });
}

fn iq4_xs(block: &[u8; 136], out: &mut [f32; 256]) {
    let d = half_at(block, 0);
    let high_bits = u16::from_le_bytes([block[2], block[3]]);
    fill(out, |i| {
        let run = i / 32;
        let low = (block[4 + run / 2] >> (run % 2 * 4)) & 15;
        let high = ((high_bits >> (2 * run)) & 3) as u8;
        let scale = d * (f32::from(low | high << 4) - 32.0);
        scale * f32::from(IQ4_STEPS[usize::from(nibble(&block[8 + run * 16..], i % 32))])
    });
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use safetensors::SafeTensors;

    use super::*;
    use crate::kernels::activations::Form;

    /// Blocks with their values, written by the script that makes the fixtures.
    #[test]
    fn every_format_equals_the_reference() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine-core/tests/data/quant");
        let file = std::fs::read(folder.join("dequant.safetensors")).unwrap();
        let tensors = SafeTensors::deserialize(&file).unwrap();
        for &dtype in DType::ALL.iter().filter(|&&d| Form::of(d).is_some() && d != DType::F32) {
            let bytes = tensors.tensor(&format!("{dtype}.blocks")).unwrap().data();
            let expected = tensors.tensor(&format!("{dtype}.values")).unwrap().data();
            let (expected, _) = expected.as_chunks::<4>();
            let mut values = vec![0.0; expected.len()];
            dequantise_row(dtype, bytes, &mut values);
            for (i, (value, expected)) in values.iter().zip(expected).enumerate() {
                let expected = f32::from_le_bytes(*expected);
                assert_eq!(
                    value.to_bits(),
                    expected.to_bits(),
                    "{dtype} value {i}: not {expected}"
                );
            }
        }
    }
}
