//! The texts that a template's source has in quotes.

/// Every quoted text inside the tags of `source`, unescaped.
pub(super) fn quoted(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(open) = rest.find("{{").into_iter().chain(rest.find("{%")).min() {
        let end = if rest[open..].starts_with("{{") { "}}" } else { "%}" };
        rest = quoted_in_tag(&rest[open + 2..], end, &mut found);
    }
    found
}

/// Adds the quoted texts of a tag that goes on until `end`; gives what follows the tag.
fn quoted_in_tag<'a>(mut rest: &'a str, end: &str, found: &mut Vec<String>) -> &'a str {
    while let Some(at) = rest.find(['\'', '"', end.as_bytes()[0] as char]) {
        if let Some(after) = rest[at..].strip_prefix(end) {
            return after;
        }
        let c = rest.as_bytes()[at] as char;
        rest = &rest[at + 1..];
        if matches!(c, '\'' | '"') {
            let (text, after) = until(c, rest);
            found.push(text);
            rest = after;
        }
    }
    ""
}

/// The text up to `quote`, and what follows it.
fn until(quote: char, source: &str) -> (String, &str) {
    let mut text = String::new();
    let mut chars = source.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some('r') => text.push('\r'),
                escaped => text.extend(escaped),
            },
            c if c == quote => break,
            c => text.push(c),
        }
    }
    (text, chars.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_texts() {
        let source =
            r#"{% if '</think>' in x %}don't{{ x.split("\n'<a>")[{'b': 1}['b']] }}{{ 'it\'s' }}"#;
        assert_eq!(quoted(source), ["</think>", "\n'<a>", "b", "b", "it's"]);
        assert_eq!(quoted("{{ x % '}}' }}'no'{% y"), ["}}"]);
        assert_eq!(quoted("{{ 'a\\"), ["a"]);
    }
}
