//! Token counts with a suffix.

/// Reads a number of tokens: `4096`, `16K` (1K = 1024) or `1M` (1M = 1024K), at least 1.
pub(super) fn token_count(text: &str) -> Result<u32, String> {
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 1 << 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    let number: u32 = digits
        .parse()
        .map_err(|_| "expected a number of tokens, such as 4096 or 16K".to_owned())?;
    match number.checked_mul(unit) {
        Some(0) => Err("expected at least 1 token".to_owned()),
        Some(count) => Ok(count),
        None => Err(format!("expected at most {} tokens", u32::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_may_end_in_k_or_m() {
        let read = ["1", "4096", "16K", "2k", "1M"].map(|text| token_count(text).expect("valid"));
        assert_eq!(read, [1, 4096, 16384, 2048, 1 << 20]);
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "K", "0", "0K", "-1", "1.5K", "16KiB", "5000000000", "4097M", "é"] {
            assert!(token_count(text).is_err(), "{text}");
        }
    }
}
