//! What time templates think it is.

use jiff::fmt::strtime::{BrokenDownTime, Config};
use jiff::{Timestamp, ZonedDateTime, tz::TimeZone};

/// The time that a template's `strftime_now` tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Clock {
    /// The machine's time in its time zone.
    #[default]
    System,
    /// Always the same time, in UTC: for tests and for repeatable prompts.
    Fixed {
        /// Seconds since 1970-01-01, 00:00 UTC. Times outside the years -9999 to 9999 count as 1970.
        unix_seconds: i64,
    },
}

impl Clock {
    fn now(self) -> ZonedDateTime {
        match self {
            Clock::System => ZonedDateTime::now(),
            Clock::Fixed { unix_seconds } => Timestamp::from_second(unix_seconds)
                .unwrap_or_default()
                .to_zoned_datetime(TimeZone::UTC),
        }
    }

    /// The time by C's `strftime` codes. Unknown codes stay as they are.
    pub(super) fn format(self, format: &str) -> String {
        let mut text = String::new();
        let time = BrokenDownTime::from(&self.now());
        // Lenient formatting into a string has no way to fail.
        let _ = time.format_with_config(&Config::new().lenient(true), format, &mut text);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_codes() {
        // 2024-07-05 09:08:07 UTC, a Friday.
        let clock = Clock::Fixed { unix_seconds: 1_720_170_487 };
        let cases = [
            ("%d %b %Y", "05 Jul 2024"),
            ("%B %d, %Y", "July 05, 2024"),
            ("%Y-%m-%d", "2024-07-05"),
            ("%A, %-d %B %y", "Friday, 5 July 24"),
            ("%a %e %j %u %w", "Fri  5 187 5 5"),
            ("%H:%M:%S %I %p", "09:08:07 09 AM"),
            ("%F %T %D %R", "2024-07-05 09:08:07 07/05/24 09:08"),
            ("%Z%z", "UTC+0000"),
            ("100%% %", "100% %"),
            ("%b %!", "Jul %!"),
        ];
        for (format, expected) in cases {
            assert_eq!(clock.format(format), expected, "{format}");
        }
    }
}
