//! Which layers see only a window.

use super::keys::Keys;
use crate::model::{Family, ModelError, Windows};

/// Which layers see only a window.
pub(super) struct WindowedLayers {
    window: Option<u32>,
    local: LocalLayers,
}

/// By the file's list, or by a pattern.
enum LocalLayers {
    Listed(Vec<bool>),
    Pattern(Windows),
    From(u32),
}

impl WindowedLayers {
    pub(super) fn read(family: &Family, root: &Keys<'_>, n_layer: u32) -> Result<Self, ModelError> {
        let switched_off = root.optional_bool("use_sliding_window")? == Some(false);
        let window =
            root.optional_u32("sliding_window")?.filter(|&window| window > 0 && !switched_off);
        Ok(WindowedLayers { window, local: LocalLayers::read(family, root, n_layer)? })
    }

    /// Most cells a token sees in layer `layer`; all when absent.
    pub(super) fn window_of(&self, layer: u32) -> Option<u32> {
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
