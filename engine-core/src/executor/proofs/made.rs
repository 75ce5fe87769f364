//! A model with more layers than the fixtures have, no two alike, so that slots of a ring differ in size.

use crate::testing::GgufWriter;
use crate::weights::{DType, Value};

const N_LAYER: u32 = 6;
const N_EMBD: u64 = 32;
const N_HEAD: u32 = 2;
const N_VOCAB: u64 = 64;
const N_EXPERT: u64 = 12;
const N_FF: u64 = 32;
const DTYPES: [DType; 4] = [DType::F32, DType::Q8_0, DType::F16, DType::Q4_0];

/// A GGUF file of a model with experts, its weights random bytes.
pub(super) fn many_unequal_layers() -> Vec<u8> {
    let sizes = [
        ("block_count", N_LAYER),
        ("embedding_length", N_EMBD as u32),
        ("context_length", 64),
        ("vocab_size", N_VOCAB as u32),
        ("attention.head_count", N_HEAD),
        ("expert_count", N_EXPERT as u32),
        ("expert_used_count", 2),
        ("expert_feed_forward_length", N_FF as u32),
    ];
    let mut file = GgufWriter::new()
        .text("general.architecture", "qwen3moe")
        .entry("qwen3moe.attention.layer_norm_rms_epsilon", Value::F32(1e-6));
    for (key, size) in sizes {
        file = file.entry(&format!("qwen3moe.{key}"), Value::U32(size));
    }
    let mut random = Random(1);
    let mut add = |name: &str, dims: &[u64], dtype| {
        file =
            file.clone().tensor(&format!("{name}.weight"), dims, dtype, &random.bytes(dims, dtype));
    };
    add("token_embd", &[N_VOCAB, N_EMBD], DType::Q8_0);
    for layer in 0..N_LAYER {
        let dtype = |i: u32| DTYPES[((layer * 5 + i * 3) % 7) as usize % DTYPES.len()];
        let mut part =
            |name: &str, dims: &[u64], dtype| add(&format!("blk.{layer}.{name}"), dims, dtype);
        part("attn_norm", &[N_EMBD], DType::F32);
        for (i, name) in (0..).zip(["attn_q", "attn_k", "attn_v", "attn_output"]) {
            part(name, &[N_EMBD, N_EMBD], dtype(i));
        }
        let head_dim = N_EMBD / u64::from(N_HEAD);
        part("attn_q_norm", &[head_dim], DType::F32);
        part("attn_k_norm", &[head_dim], DType::F32);
        part("ffn_norm", &[N_EMBD], DType::F32);
        part("ffn_gate_inp", &[N_EXPERT, N_EMBD], DType::F32);
        part("ffn_gate_exps", &[N_EXPERT, N_FF, N_EMBD], dtype(4));
        part("ffn_up_exps", &[N_EXPERT, N_FF, N_EMBD], dtype(5));
        part("ffn_down_exps", &[N_EXPERT, N_EMBD, N_FF], dtype(6));
    }
    add("output_norm", &[N_EMBD], DType::F32);
    add("output", &[N_VOCAB, N_EMBD], DType::F16);
    file.to_bytes()
}

/// Numbers by chance, the same each time. Source: Marsaglia, "Xorshift RNGs", 2003.
struct Random(u64);

impl Random {
    fn bytes(&mut self, dims: &[u64], dtype: DType) -> Vec<u8> {
        let (columns, rows) = dims.split_last().unwrap();
        let size = dtype.row_bytes(*columns).unwrap() * rows.iter().product();
        (0..size.get()).map(|_| self.next() as u8).collect()
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 8
    }
}
