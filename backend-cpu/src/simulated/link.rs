//! One direction of a link: real copies that take as long as the link would take for them.

use std::thread;
use std::time::{Duration, Instant};

use planner::{Bytes, BytesPerSec};

use crate::pace::rest_until;

/// What is copied between looks at the clock.
const CHUNK: usize = 256 << 10;

/// How far a long copy may run ahead of its link before it rests. Rests are few, so that the core is free for others.
const AHEAD: Duration = Duration::from_micros(500);

/// One direction of a link.
pub(super) struct Link {
    rate: BytesPerSec,
    /// When the link would be done with the last copy.
    free: Instant,
}

impl Link {
    /// A direction of this rate.
    ///
    /// # Panics
    /// If the rate is not above zero.
    pub(super) fn new(rate: BytesPerSec) -> Link {
        assert!(rate.get() > 0.0, "a link has a rate");
        Link { rate, free: Instant::now() }
    }

    /// Copies, and returns when the link would be done had it begun at `ready` or, if later, when it was free. A thread
    /// that the system resumed late so catches up, and long series of copies keep the rate.
    pub(super) fn copy(&mut self, src: &[u8], dst: &mut [u8], ready: Instant) {
        let begin = ready.max(self.free);
        let due = |copied: usize| begin + self.time(copied);
        let mut copied = 0;
        for (src, dst) in src.chunks(CHUNK).zip(dst.chunks_mut(CHUNK)) {
            let ahead = due(copied).saturating_duration_since(Instant::now());
            if ahead > AHEAD {
                thread::sleep(ahead);
            }
            dst.copy_from_slice(src);
            copied += src.len();
        }
        self.free = due(copied);
        rest_until(self.free);
    }

    fn time(&self, copied: usize) -> Duration {
        Duration::from_secs_f64((Bytes::from(copied) / self.rate).get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_take_their_time_and_lose_no_byte() {
        let src: Vec<u8> = (0..3 * CHUNK / 2).map(|i| i as u8).collect();
        let mut dst = vec![0; src.len()];
        let mut link = Link::new(BytesPerSec::new(1e8));
        let start = Instant::now();
        link.copy(&src, &mut dst, start);
        assert_eq!(dst, src);
        dst.fill(0);
        // The second one waits for the link, although it was ready with the first.
        link.copy(&src, &mut dst, start);
        assert_eq!(dst, src);
        assert!(start.elapsed().as_secs_f64() >= 2.0 * src.len() as f64 / 1e8);
    }

    #[test]
    #[should_panic(expected = "a link has a rate")]
    fn a_link_without_a_rate_is_refused() {
        Link::new(BytesPerSec::ZERO);
    }
}
