//! Hyperparameters from a Hugging Face `config.json`.

use serde_json::Value;

use super::arch::{Family, Windows};
use super::config::{ExpertsConfig, FfnConfig, LayerConfig, MOST_LAYERS, ModelConfig};
use super::error::{ModelError, SupportedFamilies};
use super::rope::{RopeConfig, RopeScaling, Yarn};
use crate::op::{Activation, RopePairs};

/// Reads and validates the hyperparameters of a `config.json`.
pub(crate) fn from_hf(config: &Value) -> Result<ModelConfig, ModelError> {
    const MODEL_TYPE: &str = "model_type";
    let root = Keys { object: config, path: String::new() };
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

/// Typed access to one JSON object. A key that is `null` counts as absent.
struct Keys<'a> {
    object: &'a Value,
    path: String,
}

impl<'a> Keys<'a> {
    fn name(&self, key: &str) -> String {
        format!("{}{key}", self.path)
    }

    fn get(&self, key: &str) -> Option<&'a Value> {
        self.object.get(key).filter(|value| !value.is_null())
    }

    fn bad(&self, key: &str, expected: &'static str) -> ModelError {
        let found = self.get(key).map_or_else(|| "absent".into(), Value::to_string);
        ModelError::BadValue {
            key: self.name(key),
            found: found.chars().take(60).collect(),
            expected,
        }
    }

    fn read<T>(
        &self,
        key: &str,
        expected: &'static str,
        convert: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, ModelError> {
        self.get(key).map(|value| convert(value).ok_or_else(|| self.bad(key, expected))).transpose()
    }

    fn optional_u32(&self, key: &str) -> Result<Option<u32>, ModelError> {
        self.read(key, "a non-negative whole number", |v| v.as_u64()?.try_into().ok())
    }

    fn u32(&self, key: &str) -> Result<u32, ModelError> {
        self.optional_u32(key)?.ok_or_else(|| ModelError::MissingKey { key: self.name(key) })
    }

    fn optional_f64(&self, key: &str) -> Result<Option<f64>, ModelError> {
        self.read(key, "a finite number", |v| v.as_f64().filter(|x| x.is_finite()))
    }

    fn f64(&self, key: &str) -> Result<f64, ModelError> {
        self.optional_f64(key)?.ok_or_else(|| ModelError::MissingKey { key: self.name(key) })
    }

    fn optional_bool(&self, key: &str) -> Result<Option<bool>, ModelError> {
        self.read(key, "true or false", Value::as_bool)
    }

    fn text(&self, key: &str) -> Result<Option<&'a str>, ModelError> {
        self.read(key, "text", Value::as_str)
    }

    fn f32s(&self, key: &str, len: usize) -> Result<Vec<f32>, ModelError> {
        let numbers = self.read(key, "a list of numbers", |value| {
            value.as_array()?.iter().map(|x| Some(x.as_f64()? as f32)).collect::<Option<Vec<_>>>()
        })?;
        let numbers = numbers.ok_or_else(|| ModelError::MissingKey { key: self.name(key) })?;
        if numbers.len() == len {
            Ok(numbers)
        } else {
            Err(self.bad(key, "a number per pair of rotated values"))
        }
    }

    fn inside(&self, key: &str) -> Option<Keys<'a>> {
        let object = self.get(key).filter(|value| value.is_object())?;
        Some(Keys { object, path: format!("{}{key}.", self.path) })
    }
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

    let windows = Layers::read(family, root, n_layer)?;
    let layers = (0..n_layer)
        .map(|i| {
            let window = windows.window_of(i);
            LayerConfig { window, rope: usize::from(window.is_some() && ropes.len() > 1) }
        })
        .collect();
    Ok((ropes, layers))
}

/// Which layers see only a window.
struct Layers {
    window: Option<u32>,
    local: LocalLayers,
}

/// By the file's list, or by a pattern.
enum LocalLayers {
    Listed(Vec<bool>),
    Pattern(Windows),
    From(u32),
}

impl Layers {
    fn read(family: &Family, root: &Keys<'_>, n_layer: u32) -> Result<Layers, ModelError> {
        let switched_off = root.optional_bool("use_sliding_window")? == Some(false);
        let window =
            root.optional_u32("sliding_window")?.filter(|&window| window > 0 && !switched_off);
        Ok(Layers { window, local: LocalLayers::read(family, root, n_layer)? })
    }

    fn window_of(&self, layer: u32) -> Option<u32> {
        self.window.filter(|_| match &self.local {
            LocalLayers::Listed(flags) => flags[layer as usize],
            LocalLayers::Pattern(windows) => windows.includes(layer),
            LocalLayers::From(first) => layer >= *first,
        })
    }
}

impl LocalLayers {
    fn read(family: &Family, root: &Keys<'_>, n_layer: u32) -> Result<LocalLayers, ModelError> {
        let kinds = root.read("layer_types", "a list of layer kinds", |value| {
            value
                .as_array()?
                .iter()
                .map(|kind| match kind.as_str()? {
                    "sliding_attention" => Some(true),
                    "full_attention" => Some(false),
                    _ => None,
                })
                .collect::<Option<Vec<bool>>>()
        })?;
        if let Some(flags) = kinds {
            return if flags.len() == n_layer as usize {
                Ok(LocalLayers::Listed(flags))
            } else {
                Err(root.bad("layer_types", "a kind per layer"))
            };
        }
        if let Some(first) = root.optional_u32("max_window_layers")? {
            return Ok(LocalLayers::From(first));
        }
        let pattern = root.optional_u32("sliding_window_pattern")?.map(Windows::AllButEach);
        Ok(LocalLayers::Pattern(pattern.unwrap_or(family.windows)))
    }
}

/// One rotation. `keys` is the object that describes the scaling, if there is one.
fn rope(
    root: &Keys<'_>,
    keys: Option<&Keys<'_>>,
    head_dim: u32,
    n_ctx: u32,
) -> Result<RopeConfig, ModelError> {
    let number = |key: &str| -> Result<Option<f64>, ModelError> {
        match keys.map(|keys| keys.optional_f64(key)).transpose()?.flatten() {
            Some(x) => Ok(Some(x)),
            None => root.optional_f64(key),
        }
    };
    let base = number("rope_theta")?.unwrap_or(10_000.0);
    let rotated_share = number("partial_rotary_factor")?.unwrap_or(1.0);
    let n_rot = (f64::from(head_dim) * rotated_share) as u32;
    let scaling = match keys {
        Some(keys) => scaling(keys, root, n_rot, n_ctx)?,
        None => RopeScaling::None,
    };
    Ok(RopeConfig { base, n_rot, scaling })
}

fn scaling(
    keys: &Keys<'_>,
    root: &Keys<'_>,
    n_rot: u32,
    n_ctx: u32,
) -> Result<RopeScaling, ModelError> {
    // The key was renamed; files of both ages are about.
    let (key, kind) = match (keys.text("rope_type")?, keys.text("type")?) {
        (Some(kind), _) => ("rope_type", kind),
        (None, Some(kind)) => ("type", kind),
        (None, None) => return Ok(RopeScaling::None),
    };
    let n_ctx_original = || -> Result<f64, ModelError> {
        let inside = keys.optional_f64("original_max_position_embeddings")?;
        let outside = root.optional_f64("original_max_position_embeddings")?;
        Ok(inside.or(outside).unwrap_or(f64::from(n_ctx)))
    };
    match kind {
        "default" => Ok(RopeScaling::None),
        "linear" => Ok(RopeScaling::Linear { factor: keys.f64("factor")? }),
        "dynamic" => Ok(RopeScaling::Dynamic {
            factor: keys.f64("factor")?,
            n_ctx_original: n_ctx_original()?,
        }),
        "llama3" => Ok(RopeScaling::Llama3 {
            factor: keys.f64("factor")?,
            low_freq_factor: keys.f64("low_freq_factor")?,
            high_freq_factor: keys.f64("high_freq_factor")?,
            n_ctx_original: n_ctx_original()?,
        }),
        "yarn" => Ok(RopeScaling::Yarn(yarn(keys, n_ctx_original()?, n_ctx)?)),
        "longrope" | "su" => {
            let n_ctx_original = n_ctx_original()?;
            let stretch = f64::from(n_ctx) / n_ctx_original;
            let usual = if stretch <= 1.0 {
                1.0
            } else {
                (1.0 + stretch.ln() / n_ctx_original.ln()).sqrt()
            };
            Ok(RopeScaling::LongRope {
                short: keys.f32s("short_factor", n_rot as usize / 2)?,
                long: keys.f32s("long_factor", n_rot as usize / 2)?,
                n_ctx_original,
                magnitude: keys.optional_f64("attention_factor")?.unwrap_or(usual),
            })
        }
        found => Err(ModelError::UnknownRopeScaling { key: keys.name(key), found: found.into() }),
    }
}

fn yarn(keys: &Keys<'_>, n_ctx_original: f64, n_ctx: u32) -> Result<Yarn, ModelError> {
    let factor = match keys.optional_f64("factor")? {
        Some(factor) => factor,
        None => f64::from(n_ctx) / n_ctx_original,
    };
    let by_scale = |scale: f64| if factor <= 1.0 { 1.0 } else { 0.1 * scale * factor.ln() + 1.0 };
    let usual = match (keys.optional_f64("mscale")?, keys.optional_f64("mscale_all_dim")?) {
        (Some(scale), Some(all)) if scale != 0.0 && all != 0.0 => by_scale(scale) / by_scale(all),
        _ => Yarn::default_magnitude(factor),
    };
    Ok(Yarn {
        factor,
        n_ctx_original,
        beta_fast: keys.optional_f64("beta_fast")?.unwrap_or(32.0),
        beta_slow: keys.optional_f64("beta_slow")?.unwrap_or(1.0),
        truncate: keys.optional_bool("truncate")?.unwrap_or(true),
        magnitude: keys.optional_f64("attention_factor")?.unwrap_or(usual),
    })
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
