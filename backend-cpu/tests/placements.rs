//! Where shards live never changes an answer: tiny models of every family with the work shared between two devices.

mod placing;

use std::collections::BTreeSet;
use std::path::Path;

use backend_cpu::{SimOptions, SimulatedGpu};
use engine_core::backend::Backends;
use engine_core::perplexity::Chunk;
use engine_core::tokenizer::TokenId;
use engine_core::{Engine, EngineError, Event, PlannedModel, Plans, Prompt, Request};
use planner::{
    Bytes, BytesPerSec, Extras, Layout, Method, Model, PLAN_SCHEMA, Pass, Placement, Plan, Problem,
    Runtime, SavedPlan, Shard, Strategy, Tier, TierPlan, plan_of,
};

use self::placing::{cpu, gguf_of, machine, options, placing};

const FAMILIES: [&str; 8] =
    ["llama", "smollm2", "mistral", "qwen2", "qwen3", "qwen3moe", "gemma2", "gemma3"];

fn placed(path: &Path, vram: Bytes, plans: Plans) -> Result<Engine, EngineError> {
    let sim = SimOptions { vram, pcie: BytesPerSec::new(1e12), ..SimOptions::default() };
    let gpu = SimulatedGpu::new(sim).unwrap();
    let backends = Backends { cpu: Box::new(cpu()), gpu: Some(Box::new(gpu)) };
    Engine::load(path, &options(Some(placing(vram, plans))), backends)
}

fn on_cpu(path: &Path) -> Engine {
    Engine::load(path, &options(None), Backends::cpu_only(cpu())).unwrap()
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
        let expected = logits(&mut on_cpu(&path));
        let mut seen = BTreeSet::new();
        for method in Strategy::ALL.map(Method::Strategy).into_iter().chain([Method::Search]) {
            for kib in (0..12).map(|i| 64 << i).chain([100, 200, 300, 400, 600, 800, 1000]) {
                let mut engine = match placed(&path, Bytes::new(kib << 10), Plans::By(method)) {
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

/// A plan for passes of three ubatches at once: layers take turns in `places`, streamed ones in two slots.
fn several_at_a_time(path: &Path, places: [Placement; 2]) -> SavedPlan {
    let (n_ctx, vram, machine) = (64, Bytes::mib(16), machine());
    let model = PlannedModel::open(path, &options(None)).unwrap();
    let tier = Tier::holding(16).unwrap();
    let n_tokens = tier.n_tokens();
    let shards = model.shards(Pass { n_tokens, n_outputs: 1, n_kv: n_ctx / 2, n_ctx });
    let place = |shard: Shard| match shard {
        Shard::Attention { layer } | Shard::Ffn { layer } => places[layer as usize % 2],
        Shard::Embedding => Placement::Cpu,
        Shard::Output => Placement::Pinned,
    };
    let placements = shards.iter().map(|cost| place(cost.shard)).collect();
    let ring = shards.iter().map(|shard| shard.weights + shard.kv).max().unwrap() * 2;
    let residual = model.residual(n_tokens);
    let runtime = Runtime::With(Extras { ubatches: 3, ..Extras::default() });
    let problem = Problem { shards: &shards, machine: &machine, vram, residual, runtime };
    let plan = plan_of(&problem, Layout { placements, ring, resident: Vec::new() });
    SavedPlan {
        schema: PLAN_SCHEMA,
        model: model.name().to_owned(),
        n_layer: model.n_layer(),
        machine: machine.name.clone(),
        n_ctx,
        vram,
        tiers: vec![TierPlan { tier, ubatches: 3, method: Method::Search, plan }],
    }
}

/// The answer to a prompt of four ubatches, and how many each pass took.
fn answer(engine: &mut Engine) -> (Vec<TokenId>, Vec<u32>) {
    let prompt = Prompt::Tokens((0..51).map(|i| TokenId(3 + (i * 7) % 50)).collect());
    let request = Request { max_tokens: Some(6), ..prompt.into() };
    engine.trace();
    let mut ids = Vec::new();
    for event in engine.session().generate(&request).unwrap() {
        if let Event::Token { id, .. } = event.unwrap() {
            ids.push(id);
        }
    }
    let passes = engine.take_trace().unwrap().passes;
    (ids, passes.iter().map(|pass| pass.n_ubatches).collect())
}

#[test]
fn several_ubatches_at_a_time_give_the_same_answer() {
    use Placement::{Cpu, Pinned, Streamed};
    for family in FAMILIES {
        let path = gguf_of(family);
        let (expected, alone) = answer(&mut on_cpu(&path));
        assert!(alone.iter().all(|n| *n == 1));
        for places in [[Streamed, Streamed], [Streamed, Cpu], [Pinned, Streamed], [Cpu, Pinned]] {
            let saved = several_at_a_time(&path, places);
            let mut engine = placed(&path, saved.vram, Plans::Saved(saved)).unwrap();
            let (ids, passes) = answer(&mut engine);
            assert_eq!(ids, expected, "{family}, {places:?}");
            assert_eq!(passes[..2], [3, 1], "{family}, {places:?}");
        }
    }
}
