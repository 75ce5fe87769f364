//! Times at measured points, and what lies between and beyond them.
//!
//! Between two points time is a straight line. Below the first it is a straight line through nothing, with the first
//! point's slope; above the last it goes on with the slope of the last two, or, with a single point, of that one.
//! Whoever asks learns whether the answer lay between measured points.

/// A time, and whether it lies inside what was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Timed {
    pub(crate) seconds: f64,
    pub(crate) measured: bool,
}

/// Times at measured points, in rising order of `x`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Curve<'a, P> {
    points: &'a [P],
    /// Reads `(x, seconds)` of a point.
    read: fn(&P) -> (f64, f64),
}

impl<'a, P> Curve<'a, P> {
    /// A curve through points that are in rising order and at least one.
    pub(crate) fn new(points: &'a [P], read: fn(&P) -> (f64, f64)) -> Curve<'a, P> {
        Curve { points, read }
    }

    /// The time at `x`.
    pub(crate) fn at(&self, x: f64) -> Timed {
        let read = |i: usize| (self.read)(&self.points[i]);
        let above = self.points.partition_point(|point| (self.read)(point).0 < x);
        let last = self.points.len() - 1;
        if above == 0 {
            let (x0, t0) = read(0);
            return Timed { seconds: t0 * x / x0, measured: x == x0 };
        }
        let (low, high) =
            if above > last { (last.saturating_sub(1), last) } else { (above - 1, above) };
        let ((x0, t0), (x1, t1)) =
            if low == high { ((0.0, 0.0), read(high)) } else { (read(low), read(high)) };
        let seconds = t0 + (t1 - t0) * (x - x0) / (x1 - x0);
        Timed { seconds: seconds.max(0.0), measured: above <= last }
    }
}

impl Timed {
    /// Both together.
    pub(crate) fn scaled(self, factor: f64) -> Timed {
        Timed { seconds: self.seconds * factor, ..self }
    }

    /// The time a part `share` of the way from `self` to `other`.
    pub(crate) fn towards(self, other: Timed, share: f64) -> Timed {
        Timed {
            seconds: self.seconds + (other.seconds - self.seconds) * share,
            measured: self.measured && other.measured,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(points: &[(f64, f64)], x: f64) -> (f64, bool) {
        let Timed { seconds, measured } = Curve::new(points, |&point| point).at(x);
        (seconds, measured)
    }

    #[test]
    fn lines_between_points() {
        let points = [(1.0, 2.0), (3.0, 4.0), (5.0, 10.0)];
        assert_eq!(at(&points, 1.0), (2.0, true));
        assert_eq!(at(&points, 2.0), (3.0, true));
        assert_eq!(at(&points, 4.0), (7.0, true));
        assert_eq!(at(&points, 5.0), (10.0, true));
    }

    #[test]
    fn beyond_the_points_lines_go_on_and_say_so() {
        let points = [(1.0, 2.0), (3.0, 4.0), (5.0, 10.0)];
        assert_eq!(at(&points, 0.5), (1.0, false));
        assert_eq!(at(&points, 6.0), (13.0, false));
        assert_eq!(at(&[(2.0, 3.0)], 4.0), (6.0, false));
    }
}
