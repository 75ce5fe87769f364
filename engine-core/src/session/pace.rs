//! How many proposed tokens a pass checks, and when none are because that took longer than it saved. Sees counts and
//! times, and reads no clock.

use planner::Seconds;

use crate::request::Speculation;

/// Tokens proposed at first: with the one that is run anyway they fill a pass of four, for which there are plans.
const FEW: usize = 3;

/// Tokens proposed after all of the few were right: together, a pass of sixteen.
const MANY: usize = 15;

/// A pass that was run, over the last token and those proposed to follow it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Checked {
    /// Tokens proposed.
    pub(super) n_proposed: usize,
    /// Those of them that were what was then chosen.
    pub(super) n_accepted: usize,
    /// How long it took.
    pub(super) time: Seconds,
}

/// How many tokens to propose.
#[derive(Debug)]
pub(super) struct Pace {
    n_proposed: usize,
    /// None where speculation is on whatever it takes.
    thrift: Option<Thrift>,
}

impl Pace {
    /// None where speculation is off.
    pub(super) fn of(speculation: Speculation) -> Option<Pace> {
        let thrift = match speculation {
            Speculation::Off => return None,
            Speculation::Lookup => Some(Thrift::default()),
            Speculation::LookupAlways => None,
        };
        Some(Pace { n_proposed: FEW, thrift })
    }

    /// Tokens to propose for the next pass.
    pub(super) fn n_proposed(&self) -> usize {
        let allowed = self.thrift.as_ref().is_none_or(Thrift::allows);
        if allowed { self.n_proposed } else { 0 }
    }

    /// Learns from a pass.
    pub(super) fn learn(&mut self, pass: Checked) {
        let paid = self.thrift.as_mut().is_none_or(|thrift| thrift.learn(pass));
        if pass.n_proposed > 0 && pass.n_accepted == pass.n_proposed {
            self.n_proposed = MANY;
        }
        if pass.n_proposed > 0 && (pass.n_accepted < FEW || !paid) {
            self.n_proposed = FEW;
        }
    }
}

/// Plain passes whose time is learned before anything is proposed.
const WARM_UP: u32 = 4;

/// Weight of the newest plain pass in the average.
const NEWEST: f64 = 1.0 / 8.0;

/// Plain passes that checking may cost, for each pass: it takes this much longer at most, and one check more.
const ALLOWANCE: f64 = 1.0 / 64.0;

/// Most plain passes saved that may be spent again.
const MOST_CREDIT: f64 = 4.0;

/// Weighs what checking saves against what it takes, in plain passes: a pass of one token and nothing proposed.
#[derive(Debug, Default)]
struct Thrift {
    n_plain: u32,
    /// Average time of a plain pass.
    plain: f64,
    /// Going back to plain passes may move weights; that is part of the price.
    checked_last: bool,
    /// What checking may cost; below zero, what it cost too much.
    credit: f64,
}

impl Thrift {
    fn allows(&self) -> bool {
        self.n_plain >= WARM_UP && self.credit >= 0.0
    }

    /// Learns from a pass, and says whether it took no longer than plain passes would have.
    fn learn(&mut self, pass: Checked) -> bool {
        let plain = pass.n_proposed == 0;
        self.credit = (self.credit + ALLOWANCE).min(MOST_CREDIT);
        let priced = !plain || self.checked_last;
        self.checked_last = !plain;
        if !priced || self.n_plain == 0 {
            self.average(pass.time);
            return true;
        }
        let saved = (1 + pass.n_accepted) as f64 - pass.time.get() / self.plain;
        self.credit = (self.credit + saved).min(MOST_CREDIT);
        saved >= 0.0
    }

    fn average(&mut self, time: Seconds) {
        self.n_plain = self.n_plain.saturating_add(1);
        let weight = f64::from(self.n_plain).recip().max(NEWEST);
        self.plain += (time.get() - self.plain) * weight;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine on which a pass takes `1 + per_token · n_proposed` seconds, and a plain one after one that was not
    /// `going_back` more.
    struct Machine {
        per_token: f64,
        going_back: f64,
        pace: Pace,
        checked_last: bool,
        /// Time and tokens so far.
        time: f64,
        n_tokens: usize,
    }

    impl Machine {
        fn new(per_token: f64) -> Machine {
            let pace = Pace::of(Speculation::Lookup).expect("it is on");
            let (going_back, checked_last, time, n_tokens) = (0.0, false, 0.0, 0);
            Machine { per_token, going_back, pace, checked_last, time, n_tokens }
        }

        /// One pass in which `right` of the proposed tokens are right. Gives how many were proposed.
        fn pass(&mut self, right: usize) -> usize {
            let n_proposed = self.pace.n_proposed();
            self.run(n_proposed, right.min(n_proposed));
            n_proposed
        }

        fn run(&mut self, n_proposed: usize, n_accepted: usize) {
            let goes_back = self.checked_last && n_proposed == 0;
            let time = 1.0
                + self.per_token * n_proposed as f64
                + if goes_back { self.going_back } else { 0.0 };
            self.checked_last = n_proposed > 0;
            self.pace.learn(Checked { n_proposed, n_accepted, time: Seconds::new(time) });
            self.time += time;
            self.n_tokens += 1 + n_accepted;
        }

        fn passes(&mut self, n: usize, right: usize) -> Vec<usize> {
            (0..n).map(|_| self.pass(right)).collect()
        }
    }

    #[test]
    fn off_is_off() {
        assert!(Pace::of(Speculation::Off).is_none());
    }

    #[test]
    fn plain_passes_come_first_and_the_length_follows_what_was_right() {
        let mut machine = Machine::new(0.1);
        assert_eq!(machine.passes(8, 99), [0, 0, 0, 0, 3, 15, 15, 15]);
        assert_eq!((machine.pass(3), machine.pass(2)), (15, 15), "three of fifteen still pay");
        assert_eq!((machine.pass(3), machine.pass(0)), (3, 15));
        assert_eq!(machine.pass(0), 3);
    }

    #[test]
    fn proposing_always_needs_no_times() {
        let mut pace = Pace::of(Speculation::LookupAlways).expect("it is on");
        for (n_accepted, next) in [(0, 3), (3, 15), (7, 15), (2, 3), (0, 3)] {
            let n_proposed = pace.n_proposed();
            pace.learn(Checked { n_proposed, n_accepted, time: Seconds::new(1e9) });
            assert_eq!(pace.n_proposed(), next, "after {n_accepted} of {n_proposed}");
        }
    }

    #[test]
    fn what_is_never_right_costs_little() {
        for per_token in [0.05, 0.15, 0.5, 1.0] {
            let mut machine = Machine::new(per_token);
            machine.passes(1000, 0);
            let loss = machine.time / machine.n_tokens as f64 - 1.0;
            assert!(loss < 0.02, "{per_token} a token: {loss}");
        }
    }

    #[test]
    fn what_is_right_but_takes_longer_is_left() {
        // As on a device that computes a token in the same time whatever the number in a pass.
        let mut machine = Machine::new(1.2);
        let n_proposed: usize = machine.passes(1000, 99).iter().sum();
        assert!(n_proposed < 100, "{n_proposed}");
    }

    #[test]
    fn a_text_that_begins_to_repeat_is_noticed() {
        let mut machine = Machine::new(0.15);
        machine.passes(200, 0);
        let waited = machine.passes(300, 99).iter().take_while(|&&n| n == 0).count();
        assert!(waited < 256, "{waited}");
        assert_eq!(machine.passes(3, 99), [15; 3]);
        // What was saved is spent before the next rest.
        let tries = machine.passes(100, 0);
        assert!(tries.iter().filter(|&&n| n > 0).count() >= 5, "{tries:?}");
    }

    #[test]
    fn going_back_to_plain_passes_is_part_of_the_price() {
        // Plans for one token and for four that have to be moved between. After each check nothing can be proposed.
        let mut machine = Machine { going_back: 2.5, ..Machine::new(0.1) };
        let mut n_checks = 0;
        for _ in 0..200 {
            n_checks += usize::from(machine.pass(2) > 0);
            machine.run(0, 0);
        }
        assert!((1..15).contains(&n_checks), "{n_checks}");
        let loss = machine.time / machine.n_tokens as f64 - 1.0;
        assert!(loss < 0.02, "{loss}");
    }
}
