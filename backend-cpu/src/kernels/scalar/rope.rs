//! Rotates the pairs of a head.

use engine_core::op::RopePairs;

/// Rotates pair `i` of `head` by the angle whose cosine and sine are `cos[i]` and `sin[i]`; values beyond the pairs stay.
///
/// # Panics
/// If `cos` and `sin` differ in length or the head has not so many pairs.
pub fn rotate(head: &mut [f32], cos: &[f32], sin: &[f32], pairs: RopePairs) {
    let n = cos.len();
    assert!(sin.len() == n && 2 * n <= head.len(), "a cosine and a sine for each pair");
    for i in 0..n {
        let (first, second) = match pairs {
            RopePairs::Adjacent => (2 * i, 2 * i + 1),
            RopePairs::Halves => (i, i + n),
        };
        let (x, y) = (head[first], head[second]);
        head[first] = x * cos[i] - y * sin[i];
        head[second] = x * sin[i] + y * cos[i];
    }
}
