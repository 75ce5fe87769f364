//! Products with weights of one format: matrices, and groups of experts.

use std::sync::Arc;

use planner::{Bytes, Format, ProductKind, ProductPoint, ProductTimes};

use super::bench::Bench;
use super::effort::{Effort, Size};
use super::error::MeasureError;
use super::figure::Figure;
use super::light::{LightTimes, norm};
use super::stopwatch::{Sample, Stopwatch};
use crate::backend::Res;
use crate::op::{MatMul, MatMulExperts, Op, View};
use crate::weights::DType;

/// Rows of a matrix are a multiple of this, as in models.
const ROWS: u64 = 32;

/// Experts that a token uses.
const N_USED: u32 = 8;

/// In a pass of at most this many tokens, products that read the same activations are measured together: they are so short
/// that it matters whether a device runs them at once.
const FEW: u32 = 16;

/// Measures the products with one format.
pub(super) fn measure(
    bench: &mut Bench<'_>,
    watch: &mut Stopwatch<'_>,
    effort: &Effort,
    light: LightTimes,
    format: (DType, Format),
) -> Result<Vec<ProductTimes>, MeasureError> {
    let mut all = Vec::new();
    let dense = (ProductKind::Dense, &effort.products, &effort.product_tokens);
    let experts = (ProductKind::Experts, &effort.experts, &effort.expert_tokens);
    for (kind, sizes, tokens) in [dense, experts] {
        for &size in sizes {
            let series = Series { matrix: Matrix::new(format, size), kind, light };
            all.push(series.measure(bench, watch, tokens)?);
        }
    }
    Ok(all)
}

/// Products with matrices of one size.
struct Series {
    matrix: Matrix,
    kind: ProductKind,
    light: LightTimes,
}

/// The shape of a matrix in some format.
#[derive(Debug, Clone, Copy)]
struct Matrix {
    dtype: DType,
    format: Format,
    rows: u32,
    columns: u32,
}

impl Matrix {
    fn new((dtype, format): (DType, Format), size: Size) -> Matrix {
        let row = dtype.row_bytes(size.columns.into()).expect("columns are whole blocks");
        let rows = (size.weights.get() / row.get() / ROWS).max(1) * ROWS;
        Matrix { dtype, format, rows: rows as u32, columns: size.columns }
    }

    fn shape(&self) -> [u32; 2] {
        [self.rows, self.columns]
    }

    fn weights(&self) -> Bytes {
        self.format.bytes(u64::from(self.rows) * u64::from(self.columns))
    }
}

impl Series {
    fn measure(
        &self,
        bench: &mut Bench<'_>,
        watch: &mut Stopwatch<'_>,
        tokens: &[u32],
    ) -> Result<ProductTimes, MeasureError> {
        let mut points: Vec<ProductPoint> = Vec::new();
        for &n_tokens in tokens {
            let expected = points.last().map_or(0.0, |last| {
                last.seconds.get() * f64::from(n_tokens) / f64::from(last.n_tokens)
            });
            if !watch.allows(expected) && !points.is_empty() {
                watch.skip();
                continue;
            }
            let sample = self.point(bench, watch, n_tokens)?;
            bench.clear();
            points.push(ProductPoint { n_tokens, seconds: sample.time(), spread: sample.spread() });
        }
        let Matrix { format, .. } = self.matrix;
        Ok(ProductTimes { format, kind: self.kind, weights: self.matrix.weights(), points })
    }

    /// The time of one matrix, without the fixed time of an op.
    ///
    /// Each step begins with a norm, which writes the activations anew, so that what a device does once for activations is
    /// done as often as in a model: the gate and the up projection of an FFN share it, as do q, k and v.
    fn point(
        &self,
        bench: &mut Bench<'_>,
        watch: &mut Stopwatch<'_>,
        n_tokens: u32,
    ) -> Result<Sample, MeasureError> {
        let together = if n_tokens <= FEW { 2 } else { 1 };
        let arrays = Arrays::new(bench, self, n_tokens, together)?;
        let mut repeated = bench.repeated(|bench, ops| {
            ops.push(arrays.norm.clone());
            ops.extend(arrays.y.iter().map(|&y| arrays.product(bench, self, y)));
        })?;
        let (kind, weights, format) = (self.kind, self.matrix.weights(), self.matrix.format);
        let figure = Figure::Product { format, kind, weights, n_tokens };
        let sample = watch.measure(figure, || repeated.time())?;
        let n = arrays.y.len() as f64;
        let fixed = self.light.of(&arrays.norm) + n * self.light.op.get();
        Ok(sample.less(fixed, n * f64::from(arrays.n_matrices)))
    }
}

/// What products read and write besides weights.
struct Arrays {
    norm: Op,
    x: View,
    /// For each expert of each token its number.
    experts: Option<View>,
    /// Matrices of a product.
    n_matrices: u32,
    /// A result for each product of a step.
    y: Vec<View>,
}

impl Arrays {
    fn new(bench: &mut Bench<'_>, of: &Series, n_tokens: u32, together: usize) -> Res<Arrays> {
        let Matrix { rows, columns, .. } = of.matrix;
        let residual = bench.floats(n_tokens, columns)?;
        let weight = bench.floats(1, columns)?;
        let x = bench.zeros([n_tokens, columns], DType::F32)?;
        let (experts, n_matrices) = match of.kind {
            ProductKind::Dense => (None, 1),
            ProductKind::Experts => {
                let each: Vec<u32> = (0..n_tokens).flat_map(|_| 0..N_USED).collect();
                (Some(bench.numbers(&each, N_USED)?), N_USED)
            }
        };
        let result = [n_tokens * n_matrices, rows];
        let y = (0..together).map(|_| bench.zeros(result, DType::F32)).collect::<Res<_>>()?;
        Ok(Arrays { norm: norm(residual, weight, x), x, experts, n_matrices, y })
    }

    fn product(&self, bench: &mut Bench<'_>, of: &Series, y: View) -> Op {
        let Matrix { dtype, .. } = of.matrix;
        let mut w = || bench.cold(of.matrix.shape(), dtype);
        match self.experts {
            None => Op::MatMul(MatMul { x: self.x, w: w(), y }),
            Some(experts) => {
                let w: Arc<[View]> = (0..self.n_matrices).map(|_| w()).collect();
                Op::MatMulExperts(MatMulExperts { x: self.x, w, experts, y })
            }
        }
    }
}
