//! A preview for programs. Names of numbers end in their unit: `_s` seconds, `_bytes`, `tps` tokens per second, `n_`
//! counts; gains and shares are plain ratios.

use serde::Serialize;

use super::shape::Shape;
use super::sweep::{Cell, Outcome, Placed, Preview};
use super::table::weights;
use super::what_if::Variation;
use crate::error::PlanError;
use crate::extras::Extras;
use crate::forecast::{Forecast, Method, TierPlan, Workload};
use crate::model::Pass;
use crate::plan::{Bottleneck, VramUse};
use crate::profile::MachineProfile;
use crate::units::{Bytes, Seconds};

/// Version of the JSON that [`Preview::json`] writes.
pub const PREVIEW_SCHEMA: u32 = 1;

impl Preview<'_> {
    /// All that the text shows, and the placement of each shard in each cell, as one JSON object without a line break.
    pub fn json(&self) -> String {
        let chosen = self.cells[self.chosen].workload;
        let object = Object {
            schema: PREVIEW_SCHEMA,
            kind: "prediction",
            method: self.question.method,
            model: ModelObject {
                name: self.question.model.name(),
                n_layer: self.question.model.n_layer(),
                n_ctx_train: self.question.model.n_ctx_train(),
                weights_bytes: weights(self.question.model),
                kv_bytes: self.kv(chosen),
            },
            machine: MachineObject::of(self.question.machine),
            cells: self.cells.iter().map(CellObject::of).collect(),
            chosen_cell: self.chosen,
            what_if: WhatIfObject {
                more_vram: self.what_if.more_vram.as_ref().map(ForecastObject::of_variation),
                half_ctx: self.what_if.half_ctx.as_ref().map(ForecastObject::of_variation),
            },
        };
        serde_json::to_string(&object).expect("numbers and names are JSON")
    }

    /// KV cells of a full context.
    fn kv(&self, workload: Workload) -> Bytes {
        let n_ctx = workload.n_ctx;
        let pass = Pass { n_tokens: 1, n_outputs: 1, n_kv: n_ctx, n_ctx };
        self.question.model.shards(pass).iter().map(|shard| shard.kv).sum()
    }
}

#[derive(Serialize)]
struct Object<'a> {
    schema: u32,
    kind: &'static str,
    method: Method,
    model: ModelObject<'a>,
    machine: MachineObject<'a>,
    cells: Vec<CellObject<'a>>,
    chosen_cell: usize,
    /// About the chosen cell.
    what_if: WhatIfObject,
}

#[derive(Serialize)]
struct ModelObject<'a> {
    name: &'a str,
    n_layer: u32,
    n_ctx_train: u32,
    weights_bytes: Bytes,
    /// Of the chosen cell's context.
    kv_bytes: Bytes,
}

#[derive(Serialize)]
struct MachineObject<'a> {
    name: &'a str,
    provenance: &'a str,
    cpu: &'a str,
    ram_bytes: Bytes,
    gpu: Option<&'a str>,
    vram_bytes: Option<Bytes>,
}

impl MachineObject<'_> {
    fn of(machine: &MachineProfile) -> MachineObject<'_> {
        MachineObject {
            name: &machine.name,
            provenance: &machine.provenance,
            cpu: &machine.cpu.name,
            ram_bytes: machine.cpu.ram,
            gpu: machine.gpu.as_ref().map(|gpu| gpu.name.as_str()),
            vram_bytes: machine.gpu.as_ref().map(|gpu| gpu.vram),
        }
    }
}

#[derive(Serialize)]
struct CellObject<'a> {
    vram_bytes: Bytes,
    #[serde(flatten)]
    workload: Workload,
    /// Why there is no plan.
    error: Option<ErrorObject>,
    plan: Option<OutcomeObject<'a>>,
}

impl CellObject<'_> {
    fn of(cell: &Cell) -> CellObject<'_> {
        let (error, plan) = match &cell.outcome {
            Ok(outcome) => (None, Some(OutcomeObject::of(outcome))),
            Err(error) => (Some(ErrorObject::of(error)), None),
        };
        CellObject { vram_bytes: cell.vram, workload: cell.workload, error, plan }
    }
}

#[derive(Serialize)]
struct ErrorObject {
    message: String,
    /// The least budget that would work, where the budget was too small.
    need_bytes: Option<Bytes>,
}

impl ErrorObject {
    fn of(error: &PlanError) -> ErrorObject {
        let need_bytes = match error {
            PlanError::BudgetTooSmall { need, .. } => Some(*need),
            _ => None,
        };
        ErrorObject { message: error.to_string(), need_bytes }
    }
}

#[derive(Serialize)]
struct OutcomeObject<'a> {
    ttft_s: Seconds,
    tps: f64,
    /// Every time lies inside what the profile measured.
    measured: bool,
    n_ubatch: u32,
    switch_s: Seconds,
    /// Whole layers (`-ngl`) under the same budget.
    baseline: Option<BaselineObject>,
    prefill: TierObject<'a>,
    decode: TierObject<'a>,
}

#[derive(Serialize)]
struct BaselineObject {
    ttft_s: Seconds,
    tps: f64,
    ttft_gain: f64,
    tps_gain: f64,
}

impl OutcomeObject<'_> {
    fn of(outcome: &Outcome) -> OutcomeObject<'_> {
        let Forecast { ttft, tps, measured, n_ubatch, switch, .. } = outcome.forecast;
        let Forecast { prefill_extras, decode_extras, .. } = outcome.forecast;
        let baseline = outcome.baseline.as_ref().zip(outcome.gains());
        let [in_prefill, in_decode] = &outcome.placed;
        OutcomeObject {
            ttft_s: ttft,
            tps,
            measured,
            n_ubatch,
            switch_s: switch,
            baseline: baseline.map(|(baseline, [ttft_gain, tps_gain])| BaselineObject {
                ttft_s: baseline.ttft,
                tps: baseline.tps,
                ttft_gain,
                tps_gain,
            }),
            prefill: TierObject::of(&outcome.forecast.prefill, in_prefill, prefill_extras),
            decode: TierObject::of(&outcome.forecast.decode, in_decode, decode_extras),
        }
    }
}

#[derive(Serialize)]
struct TierObject<'a> {
    /// Most tokens of a pass.
    n_tokens: u32,
    #[serde(flatten)]
    placed: &'a Placed,
    /// A pass that follows one like it, and where its time goes.
    pass_s: Seconds,
    first_pass_s: Seconds,
    cpu_s: Seconds,
    gpu_s: Seconds,
    waiting_for_copies_s: Seconds,
    handoffs_s: Seconds,
    bottleneck: Bottleneck,
    vram: VramObject,
    placements: Shape,
    /// Weights of streamed shards that stay in VRAM.
    resident_bytes: Bytes,
    /// Options that the engine does not have yet and the prediction uses; absent without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    extras: Option<Extras>,
}

impl TierObject<'_> {
    fn of<'a>(tier: &TierPlan, placed: &'a Placed, extras: Extras) -> TierObject<'a> {
        let predicted = &tier.plan.predicted;
        let layout = &tier.plan.layout;
        TierObject {
            n_tokens: tier.tier.n_tokens(),
            placed,
            pass_s: predicted.seconds,
            first_pass_s: predicted.first,
            cpu_s: predicted.cpu,
            gpu_s: predicted.gpu,
            waiting_for_copies_s: predicted.waiting,
            handoffs_s: predicted.handoffs,
            bottleneck: predicted.bottleneck(),
            vram: VramObject::of(tier.plan.vram),
            placements: Shape::of(layout),
            resident_bytes: layout.resident.iter().map(|tensor| tensor.bytes).sum(),
            extras: (extras != Extras::default()).then_some(extras),
        }
    }
}

#[derive(Serialize)]
struct VramObject {
    weights_bytes: Bytes,
    kv_bytes: Bytes,
    slots_bytes: Bytes,
    scratch_bytes: Bytes,
    driver_bytes: Bytes,
    total_bytes: Bytes,
}

impl VramObject {
    fn of(used: VramUse) -> VramObject {
        let VramUse { weights, kv, slots, scratch, driver } = used;
        VramObject {
            weights_bytes: weights,
            kv_bytes: kv,
            slots_bytes: slots,
            scratch_bytes: scratch,
            driver_bytes: driver,
            total_bytes: used.total(),
        }
    }
}

#[derive(Serialize)]
struct WhatIfObject {
    more_vram: Option<ForecastObject>,
    half_ctx: Option<ForecastObject>,
}

#[derive(Serialize)]
struct ForecastObject {
    vram_bytes: Bytes,
    #[serde(flatten)]
    workload: Workload,
    ttft_s: Seconds,
    tps: f64,
    measured: bool,
}

impl ForecastObject {
    fn of_variation(variation: &Variation) -> ForecastObject {
        let Forecast { vram, workload, ttft, tps, measured, .. } = variation.forecast;
        ForecastObject { vram_bytes: vram, workload, ttft_s: ttft, tps, measured }
    }
}
