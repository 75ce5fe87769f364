//! Repeats a measurement until its figure is steady or its share of the time is spent, and all of that in rounds.

use std::time::{Duration, Instant};

use planner::Seconds;

use super::effort::Effort;
use super::error::MeasureError;
use super::figure::{Figure, Noisy};
use crate::backend::Res;
use crate::cancel::Cancel;

/// Times that everything is measured, one round after the other. Other work on the machine only ever slows it down, for
/// seconds at a time, so the fastest round is the truest.
pub(super) const ROUNDS: usize = 5;
/// Measurements after which a figure may count as steady.
const ENOUGH: usize = 7;
/// Spread of a steady figure.
const STEADY: f64 = 0.01;
/// Spread above which a figure is reported as noisy.
const NOISY: f64 = 0.1;
/// A figure of which one measurement is expected to take more than so many times its share of the time is left out.
const MOST_SHARES: f64 = 4.0;

/// How far measuring has got.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Figures that are done, each counted once in each round.
    pub done: usize,
    /// Figures in all, likewise.
    pub total: usize,
    /// The one that comes next.
    pub next: Figure,
}

/// Who wants to know, and may stop it.
pub struct Watcher<'a> {
    /// Measuring ends soon after this is cancelled.
    pub cancel: Cancel,
    /// Called before each figure.
    pub on_progress: &'a mut dyn FnMut(Progress),
}

/// Hands out time and gathers noise.
pub(super) struct Stopwatch<'a> {
    watcher: Watcher<'a>,
    /// When all time is spent.
    end: Instant,
    /// When the time of the part under way is spent, and how many figures are done then.
    deadline: Instant,
    part: usize,
    /// The longest time for one figure in a round.
    figure: Duration,
    done: usize,
    total: usize,
    /// Figures in their order, which is the same in all rounds.
    figures: Vec<Option<Rounds>>,
    /// Where the next figure stands in that order.
    place: usize,
}

/// A figure's medians, one of each round.
struct Rounds {
    figure: Figure,
    medians: Vec<f64>,
}

/// The outcome of several measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sample {
    /// The median of those of the fastest round.
    pub(super) seconds: f64,
    /// Half the way to the next round, as a share of the seconds.
    pub(super) spread: f64,
}

impl<'a> Stopwatch<'a> {
    /// A watch for [`ROUNDS`] rounds of `n` figures within the time of `effort`.
    pub(super) fn start(effort: &Effort, n: usize, watcher: Watcher<'a>) -> Stopwatch<'a> {
        let end = Instant::now() + effort.time;
        let (figure, total) = (effort.figure, n * ROUNDS);
        let (deadline, part, figures) = (end, total, Vec::with_capacity(n));
        Stopwatch { watcher, end, deadline, part, figure, done: 0, total, figures, place: 0 }
    }

    /// Starts the figures over.
    pub(super) fn begin_round(&mut self) {
        self.place = 0;
    }

    /// Gives the next `n` figures their share of the time that is left, so that a slow device leaves some to the others.
    pub(super) fn begin_part(&mut self, n: usize) {
        let now = Instant::now();
        let share = n as f64 / self.total.saturating_sub(self.done).max(1) as f64;
        let left = self.end.saturating_duration_since(now);
        self.deadline = now + left.mul_f64(share.min(1.0));
        self.part = self.done + n;
    }

    /// Whether there is time for a measurement that is expected to take so many seconds. The first round decides for all.
    pub(super) fn allows(&self, seconds: f64) -> bool {
        match self.figures.get(self.place) {
            Some(seen) => seen.is_some(),
            None => seconds <= MOST_SHARES * self.share() && self.left() > 0.0,
        }
    }

    /// Seconds that each figure of the part under way has, if they share evenly what is left.
    fn share(&self) -> f64 {
        self.left() / self.part.saturating_sub(self.done).max(1) as f64
    }

    /// Counts a figure as done that there is no time for.
    pub(super) fn skip(&mut self) {
        self.count(None);
    }

    /// Counts the next figure as done. Gives what is known of it.
    fn count(&mut self, measured: Option<(Figure, f64)>) -> Option<Sample> {
        if self.place == self.figures.len() {
            self.figures.push(measured.map(|(figure, _)| Rounds { figure, medians: Vec::new() }));
        }
        let rounds = self.figures[self.place].as_mut();
        self.place += 1;
        self.done += 1;
        let (rounds, (figure, median)) = rounds.zip(measured)?;
        assert_eq!(rounds.figure, figure, "rounds measure the same");
        rounds.medians.push(median);
        Some(rounds.sample())
    }

    /// Repeats `run`, which gives the seconds of one measurement. Gives what this round and those before come to.
    ///
    /// # Errors
    /// Those of `run`, and a wish to stop.
    pub(super) fn measure(
        &mut self,
        figure: Figure,
        mut run: impl FnMut() -> Res<f64>,
    ) -> Result<Sample, MeasureError> {
        let (done, total) = (self.done, self.total);
        (self.watcher.on_progress)(Progress { done, total, next: figure });
        let share = self.share().min(self.figure.as_secs_f64());
        let start = Instant::now();
        let mut times = Vec::new();
        loop {
            if self.watcher.cancel.is_cancelled() {
                return Err(MeasureError::Cancelled);
            }
            times.push(run()?);
            let spent = start.elapsed().as_secs_f64() >= share;
            if spent || times.len() >= ENOUGH && steady(&mut times) {
                break;
            }
        }
        let sample = self.count(Some((figure, median(&mut times))));
        Ok(sample.expect("the first round measured it, too"))
    }

    /// The figures whose measurements lie far apart.
    pub(super) fn into_noisy(self) -> Vec<Noisy> {
        let noisy =
            |rounds: Rounds| Noisy { figure: rounds.figure, spread: rounds.sample().spread };
        let all = self.figures.into_iter().flatten().map(noisy);
        all.filter(|noisy| noisy.spread > NOISY).collect()
    }

    fn left(&self) -> f64 {
        self.deadline.saturating_duration_since(Instant::now()).as_secs_f64()
    }
}

impl Rounds {
    fn sample(&self) -> Sample {
        let mut medians = self.medians.clone();
        medians.sort_unstable_by(f64::total_cmp);
        let seconds = medians[0];
        let next = medians.get(1).unwrap_or(&seconds);
        Sample { seconds, spread: (next - seconds) / 2.0 / seconds }
    }
}

/// Whether half the range of the middle half of `times` is a small share of their median. Sorts them.
fn steady(times: &mut [f64]) -> bool {
    let middle = median(times);
    let range = quantile(times, 0.75) - quantile(times, 0.25);
    range / 2.0 <= STEADY * middle
}

/// Sorts `times`, which must not be empty.
pub(super) fn median(times: &mut [f64]) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    quantile(times, 0.5)
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    low + (high - low) * place.fract()
}

impl Sample {
    /// The seconds, to as many digits as mean anything.
    pub(super) fn time(self) -> Seconds {
        Seconds::new(rounded(self.seconds))
    }

    /// The spread, likewise.
    pub(super) fn spread(self) -> Option<f64> {
        Some(rounded(self.spread))
    }

    /// The same for a part of what was measured: all but `fixed` seconds, divided by `n`.
    pub(super) fn less(self, fixed: f64, n: f64) -> Sample {
        // What is left of a time that was all overhead is too short to matter, but it is a time.
        const LEAST: f64 = 1e-9;
        Sample { seconds: ((self.seconds - fixed) / n).max(LEAST), ..self }
    }
}

/// A number to four digits.
pub(super) fn rounded(x: f64) -> f64 {
    format!("{x:.3e}").parse().expect("a printed number is a number")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_lies_between() {
        assert_eq!(median(&mut [5.0, 1.0, 2.0, 4.0, 3.0]), 3.0);
        assert_eq!(median(&mut [2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0]), 2.5);
    }

    #[test]
    fn a_part_of_a_sample_keeps_its_spread() {
        let sample = Sample { seconds: 3.0, spread: 1.0 / 3.0 }.less(1.0, 4.0);
        assert_eq!((sample.time(), sample.spread()), (Seconds::new(0.5), Some(0.3333)));
    }

    fn watch<'a>(time: Duration, on_progress: &'a mut dyn FnMut(Progress)) -> Stopwatch<'a> {
        let effort = Effort { time, figure: time, ..Effort::quick() };
        Stopwatch::start(&effort, 2, Watcher { cancel: Cancel::default(), on_progress })
    }

    #[test]
    fn a_steady_figure_is_done_soon() {
        let (mut runs, mut seen) = (0, Vec::new());
        let mut on_progress = |progress: Progress| seen.push((progress.done, progress.total));
        let mut watch = watch(Duration::from_secs(3600), &mut on_progress);
        let run = || {
            runs += 1;
            Ok(2.0)
        };
        let sample = watch.measure(Figure::Pass, run).expect("no failure");
        assert_eq!(sample, Sample { seconds: 2.0, spread: 0.0 });
        assert!(watch.into_noisy().is_empty());
        assert_eq!((runs, &seen[..]), (ENOUGH, &[(0, 2 * ROUNDS)][..]));
    }

    #[test]
    fn the_fastest_round_counts_and_the_next_tells_the_noise() {
        let mut on_progress = |_| ();
        let mut watch = watch(Duration::ZERO, &mut on_progress);
        let mut sample = None;
        for (quiet, disturbed) in [(1.0, 4.0), (1.1, 2.0), (1.3, 3.0)] {
            watch.begin_round();
            watch.measure(Figure::Pass, || Ok(quiet)).expect("no failure");
            sample = Some(watch.measure(Figure::Pass, || Ok(disturbed)).expect("no failure"));
        }
        assert_eq!(sample, Some(Sample { seconds: 2.0, spread: 0.25 }));
        let noisy = watch.into_noisy();
        assert_eq!(noisy.iter().map(|noisy| noisy.spread).collect::<Vec<_>>(), [0.25]);
    }

    #[test]
    fn the_first_round_decides_what_is_left_out() {
        let mut on_progress = |_| ();
        let mut watch = watch(Duration::from_secs(3600), &mut on_progress);
        assert!(watch.allows(1.0) && !watch.allows(1e9));
        watch.skip();
        watch.measure(Figure::Pass, || Ok(2.0)).expect("no failure");
        watch.begin_round();
        assert!(!watch.allows(1e-6));
        watch.skip();
        assert!(watch.allows(1e9));
    }

    #[test]
    fn a_part_leaves_time_to_the_next() {
        let mut on_progress = |_| ();
        let mut watch = watch(Duration::from_secs(3600), &mut on_progress);
        watch.begin_part(1);
        assert!((359.0..=360.0).contains(&watch.left()));
        watch.skip();
        watch.begin_part(9);
        assert!((3599.0..=3600.0).contains(&watch.left()));
    }

    #[test]
    fn a_wish_to_stop_is_heard() {
        let mut on_progress = |_| ();
        let mut watch = watch(Duration::from_secs(3600), &mut on_progress);
        let cancel = watch.watcher.cancel.clone();
        let run = || {
            cancel.cancel();
            Ok(1.0)
        };
        assert!(matches!(watch.measure(Figure::Pass, run), Err(MeasureError::Cancelled)));
    }
}
