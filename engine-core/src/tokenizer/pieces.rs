//! The bytes each token stands for.

use super::TokenId;

/// The text of every token as bytes, in one allocation.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    bytes: Vec<u8>,
    /// `ends[id]` is where token `id` ends; it starts where the one before it ends.
    ends: Vec<usize>,
}

impl Pieces {
    pub(super) fn with_capacity(n_vocab: usize) -> Self {
        Pieces { bytes: Vec::with_capacity(n_vocab * 8), ends: Vec::with_capacity(n_vocab) }
    }

    /// Appends the next token, whose bytes are what `write` appends.
    pub(super) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of `id`; none for an id beyond the vocabulary, as models with padded embeddings have.
    pub(super) fn get(&self, id: TokenId) -> &[u8] {
        let index = id.0 as usize;
        let Some(&end) = self.ends.get(index) else { return &[] };
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..end]
    }
}

/// How the texts of tokens spell bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// Every byte is one printable character of GPT-2's alphabet (`bytes_to_unicode` in its published encoder):
    /// printable Latin-1 stands for itself, and the other 68 bytes, in order, are U+0100 and following.
    ByteLevel,
    /// `▁` is a space, and `<0x0A>` the byte 10.
    SentencePiece,
}

impl Spelling {
    /// Appends the bytes that `text` spells.
    pub(super) fn push(self, text: &str, out: &mut Vec<u8>) {
        match self {
            Spelling::ByteLevel => push_byte_level(text, out),
            Spelling::SentencePiece => match byte_token(text) {
                Some(byte) => out.push(byte),
                None => push_spaced(text, out),
            },
        }
    }

    /// Appends the bytes of a token that is found in text before words are cut: it is written as it is, but for spaces.
    pub(super) fn push_added(self, text: &str, out: &mut Vec<u8>) {
        match self {
            Spelling::ByteLevel => out.extend_from_slice(text.as_bytes()),
            Spelling::SentencePiece => push_spaced(text, out),
        }
    }
}

/// A character outside the alphabet stands for itself.
fn push_byte_level(text: &str, out: &mut Vec<u8>) {
    for c in text.chars() {
        match BYTE_OF.get(c as usize) {
            Some(&Some(byte)) => out.push(byte),
            _ => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

fn push_spaced(text: &str, out: &mut Vec<u8>) {
    for (index, part) in text.split('▁').enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(part.as_bytes());
    }
}

/// The byte that a token such as `<0x0A>` stands for.
fn byte_token(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    let is_hex = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_hex.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

const fn is_printable(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF)
}

const BYTE_OF: [Option<u8>; 256 + 68] = {
    let mut table = [None; 256 + 68];
    let mut byte = 0u8;
    let mut next = 256;
    loop {
        if is_printable(byte) {
            table[byte as usize] = Some(byte);
        } else {
            table[next] = Some(byte);
            next += 1;
        }
        if byte == u8::MAX {
            break;
        }
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    fn byte_level(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        Spelling::ByteLevel.push(text, &mut out);
        out
    }

    #[test]
    fn byte_level_characters_are_bytes() {
        assert_eq!(byte_level("Ġhello"), b" hello");
        assert_eq!(byte_level("Ċĉ"), b"\n\t");
        assert_eq!(byte_level("ðŁĺĢ"), "😀".as_bytes());
        assert_eq!(byte_level("漢"), "漢".as_bytes(), "outside the alphabet: itself");
    }

    #[test]
    fn every_byte_has_one_character() {
        let mut bytes: Vec<u8> = BYTE_OF.iter().copied().flatten().collect();
        bytes.sort_unstable();
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
    }

    #[test]
    fn sentence_piece_spaces_and_bytes() {
        let mut out = Vec::new();
        for text in ["▁▁a▁b", "<0x0A>", "<0x0Z>"] {
            Spelling::SentencePiece.push(text, &mut out);
        }
        assert_eq!(out, b"  a b\n<0x0Z>");
    }

    #[test]
    fn byte_tokens() {
        assert_eq!(byte_token("<0x0A>"), Some(10));
        assert_eq!(byte_token("<0xff>"), Some(255));
        for text in ["<0x>", "<0x+A>", "<0x123>", "0x0A", "<0xZZ>", ""] {
            assert_eq!(byte_token(text), None, "{text}");
        }
    }

    #[test]
    fn added_tokens_are_written_as_they_are() {
        let mut out = Vec::new();
        Spelling::ByteLevel.push_added("<é▁>", &mut out);
        Spelling::SentencePiece.push_added("▁▁<0x0A>", &mut out);
        assert_eq!(out, "<é▁>  <0x0A>".as_bytes());
    }

    #[test]
    fn pieces_by_id() {
        let mut pieces = Pieces::with_capacity(3);
        for text in ["ab", "", "c"] {
            pieces.push(|out| out.extend_from_slice(text.as_bytes()));
        }
        assert_eq!(pieces.len(), 3);
        assert_eq!(pieces.get(TokenId(0)), b"ab");
        assert_eq!(pieces.get(TokenId(1)), b"");
        assert_eq!(pieces.get(TokenId(2)), b"c");
        assert_eq!(pieces.get(TokenId(3)), b"");
    }
}
