//! What people type: sizes with their suffix, token counts in K, names of methods.

use thiserror::Error;

use crate::extras::Switch;
use crate::forecast::Method;
use crate::strategy::Strategy;
use crate::units::{Bytes, BytesPerSec, FlopsPerSec};

/// Why a typed amount was not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AmountError {
    /// No size, or one without a suffix.
    #[error("expected a size with its suffix, such as 512MiB or 8GiB")]
    NotASize,
    /// No rate, or one without a suffix.
    #[error("expected a rate of at least 1MB/s with its suffix, such as 500MB/s or 2GB/s")]
    NotARate,
    /// No arithmetic rate, or one without a suffix.
    #[error("expected a rate of at least 1GFLOPS with its suffix, such as 80GFLOPS or 1.5TFLOPS")]
    NotFlops,
    /// No number of tokens.
    #[error("expected a number of tokens, such as 4096 or 16K")]
    NotTokens,
    /// Nothing at all.
    #[error("expected at least 1 token")]
    NoTokens,
    /// More than can be counted.
    #[error("expected at most {most} {unit}")]
    TooMany {
        /// The largest amount.
        most: u64,
        /// What is counted.
        unit: &'static str,
    },
}

/// Reads a size: a number, whole or with a decimal point, and MiB or GiB, as in `512MiB` or `1.5 GiB`. `0` needs no
/// suffix.
///
/// # Errors
/// Any other text; a size that overflows.
pub fn size(text: &str) -> Result<Bytes, AmountError> {
    if text == "0" {
        return Ok(Bytes::ZERO);
    }
    let units = [("MiB", Bytes::mib(1)), ("GiB", Bytes::gib(1))];
    let (number, unit) = number_of(text, units).ok_or(AmountError::NotASize)?;
    const MOST: u64 = 1 << 50;
    let bytes = number * unit.get() as f64;
    if bytes > MOST as f64 {
        return Err(AmountError::TooMany { most: MOST, unit: "bytes" });
    }
    Ok(Bytes::new(bytes as u64))
}

/// Reads a rate of at least 1 MB/s: a number, whole or with a decimal point, and MB/s (10⁶) or GB/s (10⁹), as in
/// `500MB/s` or `1.5 GB/s`.
///
/// # Errors
/// Any other text.
pub fn rate(text: &str) -> Result<BytesPerSec, AmountError> {
    const LEAST: f64 = 1e6;
    let (number, unit) =
        number_of(text, [("MB/s", 1e6), ("GB/s", 1e9)]).ok_or(AmountError::NotARate)?;
    let rate = number * unit;
    if rate >= LEAST { Ok(BytesPerSec::new(rate)) } else { Err(AmountError::NotARate) }
}

/// Reads an arithmetic rate of at least 1 GFLOPS: a number, whole or with a decimal point, and GFLOPS (10⁹ per second) or
/// TFLOPS (10¹²), as in `80GFLOPS` or `1.5 TFLOPS`.
///
/// # Errors
/// Any other text.
pub fn flops(text: &str) -> Result<FlopsPerSec, AmountError> {
    const LEAST: f64 = 1e9;
    let (number, unit) =
        number_of(text, [("GFLOPS", 1e9), ("TFLOPS", 1e12)]).ok_or(AmountError::NotFlops)?;
    let rate = number * unit;
    if rate >= LEAST { Ok(FlopsPerSec::new(rate)) } else { Err(AmountError::NotFlops) }
}

/// A number without sign or exponent, and the unit that follows it.
fn number_of<U>(text: &str, units: [(&str, U); 2]) -> Option<(f64, U)> {
    let (number, unit) = units
        .into_iter()
        .find_map(|(suffix, unit)| Some((text.strip_suffix(suffix)?.trim_end(), unit)))?;
    let is_plain = number.starts_with(|c: char| c.is_ascii_digit());
    if !is_plain || number.contains(['e', 'E']) {
        return None;
    }
    Some((number.parse().ok()?, unit))
}

/// Reads a number of tokens: `4096`, `16K` (1K = 1024) or `1M` (1M = 1024K), at least 1.
///
/// # Errors
/// Any other text; a count that overflows.
pub fn token_count(text: &str) -> Result<u32, AmountError> {
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 1 << 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    let number: u32 = digits.parse().map_err(|_| AmountError::NotTokens)?;
    match number.checked_mul(unit) {
        Some(0) => Err(AmountError::NoTokens),
        Some(count) => Ok(count),
        None => Err(AmountError::TooMany { most: u32::MAX.into(), unit: "tokens" }),
    }
}

/// A number of tokens in the shortest way in which it can be typed: `16K`, `1000`.
pub fn tokens(n: u32) -> String {
    if n >= 1 << 10 && n.is_multiple_of(1 << 10) { format!("{}K", n >> 10) } else { n.to_string() }
}

/// A name that no method has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no strategy has the name {name}; known: {}", known_methods())]
pub struct UnknownMethod {
    /// The name.
    pub name: String,
}

/// Reads a method: `search`, `best-strategy`, or the name of a strategy.
///
/// # Errors
/// Any other name.
pub fn method(name: &str) -> Result<Method, UnknownMethod> {
    match name {
        SEARCH => Ok(Method::Search),
        BEST_STRATEGY => Ok(Method::BestStrategy),
        _ => Strategy::named(name)
            .map(Method::Strategy)
            .ok_or_else(|| UnknownMethod { name: name.to_owned() }),
    }
}

/// A name that no switch has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no option has the name {name}; known: {}", Switch::ALL.map(Switch::name).join(", "))]
pub struct UnknownSwitch {
    /// The name.
    pub name: String,
}

/// Reads a switch: `split-ffn`.
///
/// # Errors
/// Any other name.
pub fn switch(name: &str) -> Result<Switch, UnknownSwitch> {
    let named = Switch::ALL.into_iter().find(|switch| switch.name() == name);
    named.ok_or_else(|| UnknownSwitch { name: name.to_owned() })
}

const SEARCH: &str = "search";
const BEST_STRATEGY: &str = "best-strategy";

fn known_methods() -> String {
    let strategies = Strategy::ALL.map(Strategy::name);
    [&[SEARCH, BEST_STRATEGY], &strategies[..]].concat().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_suffix() {
        let read = ["512MiB", "2GiB", "1.5 GiB", "0"].map(|text| size(text).expect("valid"));
        assert_eq!(read, [Bytes::mib(512), Bytes::gib(2), Bytes::mib(1536), Bytes::ZERO]);
        for text in ["", "2", "GiB", "2GB", "2G", "-1GiB", "1e3GiB", "infGiB", "NaNGiB", "é"] {
            assert_eq!(size(text), Err(AmountError::NotASize), "{text}");
        }
        assert!(matches!(size("99999999999GiB"), Err(AmountError::TooMany { .. })));
    }

    #[test]
    fn rates_have_a_suffix() {
        let read = ["500MB/s", "2GB/s", "1.5 GB/s"].map(|text| rate(text).expect("valid").get());
        assert_eq!(read, [5e8, 2e9, 1.5e9]);
        for text in
            ["", "2", "GB/s", "2GiB", "2GB", "2gb/s", "0GB/s", "0.9MB/s", "-1GB/s", "1e3GB/s"]
        {
            assert_eq!(rate(text), Err(AmountError::NotARate), "{text}");
        }
    }

    #[test]
    fn arithmetic_rates_have_a_suffix() {
        let read = ["80GFLOPS", "1.5 TFLOPS"].map(|text| flops(text).expect("valid").get());
        assert_eq!(read, [80e9, 1.5e12]);
        for text in ["", "80", "GFLOPS", "0.9GFLOPS", "-1TFLOPS", "80GFLOP/s"] {
            assert_eq!(flops(text), Err(AmountError::NotFlops), "{text}");
        }
    }

    #[test]
    fn methods_have_names() {
        assert_eq!(method("search"), Ok(Method::Search));
        assert_eq!(method("static"), Ok(Method::Strategy(Strategy::Static)));
        let message = method("stati").expect_err("unknown").to_string();
        assert!(message.contains("known: search, best-strategy, full-gpu, "), "{message}");
    }

    #[test]
    fn switches_have_names() {
        assert_eq!(switch("split-ffn"), Ok(Switch::SplitFfn));
        let message = switch("x").expect_err("unknown").to_string();
        assert_eq!(message, "no option has the name x; known: split-ffn");
    }

    #[test]
    fn counts_may_end_in_k_or_m() {
        let read = ["1", "4096", "16K", "2k", "1M"].map(|text| token_count(text).expect("valid"));
        assert_eq!(read, [1, 4096, 16384, 2048, 1 << 20]);
        assert_eq!([1, 1000, 4096, 16384].map(tokens), ["1", "1000", "4K", "16K"]);
    }

    #[test]
    fn anything_else_is_no_count() {
        for text in ["", "K", "0", "0K", "-1", "1.5K", "16KiB", "5000000000", "4097M", "é"] {
            assert!(token_count(text).is_err(), "{text}");
        }
    }
}
