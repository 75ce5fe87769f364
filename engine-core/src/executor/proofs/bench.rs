//! One model on two devices with a plan, and on the CPU alone.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use planner::{
    Bytes, BytesPerSec, Extras, Layout, MachineProfile, Method, Pass, Placement, Problem, Resident,
    Runtime, Seconds, ShardCost, Tier, TierPlan, Workload, plan_of,
};

use super::drawn::{DrawnFault, DrawnPass, DrawnPlan, DrawnPlans};
use super::traffic::Traffic;
use crate::batch::{BatchToken, PassInputs};
use crate::cancel::Cancel;
use crate::engine::{EngineOptions, KvFormat};
use crate::executor::{Executor, ExecutorError, GpuPlans, Subject};
use crate::kv::{KvCells, KvGroups, SeqId};
use crate::planned::PlannedModel;
use crate::scratch::PassLimits;
use crate::testing::{Fault, Faulty, Journal, Recording};
use crate::tokenizer::TokenId;
use crate::weights::ModelFiles;

pub(super) const LIMITS: PassLimits = PassLimits { n_tokens: 16, n_outputs: 5, n_cells: 48 };

/// A model to run.
pub(super) struct Model {
    files: ModelFiles,
    planned: PlannedModel,
    machine: MachineProfile,
}

impl Model {
    /// One of the tests' own models.
    pub(super) fn fixture(family: &str) -> Model {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(family);
        Model::at(&folder.join("model.gguf"))
    }

    /// A file made for the test.
    pub(super) fn made(gguf: &[u8]) -> Model {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("made.gguf");
        std::fs::write(&path, gguf).unwrap();
        Model::at(&path)
    }

    fn at(path: &Path) -> Model {
        let options = EngineOptions {
            n_ctx: Some(LIMITS.n_cells),
            n_ubatch: LIMITS.n_tokens,
            n_outputs: LIMITS.n_outputs,
            kv: KvFormat::F16,
            placing: None,
        };
        let files = ModelFiles::open(path).unwrap();
        let model = crate::model::Model::of(&files).unwrap();
        let planned = PlannedModel::of(path, model, &options).unwrap();
        let machine = planner::library::machine("rtx-4070-laptop").unwrap();
        Model { files, planned, machine }
    }

    fn subject(&self) -> Subject<'_> {
        Subject {
            model: self.planned.model(),
            weights: self.files.weights(),
            limits: LIMITS,
            kv_dtype: KvFormat::F16.dtype(),
        }
    }

    fn plan(&self, tier: u32, ubatches: u32, drawn: &DrawnPlan) -> (TierPlan, Vec<ShardCost>) {
        let tier = Tier::holding(tier).unwrap();
        let n_tokens = tier.n_tokens();
        let pass = Pass { n_tokens, n_outputs: 1, n_kv: n_tokens, n_ctx: LIMITS.n_cells };
        let shards = planner::Model::shards(&self.planned, pass);
        let problem = Problem {
            shards: &shards,
            machine: &self.machine,
            vram: Bytes::gib(1),
            residual: planner::Model::residual(&self.planned, n_tokens),
            runtime: Runtime::With(Extras { ubatches, ..Extras::default() }),
        };
        // Of several ubatches experts are copied whole.
        let plan = plan_of(&problem, layout(&shards, ubatches == 1, drawn));
        (TierPlan { tier, ubatches, method: Method::Search, plan }, shards)
    }
}

fn layout(shards: &[ShardCost], by_choice: bool, drawn: &DrawnPlan) -> Layout {
    let placements: Vec<Placement> = drawn.placements[..shards.len()].to_vec();
    let streamed: Vec<usize> =
        (0..shards.len()).filter(|&i| placements[i] == Placement::Streamed).collect();
    let whole = |&i: &usize| shards[i].weights + shards[i].kv;
    let most: Bytes = streamed.iter().map(whole).sum();
    let least = least_ring(shards, by_choice, &streamed);
    let more = (most.saturating_sub(least).get() as f64 * drawn.ring) as u64;
    let kept = streamed.iter().flat_map(|&i| {
        let tensors = shards[i].tensors().enumerate();
        tensors
            .filter(move |(tensor, _)| drawn.resident[i] >> tensor & 1 == 1)
            .map(move |(tensor, bytes)| Resident { shard: i, tensor, bytes })
    });
    Layout {
        resident: kept.collect(),
        ring: Bytes::new(least.get() + more).align_up(64),
        placements,
    }
}

/// A ring for the largest shard and, where tokens choose few experts, for the most that they can choose.
fn least_ring(shards: &[ShardCost], may_choose: bool, streamed: &[usize]) -> Bytes {
    let by_choice = |i: &&usize| {
        let shard = &shards[**i];
        may_choose
            && shard.has_experts()
            && (shard.touched().get() as f64) < 0.9 * shard.weights.get() as f64
    };
    let chosen = streamed
        .iter()
        .filter(by_choice)
        .map(|&i| shards[i].weights.saturating_sub(shards[i].unread));
    let whole =
        streamed.iter().filter(|i| !by_choice(i)).map(|&i| shards[i].weights + shards[i].kv);
    chosen.max().unwrap_or_default() + whole.max().unwrap_or_default()
}

/// The placed model, and beside it the same on the CPU alone.
pub(super) struct Bench {
    placed: Executor,
    alone: Executor,
    cells: KvCells,
    faults: [Fault; 2],
    journal: Arc<Mutex<Journal>>,
    traffic: Traffic,
}

impl Bench {
    pub(super) fn new(model: &Model, drawn: &DrawnPlans) -> Bench {
        let small = [1, 4].into_iter().zip(&drawn.small);
        let small = small.filter_map(|(tier, plan)| Some((tier, 1, plan.as_ref()?)));
        let all = small.chain([(LIMITS.n_tokens, drawn.n_ubatches, &drawn.largest)]);
        let (plans, shards): (Vec<TierPlan>, Vec<_>) =
            all.map(|(tier, ubatches, plan)| model.plan(tier, ubatches, plan)).unzip();
        let in_arena = |plan: &TierPlan| {
            let used = plan.plan.vram;
            used.total().saturating_sub(used.driver)
        };
        let budget = plans.iter().map(in_arena).max().unwrap();

        let subject = model.subject();
        let gpu = Recording::gpu(budget);
        let journal = gpu.journal();
        let faults = [(); 2].map(|()| Fault::default());
        let cpu = Faulty::new(Recording::cpu(), &faults[0]);
        let mut placed = Executor::new(&subject, Box::new(cpu)).unwrap();
        // Each pass is run with the plan of its own tier.
        let other = |i: usize| Seconds::new(if i == 0 { 0.0 } else { 1.0 });
        let times: Vec<Vec<Seconds>> =
            (1..=plans.len()).rev().map(|n| (0..n).map(other).collect()).collect();
        let h2d = BytesPerSec::new(1e15);
        let gpu_plans =
            GpuPlans { tiers: &plans, times: &times, h2d, budget, n_gen: Workload::SHORT_ANSWER };
        placed.add_gpu(&subject, Box::new(Faulty::new(gpu, &faults[1])), &gpu_plans).unwrap();
        assert_eq!(journal.lock().unwrap().allocated, [budget], "one arena, as large as planned");

        let config = &subject.model.config;
        let bench = Bench {
            placed,
            alone: Executor::new(&subject, Box::new(Recording::cpu())).unwrap(),
            cells: KvCells::new(&KvGroups::of(&config.layers, LIMITS), LIMITS.n_cells),
            faults,
            traffic: Traffic::new(config, plans, shards),
            journal,
        };
        bench.traffic.check_load(&mut bench.journal.lock().unwrap());
        bench
    }

    /// Gives the tokens of a pass their cells, ubatch by ubatch.
    pub(super) fn inputs(&mut self, pass: &DrawnPass) -> Vec<PassInputs> {
        if let Some((seq, share)) = pass.cut {
            let seq = SeqId(seq);
            self.cells.truncate(seq, (self.cells.len(seq) as f64 * share) as usize);
        }
        self.extend(pass).unwrap_or_else(|| {
            for seq in 0..3 {
                self.cells.truncate(SeqId(seq), 0);
            }
            self.extend(pass).expect("an empty cache has room for a pass")
        })
    }

    /// `None` when there is no room; some tokens may have their cells then.
    fn extend(&mut self, pass: &DrawnPass) -> Option<Vec<PassInputs>> {
        let n_largest = pass.seqs.len().div_ceil(pass.n_ubatches);
        let last = (pass.seqs.len() - 1) / n_largest;
        let ubatches = pass.seqs.chunks(n_largest).enumerate();
        ubatches
            .map(|(i, seqs)| self.ubatch(seqs, if i == last { pass.wants } else { 0 }))
            .collect()
    }

    fn ubatch(&mut self, seqs: &[u32], wants: u16) -> Option<PassInputs> {
        let mut counts = BTreeMap::new();
        for &seq in seqs {
            *counts.entry(SeqId(seq)).or_insert(0u32) += 1;
        }
        for (&seq, &n) in &counts {
            self.cells.extend(seq, n).ok()?;
        }
        Some(PassInputs::gather(&self.tokens(seqs, wants, &counts), &self.cells))
    }

    /// Takes the cells of a pass back.
    pub(super) fn give_up(&mut self, pass: &DrawnPass) {
        for seq in (0..3).map(SeqId) {
            let n_new = pass.seqs.iter().filter(|&&of| SeqId(of) == seq).count();
            self.cells.truncate(seq, self.cells.len(seq) - n_new);
        }
    }

    fn tokens(&self, seqs: &[u32], wants: u16, counts: &BTreeMap<SeqId, u32>) -> Vec<BatchToken> {
        let mut next: BTreeMap<SeqId, u32> =
            counts.iter().map(|(&seq, &n)| (seq, self.cells.len(seq) as u32 - n)).collect();
        let mut outputs_left = LIMITS.n_outputs;
        let token = |(i, &seq): (usize, &u32)| {
            let index = next.get_mut(&SeqId(seq)).unwrap();
            *index += 1;
            let wants = outputs_left > 0 && wants >> i & 1 == 1;
            outputs_left -= u32::from(wants);
            BatchToken::text(TokenId(3 + (*index * 7 + seq) % 50), SeqId(seq), *index - 1, wants)
        };
        seqs.iter().enumerate().map(token).collect()
    }

    /// The bits of the logits.
    pub(super) fn run_placed(
        &mut self,
        inputs: &[PassInputs],
        n_after: u32,
        cancel: &Cancel,
    ) -> Result<Vec<u32>, ExecutorError> {
        bits(&mut self.placed, inputs, n_after, cancel)
    }

    pub(super) fn run_on_cpu(&mut self, inputs: &[PassInputs]) -> Vec<u32> {
        bits(&mut self.alone, inputs, 0, &Cancel::default()).unwrap()
    }

    pub(super) fn check_traffic(&mut self, inputs: &[PassInputs], n_after: u32) {
        self.traffic.check(inputs, n_after, &mut self.journal.lock().unwrap());
    }

    pub(super) fn forget_pass(&mut self, inputs: &[PassInputs]) {
        self.traffic.forget(inputs, &mut self.journal.lock().unwrap());
    }

    pub(super) fn set(&self, fault: &DrawnFault) {
        self.faults[usize::from(fault.on_gpu)].set(fault.call, fault.n);
    }

    /// Whether a call was still to fail.
    pub(super) fn clear_fault(&self) -> bool {
        self.faults.iter().map(Fault::clear).fold(false, |any, left| any | left)
    }

    /// Everything is given back.
    pub(super) fn end(self) {
        let Bench { placed, journal, .. } = self;
        let files: Vec<_> = journal.lock().unwrap().files.clone();
        let held: Vec<usize> = files.iter().map(|file| file.strong_count()).collect();
        drop(placed);
        // Both devices have let go of each file.
        let left = files.iter().map(|file| file.strong_count());
        assert!(left.zip(held).all(|(left, held)| left < held), "files are let go");
    }
}

fn bits(
    executor: &mut Executor,
    inputs: &[PassInputs],
    n_after: u32,
    cancel: &Cancel,
) -> Result<Vec<u32>, ExecutorError> {
    let mut logits = Vec::new();
    executor.run(inputs, n_after, cancel, &mut logits)?;
    Ok(logits.iter().map(|logit| logit.to_bits()).collect())
}
