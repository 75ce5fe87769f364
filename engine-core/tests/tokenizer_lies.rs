//! Tokenizer metadata that is wrong: each lie is an error that names it, and nothing makes the reader panic.

use std::path::Path;

use engine_core::testing::fuzz;
use engine_core::tokenizer::{Tokenizer, TokenizerError};
use engine_core::weights::{Array, Metadata, Value};
use proptest::prelude::*;

fn strings(values: &[&str]) -> Value {
    Value::Array(Array::String(values.iter().map(|value| value.to_string()).collect()))
}

/// Small and honest metadata of one kind of tokenizer.
fn honest(model: &str) -> Metadata {
    let mut metadata = Metadata::default();
    let entries = [
        ("model", Value::String(model.to_owned())),
        ("pre", Value::String("gpt-2".to_owned())),
        ("tokens", strings(&["<s>", "a", "b", "ab", "<0x0A>"])),
        ("token_type", Value::Array(Array::I32(vec![3, 1, 1, 1, 6]))),
        ("scores", Value::Array(Array::F32(vec![0.0, -2.0, -3.0, -1.0, 0.0]))),
        ("merges", strings(&["a b"])),
        ("bos_token_id", Value::U32(0)),
    ];
    for (key, value) in entries {
        metadata.insert(format!("tokenizer.ggml.{key}"), value);
    }
    metadata
}

/// What reading says when one value of honest metadata is another.
fn error_with(model: &str, key: &str, value: Value) -> TokenizerError {
    let mut metadata = honest(model);
    metadata.insert(format!("tokenizer.ggml.{key}"), value);
    Tokenizer::from_gguf(&metadata).expect_err(key)
}

fn error_without(model: &str, missing: &str) -> TokenizerError {
    let mut metadata = Metadata::default();
    for (key, value) in honest(model).iter().filter(|(key, _)| !key.ends_with(missing)) {
        metadata.insert(key.to_owned(), value.clone());
    }
    Tokenizer::from_gguf(&metadata).expect_err(missing)
}

#[test]
fn honest_metadata_is_read() {
    for model in ["gpt2", "llama"] {
        Tokenizer::from_gguf(&honest(model)).unwrap();
    }
}

#[test]
fn missing_keys_are_named() {
    let cases = [
        ("gpt2", ".model", "tokenizer.ggml.model"),
        ("gpt2", ".tokens", "tokenizer.ggml.tokens"),
        ("gpt2", ".merges", "tokenizer.ggml.merges"),
        ("llama", ".scores", "tokenizer.ggml.scores"),
    ];
    for (model, missing, expected) in cases {
        let error = error_without(model, missing);
        assert!(matches!(error, TokenizerError::Missing { key } if key == expected), "{error}");
    }
}

#[test]
fn wrong_types_are_named() {
    let number = || Value::U32(7);
    let numbers = || Value::Array(Array::U32(vec![7]));
    let cases = [
        ("gpt2", "model", number(), "a string"),
        ("gpt2", "pre", number(), "a string"),
        ("gpt2", "tokens", numbers(), "an array of strings"),
        ("gpt2", "merges", numbers(), "an array of strings"),
        ("gpt2", "token_type", strings(&["a"]), "an array of integers"),
        ("gpt2", "token_type", Value::Array(Array::I32(vec![-1; 5])), "an array of integers"),
        ("gpt2", "bos_token_id", strings(&["a"]), "an integer"),
        ("gpt2", "eos_token_ids", number(), "an array of integers"),
        ("gpt2", "add_bos_token", number(), "a truth value"),
        ("llama", "scores", numbers(), "an array of 32-bit floats"),
        ("llama", "add_space_prefix", number(), "a truth value"),
    ];
    for (model, wrong, value, needed) in cases {
        let error = error_with(model, wrong, value);
        let TokenizerError::WrongType { key, expected } = error else { panic!("{error}") };
        assert_eq!((key, expected), (format!("tokenizer.ggml.{wrong}").as_str(), needed));
    }
}

#[test]
fn unknown_names_come_with_those_supported() {
    let error = error_with("gpt2", "model", Value::String("t5".to_owned()));
    assert_eq!(error.to_string(), "tokenizer model 't5' is not supported (supported: gpt2, llama)");
    let error = error_with("gpt2", "pre", Value::String("made-up".to_owned()));
    let text = error.to_string();
    assert!(text.starts_with("pre-tokenizer 'made-up' is not supported (supported: "), "{text}");
    for name in ["llama-bpe", "qwen2", "smollm", "gpt-2", "tekken", "deepseek-v3", "default"] {
        assert!(text.contains(name), "{name}: {text}");
    }
}

#[test]
fn tables_that_do_not_fit_are_refused() {
    let error = error_with("gpt2", "token_type", Value::Array(Array::I32(vec![1; 4])));
    assert!(matches!(error, TokenizerError::Length { expected: 5, got: 4, .. }), "{error}");
    let error = error_with("llama", "scores", Value::Array(Array::F32(vec![0.0; 6])));
    assert!(matches!(error, TokenizerError::Length { expected: 5, got: 6, .. }), "{error}");
    let error = error_with("gpt2", "bos_token_id", Value::U64(5));
    assert!(matches!(error, TokenizerError::IdOutOfRange { id: 5, n_vocab: 5, .. }), "{error}");
    let error = error_with("gpt2", "eos_token_ids", Value::Array(Array::U64(vec![1, u64::MAX])));
    assert!(matches!(error, TokenizerError::IdOutOfRange { id: u64::MAX, .. }), "{error}");
    let error = error_with("gpt2", "token_type", Value::Array(Array::U8(vec![1, 1, 7, 1, 1])));
    assert!(matches!(error, TokenizerError::UnknownTokenType { token: 2, kind: 7 }), "{error}");
    let error = error_with("gpt2", "merges", strings(&["a b", "ab"]));
    assert!(matches!(error, TokenizerError::BadMerge { index: 1, .. }), "{error}");
    let error = error_with("gpt2", "merges", strings(&["a c"]));
    assert!(matches!(error, TokenizerError::Build(_)), "{error}");
}

#[test]
fn a_negative_id_means_none() {
    let mut metadata = honest("gpt2");
    metadata.insert("tokenizer.ggml.bos_token_id".to_owned(), Value::I32(-1));
    assert_eq!(Tokenizer::from_gguf(&metadata).unwrap().begin(), None);
}

/// Texts that tokens, merges and messages could share parts of.
fn text() -> impl Strategy<Value = String> {
    let known =
        ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<0x41>", "▁", "Ġ", "a b", "", "< s>"];
    prop_oneof![prop::sample::select(known.to_vec()).prop_map(str::to_owned), "[ab▁Ġ<s> |]{0,3}"]
}

/// A value of the type that `honest` has more often than not.
fn value(usual: impl Strategy<Value = Value> + 'static) -> impl Strategy<Value = Option<Value>> {
    let other = prop_oneof![
        any::<i64>().prop_map(Value::I64),
        any::<bool>().prop_map(Value::Bool),
        text().prop_map(Value::String),
        prop::collection::vec(any::<i32>(), 0..3).prop_map(|v| Value::Array(Array::I32(v))),
    ];
    prop_oneof![60 => usual.prop_map(Some), 1 => other.prop_map(Some), 3 => Just(None)]
}

fn array<T: std::fmt::Debug>(
    element: impl Strategy<Value = T> + 'static,
    length: usize,
    array: fn(Vec<T>) -> Array,
) -> impl Strategy<Value = Value> {
    let lengths = prop_oneof![30 => Just(length), 1 => 0..8usize];
    let element = element.boxed();
    lengths
        .prop_flat_map(move |n| prop::collection::vec(element.clone(), n))
        .prop_map(move |v| Value::Array(array(v)))
}

fn metadata() -> impl Strategy<Value = Metadata> {
    (1..12usize).prop_flat_map(|n| {
        let name = |names: &'static [&'static str]| {
            prop::sample::select(names).prop_map(|name: &str| Value::String(name.to_owned()))
        };
        let score = prop_oneof![any::<f32>(), Just(f32::NAN), Just(-1.0)];
        let id = || value((-1..n as i32).prop_map(Value::I32));
        let template =
            name(&["{{ messages[0].content }}", "{% if %}", "{{ bos_token }}{{ messages }}"]);
        let entries: Vec<(&str, BoxedStrategy<Option<Value>>)> = vec![
            ("ggml.model", value(name(&["gpt2", "llama", "llama"])).boxed()),
            ("ggml.pre", value(name(&["llama-bpe", "tekken", "default"])).boxed()),
            ("ggml.tokens", value(array(text(), n, Array::String)).boxed()),
            ("ggml.token_type", value(array(0..7i32, n, Array::I32)).boxed()),
            ("ggml.scores", value(array(score, n, Array::F32)).boxed()),
            ("ggml.merges", value(array(text(), n / 6, Array::String)).boxed()),
            ("ggml.bos_token_id", id().boxed()),
            ("ggml.eos_token_id", id().boxed()),
            ("ggml.unknown_token_id", id().boxed()),
            ("ggml.eot_token_id", id().boxed()),
            ("ggml.add_bos_token", value(any::<bool>().prop_map(Value::Bool)).boxed()),
            ("ggml.add_space_prefix", value(any::<bool>().prop_map(Value::Bool)).boxed()),
            ("ggml.remove_extra_whitespaces", value(any::<bool>().prop_map(Value::Bool)).boxed()),
            ("chat_template", value(template).boxed()),
        ];
        let (keys, values): (Vec<_>, Vec<_>) = entries.into_iter().unzip();
        values.prop_map(move |values| {
            let mut metadata = Metadata::default();
            for (key, value) in keys.iter().zip(values) {
                if let Some(value) = value {
                    metadata.insert(format!("tokenizer.{key}"), value);
                }
            }
            metadata
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn nothing_makes_the_reader_panic(metadata in metadata()) {
        fuzz::tokenizer_metadata(&metadata);
    }

    #[test]
    fn nor_do_flipped_bits_of_a_good_file(
        name in prop::sample::select(vec!["smollm", "spm-prefix", "llama-bpe"]),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8u32), 1..6),
    ) {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tokenizers");
        let mut file = std::fs::read(data.join(format!("{name}.gguf"))).unwrap();
        for (at, bit) in flips {
            let at = at.index(file.len());
            file[at] ^= 1 << bit;
        }
        fuzz::tokenizer(&file);
    }
}
