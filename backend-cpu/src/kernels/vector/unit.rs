//! What a vector unit must do.

use half::f16;

/// A vector unit. Having one is the proof that this CPU has it.
///
/// Everything here, and everything generic over it, is inlined into a function that has the unit's target features
/// enabled; that is where it becomes instructions.
pub(crate) trait Vector: Copy {
    /// Values in a vector; at most [`MOST`].
    const LANES: usize;
    /// A vector.
    type V: Copy;

    /// The same value in each lane.
    fn splat(self, value: f32) -> Self::V;
    /// The first values of `x`.
    fn load(self, x: &[f32]) -> Self::V;
    /// The first values of `x`, as f32.
    fn load_f16(self, x: &[f16]) -> Self::V;
    /// Sets the first values of `y`.
    fn store(self, v: Self::V, y: &mut [f32]);
    /// Sets the first values of `y`, rounded to nearest with ties to even.
    fn store_f16(self, v: Self::V, y: &mut [f16]);

    /// Starts reading all of `x` into the cache.
    fn prefetch<T>(self, x: &[T]);

    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    fn div(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a · b + c`, rounded once.
    fn mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// The smaller value; `b` where one is NaN.
    fn min(self, a: Self::V, b: Self::V) -> Self::V;
    /// The larger value; `b` where one is NaN.
    fn max(self, a: Self::V, b: Self::V) -> Self::V;
    /// `then` where `a < b`, else `other`, also where one is NaN.
    fn if_less(self, a: Self::V, b: Self::V, then: Self::V, other: Self::V) -> Self::V;
    /// The nearest whole number.
    fn round(self, a: Self::V) -> Self::V;
    /// 2ⁿ for whole `n` in −126..=127.
    fn power_of_two(self, n: Self::V) -> Self::V;
    /// Each pair of neighbours the other way round.
    fn swap_pairs(self, v: Self::V) -> Self::V;
    /// Lane `i` of vector `j` becomes lane `j` of vector `i`, of the first `LANES` vectors.
    fn transpose(self, square: &mut [Self::V; MOST]);
    /// The sum of all lanes.
    fn sum(self, v: Self::V) -> f32;
    /// The largest lane.
    fn largest(self, v: Self::V) -> f32;

    /// The values of `x`, fewer than a vector's, and `fill` in the other lanes.
    #[inline(always)]
    fn load_some(self, x: &[f32], fill: f32) -> Self::V {
        let mut all = [fill; MOST];
        all[..x.len()].copy_from_slice(x);
        self.load(&all)
    }

    /// The values of `x`, fewer than a vector's, and zeros in the other lanes.
    #[inline(always)]
    fn load_some_f16(self, x: &[f16]) -> Self::V {
        let mut all = [f16::ZERO; MOST];
        all[..x.len()].copy_from_slice(x);
        self.load_f16(&all)
    }

    /// Sets all values of `y`, fewer than a vector's.
    #[inline(always)]
    fn store_some(self, v: Self::V, y: &mut [f32]) {
        let mut all = [0.0; MOST];
        self.store(v, &mut all);
        y.copy_from_slice(&all[..y.len()]);
    }
}

/// Most values that any unit's vectors have.
pub(crate) const MOST: usize = 16;
