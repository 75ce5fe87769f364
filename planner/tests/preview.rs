//! What is printed of forecasts, on a made-up machine with round figures.

use planner::preview::{Preview, Question, Sweep};
use planner::{
    Bytes, Forecast, MachineProfile, Method, ModelShape, PlanError, SavedPlan, SavedPlanError,
    Strategy, Switches, library, typed,
};
use serde_json::Value;

const MACHINE: &str = include_str!("data/preview/machine.toml");

fn machine() -> MachineProfile {
    MachineProfile::from_toml(MACHINE).expect("valid")
}

fn model() -> ModelShape {
    library::model("nemo-4b-f16").expect("built in")
}

fn sizes(text: &str) -> Vec<Bytes> {
    text.split(',').map(|text| typed::size(text).expect("a size")).collect()
}

fn sweep(budgets: &str, contexts: &[u32]) -> Sweep {
    Sweep { budgets: sizes(budgets), contexts: contexts.to_vec(), ..Sweep::default() }
}

/// Runs `look` on the preview of a sweep.
fn with<T>(sweep: &Sweep, method: Method, look: impl FnOnce(&Preview<'_>) -> T) -> T {
    let (model, machine) = (model(), machine());
    let question =
        Question { model: &model, machine: &machine, method, switches: Switches::default() };
    look(&Preview::of(question, sweep).expect("a plan"))
}

fn error(sweep: &Sweep, method: Method) -> PlanError {
    let (model, machine) = (model(), machine());
    let question =
        Question { model: &model, machine: &machine, method, switches: Switches::default() };
    Preview::of(question, sweep).err().expect("no plan")
}

fn json(sweep: &Sweep) -> Value {
    with(sweep, Method::Search, |preview| serde_json::from_str(&preview.json()).expect("JSON"))
}

#[test]
fn the_text_has_a_table_and_a_cell_from_near() {
    let sweep = sweep("0,100MiB,2GiB,4GiB", &[4096, 65536]);
    let text = with(&sweep, Method::Strategy(Strategy::Static), |preview| preview.text(false));
    insta::assert_snapshot!(text);
}

#[test]
fn streams_are_drawn_by_their_own_sign() {
    let sweep = sweep("3GiB", &[4096]);
    let text = with(&sweep, Method::Strategy(Strategy::FullShard), |preview| preview.text(false));
    insta::assert_snapshot!(text);
}

#[test]
fn colours_change_nothing_but_colours() {
    let sweep = sweep("4GiB", &[4096]);
    let [plain, coloured] =
        [false, true].map(|colour| with(&sweep, Method::Search, |preview| preview.text(colour)));
    assert!(!plain.contains('\x1b') && coloured.contains('\x1b'));
    let mut stripped = coloured;
    for colour in ["\x1b[0m", "\x1b[32m", "\x1b[33m", "\x1b[36m"] {
        stripped = stripped.replace(colour, "");
    }
    assert_eq!(stripped, plain);
}

#[test]
fn a_sign_is_drawn_for_each_layer() {
    let text = with(&sweep("4GiB", &[4096]), Method::Search, |preview| preview.text(false));
    for row in ["attention", "FFN"] {
        let strips = text.lines().filter_map(|line| line.trim_start().strip_prefix(row));
        let strips = strips.map(str::trim);
        let strips = strips.filter(|strip| strip.chars().all(|c| "█▒▓·".contains(c)));
        let strips: Vec<usize> = strips.map(|strip| strip.chars().count()).collect();
        assert_eq!(strips, [34, 34], "{text}");
    }
}

#[test]
fn json_has_all_that_the_text_shows() {
    let json = json(&sweep("100MiB,4GiB", &[4096, 65536]));
    assert_eq!(json["schema"], 1);
    assert_eq!(json["kind"], "prediction");
    assert_eq!(json["model"]["n_layer"], 34);
    assert_eq!(json["machine"]["vram_bytes"], Bytes::gib(12).get());
    let cells = json["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 4);
    assert!(cells[0]["error"]["need_bytes"].as_u64().expect("a size") > Bytes::mib(100).get());
    assert_eq!(cells[0]["plan"], Value::Null);
    let cell = &cells[2];
    assert_eq!((&cell["vram_bytes"], &cell["n_ctx"]), (&Bytes::gib(4).get().into(), &4096.into()));
    let plan = &cell["plan"];
    assert_eq!((&plan["measured"], &cells[3]["plan"]["measured"]), (&true.into(), &false.into()));
    let number = |value: &Value| value.as_f64().expect("a number");
    let gain = number(&plan["baseline"]["ttft_s"]) / number(&plan["ttft_s"]);
    assert!((gain - number(&plan["baseline"]["ttft_gain"])).abs() < 1e-9);
    for tier in ["prefill", "decode"] {
        let tier = &plan[tier];
        let parts = ["cpu_s", "gpu_s", "waiting_for_copies_s", "handoffs_s"];
        let parts: f64 = parts.iter().map(|part| number(&tier[part])).sum();
        assert!((parts - number(&tier["pass_s"])).abs() < 1e-9, "{tier}");
        assert_eq!(tier["placements"]["attention"].as_array().expect("layers").len(), 34);
        assert_eq!(tier["placements"]["ffn"].as_array().expect("layers").len(), 34);
        assert!(number(&tier["vram"]["total_bytes"]) <= 4.0 * f64::from(1 << 30));
    }
    assert_eq!(json["chosen_cell"], 3);
    assert_eq!(json["what_if"]["more_vram"]["vram_bytes"], Bytes::gib(5).get());
    assert_eq!(json["what_if"]["half_ctx"]["n_ctx"], 32768);
}

#[test]
fn more_vram_or_less_context_is_never_slower() {
    with(&sweep("4GiB", &[16384]), Method::Search, |preview| {
        let now = &preview.chosen().forecast;
        let more = &preview.what_if.more_vram.as_ref().expect("the card has more").forecast;
        let half = &preview.what_if.half_ctx.as_ref().expect("there is room").forecast;
        for then in [more, half] {
            assert!(then.ttft <= now.ttft && then.tps >= now.tps);
        }
    });
    // The card has no more than that.
    with(&sweep("12GiB", &[4096]), Method::Search, |preview| {
        assert_eq!(preview.what_if.more_vram, None);
    });
}

#[test]
fn the_picture_is_xml_with_a_lane_for_each_device() {
    let svg = with(&sweep("2GiB", &[4096]), Method::Search, |preview| preview.svg());
    let document = roxmltree::Document::parse(&svg).expect("XML");
    let texts: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
    for text in ["Prompt", "Answer", "CPU computes", "GPU computes", "copy to VRAM", "attention"] {
        assert!(texts.contains(&text), "{text} in {texts:?}");
    }
    assert!(texts.iter().any(|text| text.ends_with(" ms") || text.ends_with(" s")), "a unit");
    assert!(texts.iter().any(|text| text.contains("Predicted, not measured")), "a label");
    assert!(svg.contains("prefers-color-scheme:dark"));
}

#[test]
fn a_machine_without_a_gpu_is_drawn_too() {
    let (model, machine) = (model(), MachineProfile { gpu: None, ..machine() });
    let question = Question {
        model: &model,
        machine: &machine,
        method: Method::Search,
        switches: Switches::default(),
    };
    let preview = Preview::of(question, &Sweep::default()).expect("a plan");
    assert_eq!(preview.cells.len(), 1);
    let text = preview.text(false);
    assert!(text.contains("no GPU") && text.contains("all on the CPU"), "{text}");
    roxmltree::Document::parse(&preview.svg()).expect("XML");
    let question = Question {
        model: &model,
        machine: &machine,
        method: Method::Search,
        switches: Switches::default(),
    };
    let error = Preview::of(question, &sweep("2GiB", &[4096])).err();
    assert!(matches!(error, Some(PlanError::NoGpu { .. })));
}

#[test]
fn nothing_is_planned_without_a_reason_given() {
    let too_small = error(&sweep("100MiB", &[4096]), Method::Search);
    let PlanError::BudgetTooSmall { have, need } = too_small else { panic!("{too_small}") };
    assert_eq!(have, Bytes::mib(100));
    let enough = Sweep { budgets: vec![need], ..sweep("0", &[4096]) };
    with(&enough, Method::Search, |preview| assert!(preview.cells[0].outcome.is_ok()));
    let too_long = Sweep { n_prompt: Some(5000), ..sweep("4GiB", &[4096]) };
    let error = error(&too_long, Method::Search).to_string();
    assert!(error.contains("do not fit in a context of 4096"), "{error}");
}

#[test]
fn lengths_that_are_not_given_follow_from_those_that_are() {
    let lengths = |n_prompt, n_gen| {
        let sweep = Sweep { n_prompt, n_gen, ..sweep("4GiB", &[4096]) };
        with(&sweep, Method::Search, |preview| {
            let Forecast { workload, .. } = preview.chosen().forecast;
            (workload.n_prompt, workload.n_gen)
        })
    };
    assert_eq!(lengths(None, None), (3840, 256));
    assert_eq!(lengths(Some(4000), None), (4000, 96));
    assert_eq!(lengths(None, Some(1000)), (3096, 1000));
    assert_eq!(lengths(Some(100), Some(10)), (100, 10));
}

#[test]
fn a_plan_comes_back_as_it_was_saved() {
    let saved = with(&sweep("4GiB", &[4096]), Method::Search, |preview| preview.save());
    let saved = saved.expect("plans");
    assert_eq!((saved.n_layer, saved.n_ctx, saved.vram), (34, 4096, Bytes::gib(4)));
    let read = SavedPlan::from_toml(&saved.to_toml()).expect("valid");
    assert_eq!(read, saved);
}

#[test]
fn a_plan_that_cannot_be_carried_out_is_refused() {
    let method = Method::Strategy(Strategy::FullShard);
    let saved = with(&sweep("3GiB", &[4096]), method, |preview| preview.save()).expect("plans");
    let refused = |change: &dyn Fn(&mut SavedPlan)| {
        let mut plan = saved.clone();
        change(&mut plan);
        SavedPlan::from_toml(&plan.to_toml()).expect_err("refused")
    };
    assert!(matches!(refused(&|plan| plan.schema = 9), SavedPlanError::Schema { found: 9, .. }));
    assert!(matches!(refused(&|plan| plan.tiers.reverse()), SavedPlanError::Tiers));
    assert!(matches!(refused(&|plan| plan.tiers.clear()), SavedPlanError::Tiers));
    assert!(matches!(refused(&|plan| plan.n_layer = 33), SavedPlanError::Shards { found: 70, .. }));
    let less = refused(&|plan| plan.vram = Bytes::mib(1));
    assert!(matches!(less, SavedPlanError::OverBudget { .. }));
    let outside = refused(&|plan| plan.tiers[0].plan.layout.ring = Bytes::mib(1));
    assert!(matches!(outside, SavedPlanError::Slot { .. }));
    let text = SavedPlan::from_toml("Once upon a time").expect_err("no plan").to_string();
    assert!(text.starts_with("not a saved plan"), "{text}");
}

#[test]
fn no_cell_is_slower_than_one_with_less_vram() {
    let budgets = "0,6GiB,1GiB,1536MiB,2GiB,2560MiB,3GiB,3584MiB,4GiB,5GiB,7GiB,8GiB,10GiB,12GiB";
    let sweep = sweep(budgets, &[1024, 16384]);
    let mut numbers = with(&sweep, Method::Search, |preview| {
        let cells = preview.cells.iter();
        let given: Vec<Bytes> = cells.clone().map(|cell| cell.vram).step_by(2).collect();
        assert_eq!(given, sizes(budgets), "in the order given");
        let of = |forecast: &Forecast| {
            assert!(forecast.prefill.plan.vram.total() <= forecast.vram);
            assert!(forecast.decode.plan.vram.total() <= forecast.vram);
            (forecast.workload.n_ctx, forecast.vram, forecast.ttft, forecast.tps)
        };
        let of = |cell: &planner::preview::Cell| of(&cell.outcome.as_ref().expect("ok").forecast);
        cells.map(of).collect::<Vec<_>>()
    });
    numbers.sort_by_key(|(n_ctx, vram, ..)| (*n_ctx, *vram));
    for pair in numbers.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        assert!(pair[1].2 <= pair[0].2 && pair[1].3 >= pair[0].3, "{pair:?}");
    }
}
