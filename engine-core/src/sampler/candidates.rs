//! Tokens that may be drawn, most likely first, and the filters on them.

use std::cmp::Ordering;

/// A token with its logit, and once weighed with its probability as a multiple of the most likely one's.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    token: u32,
    weight: f32,
}

impl Candidate {
    fn likelier_first(a: &Candidate, b: &Candidate) -> Ordering {
        b.weight.total_cmp(&a.weight).then(a.token.cmp(&b.token))
    }
}

/// Tokens that may be drawn. Never empty once filled from a vocabulary.
#[derive(Debug, Default)]
pub(super) struct Candidates(Vec<Candidate>);

impl Candidates {
    /// The `top_k` tokens of the largest logits, in order; 0 for all.
    pub(super) fn fill(&mut self, logits: &[f32], top_k: u32) {
        let all = (0u32..).zip(logits).map(|(token, &weight)| Candidate { token, weight });
        self.0.clear();
        self.0.extend(all);
        let k = top_k as usize;
        if k > 0 && k < self.0.len() {
            self.0.select_nth_unstable_by(k - 1, Candidate::likelier_first);
            self.0.truncate(k);
        }
        self.0.sort_unstable_by(Candidate::likelier_first);
    }

    /// Turns logits into weights.
    pub(super) fn weigh(&mut self, temperature: f32) {
        let top = self.0[0].weight;
        for candidate in &mut self.0 {
            // Equal infinities differ by nothing.
            let below = if candidate.weight == top { 0.0 } else { candidate.weight - top };
            candidate.weight = (below / temperature).exp();
        }
    }

    /// Keeps the first whose probabilities sum to at least `top_p`.
    pub(super) fn keep_share(&mut self, top_p: f32) {
        if top_p >= 1.0 {
            return;
        }
        let enough = top_p * self.0.iter().map(|c| c.weight).sum::<f32>();
        let mut sum = 0.0;
        let kept = self.0.iter().take_while(|c| {
            let before = sum;
            sum += c.weight;
            before < enough
        });
        let kept = kept.count().max(1);
        self.0.truncate(kept);
    }

    /// Keeps those at least `min_p` times as likely as the first.
    pub(super) fn keep_near_best(&mut self, min_p: f32) {
        // The first has weight 1, so this never empties the list.
        let kept = self.0.partition_point(|c| c.weight >= min_p);
        self.0.truncate(kept);
    }

    /// The token at a place in `0..1`, each taking as much room as its probability.
    pub(super) fn at(&self, place: f64) -> u32 {
        let total: f64 = self.0.iter().map(|c| f64::from(c.weight)).sum();
        let mut rest = place * total;
        for candidate in &self.0 {
            rest -= f64::from(candidate.weight);
            if rest < 0.0 {
                return candidate.token;
            }
        }
        // Rounding may leave a sliver past the end.
        self.0.last().expect("the most likely token is always kept").token
    }
}
