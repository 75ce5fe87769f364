//! Repeats a measurement until its figure is steady or its share of the time is spent.

use std::time::{Duration, Instant};

use planner::Seconds;

use super::effort::Effort;
use super::error::MeasureError;
use super::figure::{Figure, Noisy};
use crate::backend::Res;
use crate::cancel::Cancel;

/// Measurements after which a figure may count as steady.
const ENOUGH: usize = 7;
/// The fewest measurements of a figure that takes more than its share of the time.
const FEWEST: usize = 2;
/// Spread of a steady figure.
const STEADY: f64 = 0.01;
/// Spread above which a figure is reported as noisy.
const NOISY: f64 = 0.1;
/// A figure that is expected to take more than so many times its share of the time that is left is left out.
const MOST_SHARES: f64 = 8.0;

/// How far measuring has got.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Figures that are done.
    pub done: usize,
    /// Figures in all.
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
    /// The longest time for one figure.
    figure: Duration,
    done: usize,
    total: usize,
    noisy: Vec<Noisy>,
}

/// The outcome of several measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sample {
    /// Their median.
    pub(super) seconds: f64,
    /// Half the range of their middle half, as a share of the median.
    pub(super) spread: f64,
}

impl<'a> Stopwatch<'a> {
    /// A watch for `total` figures within the time of `effort`.
    pub(super) fn start(effort: &Effort, total: usize, watcher: Watcher<'a>) -> Stopwatch<'a> {
        let end = Instant::now() + effort.time;
        let figure = effort.figure;
        let (deadline, part, noisy) = (end, total, Vec::new());
        Stopwatch { watcher, end, deadline, part, figure, done: 0, total, noisy }
    }

    /// Gives the next `n` figures their share of the time that is left, so that a slow device leaves some to the others.
    pub(super) fn begin_part(&mut self, n: usize) {
        let now = Instant::now();
        let share = n as f64 / self.total.saturating_sub(self.done).max(1) as f64;
        let left = self.end.saturating_duration_since(now);
        self.deadline = now + left.mul_f64(share.min(1.0));
        self.part = self.done + n;
    }

    /// Whether there is time for a measurement that is expected to take so many seconds.
    pub(super) fn allows(&self, seconds: f64) -> bool {
        seconds * FEWEST as f64 <= MOST_SHARES * self.share() && self.left() > 0.0
    }

    /// Seconds that each figure of the part under way has, if they share evenly what is left.
    fn share(&self) -> f64 {
        self.left() / self.part.saturating_sub(self.done).max(1) as f64
    }

    /// Counts a figure as done that there is no time for.
    pub(super) fn skip(&mut self) {
        self.done += 1;
    }

    /// Repeats `run`, which gives the seconds of one measurement.
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
            let steady = times.len() >= ENOUGH && Sample::of(&mut times).spread <= STEADY;
            if steady || spent && times.len() >= FEWEST {
                break;
            }
        }
        let sample = Sample::of(&mut times);
        if sample.spread > NOISY {
            self.noisy.push(Noisy { figure, spread: sample.spread });
        }
        self.done += 1;
        Ok(sample)
    }

    /// The figures whose measurements lie far apart.
    pub(super) fn into_noisy(self) -> Vec<Noisy> {
        self.noisy
    }

    fn left(&self) -> f64 {
        self.deadline.saturating_duration_since(Instant::now()).as_secs_f64()
    }
}

impl Sample {
    /// Sorts `times`, which must not be empty.
    pub(super) fn of(times: &mut [f64]) -> Sample {
        times.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| {
            let place = share * (times.len() - 1) as f64;
            let (low, high) = (times[place.floor() as usize], times[place.ceil() as usize]);
            low + (high - low) * place.fract()
        };
        let seconds = at(0.5);
        Sample { seconds, spread: (at(0.75) - at(0.25)) / 2.0 / seconds }
    }

    /// The median, to as many digits as mean anything.
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
    fn a_sample_is_a_median_with_its_spread() {
        let sample = Sample::of(&mut [5.0, 1.0, 2.0, 4.0, 3.0]);
        assert_eq!(sample, Sample { seconds: 3.0, spread: 1.0 / 3.0 });
        assert_eq!(Sample::of(&mut [2.0]), Sample { seconds: 2.0, spread: 0.0 });
        assert_eq!(sample.less(1.0, 4.0).seconds, 0.5);
        assert_eq!((sample.time(), sample.spread()), (Seconds::new(3.0), Some(0.3333)));
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
        assert_eq!((runs, &seen[..]), (ENOUGH, &[(0, 2)][..]));
    }

    #[test]
    fn a_noisy_figure_ends_with_its_time_and_is_told() {
        let mut on_progress = |_| ();
        let mut watch = watch(Duration::ZERO, &mut on_progress);
        let mut times = [1.0, 2.0].into_iter();
        watch.measure(Figure::Pass, || Ok(times.next().expect("two runs"))).expect("no failure");
        assert!(!watch.allows(1e-6));
        let noisy = watch.into_noisy();
        assert_eq!(noisy.len(), 1);
        assert!((noisy[0].spread - 1.0 / 6.0).abs() < 1e-9);
    }

    #[test]
    fn a_part_leaves_time_to_the_next() {
        let mut on_progress = |_| ();
        let mut watch = watch(Duration::from_secs(3600), &mut on_progress);
        watch.begin_part(1);
        assert!((1799.0..=1800.0).contains(&watch.left()));
        watch.skip();
        watch.begin_part(1);
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
