//! What a model costs by its file's header, beside what it costs by its sizes alone.

use std::path::{Path, PathBuf};

use engine_core::{EngineOptions, PlannedModel};
use planner::{
    AttentionShape, Ffn, Format, Formats, Model, ModelShape, OpCost, Pass, Shard, ShardCost, Window,
};

const PASSES: [Pass; 3] = [
    Pass { n_tokens: 1, n_outputs: 1, n_kv: 30, n_ctx: 64 },
    Pass { n_tokens: 16, n_outputs: 1, n_kv: 16, n_ctx: 64 },
    Pass { n_tokens: 5, n_outputs: 5, n_kv: 40, n_ctx: 64 },
];

/// Sizes alone do not say that KV cells are written in half precision, or that a family normalises the results of attention
/// and FFN, adds biases or bounds logits. With all that, light ops pass over at most this many times the memory.
const LIGHT_FACTOR: f64 = 1.4;

fn data(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder)
}

fn open(folder: &str) -> PlannedModel {
    PlannedModel::open(&data(folder).join("model.gguf"), &EngineOptions::default())
        .expect("a fixture")
}

/// What the fixture's `config.json` says, everything in F32.
fn shape(folder: &str) -> ModelShape {
    let config = std::fs::read(data(folder).join("hf/config.json")).expect("a fixture");
    let config: serde_json::Value = serde_json::from_slice(&config).expect("JSON");
    let size = |key: &str| config[key].as_u64().map(|n| n as u32);
    let must = |key: &str| size(key).expect("a size");
    let n_head = must("num_attention_heads");
    let head_dim = size("head_dim").unwrap_or(must("hidden_size") / n_head);
    let n_kv_head = must("num_key_value_heads");
    let ffn = match size("num_experts") {
        None => Ffn::Dense { n_ff: must("intermediate_size") },
        Some(n_expert) => Ffn::Experts {
            n_expert,
            n_used: must("num_experts_per_tok"),
            n_ff: must("moe_intermediate_size"),
        },
    };
    ModelShape {
        name: folder.into(),
        source: "its config.json".into(),
        parameters: 1.0,
        n_layer: must("num_hidden_layers"),
        n_embd: must("hidden_size"),
        n_vocab: must("vocab_size"),
        n_ctx_train: must("max_position_embeddings"),
        heads: AttentionShape { n_head, n_kv_head, key_dim: head_dim, value_dim: head_dim },
        window: None,
        qk_norm: config["model_type"].as_str().expect("text").starts_with("qwen3"),
        tied: config["tie_word_embeddings"].as_bool().unwrap_or(true),
        ffn,
        formats: Formats {
            embedding: Format::F32,
            q: Format::F32,
            k: Format::F32,
            v: Format::F32,
            attention_out: Format::F32,
            gate: Format::F32,
            up: Format::F32,
            down: Format::F32,
            output: Format::F32,
        },
    }
}

fn heavy(shard: &ShardCost) -> Vec<OpCost> {
    shard.ops.iter().filter(|op| !matches!(op, OpCost::Light { .. })).copied().collect()
}

fn light(shards: &[ShardCost]) -> f64 {
    let ops = shards.iter().flat_map(|shard| &shard.ops);
    let bytes = ops.map(|op| match op {
        OpCost::Light { bytes } => bytes.get() as f64,
        _ => 0.0,
    });
    bytes.sum()
}

#[track_caller]
fn check(folder: &str, sizes: &ModelShape) {
    let model = open(folder);
    assert_eq!((model.n_layer(), model.n_ctx_train()), (sizes.n_layer, sizes.n_ctx_train));
    for pass in PASSES {
        let (found, expected) = (model.shards(pass), sizes.shards(pass));
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            check_shard(found, expected, sizes);
        }
        let factor = light(&found) / light(&expected);
        assert!((1.0 / LIGHT_FACTOR..LIGHT_FACTOR).contains(&factor), "{folder}: {factor}");
        assert_eq!(model.residual(pass.n_tokens), sizes.residual(pass.n_tokens));
    }
}

#[track_caller]
fn check_shard(found: &ShardCost, expected: &ShardCost, sizes: &ModelShape) {
    assert_eq!(found.shard, expected.shard);
    assert_eq!(heavy(found), heavy(expected), "{:?}", found.shard);
    assert_eq!(found.kv_used, expected.kv_used, "{:?}", found.shard);
    assert_eq!(found.shared_with_output, expected.shared_with_output);
    assert_eq!(found.kv, expected.kv, "{:?}", found.shard);
    let vectors = found.weights.get().checked_sub(expected.weights.get());
    let vectors = vectors.expect("sizes alone know no norms and biases");
    // At most two norms of the residual, biases of q, k and v, and norms of their heads.
    let heads = u64::from(sizes.heads.n_head + 2 * sizes.heads.n_kv_head + 2);
    let most = 4 * (2 * u64::from(sizes.n_embd) + heads * u64::from(sizes.heads.key_dim));
    assert!(vectors <= most, "{:?}: {vectors} of {most}", found.shard);
}

#[test]
fn models_cost_what_their_sizes_say() {
    for folder in ["llama", "smollm2", "qwen2", "qwen3", "qwen3moe"] {
        check(folder, &shape(folder));
    }
}

#[test]
fn windows_bound_what_is_read() {
    let window = Some(Window { n_kv: 8, all_but_each: 2 });
    check("gemma2", &ModelShape { window, ..shape("gemma2") });
}

#[test]
fn a_pass_that_only_fills_cells_has_no_output() {
    let pass = Pass { n_tokens: 4, n_outputs: 0, n_kv: 4, n_ctx: 64 };
    let shards = open("llama").shards(pass);
    let output = shards.last().expect("shards");
    assert_eq!((output.shard, output.ops.len()), (Shard::Output, 0));
}

#[test]
fn what_has_no_arithmetic_is_refused() {
    let path = data("tokenizers").join("spm.gguf");
    assert!(PlannedModel::open(&path, &EngineOptions::default()).is_err());
}
