//! Text out of files, as messages may show it: on one line, of bounded length, without control characters.

use std::fmt::{self, Write};

/// A name out of a file, safe to print: shown with control characters escaped, and cut after a hundred characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Name(String);

impl Name {
    /// The name as it is in the file.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: Into<String>> From<T> for Name {
    fn from(name: T) -> Name {
        Name(name.into())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(&self.0, f)
    }
}

fn show(name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    const MAX_CHARS: usize = 100;
    let mut chars = name.chars();
    for char in chars.by_ref().take(MAX_CHARS) {
        // Quotes and backslashes may stay; `escape_debug` would double them.
        match char {
            '"' | '\'' | '\\' => f.write_char(char)?,
            char => write!(f, "{}", char.escape_debug())?,
        }
    }
    if chars.next().is_some() { f.write_char('…') } else { Ok(()) }
}

/// Lists names with commas, the first eight of them.
#[derive(Debug, Clone, Copy)]
pub struct Listed<'a>(pub &'a [String]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX_NAMES: usize = 8;
        for (index, name) in self.0.iter().take(MAX_NAMES).enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            f.write_str(comma)?;
            show(name, f)?;
        }
        match self.0.len().saturating_sub(MAX_NAMES) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_on_one_line() {
        assert_eq!(Name::from("blk.0.\"q\"ü").to_string(), "blk.0.\"q\"ü");
        assert_eq!(Name::from("\u{1b}[2J\n").to_string(), "\\u{1b}[2J\\n");
        assert_eq!(Name::from(&"ü".repeat(101)).to_string(), "ü".repeat(100) + "…");
    }

    #[test]
    fn lists_are_short() {
        let names = |n: u32| (0..n).map(|i| i.to_string()).collect::<Vec<_>>();
        assert_eq!(Listed(&names(3)).to_string(), "0, 1, 2");
        assert_eq!(Listed(&names(100)).to_string(), "0, 1, 2, 3, 4, 5, 6, 7 and 92 more");
    }
}
