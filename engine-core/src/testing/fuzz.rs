//! What must hold for any bytes at all: the bodies of the fuzz targets, which the tests run on the committed corpus.
//!
//! # Panics
//! Each function panics when its parser panics, or breaks a promise.

use ::safetensors::SafeTensors;

use super::GgufWriter;
use crate::tokenizer::{
    Chat, ChatTemplate, Clock, ControlText, Message, Specials, TokenId, Tokenizer,
};
use crate::weights::{
    GgufHeader, Metadata, SafetensorsFault, SafetensorsHeader, TensorFault, TensorInfo, TensorType,
};

/// A GGUF header that is read says nothing impossible, and keeps its metadata when it is written again.
pub fn gguf(file: &[u8]) {
    let Ok(header) = GgufHeader::parse(file) else { return };
    check_tensors(&header.tensors, file.len());
    let mut written = GgufWriter::new();
    for (key, value) in header.metadata.iter() {
        written = written.entry(key, value.clone());
    }
    let written = written.to_bytes();
    let again = GgufHeader::parse(&written).expect("metadata that was read once");
    // As bytes, since a value that is no number is not equal to itself.
    let mut rewritten = GgufWriter::new();
    for (key, value) in again.metadata.iter() {
        rewritten = rewritten.entry(key, value.clone());
    }
    assert_eq!(rewritten.to_bytes(), written);
}

/// A safetensors file is read as the reference implementation reads it, and refused only for what it does not check.
pub fn safetensors(file: &[u8]) {
    match (SafetensorsHeader::parse(file), SafeTensors::deserialize(file)) {
        (Ok(header), reference) => {
            check_tensors(&header.tensors, file.len());
            match reference {
                Ok(reference) => check_same(&header.tensors, &reference, file),
                Err(error) => assert!(has_unknown_type(&header), "the reference says: {error}"),
            }
        }
        (Err(fault), Ok(_)) => {
            assert!(is_stricter(&fault), "the reference reads it, we say: {fault}")
        }
        (Err(_), Err(_)) => {}
    }
}

/// [`tokenizer_metadata`] for the metadata of a GGUF file.
pub fn tokenizer(file: &[u8]) {
    if let Ok(header) = GgufHeader::parse(file) {
        tokenizer_metadata(&header.metadata);
    }
}

/// A tokenizer of any metadata gives no control ids for plain text, whatever that says, and no ids that do not exist.
pub fn tokenizer_metadata(metadata: &Metadata) {
    let Ok(tokenizer) = Tokenizer::from_gguf(metadata) else { return };
    let control: Vec<String> = tokenizer.control_texts().map(str::to_owned).collect();
    let texts = ["", "Hello,  world's\n\n 123 \u{1F600}<s></s>", "\u{0}a\u{301}\t"];
    for text in texts.into_iter().chain(control.iter().take(8).map(String::as_str)) {
        let plain = check_ids(&tokenizer, tokenizer.encode(text, Specials::Literal));
        assert!(plain.iter().all(|&id| !tokenizer.is_control(id)), "{text:?}");
        check_ids(&tokenizer, tokenizer.encode_prompt(text, Specials::Parse));
    }
    if let Ok(template) = ChatTemplate::new(&tokenizer, Clock::Fixed { unix_seconds: 0 }) {
        let forged = Chat::to_answer(vec![Message::new("user", &control.concat())]);
        let ids = check_ids(&tokenizer, tokenizer.encode_chat(&template, forged));
        let n_control = ids.iter().filter(|&&id| tokenizer.is_control(id)).count();
        assert!(!template.is_fallback() || n_control <= 4, "{n_control} control tokens");
    }
}

fn check_ids<E>(tokenizer: &Tokenizer, ids: Result<Vec<TokenId>, E>) -> Vec<TokenId> {
    let ids = ids.unwrap_or_default();
    assert!(ids.iter().all(|id| (id.0 as usize) < tokenizer.n_vocab()));
    tokenizer.decode(&ids, ControlText::Show);
    ids
}

/// All tensors lie inside the file, in no other one's place.
fn check_tensors(tensors: &[TensorInfo], length: usize) {
    let mut ranges: Vec<_> = tensors
        .iter()
        .map(|tensor| tensor.range().unwrap_or(tensor.offset()..tensor.offset() + 1))
        .filter(|range| !range.is_empty())
        .collect();
    ranges.sort_by_key(|range| range.start);
    assert!(ranges.iter().all(|range| range.end <= length));
    assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
    for tensor in tensors {
        let shape = tensor.shape();
        assert!(shape.is_empty() || shape.rows() * shape.columns() == shape.len());
    }
}

fn check_same(ours: &[TensorInfo], reference: &SafeTensors<'_>, file: &[u8]) {
    assert_eq!(ours.len(), reference.len());
    for tensor in ours {
        let theirs = reference.tensor(tensor.name()).expect("a tensor of the same name");
        let range = tensor.range().expect("every size is known");
        assert_eq!(&file[range], theirs.data());
        let dims: Vec<u64> = theirs.shape().iter().map(|&dim| dim as u64).collect();
        assert_eq!(tensor.shape().dims(), dims);
    }
}

/// The reference refuses types that it does not know.
fn has_unknown_type(header: &SafetensorsHeader) -> bool {
    let unknown = |tensor: &TensorInfo| matches!(tensor.stored_as(), TensorType::Safetensors(_));
    header.tensors.iter().any(unknown)
}

fn is_stricter(fault: &SafetensorsFault) -> bool {
    matches!(
        fault,
        SafetensorsFault::NotSafetensors { .. }
            | SafetensorsFault::NotAnObject { .. }
            | SafetensorsFault::Dimensions { .. }
            | SafetensorsFault::Tensor(TensorFault::Twice { .. } | TensorFault::Size { .. })
    )
}
