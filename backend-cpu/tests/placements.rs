//! Where shards live never changes an answer: tiny models of every family with the work shared between two devices.

mod placing;

use std::collections::BTreeSet;
use std::path::Path;

use backend_cpu::{SimOptions, SimulatedGpu};
use engine_core::backend::Backends;
use engine_core::perplexity::Chunk;
use engine_core::tokenizer::TokenId;
use engine_core::{Engine, EngineError};
use planner::{Bytes, BytesPerSec, Method, Placement, Plan, Strategy};

use self::placing::{cpu, gguf_of, options, placing};

const FAMILIES: [&str; 8] =
    ["llama", "smollm2", "mistral", "qwen2", "qwen3", "qwen3moe", "gemma2", "gemma3"];

fn placed(path: &Path, vram: Bytes, method: Method) -> Result<Engine, EngineError> {
    let sim = SimOptions { vram, pcie: BytesPerSec::new(1e12), ..SimOptions::default() };
    let gpu = SimulatedGpu::new(sim).unwrap();
    let backends = Backends { cpu: Box::new(cpu()), gpu: Some(Box::new(gpu)) };
    Engine::load(path, &options(Some(placing(vram, method))), backends)
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
        let mut seen = BTreeSet::new();
        for method in Strategy::ALL.map(Method::Strategy).into_iter().chain([Method::Search]) {
            for kib in (0..12).map(|i| 64 << i).chain([100, 200, 300, 400, 600, 800, 1000]) {
                let mut engine = match placed(&path, Bytes::new(kib << 10), method) {
                    Ok(engine) => engine,
                    // There is no such plan within the budget; what is planned can be carried out.
                    Err(EngineError::Plan(_)) => continue,
                    Err(error) => panic!("{family}, {method:?}, {kib} KiB: {error}"),
                };
                seen.extend(engine.plans().iter().flat_map(|plan| ways(&plan.plan)));
                assert_eq!(logits(&mut engine), expected, "{family}, {method:?}, {kib} KiB");
            }
        }
        let with_experts = usize::from(family == "qwen3moe");
        assert_eq!(seen.len(), 4 + with_experts, "{family} was run {seen:?}");
    }
}
