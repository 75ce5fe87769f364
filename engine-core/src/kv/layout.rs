//! How many cells each layer has, and where they lie.

use planner::Bytes;

use crate::backend::BufferId;
use crate::model::{LayerConfig, ModelConfig};
use crate::op::View;
use crate::scratch::{ALIGNMENT, Layout, PassLimits, Place};
use crate::weights::DType;

/// Layers that see the same cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvGroup {
    /// Cells of each layer.
    pub n_cells: u32,
    /// Most cells that a token sees; all of its sequence when absent. Those that no later token sees can be used again.
    pub window: Option<u32>,
}

impl KvGroup {
    /// The group of a layer: with a window, it has cells for the tokens of the largest pass and for what the first of
    /// them sees besides itself. Where the whole context takes no more than that, nothing need be used again.
    fn of(layer: LayerConfig, limits: PassLimits) -> KvGroup {
        let seen_before = |window: u32| window.saturating_sub(1);
        let kept = |window| seen_before(window).saturating_add(limits.n_tokens);
        let window = layer.window.filter(|&window| kept(window) < limits.n_cells);
        KvGroup { n_cells: window.map_or(limits.n_cells, kept), window }
    }
}

/// The groups of a model, and which each layer belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KvGroups {
    groups: Vec<KvGroup>,
    of_layer: Vec<usize>,
}

impl KvGroups {
    /// The groups of a model with these layers, run within `limits`.
    pub fn of(layers: &[LayerConfig], limits: PassLimits) -> KvGroups {
        let mut groups = Vec::new();
        let of_layer = layers.iter().map(|&layer| {
            let group = KvGroup::of(layer, limits);
            groups.iter().position(|&known| known == group).unwrap_or_else(|| {
                groups.push(group);
                groups.len() - 1
            })
        });
        KvGroups { of_layer: of_layer.collect(), groups }
    }

    /// All of them, in the order in which layers first name them.
    pub fn all(&self) -> &[KvGroup] {
        &self.groups
    }
}

/// K and V of one layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KvViews {
    /// Index of the layer's group.
    pub group: usize,
    /// `[n_cells, n_kv_head · key_dim]`.
    pub k: View,
    /// `[n_cells, n_kv_head · value_dim]`.
    pub v: View,
}

impl KvViews {
    /// Lays out all layers from the start of `buffer` on; gives the views and the size that the buffer must have.
    ///
    /// `dtype` is F16 or F32.
    pub fn layout(
        config: &ModelConfig,
        groups: &KvGroups,
        dtype: DType,
        buffer: BufferId,
    ) -> (Vec<KvViews>, Bytes) {
        let mut layout = Layout::new(Place::start_of(buffer));
        let views = groups.of_layer.iter().map(|&group| {
            let n_cells = groups.groups[group].n_cells;
            let k = layout.place(n_cells, config.key_width(), dtype);
            KvViews { group, k, v: layout.place(n_cells, config.value_width(), dtype) }
        });
        (views.collect(), layout.end())
    }

    /// The room that the layer takes.
    pub fn room(&self) -> Bytes {
        [self.k, self.v].iter().map(|view| view.bytes().align_up(ALIGNMENT)).sum()
    }

    /// The same layer at another place.
    pub fn at(self, Place { buffer, offset }: Place) -> KvViews {
        let k = View { buffer, offset, ..self.k };
        let v = View { buffer, offset: offset + k.bytes().align_up(ALIGNMENT), ..self.v };
        KvViews { k, v, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_bounds_the_cells_where_that_is_less_than_all() {
        let group = |window, n_cells| {
            let limits = PassLimits { n_tokens: 512, n_outputs: 1, n_cells };
            let group = KvGroup::of(LayerConfig { window, rope: 0 }, limits);
            (group.n_cells, group.window)
        };
        assert_eq!(group(None, 8192), (8192, None));
        assert_eq!(group(Some(1024), 8192), (1535, Some(1024)));
        assert_eq!(group(Some(1), 8192), (512, Some(1)));
        assert_eq!(group(Some(1024), 1535), (1535, None));
        assert_eq!(group(Some(u32::MAX), 8192), (8192, None));
    }
}
