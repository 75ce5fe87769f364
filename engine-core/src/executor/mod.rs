//! Walks the steps of a schedule. The only code that moves data between the host and backends during a pass.

mod check;
mod choice;
mod chosen;
mod cpu;
mod gpu;
mod inputs;
mod kv_home;
mod memory;
mod pass;
mod placed;
#[cfg(test)]
mod proofs;
mod recorder;
mod stream;

use std::time::Instant;

use planner::{Bytes, BytesPerSec, Seconds, TierPlan};
use thiserror::Error;

pub use self::check::PlanFault;
pub use self::memory::{DeviceMemory, MemoryNeed};

use self::choice::Choice;
use self::cpu::Cpu;
use self::gpu::{Gpu, Host};
use self::inputs::write_all_inv_freq;
use self::pass::{CpuSide, GpuSide, Pass, Work};
use self::placed::PlacedPlan;
use self::recorder::{Begun, Recorder};
use crate::backend::{Backend, BackendError};
use crate::batch::PassInputs;
use crate::cancel::Cancel;
use crate::kv::KvGroups;
use crate::model::{Model, ModelConfig, Shard};
use crate::schedule::Schedule;
use crate::scratch::PassLimits;
use crate::trace::Trace;
use crate::weights::{DType, Weights};

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

/// Why a GPU could not be made ready.
#[derive(Debug, Error)]
pub enum SetupError {
    /// The device refused or failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// A plan does not fit.
    #[error("the plan for {n_tokens} tokens: {fault}")]
    Plan {
        /// Tokens of the passes that it is for.
        n_tokens: u32,
        /// What does not fit.
        fault: PlanFault,
    },
}

/// What an executor runs, and within which limits.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The model.
    pub model: &'a Model,
    /// Its files.
    pub weights: &'a Weights,
    /// The largest pass.
    pub limits: PassLimits,
    /// Format of KV cells.
    pub kv_dtype: DType,
}

/// Runs passes of one model.
pub struct Executor {
    config: ModelConfig,
    shards: Vec<Shard>,
    cpu: Cpu,
    all_cpu: Schedule,
    gpu: Option<Planned>,
    /// Cells of each group of layers that have been written at least once: those before this one.
    used: Vec<u32>,
    /// While what runs is traced.
    recorder: Option<Recorder>,
    /// Reused from pass to pass.
    work: Work,
}

/// A GPU and the plans that it carries out, those for fewer tokens first.
struct Planned {
    gpu: Gpu,
    plans: Vec<PlacedPlan>,
    choice: Choice,
}

impl Planned {
    /// The plan for the first of so many ubatches of `n_tokens`.
    fn choose(&self, n_tokens: u32, n_ubatches: u32) -> usize {
        self.choice.plan(n_tokens, n_ubatches, self.gpu.laid_out())
    }

    /// Whether a pass with this plan, which so many ubatches like it follow, is likely followed by another one: what comes
    /// after a prompt is its answer.
    fn goes_on(&self, plan: usize, n_after: u32) -> bool {
        n_after > 0 || self.choice.plan(1, 1, Some(plan)) == plan
    }
}

/// Plans for a GPU.
#[derive(Debug, Clone, Copy)]
pub struct GpuPlans<'a> {
    /// Those for fewer tokens first; the last is for the largest pass.
    pub tiers: &'a [TierPlan],
    /// Seconds of a pass of each tier under its own plan and those after it.
    pub times: &'a [Vec<Seconds>],
    /// Rate of copies to the GPU.
    pub h2d: BytesPerSec,
    /// VRAM that any of them may take.
    pub budget: Bytes,
    /// Tokens of an answer that a change of plan must pay within.
    pub n_gen: u32,
}

impl Executor {
    /// Takes the memory of a model on the CPU, which uses the files in place.
    ///
    /// # Errors
    /// If the device refuses the memory or the constant inputs.
    pub fn new(
        subject: &Subject<'_>,
        mut backend: Box<dyn Backend>,
    ) -> Result<Executor, BackendError> {
        let Subject { model, weights, limits, kv_dtype } = *subject;
        let config = model.config.clone();
        let memory = DeviceMemory::in_place(backend.as_mut(), model, weights, limits, kv_dtype)?;
        let shards = Shard::all(config.n_layer());
        let mut cpu = Cpu { backend, memory };
        write_all_inv_freq(&config, cpu.backend.as_mut(), &cpu.memory.pass)?;
        Ok(Executor {
            all_cpu: Schedule::all_cpu(shards.len()),
            used: vec![0; KvGroups::of(&config.layers, limits).all().len()],
            config,
            shards,
            cpu,
            gpu: None,
            recorder: None,
            work: Work::default(),
        })
    }

    /// Takes memory on a GPU for some plans, and lays it out for the largest pass.
    ///
    /// # Errors
    /// A plan that does not fit the model or the budget; a device that refuses the memory, or fails.
    ///
    /// # Panics
    /// If there is no plan.
    pub fn add_gpu(
        &mut self,
        subject: &Subject<'_>,
        backend: Box<dyn Backend>,
        plans: &GpuPlans<'_>,
    ) -> Result<(), SetupError> {
        let (gpu, placed) = Gpu::new(backend, subject, plans.tiers, plans.budget)?;
        let choice = Choice::new(&placed, plans);
        let planned = self.gpu.insert(Planned { gpu, plans: placed, choice });
        let last = planned.plans.len().checked_sub(1).expect("there is a plan");
        let host = Host { cpu: &mut self.cpu, config: &self.config, used: &self.used };
        planned.gpu.lay_out(last, &planned.plans[last], host)?;
        self.cpu.take_waiting(self.most_ubatches() - 1)?;
        Ok(())
    }

    /// Most ubatches that any plan takes in one pass.
    pub fn most_ubatches(&self) -> u32 {
        let plans = self.gpu.iter().flat_map(|planned| &planned.plans);
        plans.map(|plan| plan.n_ubatches).max().unwrap_or(1)
    }

    /// Runs some ubatches, which so many like them follow, in as few passes as there is a plan for, and replaces `logits`
    /// with those of the last one, `[n_outputs, n_vocab]`. Ubatches larger than the limits that the memory was laid out
    /// for are a bug of the caller, and so are logits wanted of others than the last.
    ///
    /// # Errors
    /// A device failure, or a cancelled run; KV cells of the ubatches then hold nothing of use.
    pub fn run(
        &mut self,
        ubatches: &[PassInputs],
        n_after: u32,
        cancel: &Cancel,
        logits: &mut Vec<f32>,
    ) -> Result<(), ExecutorError> {
        let mut rest = ubatches;
        while !rest.is_empty() {
            let result = self.run_pass(rest, n_after, cancel, logits);
            if result.is_err()
                && let Some(planned) = &mut self.gpu
            {
                // What went wrong is known; the next pass meets it again if it lasts.
                let _ = planned.gpu.settle();
            }
            rest = &rest[result?..];
        }
        Ok(())
    }

    /// Runs the first of some ubatches, as many as the best plan for them takes in a pass. Gives how many.
    fn run_pass(
        &mut self,
        ubatches: &[PassInputs],
        n_after: u32,
        cancel: &Cancel,
        logits: &mut Vec<f32>,
    ) -> Result<usize, ExecutorError> {
        let (start, n_like) = (Instant::now(), ubatches.len() as u32 + n_after);
        // The first is the largest.
        let n_tokens = ubatches[0].size().n_tokens;
        let index = self.gpu.as_ref().map(|planned| planned.choose(n_tokens, n_like));
        let ubatches = &ubatches[..self.n_ubatches(index).min(ubatches.len())];
        let n_after = n_like - ubatches.len() as u32;
        let goes_on =
            self.gpu.as_ref().zip(index).is_some_and(|(gpu, plan)| gpu.goes_on(plan, n_after));
        self.note_used(ubatches);
        let mut begun = Begun::default();
        let mut schedule = &self.all_cpu;
        let mut gpu = None;
        if let (Some(index), Some(Planned { gpu: device, plans, .. })) = (index, &mut self.gpu) {
            let host = Host { cpu: &mut self.cpu, config: &self.config, used: &self.used };
            let plan = &plans[index];
            device.lay_out(index, plan, host)?;
            begun = Begun {
                plan: Some(index),
                loaded: device.take_loaded(),
                is_cold: !device.is_ahead(),
            };
            schedule = &plan.schedule;
            let views = plan.memory.ubatches(ubatches);
            gpu = Some(GpuSide { gpu: device, plan, views, has: None });
        }
        let views = self.cpu.memory.ubatches(ubatches);
        let mut pass = Pass {
            config: &self.config,
            shards: &self.shards,
            cpu: CpuSide { cpu: &mut self.cpu, views, has: None },
            gpu,
            ubatches,
            used: &self.used,
            goes_on,
            cancel,
            recorder: self.recorder.as_mut(),
            work: &mut self.work,
        };
        pass.run(schedule, logits)?;
        if let Some(recorder) = &mut self.recorder {
            recorder.pass(ubatches, begun, start);
        }
        Ok(ubatches.len())
    }

    /// Most ubatches of a pass with a plan, or without one.
    fn n_ubatches(&self, plan: Option<usize>) -> usize {
        let plan = self.gpu.as_ref().zip(plan).map(|(planned, plan)| &planned.plans[plan]);
        plan.map_or(1, |plan| plan.n_ubatches as usize)
    }

    fn note_used(&mut self, ubatches: &[PassInputs]) {
        for inputs in ubatches {
            for (used, cells) in self.used.iter_mut().zip(&inputs.cells) {
                let highest = cells.written.iter().max().map_or(0, |cell| cell + 1);
                *used = highest.max(*used);
            }
        }
    }

    /// Chooses plans from now on for answers that are limited to so many tokens, if they are.
    pub fn expect_answer(&mut self, most: Option<u32>) {
        if let Some(planned) = &mut self.gpu {
            planned.choice.expect_answer(most);
        }
    }

    /// The plan that the GPU's memory is laid out for.
    pub fn laid_out(&self) -> Option<usize> {
        self.gpu.as_ref()?.gpu.laid_out()
    }

    /// Traces from now on what runs.
    pub fn trace(&mut self) {
        self.recorder = Some(Recorder::new());
        if let Some(planned) = &mut self.gpu {
            planned.gpu.stream().trace();
        }
    }

    /// What was traced, or nothing if that was not asked for. Ends the trace, and waits for what is under way.
    ///
    /// # Errors
    /// A device failure.
    pub fn take_trace(&mut self) -> Result<Trace, BackendError> {
        let gpu = self.gpu.as_mut().map(|planned| &mut planned.gpu);
        self.recorder.take().map_or(Ok(Trace::default()), |recorder| recorder.finish(gpu))
    }
}
