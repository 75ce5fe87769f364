//! One pass of one ubatch or several: inputs to the devices, the steps in order, logits back.

use std::time::Instant;

use super::ExecutorError;
use super::cpu::Cpu;
use super::gpu::Gpu;
use super::inputs::write_inputs;
use super::placed::PlacedPlan;
use super::recorder::Recorder;
use crate::backend::{Backend, BackendError};
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

/// One pass. Each shard computes all ubatches before the next shard's turn; only of the last one logits are wanted.
pub(super) struct Pass<'a> {
    pub(super) config: &'a ModelConfig,
    pub(super) shards: &'a [Shard],
    pub(super) cpu: CpuSide<'a>,
    pub(super) gpu: Option<GpuSide<'a>>,
    pub(super) ubatches: &'a [PassInputs],
    /// Cells in use of each group of layers, those of this pass among them.
    pub(super) used: &'a [u32],
    /// The next pass is expected to have the same plan.
    pub(super) goes_on: bool,
    pub(super) cancel: &'a Cancel,
    pub(super) recorder: Option<&'a mut Recorder>,
    pub(super) work: &'a mut Work,
}

/// The CPU in a pass.
pub(super) struct CpuSide<'a> {
    pub(super) cpu: &'a mut Cpu,
    /// Of each ubatch.
    pub(super) views: Vec<PassViews>,
    /// The ubatch whose inputs it has.
    pub(super) has: Option<usize>,
}

/// The GPU in a pass.
pub(super) struct GpuSide<'a> {
    pub(super) gpu: &'a mut Gpu,
    pub(super) plan: &'a PlacedPlan,
    /// Of each ubatch.
    pub(super) views: Vec<PassViews>,
    /// The ubatch whose inputs it has.
    pub(super) has: Option<usize>,
}

impl Pass<'_> {
    /// Carries out the steps and replaces `logits`.
    pub(super) fn run(
        &mut self,
        schedule: &Schedule,
        logits: &mut Vec<f32>,
    ) -> Result<(), ExecutorError> {
        if schedule.uses(Device::Cpu) {
            self.write_inputs(Device::Cpu, 0)?;
        }
        if schedule.uses(Device::Gpu) {
            self.write_inputs(Device::Gpu, 0)?;
            let GpuSide { gpu, plan, .. } = self.gpu.as_mut().expect(GPU);
            gpu.begin(plan, self.used)?;
        }
        for step in &schedule.steps {
            match step {
                Step::Upload { is_ahead: true, .. } if !self.goes_on => {}
                Step::Upload { copy, .. } => {
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
                Step::Run(split) => self.run_split(split)?,
            }
        }
        if let Some(GpuSide { gpu, .. }) = &mut self.gpu {
            gpu.end(self.goes_on);
        }
        self.read_logits(schedule.output, logits)?;
        Ok(())
    }

    fn run_split(&mut self, split: &Split) -> Result<(), ExecutorError> {
        for ubatch in 0..self.ubatches.len() {
            if self.cancel.is_cancelled() {
                return Err(ExecutorError::Cancelled);
            }
            match split.device {
                Device::Cpu => self.run_on_cpu(split, ubatch)?,
                Device::Gpu => self.run_on_gpu(split, ubatch)?,
            }
        }
        self.keep_written(split)?;
        Ok(())
    }

    /// Writes the inputs of an ubatch to a device, unless it has them.
    fn write_inputs(&mut self, device: Device, ubatch: usize) -> Result<(), BackendError> {
        let (backend, views, has) = match device {
            Device::Cpu => {
                let CpuSide { cpu, views, has } = &mut self.cpu;
                (cpu.backend.as_mut() as &mut dyn Backend, views, has)
            }
            Device::Gpu => {
                let GpuSide { gpu, views, has, .. } = self.gpu.as_mut().expect(GPU);
                (gpu.stream().backend(), views, has)
            }
        };
        if *has != Some(ubatch) {
            let (views, inputs) = (&views[ubatch], &self.ubatches[ubatch]);
            write_inputs(self.config, backend, views, inputs, &mut self.work.bytes)?;
            *has = Some(ubatch);
        }
        Ok(())
    }

    /// Moves what the next shard needs from one device to the other.
    fn hand_over(&mut self, to: Device, before: usize) -> Result<(), BackendError> {
        let (cpu, gpu) = (&mut self.cpu, self.gpu.as_mut().expect(GPU));
        // From the last FFN on there are only the tokens whose logits are wanted.
        let is_output = self.shards[before] == Shard::Output;
        let live = |views: &PassViews| {
            if is_output { views.output_residual } else { views.residual }
        };
        let bytes = &mut self.work.bytes;
        for (on_cpu, on_gpu) in cpu.views.iter().map(live).zip(gpu.views.iter().map(live)) {
            bytes.resize(on_cpu.bytes().as_usize(), 0);
            match to {
                _ if bytes.is_empty() => {}
                Device::Cpu => {
                    gpu.gpu.stream().read(&on_gpu, bytes)?;
                    cpu.cpu.backend.write(&on_cpu, bytes)?;
                }
                Device::Gpu => {
                    cpu.cpu.backend.read(&on_cpu, bytes, &[])?;
                    gpu.gpu.stream().backend().write(&on_gpu, bytes)?;
                }
            }
        }
        Ok(())
    }

    fn run_on_cpu(&mut self, split: &Split, ubatch: usize) -> Result<(), ExecutorError> {
        self.write_inputs(Device::Cpu, ubatch)?;
        let shards = &self.shards[split.shards.clone()];
        let CpuSide { cpu, views, .. } = &mut self.cpu;
        let lowering = Lowering {
            config: self.config,
            tensors: &cpu.memory.tensors,
            kv: &cpu.memory.kv,
            pass: &views[ubatch],
        };
        let many = views[ubatch].residual.rows() > LARGEST_UNDIVIDED_PASS;
        let start = Instant::now();
        for shards in shards.chunks(if many { 1 } else { shards.len().max(1) }) {
            if self.cancel.is_cancelled() {
                return Err(ExecutorError::Cancelled);
            }
            let ops = lower(&lowering, shards, &mut self.work.ops);
            let fence = cpu.backend.submit(ops, &[])?;
            cpu.backend.wait(fence)?;
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.cpu(split.shards.start, start);
        }
        Ok(())
    }

    fn run_on_gpu(&mut self, split: &Split, ubatch: usize) -> Result<(), ExecutorError> {
        self.write_inputs(Device::Gpu, ubatch)?;
        let GpuSide { gpu, plan, views, .. } = self.gpu.as_mut().expect(GPU);
        let lowering = Lowering {
            config: self.config,
            tensors: &plan.memory.tensors,
            kv: &plan.memory.kv,
            pass: &views[ubatch],
        };
        let ops = lower(&lowering, &self.shards[split.shards.clone()], &mut self.work.ops);
        let first = split.shards.start;
        match split.source {
            Source::Resident => gpu.submit(first, ops, None)?,
            Source::Chosen => gpu.submit_chosen(plan, first, ops)?,
            Source::Copied(copy) => gpu.submit(first, ops, Some(copy))?,
        }
        Ok(())
    }

    /// Brings the cells that streamed attention has written to host memory.
    fn keep_written(&mut self, split: &Split) -> Result<(), BackendError> {
        let (Source::Copied(_), Shard::Attention { layer }) =
            (split.source, self.shards[split.shards.start])
        else {
            return Ok(());
        };
        let GpuSide { gpu, plan, .. } = self.gpu.as_mut().expect(GPU);
        let group = plan.memory.kv[layer as usize].group;
        let written = self.ubatches.iter().map(|inputs| &inputs.cells[group].written[..]);
        gpu.keep_written(plan, layer as usize, written)
    }

    fn read_logits(&mut self, from: Device, logits: &mut Vec<f32>) -> Result<(), BackendError> {
        let bytes = &mut self.work.bytes;
        let last = self.ubatches.len() - 1;
        let on_cpu = &self.cpu.views[last].logits;
        bytes.resize(on_cpu.bytes().as_usize(), 0);
        match from {
            _ if bytes.is_empty() => {}
            Device::Cpu => self.cpu.cpu.backend.read(on_cpu, bytes, &[])?,
            Device::Gpu => {
                let GpuSide { gpu, views, .. } = self.gpu.as_mut().expect(GPU);
                gpu.stream().read(&views[last].logits, bytes)?;
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
