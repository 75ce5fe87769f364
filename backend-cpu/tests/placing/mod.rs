//! Tiny models with their work shared between two devices.

use std::path::{Path, PathBuf};

use backend_cpu::{CpuBackend, CpuOptions};
use engine_core::{EngineOptions, KvFormat, Placing, Plans};
use planner::{Bytes, BytesPerSec, Link, MachineProfile, Seconds, Workload};

pub fn gguf_of(family: &str) -> PathBuf {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine-core/tests/data");
    let folder = data.join(family);
    let whole = folder.join("model.gguf");
    if whole.exists() { whole } else { folder.join("model-00001-of-00002.gguf") }
}

/// A machine on which handing over costs nothing, so that even tiny models are worth placing, with a fast link.
pub fn machine() -> MachineProfile {
    let mut machine = planner::library::machine("rtx-4070-laptop").unwrap();
    let gpu = machine.gpu.as_mut().unwrap();
    let (rate, nothing) = (BytesPerSec::new(1e12), Seconds::new(1e-12));
    gpu.link = Link {
        h2d: rate,
        h2d_while_cpu: rate,
        d2h: rate,
        handoff: nothing,
        submit: nothing,
        ..gpu.link
    };
    gpu.kernels.op = nothing;
    gpu.driver = Bytes::ZERO;
    machine
}

pub fn placing(vram: Bytes, plans: Plans) -> Placing {
    Placing { machine: machine(), vram: Some(vram), plans, n_gen: Workload::SHORT_ANSWER }
}

pub fn options(placing: Option<Placing>) -> EngineOptions {
    EngineOptions { n_ctx: Some(64), n_ubatch: 16, n_outputs: 16, kv: KvFormat::F16, placing }
}

pub fn cpu() -> CpuBackend {
    CpuBackend::new(CpuOptions::default()).unwrap()
}
