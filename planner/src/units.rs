//! Bytes, operations, seconds and their rates as types, with only the operations that make physical sense.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul};

use serde::{Deserialize, Serialize};

/// An amount of memory. Exact; arithmetic that would overflow panics in every build.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(u64);

impl Bytes {
    /// No memory.
    pub const ZERO: Bytes = Bytes(0);

    /// `n` bytes.
    pub const fn new(n: u64) -> Bytes {
        Bytes(n)
    }

    /// `n` × 2²⁰ bytes.
    pub const fn mib(n: u64) -> Bytes {
        Bytes(n << 20)
    }

    /// `n` × 2³⁰ bytes.
    pub const fn gib(n: u64) -> Bytes {
        Bytes(n << 30)
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number of bytes as an index into memory of this process.
    ///
    /// # Panics
    /// If it does not fit in the address space.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0)
            .expect("amounts of mapped or allocated memory fit the address space")
    }

    /// Sum, or `None` on overflow.
    pub fn checked_add(self, other: Bytes) -> Option<Bytes> {
        self.0.checked_add(other.0).map(Bytes)
    }

    /// `self` × `n`, or `None` on overflow.
    pub fn checked_mul(self, n: u64) -> Option<Bytes> {
        self.0.checked_mul(n).map(Bytes)
    }

    /// Difference, or zero when `other` is larger.
    pub fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }

    /// The smallest multiple of `unit` that is not below this amount.
    ///
    /// # Panics
    /// If `unit` is zero.
    pub fn align_up(self, unit: u64) -> Bytes {
        Bytes(self.0.next_multiple_of(unit))
    }
}

impl From<usize> for Bytes {
    fn from(n: usize) -> Bytes {
        Bytes(n as u64)
    }
}

impl fmt::Display for Bytes {
    /// Binary units with the suffix spelt out: `1.5 GiB`, `12.0 MiB`, `3.0 KiB`, `17 B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0 as f64;
        match self.0 {
            0..=1023 => write!(f, "{} B", self.0),
            1024..=1_048_575 => write!(f, "{:.1} KiB", n / 1024.0),
            1_048_576..=1_073_741_823 => write!(f, "{:.1} MiB", n / 1_048_576.0),
            _ => write!(f, "{:.2} GiB", n / 1_073_741_824.0),
        }
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        self.checked_add(other).expect("sums of memory sizes stay far below 2^64")
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        *self = *self + other;
    }
}

impl Mul<u64> for Bytes {
    type Output = Bytes;
    fn mul(self, n: u64) -> Bytes {
        self.checked_mul(n).expect("multiples of memory sizes stay far below 2^64")
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(iter: I) -> Bytes {
        iter.fold(Bytes::ZERO, Add::add)
    }
}

/// Declares a measured quantity: a non-negative real number with its unit.
macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(f64);

        impl $name {
            /// Nothing.
            pub const ZERO: $name = $name(0.0);

            /// This many of the unit.
            pub const fn new(n: f64) -> $name {
                $name(n)
            }

            /// The number, in the unit.
            pub const fn get(self) -> f64 {
                self.0
            }
        }

        impl Add for $name {
            type Output = $name;
            fn add(self, other: $name) -> $name {
                $name(self.0 + other.0)
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: $name) {
                self.0 += other.0;
            }
        }

        impl Mul<f64> for $name {
            type Output = $name;
            fn mul(self, n: f64) -> $name {
                $name(self.0 * n)
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = $name>>(iter: I) -> $name {
                iter.fold($name::ZERO, Add::add)
            }
        }
    };
}

quantity!(
    /// Floating-point operations; a multiply and an add are two.
    Flops
);
quantity!(
    /// A duration.
    Seconds
);
quantity!(
    /// A copy or read rate.
    BytesPerSec
);
quantity!(
    /// An arithmetic rate.
    FlopsPerSec
);

impl Div<BytesPerSec> for Bytes {
    type Output = Seconds;
    fn div(self, rate: BytesPerSec) -> Seconds {
        Seconds(self.0 as f64 / rate.0)
    }
}

impl Div<Seconds> for Bytes {
    type Output = BytesPerSec;
    fn div(self, time: Seconds) -> BytesPerSec {
        BytesPerSec(self.0 as f64 / time.0)
    }
}

impl Div<FlopsPerSec> for Flops {
    type Output = Seconds;
    fn div(self, rate: FlopsPerSec) -> Seconds {
        Seconds(self.0 / rate.0)
    }
}

impl Div<Seconds> for Flops {
    type Output = FlopsPerSec;
    fn div(self, time: Seconds) -> FlopsPerSec {
        FlopsPerSec(self.0 / time.0)
    }
}

impl fmt::Display for BytesPerSec {
    /// Decimal units: `25.6 GB/s` is 25.6 × 10⁹ bytes per second.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} GB/s", self.0 / 1e9)
    }
}

impl fmt::Display for FlopsPerSec {
    /// Decimal units: `80 GFLOPS` is 80 × 10⁹ operations per second.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} GFLOPS", self.0 / 1e9)
    }
}

impl From<std::time::Duration> for Seconds {
    fn from(duration: std::time::Duration) -> Seconds {
        Seconds(duration.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_print_in_binary_units() {
        let printed = [17, 3 << 10, 12 << 20, 3 << 29].map(|n| Bytes::new(n).to_string());
        assert_eq!(printed, ["17 B", "3.0 KiB", "12.0 MiB", "1.50 GiB"]);
    }

    #[test]
    fn rates_divide_amounts_into_time() {
        let time = Bytes::new(3_000_000_000) / BytesPerSec::new(1.5e9);
        assert_eq!(time, Seconds::new(2.0));
        assert_eq!(Flops::new(8.0) / time, FlopsPerSec::new(4.0));
    }

    #[test]
    fn overflow_is_seen() {
        assert_eq!(Bytes::new(u64::MAX).checked_add(Bytes::new(1)), None);
        assert_eq!(Bytes::new(u64::MAX / 2).checked_mul(3), None);
        assert_eq!(Bytes::new(65).align_up(64), Bytes::new(128));
    }
}
