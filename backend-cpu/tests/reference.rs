//! Whole models against logits of the reference implementation (Hugging Face transformers, float32).

use std::path::{Path, PathBuf};

use backend_cpu::{CpuBackend, CpuOptions};
use engine_core::backend::Backends;
use engine_core::perplexity::Chunk;
use engine_core::tokenizer::TokenId;
use engine_core::{Engine, EngineOptions, KvFormat};
use safetensors::SafeTensors;

const FAMILIES: [&str; 8] =
    ["llama", "smollm2", "mistral", "qwen2", "qwen3", "qwen3moe", "gemma2", "gemma3"];

/// Block formats, each with the NMSE that its rounding of activations to 8 bits may cost.
const FORMATS: [(&str, f64); 15] = [
    ("f16", 1e-6),
    ("bf16", 1e-6),
    ("q4_0", 1e-3),
    ("q4_1", 1e-3),
    ("q5_0", 1e-3),
    ("q5_1", 1e-3),
    ("q8_0", 1e-3),
    ("q2_k", 1e-3),
    ("q3_k", 1e-3),
    ("q4_k", 1e-3),
    ("q5_k", 1e-3),
    ("q6_k", 1e-3),
    ("iq4_nl", 1e-3),
    ("iq4_xs", 1e-3),
    ("mxfp4", 1e-3),
];

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine-core/tests/data")
}

/// What the reference implementation gives.
struct Expected {
    tokens: Vec<TokenId>,
    /// `[n_tokens, n_vocab]`.
    logits: Vec<f32>,
}

impl Expected {
    fn read(path: &Path) -> Expected {
        let bytes = std::fs::read(path).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let words = |name| {
            let (words, _) = file.tensor(name).unwrap().data().as_chunks::<4>();
            words.to_vec()
        };
        Expected {
            tokens: words("tokens").into_iter().map(u32::from_le_bytes).map(TokenId).collect(),
            logits: words("logits").into_iter().map(f32::from_le_bytes).collect(),
        }
    }
}

fn load(path: &Path, n_ubatch: u32, kv: KvFormat) -> Engine {
    load_with(
        path,
        EngineOptions { n_ctx: Some(64), n_ubatch, n_outputs: n_ubatch, kv, placing: None },
    )
}

fn load_with(path: &Path, options: EngineOptions) -> Engine {
    let cpu = CpuBackend::new(CpuOptions::default()).unwrap();
    Engine::load(path, &options, Backends::cpu_only(cpu)).unwrap()
}

/// Logits of all tokens of a text.
fn logits(engine: &mut Engine, tokens: &[TokenId]) -> Vec<f32> {
    logits_from(engine, tokens, 0)
}

/// Logits of the tokens from `first` on.
fn logits_from(engine: &mut Engine, tokens: &[TokenId], first: usize) -> Vec<f32> {
    let chunk = Chunk { tokens: tokens.to_vec(), scored: first..tokens.len() };
    let mut all = Vec::new();
    engine.session().score(&chunk, |_, row| all.extend_from_slice(row)).unwrap();
    all
}

/// Mean squared error over the mean square of what is expected.
fn nmse(found: &[f32], expected: &[f32]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let square = |x: f32| f64::from(x).powi(2);
    let error: f64 = found.iter().zip(expected).map(|(&a, &b)| square(a - b)).sum();
    error / expected.iter().map(|&b| square(b)).sum::<f64>()
}

fn gguf_of(family: &str) -> PathBuf {
    let folder = data().join(family);
    let whole = folder.join("model.gguf");
    if whole.exists() { whole } else { folder.join("model-00001-of-00002.gguf") }
}

fn assert_matches(path: &Path, expected: &Expected, kv: KvFormat, bound: f64) {
    assert_engine_matches(&mut load(path, 64, kv), path, expected, bound);
}

fn assert_engine_matches(engine: &mut Engine, path: &Path, expected: &Expected, bound: f64) {
    let error = nmse(&logits(engine, &expected.tokens), &expected.logits);
    assert!(error <= bound, "{}: NMSE {error:.2e} is over {bound:.0e}", path.display());
}

#[test]
fn every_family_gives_the_reference_logits() {
    for family in FAMILIES {
        let expected = Expected::read(&data().join(family).join("expected.safetensors"));
        assert_matches(&gguf_of(family), &expected, KvFormat::F32, 1e-6);
        assert_matches(&gguf_of(family), &expected, KvFormat::F16, 1e-6);
        assert_matches(&data().join(family).join("hf"), &expected, KvFormat::F32, 1e-6);
    }
}

#[test]
fn every_block_format_stays_within_its_bound() {
    for (format, bound) in FORMATS {
        let folder = data().join("quant");
        let expected = Expected::read(&folder.join(format!("{format}.expected.safetensors")));
        assert_matches(&folder.join(format!("{format}.gguf")), &expected, KvFormat::F16, bound);
    }
}

#[test]
fn prefill_in_pieces_or_one_by_one_equals_prefill_at_once() {
    let quantised = FORMATS.iter().map(|(format, _)| data().join(format!("quant/{format}.gguf")));
    for path in FAMILIES.iter().map(|family| gguf_of(family)).chain(quantised) {
        let tokens: Vec<TokenId> = (0..40).map(|i| TokenId(3 + i * 7 % 50)).collect();
        let whole = logits(&mut load(&path, 64, KvFormat::F16), &tokens);
        for n_ubatch in [1, 7] {
            let pieces = logits(&mut load(&path, n_ubatch, KvFormat::F16), &tokens);
            assert!(whole == pieces, "{}: ubatches of {n_ubatch} differ", path.display());
        }
    }
}

#[test]
fn logits_do_not_depend_on_which_others_are_wanted() {
    for path in FAMILIES.map(gguf_of) {
        let tokens: Vec<TokenId> = (0..40).map(|i| TokenId(3 + i * 7 % 50)).collect();
        let all = logits(&mut load(&path, 64, KvFormat::F16), &tokens);
        for (n_ubatch, first) in [(64, 33), (64, 39), (16, 36)] {
            let last = logits_from(&mut load(&path, n_ubatch, KvFormat::F16), &tokens, first);
            let same = &all[all.len() / 40 * first..];
            assert!(same == last, "{}: the last {} differ", path.display(), 40 - first);
        }
    }
}

/// Models with a window on some layers, and one with it on all.
fn windowed() -> (tempfile::TempDir, [PathBuf; 3]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mistral = data().join("mistral/hf");
    for file in std::fs::read_dir(&mistral).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
    }
    let config = std::fs::read_to_string(mistral.join("config.json")).unwrap();
    let (without, with) = (r#""sliding_window": null"#, r#""sliding_window": 9"#);
    assert!(config.contains(without));
    std::fs::write(folder.path().join("config.json"), config.replace(without, with)).unwrap();
    let models = [gguf_of("gemma2"), gguf_of("gemma3"), folder.path().to_owned()];
    (folder, models)
}

#[test]
fn layers_with_a_window_give_the_reference_logits_with_few_cells() {
    for family in ["gemma2", "gemma3"] {
        let expected = Expected::read(&data().join(family).join("expected.safetensors"));
        let path = gguf_of(family);
        let (mut few, all) = (load(&path, 3, KvFormat::F32), load(&path, 64, KvFormat::F32));
        assert!(few.memory_need().kv < all.memory_need().kv);
        assert_engine_matches(&mut few, &path, &expected, 1e-6);
    }
}

#[test]
fn far_past_a_window_few_cells_equal_all_of_them() {
    let n_tokens = 400;
    let tokens: Vec<TokenId> = (0..n_tokens).map(|i| TokenId(3 + i * 7 % 50)).collect();
    let (_folder, models) = windowed();
    for path in models {
        // Ubatches as long as the context leave no cell to be used again.
        let [all, few, fewest] = [n_tokens, 30, 1].map(|n_ubatch| {
            let kv = KvFormat::F16;
            let (n_ctx, n_outputs) = (Some(n_tokens), n_ubatch);
            let mut engine =
                load_with(&path, EngineOptions { n_ctx, n_ubatch, n_outputs, kv, placing: None });
            (engine.memory_need().kv, logits(&mut engine, &tokens))
        });
        assert!(all.0 > few.0 && few.0 > fewest.0, "{}", path.display());
        assert!(all.1 == few.1 && all.1 == fewest.1, "{}: logits differ", path.display());
    }
}
