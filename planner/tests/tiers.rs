//! The plans of an engine's tiers, against those by one rule, for prompts as long as each tier holds and their answers.

use planner::{
    Bytes, Method, Model, ModelShape, OpCost, Pass, Placement, Setting, ShardCost, Strategy,
    Switches, TierPlan, Workload, library, plan_tiers, tier_times,
};

const N_CTX: u32 = 4096;

/// Short answers, so that prompts matter.
const N_GEN: u32 = 16;

/// A model as an engine lowers it: the last FFN begins with taking out the tokens whose logits are wanted, so that for one
/// token it is not quite like the others.
struct Lowered(ModelShape);

impl Model for Lowered {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn n_layer(&self) -> u32 {
        self.0.n_layer()
    }

    fn n_ctx_train(&self) -> u32 {
        self.0.n_ctx_train()
    }

    fn shards(&self, pass: Pass) -> Vec<ShardCost> {
        let mut shards = self.0.shards(pass);
        let last = shards.len() - 2;
        shards[last].ops.insert(0, OpCost::Light { bytes: self.0.residual(2) });
        shards
    }

    fn residual(&self, n_tokens: u32) -> Bytes {
        self.0.residual(n_tokens)
    }
}

/// Changes of plans that take little are not planned for.
const LITTLE: f64 = 0.02;

/// Seconds of a prompt of each tier and its answer, under the plans that are best for the two and what changing takes.
fn requests(setting: &Setting<'_>, plans: &[TierPlan]) -> Vec<f64> {
    let times = tier_times(setting, N_CTX, plans);
    let shards = setting.model.shards(Pass { n_tokens: 1, n_outputs: 1, n_kv: 1, n_ctx: N_CTX });
    let h2d = setting.machine.gpu.as_ref().expect("it has one").link.h2d;
    let pinned =
        |plan: usize, shard: usize| plans[plan].plan.layout.placements[shard] == Placement::Pinned;
    let change = |a: usize, b: usize| {
        let new = (0..shards.len()).filter(|&shard| pinned(b, shard) && !pinned(a, shard));
        (new.map(|shard| shards[shard].weights).sum::<Bytes>() / h2d).get()
    };
    let answer = |k: usize| f64::from(N_GEN) * times[0][k].get();
    let n = plans.len();
    let request = |tier: usize| {
        let pairs = (tier..n).flat_map(|j| (0..n).map(move |k| (j, k)));
        let seconds = pairs.map(|(j, k)| times[tier][j - tier].get() + change(j, k) + answer(k));
        seconds.fold(f64::INFINITY, f64::min)
    };
    (0..n).map(request).collect()
}

#[test]
fn no_rule_serves_a_prompt_and_its_answer_better() {
    let workload = Workload { n_gen: N_GEN, ..Workload::halfway(N_CTX) };
    for machine in ["rtx-5090", "rtx-3060", "rtx-4070-laptop"] {
        let machine = library::machine(machine).expect("it is built in");
        for name in ["qwen3-30b-a3b-q4_0", "gpt-oss-20b-mxfp4", "nemo-4b-f16", "llama-3.1-8b-q4_k"]
        {
            let model = Lowered(library::model(name).expect("it is built in"));
            for gib in [2, 4, 6] {
                let (vram, switches) = (Bytes::gib(gib), Switches::default());
                let setting = Setting { model: &model, machine: &machine, vram, switches };
                let of = |method| {
                    let plans = plan_tiers(&setting, workload, 512, method).ok()?;
                    Some((requests(&setting, &plans), plans))
                };
                let (searched, plans) = of(Method::Search).expect("it fits");
                for strategy in Strategy::ALL {
                    let Some((by_rule, _)) = of(Method::Strategy(strategy)) else { continue };
                    for ((searched, by_rule), plan) in searched.iter().zip(by_rule).zip(&plans) {
                        let (tier, rule) = (plan.tier.n_tokens(), strategy.name());
                        assert!(
                            *searched <= by_rule * (1.0 + LITTLE),
                            "{name}, {gib} GiB, {tier} tokens: {searched} s, by {rule} {by_rule} s"
                        );
                    }
                }
            }
        }
    }
}
