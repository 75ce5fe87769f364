//! Memory of one model on one device, as views.

use std::iter;

use planner::Bytes;

use crate::backend::{Backend, BackendError, HostSlice};
use crate::batch::PassInputs;
use crate::kv::{KvGroups, KvViews};
use crate::model::{Model, ModelConfig, ModelTensors};
use crate::op::View;
use crate::scratch::{PassLimits, PassViews, Place};
use crate::weights::{DType, Weights};

/// Memory of one model on one device, as views.
#[derive(Debug, Clone)]
pub struct DeviceMemory {
    /// Weights.
    pub(super) tensors: ModelTensors<View>,
    /// KV cells of each layer.
    pub(super) kv: Vec<KvViews>,
    /// The largest ubatch.
    pub(super) pass: PassViews,
    /// Residuals of the other ubatches of a pass of several.
    pub(super) waiting: Vec<View>,
}

/// What a device must have room for besides weights used in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryNeed {
    /// KV cache.
    pub kv: Bytes,
    /// Activations and inputs of the largest pass.
    pub scratch: Bytes,
}

impl MemoryNeed {
    /// The need of a model run within `limits`.
    pub fn of(config: &ModelConfig, limits: PassLimits, kv_dtype: DType) -> MemoryNeed {
        let groups = KvGroups::of(&config.layers, limits);
        MemoryNeed {
            kv: KvViews::layout(config, &groups, kv_dtype, Place::NOWHERE.buffer).1,
            scratch: PassViews::layout(config, &groups, limits, Place::NOWHERE).1,
        }
    }

    /// All of it.
    pub fn total(self) -> Bytes {
        self.kv + self.scratch
    }
}

impl DeviceMemory {
    /// Takes the memory of a model that the device uses in place in the model's files.
    pub fn in_place(
        backend: &mut dyn Backend,
        model: &Model,
        weights: &Weights,
        limits: PassLimits,
        kv_dtype: DType,
    ) -> Result<DeviceMemory, BackendError> {
        let files = weights
            .files()
            .iter()
            .map(|file| backend.import(HostSlice::whole(file.region.clone())))
            .collect::<Result<Vec<_>, _>>()?;
        let config = &model.config;
        let need = MemoryNeed::of(config, limits, kv_dtype);
        let groups = KvGroups::of(&config.layers, limits);
        let kv_buffer = backend.alloc(need.kv)?;
        let scratch = backend.alloc(need.scratch)?;
        Ok(DeviceMemory {
            tensors: model.tensors.map(|stored| View {
                buffer: files[stored.region],
                offset: stored.offset,
                shape: stored.shape,
                dtype: stored.dtype,
            }),
            kv: KvViews::layout(config, &groups, kv_dtype, kv_buffer).0,
            pass: PassViews::layout(config, &groups, limits, Place::start_of(scratch)).0,
            waiting: Vec::new(),
        })
    }

    /// The views of each ubatch of a pass: inputs and activations are shared, since ubatches take turns; residuals are not.
    pub(super) fn ubatches(&self, inputs: &[PassInputs]) -> Vec<PassViews> {
        let residuals = iter::once(self.pass.residual).chain(self.waiting.iter().copied());
        let pairs = inputs.iter().zip(residuals);
        pairs
            .map(|(inputs, residual)| self.pass.cut(inputs.size()).with_residual(residual))
            .collect()
    }
}
