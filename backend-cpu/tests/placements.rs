//! Where shards live never changes an answer: tiny models of every family with the work shared between two devices.

use std::path::{Path, PathBuf};

use backend_cpu::{CpuBackend, CpuOptions, SimOptions, SimulatedGpu};
use engine_core::backend::Backends;
use engine_core::perplexity::Chunk;
use engine_core::tokenizer::TokenId;
use engine_core::{Engine, EngineError, EngineOptions, KvFormat, Placing, Plans};
use planner::{
    Bytes, BytesPerSec, Link, MachineProfile, Method, Placement, Plan, Seconds, Strategy,
};

const FAMILIES: [&str; 8] =
    ["llama", "smollm2", "mistral", "qwen2", "qwen3", "qwen3moe", "gemma2", "gemma3"];

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine-core/tests/data")
}

fn gguf_of(family: &str) -> PathBuf {
    let folder = data().join(family);
    let whole = folder.join("model.gguf");
    if whole.exists() { whole } else { folder.join("model-00001-of-00002.gguf") }
}

/// A machine on which handing over costs nothing, so that even tiny models are worth placing, with a link of this rate.
fn machine(link: f64) -> MachineProfile {
    let mut machine = planner::library::machine("rtx-4070-laptop").unwrap();
    let gpu = machine.gpu.as_mut().unwrap();
    let (rate, nothing) = (BytesPerSec::new(link), Seconds::new(1e-12));
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

fn options(placing: Option<Placing>) -> EngineOptions {
    EngineOptions { n_ctx: Some(64), n_ubatch: 16, n_outputs: 16, kv: KvFormat::F16, placing }
}

fn cpu() -> CpuBackend {
    CpuBackend::new(CpuOptions::default()).unwrap()
}

fn placed(path: &Path, vram: Bytes, method: Method) -> Result<Engine, EngineError> {
    let placing = Placing { machine: machine(1e12), vram: Some(vram), plans: Plans::By(method) };
    let sim = SimOptions { vram, pcie: BytesPerSec::new(1e12), ..SimOptions::default() };
    let gpu = SimulatedGpu::new(sim).unwrap();
    let backends = Backends { cpu: Box::new(cpu()), gpu: Some(Box::new(gpu)) };
    Engine::load(path, &options(Some(placing)), backends)
}

/// Logits of a text run as a prompt of several passes, the last of them for fewer tokens.
fn logits(engine: &mut Engine) -> Vec<f32> {
    let tokens: Vec<TokenId> = (0..37).map(|i| TokenId(3 + (i * 7) % 50)).collect();
    let mut all = Vec::new();
    let mut session = engine.session();
    for n in [37, 20] {
        let chunk = Chunk { tokens: tokens[..n].to_vec(), scored: 1..n };
        session.score(&chunk, |_, row| all.extend_from_slice(row)).unwrap();
    }
    all
}

/// In which ways a plan has shards computed.
fn ways(plan: &Plan) -> Vec<&'static str> {
    let streamed = |i: usize| {
        if plan.slots.iter().all(|slot| slot.shard != i) {
            "experts by choice"
        } else if i % 2 == 1 {
            "streamed, with KV cells"
        } else {
            "streamed"
        }
    };
    let way = |(i, placement): (usize, &Placement)| match placement {
        Placement::Cpu => "by the CPU",
        Placement::Pinned => "pinned",
        Placement::Streamed => streamed(i),
    };
    plan.layout.placements.iter().enumerate().map(way).collect()
}

#[test]
fn no_placement_changes_the_logits() {
    for family in FAMILIES {
        let path = gguf_of(family);
        let expected =
            logits(&mut Engine::load(&path, &options(None), Backends::cpu_only(cpu())).unwrap());
        let mut seen = std::collections::BTreeSet::new();
        for method in Strategy::ALL.map(Method::Strategy).into_iter().chain([Method::Search]) {
            for kib in (0..12).map(|i| 64 << i).chain([100, 200, 300, 400, 600, 800, 1000]) {
                let Ok(mut engine) = placed(&path, Bytes::new(kib << 10), method) else { continue };
                seen.extend(engine.plans().iter().flat_map(|plan| ways(&plan.plan)));
                assert_eq!(logits(&mut engine), expected, "{family}, {method:?}, {kib} KiB");
            }
        }
        let with_experts = usize::from(family == "qwen3moe");
        assert_eq!(seen.len(), 4 + with_experts, "{family} was run {seen:?}");
    }
}
