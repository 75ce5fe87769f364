//! Walks the steps of a schedule. The only code that moves data between the host and backends during a pass.

use planner::Bytes;
use thiserror::Error;

use crate::backend::{Backend, BackendError, Backends, BufferId, HostSlice};
use crate::batch::PassInputs;
use crate::cancel::Cancel;
use crate::kv::{KvGroups, KvViews};
use crate::model::{Lowering, Model, ModelConfig, ModelTensors, Shard};
use crate::op::{Op, View};
use crate::schedule::{Device, Schedule, Split, Step};
use crate::scratch::{PassLimits, PassViews};
use crate::weights::{DType, Weights};

/// A pass with more tokens than this is submitted shard by shard, so that it can be cancelled in between.
const LARGEST_UNDIVIDED_PASS: u32 = 16;

/// Why a pass did not give logits.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExecutorError {
    /// A device failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
}

/// Memory of one model on one device, as views.
#[derive(Debug)]
pub struct DeviceMemory {
    tensors: ModelTensors<View>,
    kv: Vec<KvViews>,
    /// The largest pass.
    pass: PassViews,
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
        let nowhere = BufferId(0);
        let groups = KvGroups::of(&config.layers, limits);
        MemoryNeed {
            kv: KvViews::layout(config, &groups, kv_dtype, nowhere).1,
            scratch: PassViews::layout(config, limits, nowhere).1,
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
            pass: PassViews::layout(config, limits, scratch).0,
        })
    }
}

/// Runs passes of one model.
pub struct Executor {
    backends: Backends,
    config: ModelConfig,
    memory: DeviceMemory,
    schedule: Schedule,
    /// Reused from pass to pass.
    ops: Vec<Op>,
    bytes: Vec<u8>,
}

impl Executor {
    /// An executor over memory already taken on the CPU.
    ///
    /// # Errors
    /// If the device refuses the constant inputs.
    pub fn new(
        backends: Backends,
        config: ModelConfig,
        memory: DeviceMemory,
    ) -> Result<Executor, BackendError> {
        let schedule = Schedule::all_cpu(config.n_layer());
        let (ops, bytes) = (Vec::new(), Vec::new());
        let mut executor = Executor { backends, config, memory, schedule, ops, bytes };
        for rope in 0..executor.config.ropes.len() {
            executor.write_inv_freq(rope, 1)?;
        }
        Ok(executor)
    }

    /// Runs one pass and replaces `logits` with `[n_outputs, n_vocab]`. Sets of inputs larger than the limits that the
    /// memory was laid out for are a bug of the caller.
    ///
    /// # Errors
    /// A device failure, or a cancelled run; KV cells of the pass then hold nothing of use.
    pub fn run(
        &mut self,
        inputs: &PassInputs,
        cancel: &Cancel,
        logits: &mut Vec<f32>,
    ) -> Result<(), ExecutorError> {
        let pass = self.memory.pass.cut(inputs.size());
        self.write_inputs(inputs, &pass)?;
        for step in &self.schedule.steps {
            match step {
                Step::Run(split) => {
                    let run = RunSplit {
                        backend: match split.device {
                            Device::Cpu => self.backends.cpu.as_mut(),
                        },
                        lowering: Lowering {
                            config: &self.config,
                            tensors: &self.memory.tensors,
                            kv: &self.memory.kv,
                            pass: &pass,
                        },
                        ops: &mut self.ops,
                        cancel,
                    };
                    run.run(split, &self.schedule.shards)?;
                }
            }
        }
        self.read_logits(&pass, logits)?;
        Ok(())
    }

    fn write_inputs(&mut self, inputs: &PassInputs, pass: &PassViews) -> Result<(), BackendError> {
        let arrays = [
            (&pass.token_ids, &inputs.token_ids),
            (&pass.positions, &inputs.positions),
            (&pass.spans, &inputs.spans),
            (&pass.output_rows, &inputs.output_rows),
        ];
        let groups = pass.cells.iter().zip(&inputs.cells);
        let cells = groups.flat_map(|(views, inputs)| {
            [(&views.written, &inputs.written), (&views.seen, &inputs.seen)]
        });
        for (view, numbers) in arrays.into_iter().chain(cells) {
            self.bytes.clear();
            self.bytes.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
            self.backends.cpu.write(view, &self.bytes)?;
        }
        for rope in 0..self.config.ropes.len() {
            if self.config.ropes[rope].depends_on_length() {
                self.write_inv_freq(rope, inputs.longest)?;
            }
        }
        Ok(())
    }

    fn write_inv_freq(&mut self, rope: usize, length: u32) -> Result<(), BackendError> {
        let table = self.config.ropes[rope].inv_freq(length);
        let bytes: Vec<u8> = table.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.backends.cpu.write(&self.memory.pass.inv_freq[rope], &bytes)
    }

    fn read_logits(&mut self, pass: &PassViews, logits: &mut Vec<f32>) -> Result<(), BackendError> {
        let view = pass.logits;
        self.bytes.resize(view.bytes().as_usize(), 0);
        self.backends.cpu.read(&view, &mut self.bytes, &[])?;
        logits.clear();
        let (numbers, _) = self.bytes.as_chunks::<4>();
        logits.extend(numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)));
        Ok(())
    }
}

/// One split of one pass.
struct RunSplit<'a> {
    backend: &'a mut dyn Backend,
    lowering: Lowering<'a>,
    ops: &'a mut Vec<Op>,
    cancel: &'a Cancel,
}

impl RunSplit<'_> {
    fn run(self, split: &Split, shards: &[Shard]) -> Result<(), ExecutorError> {
        let RunSplit { backend, lowering, ops, cancel } = self;
        let pass = lowering.pass;
        let shards = &shards[split.shards.clone()];
        let group =
            if pass.residual.rows() > LARGEST_UNDIVIDED_PASS { 1 } else { shards.len().max(1) };
        for shards in shards.chunks(group) {
            if cancel.is_cancelled() {
                return Err(ExecutorError::Cancelled);
            }
            ops.clear();
            for &shard in shards {
                lowering.lower(shard, ops);
            }
            let fence = backend.submit(ops, &[])?;
            backend.wait(fence)?;
        }
        Ok(())
    }
}
