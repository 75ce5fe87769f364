//! Names of files that are parts of one model: `name-00002-of-00005.gguf`.

use std::fmt;

/// The name of one part, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PartName {
    stem: String,
    /// From 1.
    pub number: u32,
    pub of: u32,
    extension: &'static str,
}

impl PartName {
    /// Takes a file name with this extension apart; `None` when it is not the name of a part.
    pub(super) fn parse(file_name: &str, extension: &'static str) -> Option<PartName> {
        let rest = file_name.strip_suffix(extension)?.strip_suffix('.')?;
        let (rest, of) = split_number(rest)?;
        let (rest, number) = split_number(rest.strip_suffix("-of")?)?;
        let part = PartName { stem: rest.to_owned(), number, of, extension };
        (1..=of).contains(&number).then_some(part)
    }

    /// The names of all parts, in order.
    pub(super) fn all(&self) -> impl Iterator<Item = PartName> {
        (1..=self.of).map(|number| PartName { number, ..self.clone() })
    }
}

impl fmt::Display for PartName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PartName { stem, number, of, extension } = self;
        write!(f, "{stem}-{number:05}-of-{of:05}.{extension}")
    }
}

/// Splits `-00002` off the end.
fn split_number(name: &str) -> Option<(&str, u32)> {
    let (rest, digits) = name.rsplit_once('-')?;
    let all_digits = digits.len() == 5 && digits.bytes().all(|byte| byte.is_ascii_digit());
    Some((rest, all_digits.then(|| digits.parse().ok())??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_names_go_both_ways() {
        let part = PartName::parse("big-7b-00002-of-00003.gguf", "gguf").unwrap();
        assert_eq!((part.number, part.of), (2, 3));
        let all: Vec<_> = part.all().map(|part| part.to_string()).collect();
        assert_eq!(all[0], "big-7b-00001-of-00003.gguf");
        assert_eq!(all[2], "big-7b-00003-of-00003.gguf");
    }

    #[test]
    fn other_names_are_no_parts() {
        for name in [
            "big.gguf",
            "big-00004-of-00003.gguf",
            "big-00000-of-00003.gguf",
            "big-1-of-3.gguf",
            "big-00001-of-00003.bin",
            "-of-.gguf",
            "00001-of-00003.gguf",
            "big-+0001-of-00003.gguf",
        ] {
            assert_eq!(PartName::parse(name, "gguf"), None, "{name}");
        }
    }
}
