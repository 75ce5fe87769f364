//! Rotations.

use super::keys::Keys;
use crate::model::{ModelError, RopeConfig, RopeScaling, Yarn};

/// One rotation. `keys` is the object that describes the scaling, if there is one.
pub(super) fn rope(
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
