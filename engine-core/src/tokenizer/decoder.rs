//! What the `decoder` of a `tokenizer.json` says about how token texts spell bytes.

use serde::Deserialize;

use super::TokenizerError;
use super::pieces::Spelling;

/// One step from token texts to text; the names are those of the file.
#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub(super) enum Decoder {
    Sequence {
        decoders: Vec<Decoder>,
    },
    ByteLevel,
    ByteFallback,
    Fuse,
    /// `content` is what `pattern` becomes.
    Replace {
        content: String,
    },
    Strip {
        start: usize,
    },
    Metaspace {
        prepend_scheme: Option<String>,
        add_prefix_space: Option<bool>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct TokenizerJson {
    decoder: Option<Decoder>,
}

impl Decoder {
    /// The decoder in the bytes of a `tokenizer.json`; a file without one has an empty sequence.
    pub(super) fn of_tokenizer_json(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let file: TokenizerJson = serde_json::from_slice(bytes)?;
        Ok(file.decoder.unwrap_or(Decoder::Sequence { decoders: Vec::new() }))
    }

    /// How token texts spell bytes, and whether decoding takes away a space in front of a text.
    ///
    /// # Errors
    /// [`TokenizerError::UnknownDecoder`] unless the steps are those of a byte-level or a SentencePiece vocabulary.
    pub(super) fn spelling(&self) -> Result<(Spelling, bool), TokenizerError> {
        let steps = self.steps();
        if let [Decoder::ByteLevel] = steps[..] {
            return Ok((Spelling::ByteLevel, false));
        }
        let is_known = !steps.is_empty() && steps.iter().all(|step| step.is_sentence_piece());
        if !is_known {
            return Err(TokenizerError::UnknownDecoder);
        }
        Ok((Spelling::SentencePiece, steps.iter().any(|step| step.removes_space())))
    }

    fn steps(&self) -> Vec<&Decoder> {
        match self {
            Decoder::Sequence { decoders } => decoders.iter().flat_map(Decoder::steps).collect(),
            step => vec![step],
        }
    }

    fn is_sentence_piece(&self) -> bool {
        match self {
            Decoder::Replace { content } => content == " ",
            Decoder::ByteFallback
            | Decoder::Fuse
            | Decoder::Strip { .. }
            | Decoder::Metaspace { .. } => true,
            Decoder::Sequence { .. } | Decoder::ByteLevel | Decoder::Other => false,
        }
    }

    fn removes_space(&self) -> bool {
        match self {
            Decoder::Strip { start } => *start > 0,
            Decoder::Metaspace { prepend_scheme, add_prefix_space } => {
                prepend_scheme.as_deref() != Some("never") && *add_prefix_space != Some(false)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelling(decoder: &str) -> Option<(Spelling, bool)> {
        let file = format!(r#"{{"model": {{"type": "BPE"}}, "decoder": {decoder}}}"#);
        Decoder::of_tokenizer_json(file.as_bytes()).unwrap().spelling().ok()
    }

    #[test]
    fn decoders_of_published_files() {
        let byte_level = r#"{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true}"#;
        assert_eq!(spelling(byte_level), Some((Spelling::ByteLevel, false)));
        let replace = r#"{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}"#;
        let fallback = r#"{"type": "ByteFallback"}, {"type": "Fuse"}"#;
        let gemma = format!(r#"{{"type": "Sequence", "decoders": [{replace}, {fallback}]}}"#);
        assert_eq!(spelling(&gemma), Some((Spelling::SentencePiece, false)));
        let strip = r#"{"type": "Strip", "content": " ", "start": 1, "stop": 0}"#;
        let llama =
            format!(r#"{{"type": "Sequence", "decoders": [{replace}, {fallback}, {strip}]}}"#);
        assert_eq!(spelling(&llama), Some((Spelling::SentencePiece, true)));
        let metaspace = r#"{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"}"#;
        assert_eq!(spelling(metaspace), Some((Spelling::SentencePiece, false)));
        let metaspace = r#"{"type": "Metaspace", "replacement": "▁", "add_prefix_space": true}"#;
        assert_eq!(spelling(metaspace), Some((Spelling::SentencePiece, true)));
    }

    #[test]
    fn other_decoders_are_refused() {
        for decoder in
            ["null", r#"{"type": "WordPiece"}"#, r#"{"type": "Sequence", "decoders": []}"#]
        {
            assert_eq!(spelling(decoder), None, "{decoder}");
        }
    }
}
