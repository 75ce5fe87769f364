//! One pass: inputs to the devices, the steps in order, logits back.

use std::time::Instant;

use super::ExecutorError;
use super::cpu::Cpu;
use super::gpu::Gpu;
use super::inputs::write_inputs;
use super::placed::PlacedPlan;
use super::recorder::Recorder;
use crate::backend::BackendError;
use crate::batch::PassInputs;
use crate::cancel::Cancel;
use crate::model::{Lowering, ModelConfig, Shard};
use crate::op::Op;
use crate::schedule::{Device, Schedule, Source, Split, Step};
use crate::scratch::PassViews;

/// A pass with more tokens than this is submitted to the CPU shard by shard, so that it can be cancelled in between.
const LARGEST_UNDIVIDED_PASS: u32 = 16;

/// Memory that is reused from pass to pass.
#[derive(Default)]
pub(super) struct Work {
    ops: Vec<Op>,
    bytes: Vec<u8>,
}

/// One pass.
pub(super) struct Pass<'a> {
    pub(super) config: &'a ModelConfig,
    pub(super) shards: &'a [Shard],
    pub(super) cpu: &'a mut Cpu,
    pub(super) cpu_views: PassViews,
    pub(super) gpu: Option<GpuSide<'a>>,
    pub(super) inputs: &'a PassInputs,
    /// Cells in use of each group of layers, those of this pass among them.
    pub(super) used: &'a [u32],
    pub(super) cancel: &'a Cancel,
    pub(super) recorder: Option<&'a mut Recorder>,
    pub(super) work: &'a mut Work,
}

/// The GPU in a pass.
pub(super) struct GpuSide<'a> {
    pub(super) gpu: &'a mut Gpu,
    pub(super) plan: &'a PlacedPlan,
    pub(super) views: PassViews,
}

impl Pass<'_> {
    /// Carries out the steps and replaces `logits`.
    pub(super) fn run(
        &mut self,
        schedule: &Schedule,
        logits: &mut Vec<f32>,
    ) -> Result<(), ExecutorError> {
        if schedule.uses(Device::Cpu) {
            let backend = self.cpu.backend.as_mut();
            write_inputs(self.config, backend, &self.cpu_views, self.inputs, &mut self.work.bytes)?;
        }
        if schedule.uses(Device::Gpu) {
            let GpuSide { gpu, plan, views } = self.gpu.as_mut().expect(GPU);
            let bytes = &mut self.work.bytes;
            write_inputs(self.config, gpu.stream().backend(), views, self.inputs, bytes)?;
            gpu.begin(plan, self.used)?;
        }
        for step in &schedule.steps {
            match step {
                Step::Upload(copy) => {
                    let GpuSide { gpu, plan, .. } = self.gpu.as_mut().expect(GPU);
                    gpu.start_copy(plan, *copy, self.used)?;
                }
                Step::Handoff { to, before } => {
                    let start = Instant::now();
                    self.hand_over(*to, *before)?;
                    if let Some(recorder) = &mut self.recorder {
                        let ran = self.gpu.as_mut().and_then(|side| side.gpu.stream().ran());
                        recorder.handoff(*before, ran.filter(|_| *to == Device::Cpu), start);
                    }
                }
                Step::Run(_) if self.cancel.is_cancelled() => {
                    return Err(ExecutorError::Cancelled);
                }
                Step::Run(split) => match split.device {
                    Device::Cpu => self.run_on_cpu(split)?,
                    Device::Gpu => self.run_on_gpu(split)?,
                },
            }
        }
        self.read_logits(schedule.output, logits)?;
        Ok(())
    }

    /// Moves what the next shard needs from one device to the other.
    fn hand_over(&mut self, to: Device, before: usize) -> Result<(), BackendError> {
        let GpuSide { gpu, views, .. } = self.gpu.as_mut().expect(GPU);
        // From the last FFN on there are only the tokens whose logits are wanted.
        let is_output = self.shards[before] == Shard::Output;
        let live = |views: &PassViews| {
            if is_output { views.output_residual } else { views.residual }
        };
        let (on_cpu, on_gpu) = (live(&self.cpu_views), live(views));
        let bytes = &mut self.work.bytes;
        bytes.resize(on_cpu.bytes().as_usize(), 0);
        match to {
            _ if bytes.is_empty() => Ok(()),
            Device::Cpu => {
                gpu.stream().read(&on_gpu, bytes)?;
                self.cpu.backend.write(&on_cpu, bytes)
            }
            Device::Gpu => {
                self.cpu.backend.read(&on_cpu, bytes, &[])?;
                gpu.stream().backend().write(&on_gpu, bytes)
            }
        }
    }

    fn run_on_cpu(&mut self, split: &Split) -> Result<(), ExecutorError> {
        let shards = &self.shards[split.shards.clone()];
        let lowering = Lowering {
            config: self.config,
            tensors: &self.cpu.memory.tensors,
            kv: &self.cpu.memory.kv,
            pass: &self.cpu_views,
        };
        let many = self.cpu_views.residual.rows() > LARGEST_UNDIVIDED_PASS;
        let start = Instant::now();
        for shards in shards.chunks(if many { 1 } else { shards.len().max(1) }) {
            if self.cancel.is_cancelled() {
                return Err(ExecutorError::Cancelled);
            }
            let ops = lower(&lowering, shards, &mut self.work.ops);
            let fence = self.cpu.backend.submit(ops, &[])?;
            self.cpu.backend.wait(fence)?;
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.cpu(split.shards.start, start);
        }
        Ok(())
    }

    fn run_on_gpu(&mut self, split: &Split) -> Result<(), ExecutorError> {
        let GpuSide { gpu, plan, views } = self.gpu.as_mut().expect(GPU);
        let lowering = Lowering {
            config: self.config,
            tensors: &plan.memory.tensors,
            kv: &plan.memory.kv,
            pass: views,
        };
        let ops = lower(&lowering, &self.shards[split.shards.clone()], &mut self.work.ops);
        let first = split.shards.start;
        match split.source {
            Source::Resident => gpu.submit(first, ops, None)?,
            Source::Chosen => gpu.submit_chosen(plan, first, ops)?,
            Source::Copied(copy) => {
                gpu.submit(first, ops, Some(copy))?;
                if let Shard::Attention { layer } = self.shards[first] {
                    let group = plan.memory.kv[layer as usize].group;
                    let written = &self.inputs.cells[group].written;
                    gpu.keep_written(plan, layer as usize, written)?;
                }
            }
        }
        Ok(())
    }

    fn read_logits(&mut self, from: Device, logits: &mut Vec<f32>) -> Result<(), BackendError> {
        let bytes = &mut self.work.bytes;
        bytes.resize(self.cpu_views.logits.bytes().as_usize(), 0);
        match from {
            _ if bytes.is_empty() => {}
            Device::Cpu => self.cpu.backend.read(&self.cpu_views.logits, bytes, &[])?,
            Device::Gpu => {
                let GpuSide { gpu, views, .. } = self.gpu.as_mut().expect(GPU);
                gpu.stream().read(&views.logits, bytes)?;
            }
        }
        logits.clear();
        let (numbers, _) = bytes.as_chunks::<4>();
        logits.extend(numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)));
        Ok(())
    }
}

/// Why the GPU is there.
const GPU: &str = "a schedule with steps for the GPU is of a plan for one";

fn lower<'w>(lowering: &Lowering<'_>, shards: &[Shard], ops: &'w mut Vec<Op>) -> &'w mut [Op] {
    ops.clear();
    for &shard in shards {
        lowering.lower(shard, ops);
    }
    ops
}
