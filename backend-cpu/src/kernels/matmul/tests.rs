//! Every unit that this CPU has, called directly: against loops in f64, and bit for bit against the scalar one.

use engine_core::weights::DType;
use half::f16;

use crate::kernels::activations::{Activations, BLOCK, Form, Q8Block, Rows};
use crate::kernels::args::{ColumnsMut, TokenRow, TokenRows, WeightRows};
use crate::kernels::dequant::dequantise_row;
use crate::kernels::scalar;
use crate::table::{Isa, KernelTable};

/// The kernels of each instruction set that this CPU has, the scalar ones first.
fn tables() -> impl Iterator<Item = KernelTable> {
    Isa::ALL.iter().copied().filter_map(KernelTable::for_isa)
}

/// A seeded source of numbers. Source: Steele et al., "Fast Splittable Pseudorandom Number Generators", 2014.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In −1..1.
    fn float(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.float()).collect()
    }
}

/// A weight matrix, at an odd address.
struct Weights {
    bytes: Vec<u8>,
    dtype: DType,
    k: usize,
}

impl Weights {
    /// `n` rows whose quants and scales of runs are any bits, and whose f16 scales come from `half`.
    fn new(
        dtype: DType,
        [n, k]: [usize; 2],
        byte: impl FnMut() -> u8,
        mut half: impl FnMut() -> f16,
    ) -> Self {
        let row = dtype.row_bytes(k as u64).unwrap().as_usize();
        let mut bytes: Vec<u8> = std::iter::repeat_with(byte).take(1 + n * row).collect();
        for block in bytes[1..].chunks_exact_mut(dtype.block().bytes as usize) {
            for &at in halves(dtype) {
                block[at..at + 2].copy_from_slice(&half().to_le_bytes());
            }
            match dtype {
                DType::MXFP4 => block[0] = 120 + block[0] % 8,
                DType::F32 => block.copy_from_slice(&half().to_f32().to_le_bytes()),
                DType::BF16 => {
                    block.copy_from_slice(&half::bf16::from_f32(half().to_f32()).to_le_bytes())
                }
                _ => {}
            }
        }
        Weights { bytes, dtype, k }
    }

    fn random(dtype: DType, shape: [usize; 2], numbers: &mut Numbers) -> Self {
        let seed = numbers.next();
        let mut scales = Numbers(seed);
        let mut byte = Numbers(seed + 1);
        Weights::new(dtype, shape, || byte.next() as u8, || f16::from_f32(scales.float()))
    }

    fn rows(&self) -> WeightRows<'_> {
        WeightRows::new(&self.bytes[1..], self.dtype, self.k)
    }
}

/// Where a block of the format has f16 numbers.
fn halves(dtype: DType) -> &'static [usize] {
    match dtype {
        DType::F16 | DType::Q4_0 | DType::Q5_0 | DType::Q8_0 | DType::IQ4_NL | DType::IQ4_XS => {
            &[0]
        }
        DType::Q4_1 | DType::Q5_1 | DType::Q4_K | DType::Q5_K => &[0, 2],
        DType::Q2_K => &[80, 82],
        DType::Q3_K => &[108],
        DType::Q6_K => &[208],
        _ => &[],
    }
}

/// Activations in both forms.
struct Inputs {
    floats: Vec<f32>,
    blocks: Vec<Q8Block>,
    k: usize,
}

impl Inputs {
    fn new(floats: Vec<f32>, k: usize) -> Self {
        let mut blocks = vec![bytemuck::Zeroable::zeroed(); floats.len() / BLOCK];
        if k.is_multiple_of(BLOCK) {
            scalar::quant::quantise(&floats, &mut blocks);
        }
        Inputs { floats, blocks, k }
    }

    fn for_weights(&self, dtype: DType) -> Activations<'_> {
        match Form::of(dtype).unwrap() {
            Form::F32 => Activations::F32(Rows::new(&self.floats, self.k)),
            Form::Q8 => Activations::Q8(Rows::new(&self.blocks, self.k / BLOCK)),
        }
    }

    /// Row `t` as the product sees it.
    fn row(&self, dtype: DType, t: usize) -> Vec<f64> {
        match self.for_weights(dtype) {
            Activations::F32(x) => x.row(t).iter().map(|&x| x.into()).collect(),
            Activations::Q8(x) => {
                let values = |b: &Q8Block| b.values.map(|v| f64::from(b.scale) * f64::from(v));
                x.row(t).iter().flat_map(values).collect()
            }
        }
    }
}

fn run(kernels: KernelTable, w: WeightRows<'_>, x: Activations<'_>, n_tokens: usize) -> Vec<f32> {
    let mut y = vec![f32::NAN; n_tokens * w.n()];
    kernels.matmul(w, x, TokenRows::First(n_tokens), &mut ColumnsMut::all(&mut y, w.n()));
    y
}

/// What a product should be, and how large what it sums is.
struct Expected {
    sum: f64,
    magnitudes: f64,
}

fn in_f64(w: WeightRows<'_>, x: &Inputs, n_tokens: usize) -> Vec<Expected> {
    let mut expected = Vec::new();
    let mut row = vec![0.0; w.k()];
    for t in 0..n_tokens {
        let x = x.row(w.dtype(), t);
        for n in 0..w.n() {
            dequantise_row(w.dtype(), w.row(n), &mut row);
            let products = row.iter().zip(&x).map(|(&w, x)| f64::from(w) * x);
            let magnitudes = products.clone().map(f64::abs).sum();
            expected.push(Expected { sum: products.sum(), magnitudes });
        }
    }
    expected
}

/// Squared error over squared size of what was summed: a sum itself may be zero.
fn error(y: &[f32], expected: &[Expected]) -> f64 {
    let errors = y.iter().zip(expected).map(|(&y, e)| (f64::from(y) - e.sum).powi(2));
    let sizes = expected.iter().map(|e| e.magnitudes.powi(2));
    errors.sum::<f64>() / sizes.sum::<f64>().max(f64::MIN_POSITIVE)
}

fn formats() -> impl Iterator<Item = DType> {
    DType::ALL.iter().copied().filter(|&dtype| Form::of(dtype).is_some())
}

/// Rows, values in a row, tokens: one block and several, not a multiple of what is decoded together; rows and tokens that
/// fill no vector, no tile and no chunk.
fn shapes(dtype: DType) -> Vec<[usize; 3]> {
    match dtype.block().values {
        1 => vec![[1, 1, 1], [4, 32, 3], [5, 31, 2], [9, 100, 5], [3, 17, 70], [17, 33, 4]],
        32 => vec![[1, 32, 1], [8, 256, 4], [9, 288, 5], [17, 64, 3], [33, 96, 2], [3, 32, 70]],
        _ => vec![[1, 256, 1], [8, 512, 4], [9, 256, 5], [17, 768, 3], [33, 256, 2], [3, 256, 70]],
    }
}

#[test]
fn products_are_right() {
    let mut numbers = Numbers(1);
    for dtype in formats() {
        for [n, k, n_tokens] in shapes(dtype) {
            let weights = Weights::random(dtype, [n, k], &mut numbers);
            let x = Inputs::new(numbers.floats(n_tokens * k), k);
            let expected = in_f64(weights.rows(), &x, n_tokens);
            let scalar = run(
                KernelTable::for_isa(Isa::Scalar).unwrap(),
                weights.rows(),
                x.for_weights(dtype),
                n_tokens,
            );
            for kernels in tables() {
                let isa = kernels.isa();
                let y = run(kernels, weights.rows(), x.for_weights(dtype), n_tokens);
                let error = error(&y, &expected);
                assert!(error < 1e-13, "{isa} {dtype} {n}x{k}, {n_tokens} tokens: {error:e}");
                if Form::of(dtype) == Some(Form::Q8) {
                    assert_eq!(y, scalar, "{isa} {dtype} {n}x{k}, {n_tokens} tokens");
                }
            }
        }
    }
}

/// The largest quants of either sign, against the largest activations of either sign: sums must not saturate.
#[test]
fn the_largest_sums_fit() {
    for dtype in formats().filter(|&dtype| Form::of(dtype) == Some(Form::Q8)) {
        for byte in [0x00, 0x77, 0x7f, 0x80, 0x8f, 0xff] {
            let weights = Weights::new(dtype, [3, 256], || byte, || f16::ONE);
            for pattern in [[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]] {
                let x = Inputs::new(pattern.repeat(256), 256);
                let expected = in_f64(weights.rows(), &x, 2);
                for kernels in tables() {
                    let isa = kernels.isa();
                    let y = run(kernels, weights.rows(), x.for_weights(dtype), 2);
                    let error = error(&y, &expected);
                    assert!(error < 1e-13, "{isa} {dtype} {byte:#x} {pattern:?}: {error:e}");
                }
            }
        }
    }
}

/// From the smallest f16 to the largest, in one row.
#[test]
fn scales_may_be_extreme() {
    let extremes =
        [f16::MIN, f16::from_bits(1), f16::MAX, f16::MIN_POSITIVE, f16::ZERO, f16::NEG_ONE];
    for dtype in formats().filter(|&dtype| !halves(dtype).is_empty()) {
        let mut numbers = Numbers(2);
        let mut scales = extremes.into_iter().cycle();
        let byte = || numbers.next() as u8;
        let weights = Weights::new(dtype, [11, 512], byte, || scales.next().unwrap());
        // Beyond the range of an f16 as well.
        let x = Inputs::new(Numbers(3).floats(3 * 512).iter().map(|x| x * 3e6).collect(), 512);
        let expected = in_f64(weights.rows(), &x, 3);
        for kernels in tables() {
            let isa = kernels.isa();
            let y = run(kernels, weights.rows(), x.for_weights(dtype), 3);
            let error = error(&y, &expected);
            assert!(error < 1e-13, "{isa} {dtype}: {error:e}");
        }
    }
}

/// Whatever is computed beside it, a result has the same bits.
#[test]
fn results_do_not_depend_on_grouping() {
    let mut numbers = Numbers(4);
    let [n, n_tokens] = [21, 71];
    for dtype in formats() {
        let k = 256 + if dtype.block().values == 1 { 7 } else { 256 };
        let weights = Weights::random(dtype, [n, k], &mut numbers);
        let inputs = Inputs::new(numbers.floats(n_tokens * k), k);
        let x = inputs.for_weights(dtype);
        for kernels in tables() {
            let isa = kernels.isa();
            let together = run(kernels, weights.rows(), x, n_tokens);
            let mut alone = vec![0.0; together.len()];
            let (left, right) = ColumnsMut::all(&mut alone, n).split_at(10);
            for (columns, mut y) in [(0..10, left), (10..n, right)] {
                for t in 0..n_tokens as u32 {
                    let token = [TokenRow { x: t, y: t }];
                    kernels.matmul(
                        weights.rows().rows(columns.clone()),
                        x,
                        TokenRows::Listed(&token),
                        &mut y,
                    );
                }
            }
            assert_eq!(together, alone, "{isa} {dtype}");
        }
    }
}

#[test]
fn listed_tokens_leave_others_alone() {
    let mut numbers = Numbers(5);
    let weights = Weights::random(DType::Q4_K, [10, 256], &mut numbers);
    let inputs = Inputs::new(numbers.floats(4 * 256), 256);
    let x = inputs.for_weights(DType::Q4_K);
    for kernels in tables() {
        let isa = kernels.isa();
        let all = run(kernels, weights.rows(), x, 4);
        let mut y = vec![7.0; 60];
        let rows = [(3, 1), (0, 4), (3, 2)].map(|(x, y)| TokenRow { x, y });
        kernels.matmul(
            weights.rows(),
            x,
            TokenRows::Listed(&rows),
            &mut ColumnsMut::all(&mut y, 10),
        );
        let [first, last, untouched] = [&all[..10], &all[30..], &[7.0; 10]];
        assert_eq!(y, [untouched, last, last, untouched, first, untouched].concat(), "{isa}");
    }
}

/// An infinity or a NaN must not turn into a plausible number.
#[test]
fn what_is_not_finite_shows() {
    for dtype in formats() {
        let weights = Weights::random(dtype, [9, 256], &mut Numbers(6));
        for bad in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
            let mut floats = Numbers(7).floats(2 * 256);
            floats[256 + 100] = bad;
            let x = Inputs::new(floats, 256);
            for kernels in tables() {
                let isa = kernels.isa();
                let y = run(kernels, weights.rows(), x.for_weights(dtype), 2);
                let (good, shown) = y.split_at(9);
                assert!(good.iter().all(|y| y.is_finite()), "{isa} {dtype} {bad}");
                assert!(shown.iter().all(|y| !y.is_finite()), "{isa} {dtype} {bad}: {shown:?}");
            }
        }
    }
}
