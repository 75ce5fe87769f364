//! How files of each kind name a model's tensors.

use super::arch::Family;

/// Whose names the tensors have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// GGUF.
    Gguf,
    /// Hugging Face folders.
    HuggingFace,
}

/// A tensor's part in the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Embedding,
    OutputNorm,
    Output,
    AttentionNorm,
    Q,
    K,
    V,
    AttentionOut,
    QNorm,
    KNorm,
    AttentionPostNorm,
    FfnNorm,
    FfnPostNorm,
    Gate,
    Up,
    Down,
    Router,
    ExpertsGate,
    ExpertsUp,
    ExpertsDown,
}

impl Naming {
    /// Name of a tensor, without `.weight` or `.bias`.
    pub(super) fn stem(self, role: Role, layer: u32, family: &Family) -> String {
        match self {
            Naming::Gguf => match role {
                Role::Embedding => "token_embd".into(),
                Role::OutputNorm => "output_norm".into(),
                Role::Output => "output".into(),
                _ => format!("blk.{layer}.{}", Naming::gguf_part(role)),
            },
            Naming::HuggingFace => match role {
                Role::Embedding => "model.embed_tokens".into(),
                Role::OutputNorm => "model.norm".into(),
                Role::Output => "lm_head".into(),
                _ => format!("model.layers.{layer}.{}", Naming::hf_part(role, family)),
            },
        }
    }

    fn gguf_part(role: Role) -> &'static str {
        match role {
            Role::AttentionNorm => "attn_norm",
            Role::Q => "attn_q",
            Role::K => "attn_k",
            Role::V => "attn_v",
            Role::AttentionOut => "attn_output",
            Role::QNorm => "attn_q_norm",
            Role::KNorm => "attn_k_norm",
            Role::AttentionPostNorm => "post_attention_norm",
            Role::FfnNorm => "ffn_norm",
            Role::FfnPostNorm => "post_ffw_norm",
            Role::Gate => "ffn_gate",
            Role::Up => "ffn_up",
            Role::Down => "ffn_down",
            Role::Router => "ffn_gate_inp",
            Role::ExpertsGate => "ffn_gate_exps",
            Role::ExpertsUp => "ffn_up_exps",
            Role::ExpertsDown => "ffn_down_exps",
            Role::Embedding | Role::OutputNorm | Role::Output => unreachable!("not in a layer"),
        }
    }

    fn hf_part(role: Role, family: &Family) -> &'static str {
        match role {
            Role::AttentionNorm => "input_layernorm",
            Role::Q => "self_attn.q_proj",
            Role::K => "self_attn.k_proj",
            Role::V => "self_attn.v_proj",
            Role::AttentionOut => "self_attn.o_proj",
            Role::QNorm => "self_attn.q_norm",
            Role::KNorm => "self_attn.k_norm",
            Role::AttentionPostNorm => "post_attention_layernorm",
            // The norm before the FFN is named after what it follows, unless another norm follows that too.
            Role::FfnNorm if family.post_norms => "pre_feedforward_layernorm",
            Role::FfnNorm => "post_attention_layernorm",
            Role::FfnPostNorm => "post_feedforward_layernorm",
            Role::Gate => "mlp.gate_proj",
            Role::Up => "mlp.up_proj",
            Role::Down => "mlp.down_proj",
            Role::Router => "mlp.gate",
            Role::ExpertsGate | Role::ExpertsUp | Role::ExpertsDown => {
                unreachable!("folders name experts one by one")
            }
            Role::Embedding | Role::OutputNorm | Role::Output => unreachable!("not in a layer"),
        }
    }

    /// Name of one expert's matrix, without `.weight`, in a folder that stores experts one by one.
    pub(super) fn hf_expert(role: Role, layer: u32, expert: u32) -> String {
        let part = match role {
            Role::ExpertsGate => "gate_proj",
            Role::ExpertsUp => "up_proj",
            Role::ExpertsDown => "down_proj",
            _ => unreachable!("only expert matrices have an expert"),
        };
        format!("model.layers.{layer}.mlp.experts.{expert}.{part}")
    }

    /// The layer that a tensor belongs to, by its name.
    pub(super) fn layer_of(self, name: &str) -> Option<u32> {
        let prefix = match self {
            Naming::Gguf => "blk.",
            Naming::HuggingFace => "model.layers.",
        };
        name.strip_prefix(prefix)?.split('.').next()?.parse().ok()
    }
}
