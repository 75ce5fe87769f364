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

/// Appends the bytes of a byte-level token, in which every byte is written as one printable character.
///
/// The alphabet is GPT-2's (`bytes_to_unicode` in its published encoder): printable Latin-1 stands for itself, and the
/// other 68 bytes, in order, are written as U+0100 and following. A character outside the alphabet stands for itself.
pub(super) fn push_byte_level(text: &str, out: &mut Vec<u8>) {
    for c in text.chars() {
        match BYTE_OF.get(c as usize) {
            Some(&Some(byte)) => out.push(byte),
            _ => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// Appends the bytes of a SentencePiece token, in which `▁` is a space.
pub(super) fn push_sentence_piece(text: &str, out: &mut Vec<u8>) {
    for (index, part) in text.split('▁').enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(part.as_bytes());
    }
}

/// The byte that a byte token such as `<0x0A>` stands for.
pub(super) fn byte_token(text: &str) -> Option<u8> {
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
        push_byte_level(text, &mut out);
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
    fn sentence_piece_spaces() {
        let mut out = Vec::new();
        push_sentence_piece("▁▁a▁b", &mut out);
        assert_eq!(out, b"  a b");
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
