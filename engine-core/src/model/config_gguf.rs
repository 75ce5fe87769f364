//! Hyperparameters from GGUF metadata.

use super::arch::{Family, Windows};
use super::config::{ExpertsConfig, FfnConfig, LayerConfig, MOST_LAYERS, ModelConfig};
use super::error::{ModelError, SupportedFamilies};
use super::rope::{RopeConfig, RopeScaling, Yarn};
use crate::weights::{Array, Metadata, Value};

/// Reads and validates the hyperparameters of a GGUF file.
///
/// `rope_divisors` are the values of the tensor `rope_freqs.weight`, when the file has it.
pub(crate) fn from_gguf(
    metadata: &Metadata,
    rope_divisors: Option<Vec<f32>>,
) -> Result<ModelConfig, ModelError> {
    const ARCHITECTURE: &str = "general.architecture";
    let name = metadata
        .str(ARCHITECTURE)
        .ok_or_else(|| ModelError::MissingKey { key: ARCHITECTURE.into() })?;
    let family = Family::of_gguf(name).ok_or_else(|| ModelError::UnknownArchitecture {
        key: ARCHITECTURE,
        found: name.into(),
        supported: SupportedFamilies,
    })?;
    let keys = Keys { metadata, prefix: family.gguf_name };

    let n_embd = keys.u32("embedding_length")?;
    let n_head = keys.u32("attention.head_count")?;
    let n_kv_head = keys.optional_u32("attention.head_count_kv")?.unwrap_or(n_head);
    let derived_dim = n_embd.checked_div(n_head).unwrap_or(0);
    let key_dim = keys.optional_u32("attention.key_length")?.unwrap_or(derived_dim);
    let value_dim = keys.optional_u32("attention.value_length")?.unwrap_or(derived_dim);
    // Blocks for predicting several tokens ahead stand last and have no part in ordinary decoding.
    let n_predict = keys.optional_u32("nextn_predict_layers")?.unwrap_or(0);
    let n_layer = keys.u32("block_count")?.saturating_sub(n_predict);
    if n_layer > MOST_LAYERS {
        return Err(ModelError::BadValue {
            key: keys.name("block_count"),
            found: n_layer.to_string(),
            expected: "at most 65536",
        });
    }
    let attention_scale = match keys.optional_f64("attention.scale")? {
        Some(scale) => scale as f32,
        None => family.attention_scale.factor(n_embd, n_head, key_dim, n_layer),
    };

    ModelConfig {
        family,
        n_embd,
        n_vocab: n_vocab(metadata, &keys)?,
        n_ctx_train: keys.u32("context_length")?,
        n_head,
        n_kv_head,
        key_dim,
        value_dim,
        ffn: ffn(family, &keys)?,
        norm_eps: keys.f64("attention.layer_norm_rms_epsilon")? as f32,
        norm_offset: 0.0,
        embedding_scale: if family.scaled_embedding { (n_embd as f32).sqrt() } else { 1.0 },
        attention_scale,
        attention_soft_cap: keys.optional_f64("attn_logit_softcapping")?.map(|cap| cap as f32),
        final_soft_cap: keys.optional_f64("final_logit_softcapping")?.map(|cap| cap as f32),
        rope_pairs: family.gguf_rope_pairs,
        ropes: ropes(&keys, key_dim, rope_divisors)?,
        layers: layers(family, &keys, n_layer)?,
    }
    .validated()
}

/// Typed access to the keys of one architecture.
struct Keys<'a> {
    metadata: &'a Metadata,
    prefix: &'static str,
}

impl Keys<'_> {
    fn name(&self, key: &str) -> String {
        format!("{}.{key}", self.prefix)
    }

    fn get(&self, key: &str) -> Option<&Value> {
        self.metadata.get(&self.name(key))
    }

    /// Reads an optional value; one of another type is an error.
    fn read<T>(
        &self,
        key: &str,
        expected: &'static str,
        convert: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>, ModelError> {
        self.get(key)
            .map(|value| {
                convert(value).ok_or_else(|| ModelError::BadValue {
                    key: self.name(key),
                    found: format!("{value:?}").chars().take(60).collect(),
                    expected,
                })
            })
            .transpose()
    }

    /// A count. Some files store a value per layer; that is fine when all are equal.
    fn optional_u32(&self, key: &str) -> Result<Option<u32>, ModelError> {
        self.read(key, "one non-negative whole number", |value| {
            let number = match value.as_array() {
                Some(array) => {
                    let all = array.to_u64s()?;
                    let first = *all.first()?;
                    all.iter().all(|&n| n == first).then_some(first)?
                }
                None => value.as_u64()?,
            };
            number.try_into().ok()
        })
    }

    fn u32(&self, key: &str) -> Result<u32, ModelError> {
        self.optional_u32(key)?.ok_or_else(|| ModelError::MissingKey { key: self.name(key) })
    }

    fn optional_f64(&self, key: &str) -> Result<Option<f64>, ModelError> {
        self.read(key, "a finite number", |value| value.as_f64().filter(|x| x.is_finite()))
    }

    fn f64(&self, key: &str) -> Result<f64, ModelError> {
        self.optional_f64(key)?.ok_or_else(|| ModelError::MissingKey { key: self.name(key) })
    }
}

/// The vocabulary's size: its own key, or else the length of the token list.
fn n_vocab(metadata: &Metadata, keys: &Keys<'_>) -> Result<u32, ModelError> {
    const TOKENS: &str = "tokenizer.ggml.tokens";
    if let Some(n) = keys.optional_u32("vocab_size")? {
        return Ok(n);
    }
    let tokens = metadata
        .strings(TOKENS)
        .ok_or_else(|| ModelError::MissingKey { key: keys.name("vocab_size") })?;
    Ok(u32::try_from(tokens.len()).unwrap_or(u32::MAX))
}

fn ffn(family: &Family, keys: &Keys<'_>) -> Result<FfnConfig, ModelError> {
    let n_expert = keys.optional_u32("expert_count")?.unwrap_or(0);
    if n_expert == 0 && !family.experts {
        return Ok(FfnConfig::Dense { n_ff: keys.u32("feed_forward_length")? });
    }
    let n_ff = match keys.optional_u32("expert_feed_forward_length")? {
        Some(n_ff) => n_ff,
        None => keys.u32("feed_forward_length")?,
    };
    let normalise =
        keys.read("expert_weights_norm", "true or false", Value::as_bool)?.unwrap_or(true);
    Ok(FfnConfig::Experts(ExpertsConfig {
        n_expert: keys.u32("expert_count")?,
        n_used: keys.u32("expert_used_count")?,
        n_ff,
        normalise,
    }))
}

/// The rotation of full layers, then that of windowed layers where the family has one of its own.
fn ropes(
    keys: &Keys<'_>,
    key_dim: u32,
    divisors: Option<Vec<f32>>,
) -> Result<Vec<RopeConfig>, ModelError> {
    let n_rot = keys.optional_u32("rope.dimension_count")?.unwrap_or(key_dim);
    let base = keys.optional_f64("rope.freq_base")?.unwrap_or(10_000.0);
    let scaling = match divisors {
        Some(divisors) if divisors.len() != n_rot as usize / 2 => {
            return Err(ModelError::TensorShape {
                name: "rope_freqs.weight".into(),
                found: vec![divisors.len() as u64],
                expected: vec![u64::from(n_rot / 2)],
            });
        }
        Some(divisors) => RopeScaling::Divisors(divisors),
        None => rope_scaling(keys)?,
    };
    let mut ropes = vec![RopeConfig { base, n_rot, scaling }];
    if let Some(local_base) = local_rope_base(keys)? {
        ropes.push(RopeConfig { base: local_base, n_rot, scaling: RopeScaling::None });
    }
    Ok(ropes)
}

/// Rope base of windowed layers, where it differs from that of full ones.
fn local_rope_base(keys: &Keys<'_>) -> Result<Option<f64>, ModelError> {
    let stored = keys.optional_f64("rope.freq_base_swa")?;
    // Older files of this family leave its fixed value out.
    Ok(stored.or_else(|| (keys.prefix == "gemma3").then_some(10_000.0)))
}

fn rope_scaling(keys: &Keys<'_>) -> Result<RopeScaling, ModelError> {
    let kind = keys.read("rope.scaling.type", "text", |value| Some(value.as_str()?.to_string()))?;
    let factor = keys.optional_f64("rope.scaling.factor")?;
    // Before there was a type key, a plain scale meant linear stretching.
    let old_factor = keys.optional_f64("rope.scale_linear")?;
    match (kind.as_deref(), factor.or(old_factor)) {
        (Some("none"), _) | (None, None) => Ok(RopeScaling::None),
        (Some("linear") | None, Some(factor)) => Ok(RopeScaling::Linear { factor }),
        (Some("yarn"), Some(factor)) => Ok(RopeScaling::Yarn(yarn(keys, factor)?)),
        (Some("linear" | "yarn"), None) => {
            Err(ModelError::MissingKey { key: keys.name("rope.scaling.factor") })
        }
        (Some(found), _) => Err(ModelError::UnknownRopeScaling {
            key: keys.name("rope.scaling.type"),
            found: found.into(),
        }),
    }
}

fn yarn(keys: &Keys<'_>, factor: f64) -> Result<Yarn, ModelError> {
    let magnitude = keys.optional_f64("rope.scaling.attn_factor")?.unwrap_or(1.0)
        * Yarn::default_magnitude(factor);
    Ok(Yarn {
        factor,
        n_ctx_original: keys.f64("rope.scaling.original_context_length")?,
        beta_fast: keys.optional_f64("rope.scaling.yarn_beta_fast")?.unwrap_or(32.0),
        beta_slow: keys.optional_f64("rope.scaling.yarn_beta_slow")?.unwrap_or(1.0),
        truncate: true,
        magnitude,
    })
}

fn layers(family: &Family, keys: &Keys<'_>, n_layer: u32) -> Result<Vec<LayerConfig>, ModelError> {
    let window = keys.optional_u32("attention.sliding_window")?.filter(|&window| window > 0);
    let has_local_rope = local_rope_base(keys)?.is_some();
    let windows = windows(family, keys, n_layer)?;
    Ok((0..n_layer)
        .map(|i| {
            let window = window.filter(|_| windows(i));
            LayerConfig { window, rope: usize::from(window.is_some() && has_local_rope) }
        })
        .collect())
}

/// Tells of each layer whether it sees only a window: by the file's pattern, else by the family's.
fn windows(
    family: &Family,
    keys: &Keys<'_>,
    n_layer: u32,
) -> Result<Box<dyn Fn(u32) -> bool>, ModelError> {
    const PATTERN: &str = "attention.sliding_window_pattern";
    let Some(flags) = keys.get(PATTERN).and_then(Value::as_array).and_then(Array::to_u64s) else {
        let windows = keys.optional_u32(PATTERN)?.map_or(family.windows, Windows::AllButEach);
        return Ok(Box::new(move |i| windows.includes(i)));
    };
    if flags.len() < n_layer as usize {
        return Err(ModelError::BadValue {
            key: keys.name(PATTERN),
            found: format!("{} flags", flags.len()),
            expected: "a flag per layer",
        });
    }
    Ok(Box::new(move |i| flags[i as usize] != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn llama(changes: &[(&str, Value)]) -> Result<ModelConfig, ModelError> {
        let numbers = [
            ("llama.embedding_length", 64),
            ("llama.attention.head_count", 4),
            ("llama.block_count", 2),
            ("llama.feed_forward_length", 128),
            ("llama.vocab_size", 100),
            ("llama.context_length", 4096),
        ];
        let mut metadata = Metadata::default();
        metadata.insert("general.architecture".into(), Value::String("llama".into()));
        metadata.insert("llama.attention.layer_norm_rms_epsilon".into(), Value::F32(1e-5));
        for (key, number) in numbers {
            metadata.insert(key.into(), Value::U32(number));
        }
        for (key, value) in changes {
            metadata.insert((*key).into(), value.clone());
        }
        from_gguf(&metadata, None)
    }

    #[test]
    fn what_is_absent_is_derived() {
        let config = llama(&[]).unwrap();
        assert_eq!((config.n_kv_head, config.key_dim, config.value_dim), (4, 16, 16));
        assert_eq!(config.ropes[0].n_rot, 16);
        assert_eq!(config.attention_scale, 0.25);
    }

    #[test]
    fn head_sizes_are_read_before_they_are_derived_and_may_differ() {
        let config = llama(&[
            ("llama.attention.key_length", Value::U32(24)),
            ("llama.attention.value_length", Value::U32(8)),
        ])
        .unwrap();
        assert_eq!((config.key_dim, config.value_dim), (24, 8));
        assert_eq!((config.query_width(), config.attention_width()), (96, 32));
    }

    #[test]
    fn blocks_that_predict_ahead_are_no_layers() {
        let config = llama(&[("llama.nextn_predict_layers", Value::U32(1))]).unwrap();
        assert_eq!(config.n_layer(), 1);
    }

    #[test]
    fn a_value_per_layer_is_fine_when_all_are_equal() {
        let heads = |numbers: &[i32]| {
            llama(&[("llama.attention.head_count_kv", Value::Array(Array::I32(numbers.to_vec())))])
        };
        assert_eq!(heads(&[2, 2]).unwrap().n_kv_head, 2);
        assert!(matches!(heads(&[2, 4]), Err(ModelError::BadValue { .. })));
    }

    #[test]
    fn rope_scaling_is_applied_or_refused() {
        let scaled = |kind: &str| {
            llama(&[
                ("llama.rope.scaling.type", Value::String(kind.into())),
                ("llama.rope.scaling.factor", Value::F32(4.0)),
                ("llama.rope.scaling.original_context_length", Value::U32(1024)),
            ])
        };
        let linear = scaled("linear").unwrap();
        assert_eq!(linear.ropes[0].scaling, RopeScaling::Linear { factor: 4.0 });
        let yarn = scaled("yarn").unwrap();
        assert!((yarn.ropes[0].magnitude() - 1.138_629_4).abs() < 1e-6);
        assert!(matches!(scaled("spiral"), Err(ModelError::UnknownRopeScaling { .. })));
    }

    #[test]
    fn an_unknown_architecture_is_named_with_those_that_are_known() {
        let error = llama(&[("general.architecture", Value::String("mamba".into()))]);
        assert_eq!(
            error.unwrap_err().to_string(),
            "architecture 'mamba' (general.architecture) is not supported; supported: llama, \
             qwen2, qwen3, qwen3moe, gemma2, gemma3"
        );
    }
}
