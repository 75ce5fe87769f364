//! Which plan a pass is run with. Each tier has its own, but changing plans copies weights, and that must pay.

use std::collections::HashSet;

use planner::{Bytes, Seconds};

use super::GpuPlans;
use super::placed::{PlacedPlan, Upload};

/// Passes of so few tokens are those of an answer.
const MOST_TOKENS_OF_AN_ANSWER: u32 = 4;

/// How long passes take under each plan, and what changing plans takes. Seconds.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    /// Most tokens of an ubatch of each plan, rising, and most ubatches of its passes.
    sizes: Vec<(u32, u32)>,
    /// For a pass as large as each plan holds, under it and those after it.
    times: Vec<Vec<Seconds>>,
    /// From each plan to each.
    change: Vec<Vec<f64>>,
    /// Passes of an answer whose length is not known.
    n_gen: u32,
    /// Passes of the answer that is expected.
    n_answer: u32,
}

impl Choice {
    pub(super) fn new(plans: &[PlacedPlan], of: &GpuPlans<'_>) -> Choice {
        let sets: Vec<HashSet<Upload>> =
            plans.iter().map(|plan| plan.stays.iter().copied().collect()).collect();
        let change = |from: &HashSet<Upload>, to: &HashSet<Upload>| {
            let bytes: Bytes = to.difference(from).map(|upload| upload.view.bytes()).sum();
            (bytes / of.h2d).get()
        };
        Choice {
            sizes: plans.iter().map(|plan| (plan.n_tokens, plan.n_ubatches)).collect(),
            times: of.times.to_vec(),
            change: sets.iter().map(|a| sets.iter().map(|b| change(a, b)).collect()).collect(),
            n_gen: of.n_gen,
            n_answer: of.n_gen,
        }
    }

    /// Expects answers that are limited to so many tokens, if they are.
    pub(super) fn expect_answer(&mut self, most: Option<u32>) {
        self.n_answer = most.map_or(self.n_gen, |most| most.min(self.n_gen));
    }

    /// The plan for the first of so many ubatches of `n_tokens`, when the memory is laid out for `current`.
    ///
    /// # Panics
    /// If no plan holds the ubatch.
    pub(super) fn plan(&self, n_tokens: u32, n_ubatches: u32, current: Option<usize>) -> usize {
        let tier = self.sizes.iter().position(|(most, _)| *most >= n_tokens);
        let tier = tier.expect("there is a plan for the largest ubatch");
        let plans = tier..self.sizes.len();
        let change = |plan: usize| current.map_or(0.0, |current| self.change[current][plan]);
        let cost = |plan: usize| {
            if n_tokens <= MOST_TOKENS_OF_AN_ANSWER {
                let back = current.map_or(0.0, |current| self.change[plan][current]);
                change(plan) + self.answer(self.times[tier][plan - tier]) + back
            } else {
                change(plan) + self.prompt(tier, plan, n_ubatches) + self.answer_after(plan)
            }
        };
        plans.min_by(|&a, &b| cost(a).total_cmp(&cost(b))).expect("there is the tier's own")
    }

    /// Seconds of some ubatches of a tier under a plan. Those of a pass of fewer than it takes lie between one and all.
    fn prompt(&self, tier: usize, plan: usize, n_ubatches: u32) -> f64 {
        let one = self.times[tier][plan - tier].get();
        let most = self.sizes[plan].1;
        if most == 1 {
            return f64::from(n_ubatches) * one;
        }
        let all = self.times[plan][0].get();
        let (full, left) = (n_ubatches / most, n_ubatches % most);
        let each_more = (all - one) / f64::from(most - 1);
        let rest = if left > 0 { one + f64::from(left - 1) * each_more } else { 0.0 };
        f64::from(full) * all + rest
    }

    /// Seconds of an answer after a prompt that was run with a plan, under what is best for it then, with the change to
    /// that and back: another prompt comes.
    fn answer_after(&self, prompt: usize) -> f64 {
        let cost = |(plan, pass): (usize, &Seconds)| {
            self.change[prompt][plan] + self.answer(*pass) + self.change[plan][prompt]
        };
        self.times[0].iter().enumerate().map(cost).fold(f64::INFINITY, f64::min)
    }

    fn answer(&self, pass: Seconds) -> f64 {
        f64::from(self.n_answer) * pass.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changing_plans_must_pay() {
        let seconds = |all: &[f64]| all.iter().map(|&s| Seconds::new(s)).collect::<Vec<_>>();
        let mut choice = Choice {
            sizes: vec![(1, 1), (16, 1), (512, 1), (512, 4)],
            times: vec![
                seconds(&[0.1, 0.2, 0.2, 0.2]),
                seconds(&[0.3, 0.4, 0.4]),
                seconds(&[2.0, 2.1]),
                seconds(&[4.2]),
            ],
            change: vec![
                vec![0.0, 1.0, 1.0, 1.0],
                vec![1.0, 0.0, 1.0, 1.0],
                vec![1.0, 1.0, 0.0, 1.0],
                vec![1.0, 1.0, 1.0, 0.0],
            ],
            n_gen: 64,
            n_answer: 64,
        };
        // The plan for 16 tokens would save 0.1 s on one pass, and costs 1 s.
        assert_eq!(choice.plan(10, 1, Some(2)), 2);
        assert_eq!(choice.plan(10, 21, Some(2)), 1);
        assert_eq!(choice.plan(10, 1, None), 1);
        // An answer saves 0.1 s on each of many tokens.
        assert_eq!(choice.plan(1, 1, Some(2)), 0);
        choice.expect_answer(Some(10));
        assert_eq!(choice.plan(1, 1, Some(2)), 2);
        choice.expect_answer(None);
        // Plans for fewer tokens hold no larger pass.
        assert_eq!(choice.plan(100, 1, Some(0)), 2);
        // Two ubatches at a time take 2.8 s and one after the other 4 s.
        assert_eq!(choice.plan(512, 2, Some(2)), 3);
        assert_eq!(choice.plan(512, 1, Some(2)), 2);
    }
}
