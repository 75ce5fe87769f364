//! A loaded model.

use std::path::Path;
use std::time::Instant;

use planner::{Seconds, Span, TierPlan};

use super::options::EngineOptions;
use super::placing::{Planned, Vram};
use super::room::Room;
use crate::backend::Backends;
use crate::error::EngineError;
use crate::executor::{Executor, MemoryNeed, Subject};
use crate::model::{Model, ModelConfig};
use crate::planned::PlannedModel;
use crate::runner::Runner;
use crate::session::Session;
use crate::tokenizer::Tokenizer;
use crate::trace::{Trace, TracedPass};
use crate::weights::ModelFiles;

/// A loaded model.
pub struct Engine {
    model: PlannedModel,
    planned: Option<Planned>,
    tokenizer: Tokenizer,
    runner: Runner,
    need: MemoryNeed,
    n_ctx: u32,
    load_time: Seconds,
}

impl Engine {
    /// Loads the model at `path`: a GGUF file, any part of a split one, or a Hugging Face folder.
    ///
    /// # Errors
    /// Files that cannot be read or hold no supported model; a context that does not fit in memory.
    pub fn load(
        path: &Path,
        options: &EngineOptions,
        mut backends: Backends,
    ) -> Result<Engine, EngineError> {
        let start = Instant::now();
        options.check()?;
        let files = ModelFiles::open(path)?;
        let bad_model = |error| EngineError::Model { path: path.to_owned(), error };
        let model = Model::of(&files).map_err(bad_model)?;
        let tokenizer = tokenizer_of(&files, path)?;
        let cpu = backends.cpu.as_mut();
        model.check_supported(cpu).map_err(bad_model)?;

        let room = Room {
            config: &model.config,
            options,
            free: cpu.memory()?.free,
            weights: files.weights().total_bytes(),
        };
        let limits = room.limits()?;
        let kv = options.kv.dtype();
        let need = MemoryNeed::of(&model.config, limits, kv);
        let model = PlannedModel::of(path, model, options).map_err(bad_model)?;
        let subject =
            Subject { model: model.model(), weights: files.weights(), limits, kv_dtype: kv };
        let mut executor = Executor::new(&subject, backends.cpu)?;
        let mut planned = None;
        if let Some(gpu) = backends.gpu {
            subject.model.check_supported(gpu.as_ref()).map_err(bad_model)?;
            let placing = options.placing.as_ref().ok_or(EngineError::NoPlacing)?;
            let plans = planned.insert(placing.plan(&model, limits, gpu.as_ref())?);
            executor.add_gpu(&subject, gpu, &plans.for_gpu())?;
        }
        Ok(Engine {
            runner: Runner::new(executor, &subject.model.config, limits),
            model,
            planned,
            tokenizer,
            need,
            n_ctx: limits.n_cells,
            load_time: start.elapsed().into(),
        })
    }

    /// A new, empty sequence. It ends when the session is dropped.
    pub fn session(&mut self) -> Session<'_> {
        Session::new(self)
    }

    /// Hyperparameters of the model.
    pub fn config(&self) -> &ModelConfig {
        &self.model.model().config
    }

    /// The model's tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Most tokens of all sequences together.
    pub fn n_ctx(&self) -> u32 {
        self.n_ctx
    }

    /// Memory taken besides the weights, which are used in place in their files.
    pub fn memory_need(&self) -> MemoryNeed {
        self.need
    }

    /// The plans, for passes of fewer tokens first; none without a GPU.
    pub fn plans(&self) -> &[TierPlan] {
        self.planned.as_ref().map_or(&[], |planned| &planned.tiers)
    }

    /// VRAM as it is now; none without a GPU.
    pub fn vram(&self) -> Option<Vram> {
        let laid_out = self.runner.executor().laid_out();
        self.planned.as_ref().map(|planned| planned.vram(laid_out))
    }

    /// Traces from now on what runs. That takes a little time and memory for each split.
    pub fn trace(&mut self) {
        self.runner.executor_mut().trace();
    }

    /// What was traced; empty if that was not asked for. Ends the trace.
    ///
    /// # Errors
    /// A device failure.
    pub fn take_trace(&mut self) -> Result<Trace, EngineError> {
        Ok(self.runner.executor_mut().take_trace()?)
    }

    /// What was predicted for a traced pass, and what is busy when in it; none without a GPU.
    pub fn predicted(&self, pass: &TracedPass) -> Option<(Seconds, Vec<Span>)> {
        Some(self.planned.as_ref()?.predicted(&self.model, self.n_ctx, pass.plan?, pass))
    }

    /// How long loading took.
    pub fn load_time(&self) -> Seconds {
        self.load_time
    }

    pub(crate) fn parts(&mut self) -> (&mut Runner, &Tokenizer) {
        (&mut self.runner, &self.tokenizer)
    }
}

/// The tokenizer of the model at `path`, without the model.
///
/// # Errors
/// Files that cannot be read or hold no supported tokenizer.
pub fn open_tokenizer(path: &Path) -> Result<Tokenizer, EngineError> {
    tokenizer_of(&ModelFiles::open(path)?, path)
}

fn tokenizer_of(files: &ModelFiles, path: &Path) -> Result<Tokenizer, EngineError> {
    let tokenizer = match files {
        ModelFiles::Gguf(gguf) => Tokenizer::from_gguf(&gguf.metadata),
        ModelFiles::Checkpoint(checkpoint) => {
            Tokenizer::from_tokenizer_json(&checkpoint.tokenizer_path())
        }
    };
    tokenizer.map_err(|error| EngineError::BadTokenizer { path: path.to_owned(), error })
}
