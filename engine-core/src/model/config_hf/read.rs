//! A whole `config.json`.

use serde_json::Value;

use super::keys::Keys;
use super::rope::rope;
use super::windows::WindowedLayers;
use crate::model::config::MOST_LAYERS;
use crate::model::{
    ExpertsConfig, Family, FfnConfig, LayerConfig, ModelConfig, ModelError, RopeConfig,
    RopeScaling, SupportedFamilies,
};
use crate::op::{Activation, RopePairs};

/// Reads and validates the hyperparameters of a `config.json`.
pub(crate) fn from_hf(config: &Value) -> Result<ModelConfig, ModelError> {
    const MODEL_TYPE: &str = "model_type";
    let root = Keys::of(config);
    let name =
        root.text(MODEL_TYPE)?.ok_or_else(|| ModelError::MissingKey { key: MODEL_TYPE.into() })?;
    let family = Family::of_hf(name).ok_or_else(|| ModelError::UnknownArchitecture {
        key: MODEL_TYPE,
        found: name.into(),
        supported: SupportedFamilies,
    })?;

    let n_embd = root.u32("hidden_size")?;
    let n_head = root.u32("num_attention_heads")?;
    let head_dim =
        root.optional_u32("head_dim")?.unwrap_or_else(|| n_embd.checked_div(n_head).unwrap_or(0));
    let n_layer = root.u32("num_hidden_layers")?;
    if n_layer > MOST_LAYERS {
        return Err(root.bad("num_hidden_layers", "at most 65536"));
    }
    check_activation(family, &root)?;
    let attention_scale = match root.optional_f64("query_pre_attn_scalar")? {
        Some(scalar) => scalar.powf(-0.5) as f32,
        None => family.attention_scale.factor(n_embd, n_head, head_dim, n_layer),
    };
    let n_ctx_train = root.u32("max_position_embeddings")?;
    let (ropes, layers) = ropes_and_layers(family, &root, n_layer, head_dim, n_ctx_train)?;

    ModelConfig {
        family,
        n_embd,
        n_vocab: root.u32("vocab_size")?,
        n_ctx_train,
        n_head,
        n_kv_head: root.optional_u32("num_key_value_heads")?.unwrap_or(n_head),
        key_dim: head_dim,
        value_dim: head_dim,
        ffn: ffn(family, &root)?,
        norm_eps: root.optional_f64("rms_norm_eps")?.unwrap_or(1e-6) as f32,
        norm_offset: family.hf_norm_offset,
        embedding_scale: if family.scaled_embedding { (n_embd as f32).sqrt() } else { 1.0 },
        attention_scale,
        attention_soft_cap: root.optional_f64("attn_logit_softcapping")?.map(|cap| cap as f32),
        final_soft_cap: root.optional_f64("final_logit_softcapping")?.map(|cap| cap as f32),
        rope_pairs: RopePairs::Halves,
        ropes,
        layers,
    }
    .validated()
}

/// Refuses a folder whose FFN uses another function than its family's.
fn check_activation(family: &Family, root: &Keys<'_>) -> Result<(), ModelError> {
    let (known, expected): (&[&str], _) = match family.activation {
        Activation::Silu => (&["silu", "swish"], "silu"),
        // Early files of the family name the exact function but were trained with its tanh form.
        Activation::GeluTanh => (&["gelu_pytorch_tanh", "gelu"], "gelu_pytorch_tanh"),
    };
    for key in ["hidden_activation", "hidden_act"] {
        match root.text(key)? {
            Some(name) if known.contains(&name) => return Ok(()),
            Some(_) => return Err(root.bad(key, expected)),
            None => {}
        }
    }
    Ok(())
}

fn ffn(family: &Family, root: &Keys<'_>) -> Result<FfnConfig, ModelError> {
    if !family.experts {
        return Ok(FfnConfig::Dense { n_ff: root.u32("intermediate_size")? });
    }
    // Layers with a dense FFN among the others would need a second kind of FFN in one model.
    let dense_layers = root.get("mlp_only_layers").and_then(Value::as_array);
    if dense_layers.is_some_and(|layers| !layers.is_empty()) {
        return Err(root.bad("mlp_only_layers", "an empty list"));
    }
    if root.optional_u32("decoder_sparse_step")?.is_some_and(|step| step != 1) {
        return Err(root.bad("decoder_sparse_step", "1"));
    }
    Ok(FfnConfig::Experts(ExpertsConfig {
        n_expert: match root.optional_u32("num_experts")? {
            Some(n) => n,
            None => root.u32("num_local_experts")?,
        },
        n_used: root.u32("num_experts_per_tok")?,
        n_ff: root.u32("moe_intermediate_size")?,
        normalise: root.optional_bool("norm_topk_prob")?.unwrap_or(false),
    }))
}

/// The rotations, and which of them and which window each layer has.
fn ropes_and_layers(
    family: &Family,
    root: &Keys<'_>,
    n_layer: u32,
    head_dim: u32,
    n_ctx: u32,
) -> Result<(Vec<RopeConfig>, Vec<LayerConfig>), ModelError> {
    // Newer files hold the whole rotation in `rope_parameters`, one object per kind of layer where kinds differ.
    let newer = root.inside("rope_parameters");
    let per_kind = |kind: &str| newer.as_ref().and_then(|keys| keys.inside(kind));
    let full = per_kind("full_attention");
    let scaling = full.as_ref().or(newer.as_ref());
    let older = root.inside("rope_scaling");
    let mut ropes = vec![rope(root, scaling.or(older.as_ref()), head_dim, n_ctx)?];

    if let Some(local) = per_kind("sliding_attention") {
        ropes.push(rope(root, Some(&local), head_dim, n_ctx)?);
    } else if let Some(base) = root.optional_f64("rope_local_base_freq")? {
        ropes.push(RopeConfig { base, n_rot: ropes[0].n_rot, scaling: RopeScaling::None });
    }

    let windows = WindowedLayers::read(family, root, n_layer)?;
    let layers = (0..n_layer)
        .map(|i| {
            let window = windows.window_of(i);
            LayerConfig { window, rope: usize::from(window.is_some() && ropes.len() > 1) }
        })
        .collect();
    Ok((ropes, layers))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;

    fn fixture(family: &str, name: &str) -> ModelConfig {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
        let bytes = std::fs::read(data.join(family).join("hf").join(name)).unwrap();
        from_hf(&serde_json::from_slice(&bytes).unwrap()).unwrap()
    }

    #[test]
    fn both_spellings_of_a_config_mean_the_same() {
        let families =
            ["llama", "smollm2", "mistral", "qwen2", "qwen3", "qwen3moe", "gemma2", "gemma3"];
        for family in families {
            let (older, newer) =
                (fixture(family, "config.json"), fixture(family, "config.v5.json"));
            assert_eq!(older, newer, "{family}");
        }
    }

    #[test]
    fn head_size_is_read_before_it_is_derived() {
        assert_eq!(fixture("mistral", "config.json").key_dim, 12, "hidden size / heads is 8");
    }

    #[test]
    fn windows_and_rotations_of_layers() {
        let config = fixture("gemma3", "config.json");
        let layers: Vec<_> = config.layers.iter().map(|layer| (layer.window, layer.rope)).collect();
        let local = (Some(10), 1);
        assert_eq!(layers, [local, local, local, local, local, (None, 0)]);
        assert_eq!(config.ropes[0].scaling, RopeScaling::Linear { factor: 4.0 });
        assert_eq!((config.ropes[1].base, &config.ropes[1].scaling), (1e4, &RopeScaling::None));
    }

    fn llama(changes: &Value) -> Result<ModelConfig, ModelError> {
        let mut config = json!({
            "model_type": "llama", "hidden_size": 64, "num_attention_heads": 4,
            "num_hidden_layers": 2, "intermediate_size": 128, "vocab_size": 100,
            "max_position_embeddings": 4096, "hidden_act": "silu",
        });
        let (config_map, changes) = (config.as_object_mut().unwrap(), changes.as_object().unwrap());
        config_map.extend(changes.clone());
        from_hf(&config)
    }

    #[test]
    fn rope_scaling_by_either_key() {
        for key in ["rope_type", "type"] {
            let scaling = json!({"rope_scaling": {key: "linear", "factor": 2.0}});
            let config = llama(&scaling).unwrap();
            assert_eq!(config.ropes[0].scaling, RopeScaling::Linear { factor: 2.0 });
            let unknown = llama(&json!({"rope_scaling": {key: "spiral", "factor": 2.0}}));
            assert!(matches!(unknown, Err(ModelError::UnknownRopeScaling { .. })), "{unknown:?}");
        }
    }

    #[test]
    fn errors_name_the_key() {
        let cases = [
            (
                json!({"model_type": "mamba"}),
                "architecture 'mamba' (model_type) is not supported; \
              supported: llama, qwen2, qwen3, qwen3moe, gemma2, gemma3",
            ),
            (json!({"hidden_size": null}), "metadata key 'hidden_size' is missing"),
            (
                json!({"hidden_size": "big"}),
                "metadata key 'hidden_size' is \"big\"; expected a \
              non-negative whole number",
            ),
            (json!({"hidden_act": "relu"}), "metadata key 'hidden_act' is \"relu\"; expected silu"),
            (
                json!({"num_hidden_layers": 4_000_000_000u32}),
                "metadata key 'num_hidden_layers' is \
              4000000000; expected at most 65536",
            ),
            (
                json!({"num_key_value_heads": 3}),
                "metadata key 'number of KV heads' is 3; expected \
              a divisor of the number of heads",
            ),
            (
                json!({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}),
                "metadata key 'rope_scaling.low_freq_factor' is missing",
            ),
        ];
        for (changes, expected) in cases {
            assert_eq!(llama(&changes).unwrap_err().to_string(), expected);
        }
    }
}
