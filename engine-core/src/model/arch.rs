//! What differs between model families, as data: one table entry per family.
//!
//! Everything a file says for itself (sizes, counts, rope bases, which biases exist) is read from the file; the
//! table holds only what a file leaves unsaid.

use crate::op::{Activation, RopePairs};

/// What a model family fixes that its files do not say.
#[derive(Debug, PartialEq)]
pub struct Family {
    /// `general.architecture` of its GGUF files, which also prefixes their metadata keys.
    pub gguf_name: &'static str,
    /// Values of `model_type` in the `config.json` of its Hugging Face folders.
    pub hf_names: &'static [&'static str],
    /// Pairs that rope turns in GGUF files, whose converter may have reordered the rows of q and k. Hugging Face
    /// folders always pair halves.
    pub gguf_rope_pairs: RopePairs,
    /// Each head of q and k is normalised before rope.
    pub qk_norm: bool,
    /// The results of attention and FFN are normalised before they are added to the residual.
    pub post_norms: bool,
    /// Hugging Face folders store norm weights as their difference from one.
    pub hf_norm_offset: f32,
    /// The function on the FFN's gate.
    pub activation: Activation,
    /// Token embeddings are multiplied by √n_embd.
    pub scaled_embedding: bool,
    /// Which layers see only a window, when the file gives a window and no pattern.
    pub windows: Windows,
    /// What attention scores are multiplied by.
    pub attention_scale: AttentionScale,
    /// The FFN is a group of experts.
    pub experts: bool,
}

/// Which layers see only the last cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Windows {
    /// All, if the file gives a window.
    Every,
    /// All but each `n`-th (the n-th, 2n-th, …), if the file gives a window.
    AllButEach(u32),
}

impl Windows {
    /// Whether layer `layer`, counted from zero, sees only a window.
    pub fn includes(self, layer: u32) -> bool {
        match self {
            Windows::Every => true,
            Windows::AllButEach(n) => !(layer + 1).is_multiple_of(n.max(1)),
        }
    }
}

/// What attention scores are multiplied by when the file does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttentionScale {
    /// 1 / √key_dim.
    KeyDim,
    /// 1 / √key_dim, but 1 / √(n_embd / n_head) in the family's largest model, known by its number of layers.
    KeyDimExceptLargest {
        /// Layers of the largest model.
        n_layer: u32,
    },
}

const PLAIN: Family = Family {
    gguf_name: "",
    hf_names: &[],
    gguf_rope_pairs: RopePairs::Halves,
    qk_norm: false,
    post_norms: false,
    hf_norm_offset: 0.0,
    activation: Activation::Silu,
    scaled_embedding: false,
    windows: Windows::Every,
    attention_scale: AttentionScale::KeyDim,
    experts: false,
};

const GEMMA: Family = Family {
    post_norms: true,
    hf_norm_offset: 1.0,
    activation: Activation::GeluTanh,
    scaled_embedding: true,
    ..PLAIN
};

/// All families.
pub const FAMILIES: &[Family] = &[
    // Llama 2 and 3, Mistral, SmolLM2.
    Family {
        gguf_name: "llama",
        hf_names: &["llama", "mistral"],
        gguf_rope_pairs: RopePairs::Adjacent,
        ..PLAIN
    },
    Family { gguf_name: "qwen2", hf_names: &["qwen2"], ..PLAIN },
    Family { gguf_name: "qwen3", hf_names: &["qwen3"], qk_norm: true, ..PLAIN },
    Family {
        gguf_name: "qwen3moe",
        hf_names: &["qwen3_moe"],
        qk_norm: true,
        experts: true,
        ..PLAIN
    },
    Family {
        gguf_name: "gemma2",
        hf_names: &["gemma2"],
        windows: Windows::AllButEach(2),
        attention_scale: AttentionScale::KeyDimExceptLargest { n_layer: 46 },
        ..GEMMA
    },
    Family {
        gguf_name: "gemma3",
        hf_names: &["gemma3_text"],
        qk_norm: true,
        windows: Windows::AllButEach(6),
        attention_scale: AttentionScale::KeyDimExceptLargest { n_layer: 62 },
        ..GEMMA
    },
];

impl Family {
    /// The family of a GGUF file with this `general.architecture`.
    pub fn of_gguf(architecture: &str) -> Option<&'static Family> {
        FAMILIES.iter().find(|family| family.gguf_name == architecture)
    }

    /// The family of a Hugging Face folder with this `model_type`.
    pub fn of_hf(model_type: &str) -> Option<&'static Family> {
        FAMILIES.iter().find(|family| family.hf_names.contains(&model_type))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_patterns() {
        let local = |windows: Windows| (0..7).map(|i| windows.includes(i)).collect::<Vec<_>>();
        assert_eq!(local(Windows::AllButEach(2)), [true, false, true, false, true, false, true]);
        assert_eq!(local(Windows::AllButEach(6)), [true, true, true, true, true, false, true]);
    }
}
