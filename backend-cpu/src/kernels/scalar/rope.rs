//! Rotates the pairs of a head.

use engine_core::op::RopePairs;

/// Turns each pair: `head[i] = head[i] · cos[i] + head[partner of i] · sin[i]`. So of a pair turned by an angle, both
/// have its cosine, the first has minus its sine and the second its sine. Values beyond `cos` stay.
///
/// # Panics
/// If `cos` and `sin` differ in length, are not whole pairs, or are longer than the head.
pub fn rotate(head: &mut [f32], cos: &[f32], sin: &[f32], pairs: RopePairs) {
    let n = cos.len();
    assert!(sin.len() == n && n <= head.len() && n.is_multiple_of(2), "factors of whole pairs");
    for pair in 0..n / 2 {
        let (a, b) = match pairs {
            RopePairs::Adjacent => (2 * pair, 2 * pair + 1),
            RopePairs::Halves => (pair, pair + n / 2),
        };
        let (x, y) = (head[a], head[b]);
        head[a] = x * cos[a] + y * sin[a];
        head[b] = y * cos[b] + x * sin[b];
    }
}
