//! How long an op takes on a device, read off its measured times.
//!
//! Rules, which the documentation of the crate repeats for users:
//! * A product's time is a [`Curve`] over tokens, and a straight line over the size of the matrix between two measured
//!   sizes; below the smallest and above the largest it is proportional to the size.
//! * A format that was not measured takes the times, per byte, of the measured one that is most alike in size.
//! * Experts take the times of one expert with 1, 2, 3 … tokens, each as often as even choice gives an expert so many.
//! * Attention is a curve over KV cells at each measured number of tokens, and a straight line between those; heads of
//!   another shape scale the times of the measured shape whose heads share keys most alike.
//!
//! A time is called measured when it lies between measured points and neither format nor shape was stood in for.

use super::curve::{Curve, Timed};
use super::machine::{
    AttentionPoint, AttentionTimes, Kernels, ProductKind, ProductPoint, ProductTimes,
};
use crate::cost::{AttentionShape, OpCost, experts_with};
use crate::format::Format;
use crate::units::Bytes;

/// A matrix this much larger or smaller than a measured one is no longer called measured.
const SIZE_REACH: f64 = 8.0;

impl Kernels {
    /// The time of one op.
    pub(crate) fn time(&self, op: &OpCost) -> Timed {
        let timed = match *op {
            OpCost::Product { format, weights, n_tokens } => {
                self.product(ProductKind::Dense, format, weights).at(n_tokens.into())
            }
            OpCost::Experts { format, expert, n_expert, n_used, n_tokens } => {
                let product = self.product(ProductKind::Experts, format, expert);
                let mut sum = Timed { seconds: 0.0, measured: true };
                experts_with(n_expert, n_used, n_tokens, |n_tokens, experts| {
                    let some = product.at(n_tokens).scaled(experts);
                    sum.seconds += some.seconds;
                    sum.measured &= some.measured;
                });
                sum
            }
            OpCost::Attention { shape, n_tokens, n_kv } => self.attention(shape, n_tokens, n_kv),
            OpCost::Light { bytes } => {
                Timed { seconds: (bytes / self.memory).get(), measured: true }
            }
        };
        Timed { seconds: timed.seconds + self.op.get(), ..timed }
    }

    fn product(&self, kind: ProductKind, format: Format, weights: Bytes) -> Product<'_> {
        let of_kind = || self.products.iter().filter(move |times| times.kind == kind);
        // A device without times for experts multiplies their matrices like any other.
        let kind = if of_kind().next().is_some() { kind } else { ProductKind::Dense };
        let known =
            self.products.iter().filter(|times| times.kind == kind).map(|times| times.format);
        let nearest = format.nearest(known).expect("a checked profile has products of its kinds");
        let mut product = Product {
            below: None,
            above: None,
            weights: weights.get() as f64,
            measured: nearest == format,
        };
        let of_format = |times: &&ProductTimes| times.kind == kind && times.format == nearest;
        for times in self.products.iter().filter(of_format) {
            if times.weights >= weights {
                product.above = Some(times);
                break;
            }
            product.below = Some(times);
        }
        product
    }

    fn attention(&self, shape: AttentionShape, n_tokens: u32, n_kv: u32) -> Timed {
        let distance = |times: &AttentionTimes| (times.shape.group() / shape.group()).ln().abs();
        let size = |times: &AttentionTimes| (times.shape.work() / shape.work()).ln().abs();
        let nearest = self
            .attention
            .iter()
            .min_by(|a, b| distance(a).total_cmp(&distance(b)).then(size(a).total_cmp(&size(b))));
        let nearest = nearest.expect("a checked profile has attention times");
        let timed = nearest.at(n_tokens.into(), n_kv.into());
        let alike = nearest.shape.group() == shape.group();
        let scaled = timed.scaled(shape.work() / nearest.shape.work());
        Timed { measured: scaled.measured && alike, ..scaled }
    }
}

/// Products with matrices of one size, between the measured sizes around it.
struct Product<'a> {
    below: Option<&'a ProductTimes>,
    above: Option<&'a ProductTimes>,
    weights: f64,
    /// No other format stands in.
    measured: bool,
}

impl Product<'_> {
    fn at(&self, n_tokens: f64) -> Timed {
        let timed = match (self.below, self.above) {
            (Some(below), Some(above)) => {
                let (low, high) = (below.weights.get() as f64, above.weights.get() as f64);
                let share = (self.weights - low) / (high - low);
                below.at(n_tokens).towards(above.at(n_tokens), share)
            }
            (Some(only), None) | (None, Some(only)) => {
                let factor = self.weights / only.weights.get() as f64;
                let timed = only.at(n_tokens).scaled(factor);
                let near = (1.0 / SIZE_REACH..=SIZE_REACH).contains(&factor);
                Timed { measured: timed.measured && near, ..timed }
            }
            (None, None) => unreachable!("the format was taken from those that were measured"),
        };
        Timed { measured: timed.measured && self.measured, ..timed }
    }
}

impl ProductTimes {
    fn at(&self, n_tokens: f64) -> Timed {
        let curve = Curve::new(&self.points, |point: &ProductPoint| {
            (point.n_tokens.into(), point.seconds.get())
        });
        curve.at(n_tokens)
    }
}

impl AttentionTimes {
    fn at(&self, n_tokens: f64, n_kv: f64) -> Timed {
        let rows = || self.points.chunk_by(|a, b| a.n_tokens == b.n_tokens);
        let row_at = |row: &[AttentionPoint]| {
            Curve::new(row, |point: &AttentionPoint| (point.n_kv.into(), point.seconds.get()))
                .at(n_kv)
        };
        let tokens = |row: &[AttentionPoint]| f64::from(row[0].n_tokens);
        let (mut below, mut above) = (None, None);
        for row in rows() {
            if tokens(row) >= n_tokens {
                above = Some(row);
                break;
            }
            below = Some(row);
        }
        match (below, above) {
            (Some(low), Some(high)) => {
                let share = (n_tokens - tokens(low)) / (tokens(high) - tokens(low));
                row_at(low).towards(row_at(high), share)
            }
            (None, Some(row)) => {
                let timed = row_at(row).scaled(n_tokens / tokens(row));
                Timed { measured: timed.measured && tokens(row) == n_tokens, ..timed }
            }
            (Some(row), None) => {
                Timed { measured: false, ..row_at(row).scaled(n_tokens / tokens(row)) }
            }
            (None, None) => unreachable!("a checked profile has points for each shape"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{BytesPerSec, Seconds};

    fn times(format: Format, kind: ProductKind, mib: u64, points: &[(u32, f64)]) -> ProductTimes {
        let point = |&(n_tokens, seconds)| ProductPoint {
            n_tokens,
            seconds: Seconds::new(seconds),
            spread: None,
        };
        let points = points.iter().map(point).collect();
        ProductTimes { format, kind, weights: Bytes::mib(mib), points }
    }

    fn kernels() -> Kernels {
        let shape = AttentionShape { n_head: 8, n_kv_head: 2, key_dim: 64, value_dim: 64 };
        let point = |n_tokens, n_kv, seconds| AttentionPoint {
            n_tokens,
            n_kv,
            seconds: Seconds::new(seconds),
            spread: None,
        };
        Kernels {
            op: Seconds::new(0.5),
            memory: BytesPerSec::new(4.0),
            products: vec![
                times(Format::Q4_0, ProductKind::Dense, 1, &[(1, 1.0), (3, 2.0)]),
                times(Format::Q4_0, ProductKind::Dense, 3, &[(1, 5.0), (3, 8.0)]),
                times(Format::F16, ProductKind::Experts, 1, &[(1, 10.0), (4, 20.0)]),
            ],
            attention: vec![AttentionTimes {
                shape,
                points: vec![point(1, 100, 1.0), point(1, 200, 3.0), point(4, 100, 4.0)],
            }],
        }
    }

    fn product(format: Format, mib: u64, n_tokens: u32) -> (f64, bool) {
        let op = OpCost::Product { format, weights: Bytes::mib(mib), n_tokens };
        let timed = kernels().time(&op);
        (timed.seconds - 0.5, timed.measured)
    }

    #[test]
    fn products_between_and_beyond_sizes_and_tokens() {
        assert_eq!(product(Format::Q4_0, 1, 1), (1.0, true));
        assert_eq!(product(Format::Q4_0, 2, 1), (3.0, true));
        assert_eq!(product(Format::Q4_0, 2, 2), (4.0, true));
        assert_eq!(product(Format::Q4_0, 6, 1), (10.0, true));
        assert_eq!(product(Format::Q4_0, 30, 1), (50.0, false));
        assert_eq!(product(Format::Q4_0, 1, 5), (3.0, false));
        assert_eq!(product(Format::Q4_K, 1, 1), (1.0, false));
    }

    #[test]
    fn experts_take_their_share_of_the_tokens() {
        let op = OpCost::Experts {
            format: Format::F16,
            expert: Bytes::mib(1),
            n_expert: 4,
            n_used: 4,
            n_tokens: 4,
        };
        assert_eq!(kernels().time(&op).seconds, 80.5);
        // Of four experts two are expected to have one of two tokens, one has both and one none.
        let op = OpCost::Experts {
            format: Format::F16,
            expert: Bytes::mib(1),
            n_expert: 4,
            n_used: 2,
            n_tokens: 2,
        };
        let seconds = kernels().time(&op).seconds;
        assert!((seconds - (2.0 * 10.0 + 40.0 / 3.0 + 0.5)).abs() < 1e-9, "{seconds}");
    }

    #[test]
    fn attention_between_and_beyond_cells_and_tokens() {
        let at = |n_head, n_tokens, n_kv| {
            let shape = AttentionShape { n_head, n_kv_head: 2, key_dim: 64, value_dim: 64 };
            let timed = kernels().time(&OpCost::Attention { shape, n_tokens, n_kv });
            (timed.seconds - 0.5, timed.measured)
        };
        assert_eq!(at(8, 1, 150), (2.0, true));
        assert_eq!(at(8, 1, 300), (5.0, false));
        assert_eq!(at(8, 2, 100), (2.0, true));
        assert_eq!(at(16, 1, 100), (2.0, false));
    }
}
