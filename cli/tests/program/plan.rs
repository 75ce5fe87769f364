//! `baton plan`, on a made-up machine.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use planner::SavedPlan;

use crate::{Outcome, baton, data};

/// A profile with round figures, of a card with 12 GiB.
fn machine() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../planner/tests/data/preview/machine.toml")
}

fn plan(model: &str, words: &[&str]) -> Outcome {
    let start = ["plan".into(), model.into(), "--machine".into(), machine().into_os_string()];
    baton(start.into_iter().chain(words.iter().map(OsString::from)))
}

fn json(model: &str, words: &[&str]) -> serde_json::Value {
    let printed = plan(model, &[words, &["--json"]].concat()).success();
    assert_eq!(printed.lines().count(), 1);
    serde_json::from_str(&printed).expect("JSON")
}

#[test]
fn a_table_and_a_strip_are_printed_as_prediction() {
    let shown = plan("nemo-4b-f16", &["--vram", "2GiB,4GiB", "--ctx", "1K,16K"]).success();
    for part in ["Predicted, not measured", "2 GiB", "4 GiB", "16K", "TTFT", "TPS", "attention "] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    assert!(!shown.contains('\x1b'), "no colours where nobody sees them");
}

#[test]
fn files_folders_and_descriptions_are_models() {
    let description = data("../../../planner/models/nemo-4b-f16.toml");
    for (path, name, n_layer) in [
        (data("smollm2/model.gguf"), "model", 2),
        (data("qwen3/hf"), "hf", 2),
        (description, "nemo-4b-f16", 34),
    ] {
        let path = path.to_str().expect("UTF-8");
        let json = json(path, &["--vram", "1GiB", "--ctx", "64"]);
        assert_eq!(json["model"]["name"], name);
        assert_eq!(json["model"]["n_layer"], n_layer, "{name}");
        assert!(json["cells"][0]["plan"]["tps"].as_f64().expect("a rate") > 0.0);
    }
}

#[test]
fn without_flags_budgets_go_up_to_the_card() {
    let json = json("nemo-4b-f16", &[]);
    let cells = json["cells"].as_array().expect("cells");
    let budgets = cells.iter().map(|cell| cell["vram_bytes"].as_u64().expect("a size") >> 30);
    assert_eq!(budgets.collect::<Vec<_>>(), [2, 4, 8, 12]);
    assert!(cells.iter().all(|cell| cell["n_ctx"] == 8192));
}

#[test]
fn lengths_and_strategy_are_heeded() {
    let words = ["--vram", "4GiB", "--prompt", "100", "--gen", "20", "--strategy", "static"];
    let json = json("nemo-4b-f16", &words);
    let cell = &json["cells"][0];
    assert_eq!((&cell["n_prompt"], &cell["n_gen"]), (&100.into(), &20.into()));
    assert_eq!(json["method"]["strategy"], "static");
    assert_eq!(cell["plan"]["decode"]["strategy"], "static");
}

#[test]
fn a_picture_and_a_plan_are_written() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [svg, saved] = ["plan.svg", "plan.toml"].map(|name| folder.path().join(name));
    let [svg_path, saved_path] = [&svg, &saved].map(|path| path.to_str().expect("UTF-8"));
    let words = ["--vram", "4GiB", "--ctx", "4K", "--svg", svg_path, "--save", saved_path];
    plan("nemo-4b-f16", &words).success();
    assert!(fs::read_to_string(svg).expect("written").starts_with("<svg "));
    let saved = SavedPlan::from_toml(&fs::read_to_string(saved).expect("written"));
    let saved = saved.expect("a plan");
    assert_eq!((saved.model.as_str(), saved.n_ctx), ("nemo-4b-f16", 4096));
    let names = fs::read_dir(folder.path()).expect("there").map(|file| file.expect("there"));
    let mut names: Vec<OsString> = names.map(|file| file.file_name()).collect();
    names.sort();
    assert_eq!(names, ["plan.svg", "plan.toml"], "nothing else");
    let message = plan("nemo-4b-f16", &["--save", "no-such-folder/plan.toml"]).bad_input();
    assert!(message.contains("cannot write no-such-folder/plan.toml"), "{message}");
}

#[test]
fn options_that_the_engine_lacks_are_used_on_demand_and_never_saved() {
    let words = ["--vram", "2GiB", "--ctx", "16K"];
    let of = |words: &[&str]| json("nemo-8b-f16", words)["cells"][0]["plan"].clone();
    let (without, with) = (of(&words), of(&[&words[..], &["--allow", "split-ffn"]].concat()));
    let split = |plan: &serde_json::Value| plan["decode"]["extras"]["split"].clone();
    assert!(split(&without).is_null());
    let [without, with] = [without, with].map(|plan| plan["ttft_s"].as_f64().expect("s"));
    assert!(with <= without);
    for words in [&["--save", "plan.toml"], &["--strategy", "static"]] {
        let words = [&["--allow", "split-ffn"], &words[..]].concat();
        assert_eq!(plan("nemo-8b-f16", &words).code, Some(2), "{words:?}");
    }
    assert!(
        baton(["plan", "--help"]).success().contains("Predicted only, the engine does not run")
    );
}

#[test]
fn a_budget_that_is_too_small_says_what_would_work() {
    let message = plan("nemo-4b-f16", &["--vram", "100MiB", "--ctx", "4K"]).bad_input();
    assert!(message.contains("100.0 MiB is too small; the least that would work is"), "{message}");
    let message = plan("nemo-4b-f16", &["--vram", "64GiB"]).bad_input();
    assert!(message.contains("more than the 12.00 GiB of made-up GPU"), "{message}");
}

#[test]
fn unknown_names_list_the_known_ones() {
    let message = plan("nemo", &[]).bad_input();
    assert!(message.contains("known: smollm2-135m, cosmos-reason1-7b-q4_k, "), "{message}");
    let message = baton(["plan", "nemo-4b-f16", "--machine", "rtx"]).bad_input();
    assert!(message.starts_with("no machine is known by the name rtx; known: "), "{message}");
    let message = plan("missing.gguf", &[]).bad_input();
    assert!(message.contains("no such file"), "{message}");
}

#[test]
fn a_machine_that_was_not_measured_is_told_how() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = Command::new(env!("CARGO_BIN_EXE_baton"))
        .args(["plan", "nemo-4b-f16"])
        .env("XDG_CONFIG_HOME", folder.path())
        .env("HOME", folder.path())
        .output()
        .expect("baton starts");
    let message = Outcome::of(output).bad_input();
    assert!(message.contains("`baton profile`"), "{message}");
}

#[test]
fn nonsense_is_refused_by_its_field() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let profile = fs::read_to_string(machine()).expect("test data");
    for (from, to, reason) in [
        ("h2d = 25e9", "h2d = 0.0", "gpu.link.h2d is 0; expected a number above 0"),
        ("dram = 60e9", "dram = -1.0", "cpu.dram is -1"),
        ("memory = 40e9", "memory = nan", "cpu.kernels.memory is NaN"),
        ("schema = 1", "schema = 9", "schema 9"),
        ("[cpu]", "[zpu]", "not a machine profile"),
    ] {
        let path = folder.path().join("machine.toml");
        fs::write(&path, profile.replacen(from, to, 1)).expect("written");
        let path = path.to_str().expect("UTF-8");
        let message = baton(["plan", "nemo-4b-f16", "--machine", path]).bad_input();
        assert!(message.contains("machine.toml: ") && message.contains(reason), "{message}");
    }
    let path = folder.path().join("model.toml");
    fs::write(&path, "name = 1").expect("written");
    let message = plan(path.to_str().expect("UTF-8"), &[]).bad_input();
    assert!(message.contains("model.toml: not a description of a model"), "{message}");
}

#[test]
fn sizes_need_their_suffix() {
    let outcome = plan("nemo-4b-f16", &["--vram", "4"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("a size with its suffix"), "{}", outcome.stderr);
}
