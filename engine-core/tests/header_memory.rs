//! Whatever the bytes, reading headers and tokenizer metadata ends without a panic, in memory that the file justifies.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use engine_core::testing::GgufWriter;
use engine_core::tokenizer::Tokenizer;
use engine_core::weights::{Array, DType, GgufHeader, SafetensorsHeader, Value};
use proptest::prelude::*;

/// Counts the memory of each thread, so that tests do not see each other's.
struct Counting;

thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

fn count(taken: usize, given_back: usize) {
    let live = LIVE.get().saturating_add(taken);
    PEAK.set(PEAK.get().max(live));
    LIVE.set(live.saturating_sub(given_back));
}

// SAFETY: every call goes to the system's allocator unchanged; counting touches no memory of the caller.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's promises are those that the system asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the pointer came from `alloc`, and so from the system.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most memory that `read` had at one time, in bytes.
fn peak<T>(read: impl FnOnce() -> T) -> usize {
    let before = LIVE.get();
    PEAK.set(before);
    let result = read();
    let peak = PEAK.get() - before;
    drop(result);
    peak
}

/// Bytes of memory that one byte of a file may take at most. The costliest are arrays of empty strings.
const PER_BYTE: usize = 12;
/// Memory that any file may take, for messages.
const FIXED: usize = 4096;

fn check_gguf(file: &[u8]) {
    check(file, peak(|| GgufHeader::parse(file).map_err(|fault| fault.to_string())));
}

fn check_safetensors(file: &[u8]) {
    check(file, peak(|| SafetensorsHeader::parse(file).map_err(|fault| fault.to_string())));
}

fn check(file: &[u8], peak: usize) {
    let allowed = FIXED + PER_BYTE * file.len();
    assert!(peak <= allowed, "{peak} bytes of memory for a file of {}", file.len());
}

fn safetensors(header: &str, data_length: usize) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.resize(file.len() + data_length, 0);
    file
}

#[test]
fn small_things_in_great_number() {
    const MANY: usize = 20_000;
    let arrays = [
        Array::String(vec![String::new(); MANY]),
        Array::NotUtf8(vec![vec![0xFF]; MANY]),
        Array::Nested(vec![Array::Bool(vec![]); MANY]),
        Array::Nested(vec![Array::Nested(vec![Array::U8(vec![])]); MANY]),
        Array::Bool(vec![true; MANY]),
        Array::F64(vec![0.5; MANY]),
    ];
    for array in arrays {
        let file = GgufWriter::new().entry("key", Value::Array(array)).to_bytes();
        assert!(GgufHeader::parse(&file).is_ok());
        check_gguf(&file);
    }
    let entry = |writer: GgufWriter, n| writer.entry(&format!("{n:x}"), Value::Bool(true));
    check_gguf(&(0..MANY).fold(GgufWriter::new(), entry).to_bytes());
    let tensor = |writer: GgufWriter, n| writer.tensor(&format!("{n:x}"), &[], DType::I8, &[1]);
    check_gguf(&(0..MANY).fold(GgufWriter::new().alignment(1), tensor).to_bytes());

    let entry =
        |n| format!(r#""{n:x}":{{"dtype":"U8","shape":[],"data_offsets":[{n},{}]}}"#, n + 1);
    let entries = (0..MANY).map(entry).collect::<Vec<_>>().join(",");
    let file = safetensors(&format!("{{{entries}}}"), MANY);
    assert!(SafetensorsHeader::parse(&file).is_ok());
    check_safetensors(&file);
    let shape = "1,".repeat(MANY);
    let entry = format!(r#"{{"t":{{"dtype":"U8","shape":[{shape}1],"data_offsets":[0,1]}}}}"#);
    check_safetensors(&safetensors(&entry, 1));
    let remarks = (0..MANY).map(|n| format!(r#""{n:x}":"""#)).collect::<Vec<_>>().join(",");
    check_safetensors(&safetensors(&format!(r#"{{"__metadata__":{{{remarks}}}}}"#), 0));
}

#[test]
fn counts_without_things() {
    for count in [u64::MAX, u64::MAX / 8, 1 << 40, 1 << 32, 1 << 20] {
        let writer = GgufWriter::new();
        check_gguf(&writer.clone().claim_entries(count).to_bytes());
        check_gguf(&writer.claim_tensors(count).to_bytes());
        for array in [Array::String(vec![]), Array::Nested(vec![]), Array::U8(vec![])] {
            let mut file = GgufWriter::new().entry("key", Value::Array(array)).to_bytes();
            let end = file.len();
            file[end - 8..].copy_from_slice(&count.to_le_bytes());
            check_gguf(&file);
        }
        let mut file = safetensors("{}", 0);
        file[..8].copy_from_slice(&count.to_le_bytes());
        check_safetensors(&file);
    }
}

/// Bytes of memory that one byte of tokenizer metadata may take at most: tables of text, and of merges made of scores.
const TOKENIZER_PER_BYTE: usize = 64;
/// Memory that any tokenizer may take: its split rules, mostly, and merges of a small vocabulary.
const TOKENIZER_FIXED: usize = 4 << 20;

/// Makes a tokenizer of a vocabulary: byte-level with merges, else of scores.
fn check_tokenizer(tokens: Vec<String>, merges: Option<Vec<String>>) {
    let n_tokens = tokens.len();
    let texts = |texts| Value::Array(Array::String(texts));
    let writer = GgufWriter::new().entry("tokenizer.ggml.tokens", texts(tokens));
    let writer = match merges {
        Some(merges) => writer
            .text("tokenizer.ggml.model", "gpt2")
            .entry("tokenizer.ggml.merges", texts(merges)),
        None => writer
            .text("tokenizer.ggml.model", "llama")
            .entry("tokenizer.ggml.scores", Value::Array(Array::F32(vec![0.0; n_tokens]))),
    };
    let file = writer.to_bytes();
    let metadata = GgufHeader::parse(&file).unwrap().metadata;
    let peak = peak(|| Tokenizer::from_gguf(&metadata).map_err(|error| error.to_string()));
    let allowed = TOKENIZER_FIXED + TOKENIZER_PER_BYTE * file.len();
    assert!(peak <= allowed, "{peak} bytes of memory for a file of {}", file.len());
}

#[test]
fn tokenizers() {
    let numbers = || (0..20_000).map(|n| format!("{n:x}")).collect::<Vec<_>>();
    check_tokenizer(numbers(), Some(vec![]));
    check_tokenizer(numbers(), None);
    check_tokenizer(vec![String::new(); 20_000], None);
    check_tokenizer(vec!["=".repeat(200_000)], None);
    check_tokenizer(vec!["=".repeat(200_000)], Some(vec![]));
    let runs = || (1..1000).map(|n| "=".repeat(n)).collect::<Vec<_>>();
    check_tokenizer(runs(), None);
    let merges = runs().iter().map(|run| format!("{run} =")).take(998).collect();
    check_tokenizer(runs(), Some(merges));
}

fn good_gguf() -> Vec<u8> {
    GgufWriter::new()
        .text("general.architecture", "llama")
        .entry("general.alignment", Value::U32(32))
        .entry("tokens", Value::Array(Array::String(vec!["a".into(), "bc".into()])))
        .entry("nested", Value::Array(Array::Nested(vec![Array::U8(vec![1])])))
        .entry("scores", Value::Array(Array::F32(vec![1.0, 2.0])))
        .tensor("a", &[2, 32], DType::Q8_0, &[0; 68])
        .tensor("b", &[16], DType::F32, &[0; 64])
        .to_bytes()
}

fn good_safetensors() -> Vec<u8> {
    safetensors(
        r#"{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"b":{"dtype":"BF16","shape":[2],"data_offsets":[16,20]}}"#,
        20,
    )
}

/// Overwrites a few places of a file with numbers that like to break things, then perhaps cuts it.
fn damaged(file: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let length = file.len();
    let number = prop_oneof![
        any::<u64>(),
        (0u32..64).prop_map(|shift| 1 << shift),
        (0u32..64).prop_map(|shift| u64::MAX >> shift),
        0..40u64,
    ];
    let patch = (0..length, number, 1..=8usize);
    (proptest::collection::vec(patch, 1..4), length / 2..=length).prop_map(move |(patches, end)| {
        let mut file = file.clone();
        for (at, number, width) in patches {
            let room = width.min(length - at);
            file[at..at + room].copy_from_slice(&number.to_le_bytes()[..room]);
        }
        file.truncate(if end % 2 == 0 { end } else { length });
        file
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        check_gguf(&bytes);
        check_safetensors(&bytes);
        check_gguf(&[b"GGUF\x03\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0", &bytes[..]].concat());
    }

    #[test]
    fn damaged_gguf(file in damaged(good_gguf())) {
        check_gguf(&file);
    }

    #[test]
    fn damaged_safetensors(file in damaged(good_safetensors())) {
        check_safetensors(&file);
    }
}
