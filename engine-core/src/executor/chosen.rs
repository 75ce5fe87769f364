//! A group of experts of which only those that the tokens of a pass choose are copied, once it is known which.

use std::collections::BTreeSet;
use std::sync::Arc;

use planner::{Bytes, Shard};

use super::placed::{Laid, Upload, lay_out};
use crate::model::{FfnConfig, Gated, Model, Network, StoredMatrix};
use crate::op::{Op, View};
use crate::scratch::Place;

/// Where the router and the norms of a group lie, and where its chosen experts go.
#[derive(Debug, Clone)]
pub(super) struct ChosenExperts {
    shard: usize,
    /// Everything but the experts; needed before they are chosen.
    pub(super) first: Vec<Upload>,
    /// Where the experts begin.
    experts: Place,
    stored: Gated<Arc<[StoredMatrix]>>,
}

/// Experts that were chosen, with their places.
pub(super) struct Brought {
    pub(super) uploads: Vec<Upload>,
    /// For each expert, chosen or not.
    views: Gated<Arc<[View]>>,
}

impl ChosenExperts {
    /// The group that is the shard at this place in running order.
    ///
    /// # Panics
    /// If that is no group of experts.
    pub(super) fn new(model: &Model, shard: usize, start: Place) -> ChosenExperts {
        let layer = match Shard::all(model.config.n_layer())[shard] {
            Shard::Ffn { layer } => &model.tensors.layers[layer as usize],
            other => panic!("{other:?} has no experts"),
        };
        let ffn = &layer.ffn;
        let Network::Experts { router, experts } = &ffn.network else {
            panic!("shard {shard} has no experts")
        };
        let others: Vec<StoredMatrix> =
            [ffn.norm, *router].into_iter().chain(ffn.post_norm).collect();
        let Laid { uploads, end, .. } = lay_out(shard, &others, start);
        ChosenExperts { shard, first: uploads, experts: end, stored: experts.clone() }
    }

    /// The room that passes of so many tokens need, whatever they choose.
    pub(super) fn room(model: &Model, shard: usize, n_tokens: u32) -> Bytes {
        let group = ChosenExperts::new(model, shard, Place::NOWHERE);
        let FfnConfig::Experts(config) = model.config.ffn else {
            panic!("a group of experts is of a model with experts")
        };
        let n_chosen = u64::from(config.n_expert.min(config.n_used.saturating_mul(n_tokens)));
        let one = lay_out(shard, &group.one(0), Place::NOWHERE).end.offset;
        group.experts.offset + one * n_chosen
    }

    fn one(&self, expert: usize) -> [StoredMatrix; 3] {
        let Gated { gate, up, down } = &self.stored;
        [gate[expert], up[expert], down[expert]]
    }

    /// The view of one of the group's tensors before any expert is chosen.
    pub(super) fn view(&self, stored: &StoredMatrix) -> View {
        let known = self.first.iter().find(|upload| upload.stored == *stored);
        known.map_or_else(|| nowhere(stored), |upload| upload.view)
    }

    /// Gives places to the experts that a pass chose.
    ///
    /// # Panics
    /// If an expert does not exist.
    pub(super) fn bring(&self, chosen: &BTreeSet<usize>) -> Brought {
        let all_nowhere = |group: &Arc<[StoredMatrix]>| group.iter().map(nowhere).collect();
        let mut views: [Vec<View>; 3] =
            [&self.stored.gate, &self.stored.up, &self.stored.down].map(all_nowhere);
        let mut uploads = Vec::with_capacity(3 * chosen.len());
        let mut next = self.experts;
        for &expert in chosen {
            let laid = lay_out(self.shard, &self.one(expert), next);
            next = laid.end;
            for (group, view) in views.iter_mut().zip(&laid.views) {
                group[expert] = *view;
            }
            uploads.extend(laid.uploads);
        }
        let [gate, up, down] = views.map(Arc::from);
        Brought { uploads, views: Gated { gate, up, down } }
    }
}

impl Brought {
    /// Points the products of a group's ops to where its experts are.
    pub(super) fn point(&self, ops: &mut [Op]) {
        let Gated { gate, up, down } = &self.views;
        let products = ops.iter_mut().filter_map(|op| match op {
            Op::MatMulExperts(product) => Some(product),
            _ => None,
        });
        // In the order in which they are lowered.
        for (product, group) in products.zip([gate, up, down]) {
            product.w = group.clone();
        }
    }
}

/// A view that no backend takes.
pub(super) fn nowhere(stored: &StoredMatrix) -> View {
    let Place { buffer, offset } = Place::NOWHERE;
    View { buffer, offset, shape: stored.shape, dtype: stored.dtype }
}
