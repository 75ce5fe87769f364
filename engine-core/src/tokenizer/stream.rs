//! Bytes to text, token by token, without ever showing half a character.

use super::TokenId;
use super::codec::{ControlText, Tokenizer};

/// Joins byte strings into text. Bytes that may still become a character are held; bytes that can never become one turn
/// into U+FFFD, one for each maximal invalid part (as `String::from_utf8_lossy` does). The joined output equals the
/// lossy conversion of all bytes at once.
#[derive(Debug, Default, Clone)]
pub struct Utf8Stream {
    /// A valid but incomplete start of a character; at most three bytes.
    held: Vec<u8>,
}

impl Utf8Stream {
    /// Takes more bytes and gives the text that is now certain.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.held.extend_from_slice(bytes);
        let certain = self.held.len() - incomplete_tail(&self.held);
        let text = String::from_utf8_lossy(&self.held[..certain]).into_owned();
        self.held.drain(..certain);
        text
    }

    /// Ends the stream: a character left incomplete is U+FFFD.
    pub fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.held)).into_owned()
    }
}

/// Length of the longest end of `bytes` that more bytes could turn into a character.
fn incomplete_tail(bytes: &[u8]) -> usize {
    let last = bytes.utf8_chunks().last();
    let invalid = last.map_or(&[][..], |chunk| chunk.invalid());
    match std::str::from_utf8(invalid) {
        Err(error) if error.error_len().is_none() => invalid.len(),
        _ => 0,
    }
}

/// Where a decoded text stands in the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextStart {
    /// It is a text of its own, such as an answer: the space that some tokenizers put before a text is removed.
    New,
    /// It goes on from other text: a first space is part of it.
    Continued,
}

/// Decodes one sequence token by token. The joined pieces equal the text decoded at once.
#[derive(Debug, Clone)]
pub struct TextStream {
    utf8: Utf8Stream,
    control: ControlText,
    /// Whether a space in front would be the tokenizer's own.
    at_start: bool,
}

impl TextStream {
    /// A stream at its start.
    pub fn new(start: TextStart, control: ControlText) -> Self {
        TextStream { utf8: Utf8Stream::default(), control, at_start: start == TextStart::New }
    }

    /// Takes the next token of `tokenizer` and gives the text that is now certain; often none.
    pub fn push(&mut self, tokenizer: &Tokenizer, id: TokenId) -> String {
        if self.control == ControlText::Hide && tokenizer.is_hidden(id) {
            return String::new();
        }
        let mut piece = tokenizer.piece(id);
        if self.at_start && !piece.is_empty() {
            self.at_start = false;
            if tokenizer.has_space_prefix() {
                piece = piece.strip_prefix(b" ").unwrap_or(piece);
            }
        }
        self.utf8.push(piece)
    }

    /// Ends the stream: a character left incomplete is U+FFFD.
    pub fn finish(&mut self) -> String {
        self.utf8.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn streamed<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let mut stream = Utf8Stream::default();
        let mut out: Vec<String> = parts.into_iter().map(|part| stream.push(part)).collect();
        out.push(stream.finish());
        out
    }

    #[test]
    fn character_over_several_tokens() {
        assert_eq!(streamed([&b"\xF0\x9F"[..], b"\x98\x80"]), ["", "😀", ""]);
        assert_eq!(streamed("é".as_bytes().chunks(1)), ["", "é", ""]);
    }

    #[test]
    fn hopeless_bytes_are_replaced_at_once() {
        assert_eq!(streamed([&b"a\xFF"[..], b"b"]), ["a\u{FFFD}", "b", ""]);
        // A surrogate can not be completed: its second byte settles that.
        assert_eq!(streamed([&b"\xED"[..], b"\xA0"]), ["", "\u{FFFD}\u{FFFD}", ""]);
        assert_eq!(streamed([&b"\xE2\x82"[..], b"x"]), ["", "\u{FFFD}x", ""]);
    }

    #[test]
    fn incomplete_end_is_one_replacement() {
        assert_eq!(streamed([&b"a\xF0\x9F\x98"[..]]), ["a", "\u{FFFD}"]);
    }

    /// Bytes that are often near-valid UTF-8.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let part = prop_oneof![
            any::<char>().prop_map(|c| c.to_string().into_bytes()),
            any::<char>().prop_map(|c| {
                let mut bytes = c.to_string().into_bytes();
                bytes.pop();
                bytes
            }),
            prop::collection::vec(any::<u8>(), 1..3),
            prop::collection::vec(0x80..=0xFFu8, 1..4),
        ];
        prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn joined_equals_at_once(
            bytes in bytes(),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let parts = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
            prop_assert_eq!(streamed(parts).concat(), String::from_utf8_lossy(&bytes));
        }
    }
}
