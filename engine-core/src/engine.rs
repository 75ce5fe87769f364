//! Loads a model and opens sessions on it: wiring only.

use std::path::Path;
use std::time::Instant;

use planner::{Bytes, Seconds};

use crate::backend::Backends;
use crate::error::EngineError;
use crate::executor::{DeviceMemory, Executor, MemoryNeed};
use crate::model::{Model, ModelConfig};
use crate::runner::Runner;
use crate::scratch::PassLimits;
use crate::session::Session;
use crate::tokenizer::Tokenizer;
use crate::weights::{DType, ModelFiles};

/// Context taken when none is asked for, where the model and memory allow it.
const USUAL_N_CTX: u32 = 8192;

/// Memory left to the rest of the machine when a context is chosen.
const RESERVE: Bytes = Bytes::mib(256);

/// How a model is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineOptions {
    /// Most tokens of all sequences together. Absent: what the model was made for, at most 8192, or what fits in memory.
    pub n_ctx: Option<u32>,
    /// Most tokens in a pass.
    pub n_ubatch: u32,
    /// Most tokens in a pass whose logits are wanted; room for them is taken at load.
    pub n_outputs: u32,
    /// Format of KV cells.
    pub kv: KvFormat,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions { n_ctx: None, n_ubatch: 512, n_outputs: 16, kv: KvFormat::F16 }
    }
}

/// How KV cells are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KvFormat {
    /// Half precision.
    F16,
    /// Single precision: twice the memory.
    F32,
}

impl KvFormat {
    pub(crate) fn dtype(self) -> DType {
        match self {
            KvFormat::F16 => DType::F16,
            KvFormat::F32 => DType::F32,
        }
    }
}

/// A loaded model.
pub struct Engine {
    config: ModelConfig,
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
        let memory = DeviceMemory::in_place(cpu, &model, files.weights(), limits, kv)?;
        let need = MemoryNeed::of(&model.config, limits, kv);
        let executor = Executor::new(backends, model.config.clone(), memory)?;
        Ok(Engine {
            runner: Runner::new(executor, &model.config, limits),
            config: model.config,
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
        &self.config
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

impl EngineOptions {
    fn check(&self) -> Result<(), EngineError> {
        let rules = [
            ("the context", self.n_ctx.unwrap_or(2), 2..=1 << 30, "from 2 to 2^30 tokens"),
            ("the ubatch", self.n_ubatch, 1..=1 << 16, "from 1 to 65536 tokens"),
            ("outputs per pass", self.n_outputs, 1..=1 << 16, "from 1 to 65536"),
        ];
        for (option, found, allowed, range) in rules {
            if !allowed.contains(&found) {
                return Err(EngineError::OptionOutOfRange { option, found, range });
            }
        }
        Ok(())
    }
}

/// How much context fits.
struct Room<'a> {
    config: &'a ModelConfig,
    options: &'a EngineOptions,
    free: Bytes,
    /// Used in place in mapped files, whose pages the system counts as free until they are needed.
    weights: Bytes,
}

impl Room<'_> {
    /// The limits asked for, or the largest usual ones that fit.
    fn limits(&self) -> Result<PassLimits, EngineError> {
        match self.options.n_ctx {
            Some(n_ctx) if self.fits(n_ctx) => Ok(self.limits_of(n_ctx)),
            Some(n_ctx) => Err(self.too_large(n_ctx)),
            None => {
                let usual = self.config.n_ctx_train.clamp(2, USUAL_N_CTX);
                match self.largest_fitting(usual) {
                    0 => Err(self.too_large(usual)),
                    n_ctx => Ok(self.limits_of(n_ctx)),
                }
            }
        }
    }

    fn limits_of(&self, n_ctx: u32) -> PassLimits {
        let n_tokens = self.options.n_ubatch.min(n_ctx);
        PassLimits { n_tokens, n_outputs: self.options.n_outputs.min(n_tokens), n_cells: n_ctx }
    }

    fn need(&self, n_ctx: u32) -> MemoryNeed {
        MemoryNeed::of(self.config, self.limits_of(n_ctx), self.options.kv.dtype())
    }

    fn fits(&self, n_ctx: u32) -> bool {
        self.weights + self.need(n_ctx).total() <= self.free.saturating_sub(RESERVE)
    }

    /// The most tokens, up to `most`, that fit; 0 if two do not.
    fn largest_fitting(&self, most: u32) -> u32 {
        if self.fits(most) {
            return most;
        }
        // The need grows with the context, so halving finds the edge.
        let (mut fits, mut too_large) = (0, most);
        while too_large - fits > 1 {
            let middle = fits + (too_large - fits) / 2;
            if self.fits(middle) {
                fits = middle;
            } else {
                too_large = middle;
            }
        }
        if fits < 2 { 0 } else { fits }
    }

    fn too_large(&self, n_ctx: u32) -> EngineError {
        let need = self.need(n_ctx);
        EngineError::ContextTooLarge {
            n_ctx,
            needed: self.weights + need.total(),
            weights: self.weights,
            kv: need.kv,
            scratch: need.scratch,
            free: self.free,
            n_ctx_fitting: self.largest_fitting(n_ctx),
        }
    }
}
