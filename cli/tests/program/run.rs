//! `baton run` on tiny models whose words mean nothing but never change.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{Outcome, baton, data};

/// Runs the tiny SmolLM2 with few tokens of answer.
fn run(words: &[&str]) -> Outcome {
    run_model(&data("smollm2/model.gguf"), words)
}

fn run_model(model: &Path, words: &[&str]) -> Outcome {
    let start = ["run".into(), "--model".into(), model.into(), "--max-tokens".into(), "8".into()];
    baton(start.into_iter().chain(words.iter().map(OsString::from)))
}

fn last_line(text: &str) -> &str {
    text.lines().last().expect("a line")
}

#[test]
fn the_answer_goes_to_stdout_and_the_rates_to_stderr() {
    let outcome = run(&["Hi", "--temperature", "0"]);
    let line = last_line(&outcome.stderr).to_owned();
    assert!(outcome.success().ends_with('\n'));
    for part in ["prefill ", " TPS", "TTFT ", "load ", " tokens", "seed "] {
        assert!(line.contains(part), "{part} in {line}");
    }
}

#[test]
fn a_bare_path_goes_before_the_prompt() {
    let flag = run(&["Hi", "--temperature", "0"]).success();
    let model = data("smollm2/model.gguf");
    let words = ["--max-tokens", "8", "--temperature", "0"].map(OsString::from);
    let bare = ["run".into(), model.into(), "Hi".into()].into_iter().chain(words);
    assert_eq!(baton(bare).success(), flag);
}

#[test]
fn json_is_one_object_with_the_text() {
    let words = ["Hi", "--raw", "--temperature", "0"];
    let text = run(&words).success();
    let json = run(&[&words[..], &["--json"]].concat()).success();
    assert_eq!(json.lines().count(), 1);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["text"].as_str().expect("text").trim_end(), text.trim_end());
    assert!(json["generated_tokens"].as_u64().expect("a count") <= 8);
}

#[test]
fn the_same_seed_gives_the_same_answer() {
    let words = ["Hi", "--temperature", "2", "--top-k", "0", "--top-p", "1", "--min-p", "0"];
    let with_seed = |seed| run(&[&words[..], &["--json", "--seed", seed]].concat()).success();
    let text = |json: String| {
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        json["text"].clone()
    };
    assert_eq!(text(with_seed("1")), text(with_seed("1")));
    assert_ne!(text(with_seed("1")), text(with_seed("2")));
}

#[test]
fn lookup_changes_neither_text_nor_json_but_for_its_counts() {
    let words = ["one two one two one two one two", "--raw", "--temperature", "0"];
    let plain = run(&words).success();
    let outcome = run(&[&words[..], &["--lookup"]].concat());
    assert!(last_line(&outcome.stderr).contains(" TPS (8 tokens), lookup "), "{}", outcome.stderr);
    assert_eq!(outcome.success(), plain);
    let json = |more: &[&str]| -> serde_json::Value {
        let words = [&words[..], &["--json"], more].concat();
        serde_json::from_str(&run(&words).success()).expect("JSON")
    };
    let (off, on) = (json(&[]), json(&["--lookup"]));
    assert_eq!(off["text"], on["text"]);
    assert_eq!(off.get("accepted_tokens"), None);
    assert!(on["accepted_tokens"].as_u64() <= on["proposed_tokens"].as_u64());
}

#[test]
fn a_seed_that_was_drawn_is_told() {
    let seeds = [(); 2].map(|()| {
        let outcome = run(&["Hi"]);
        let line = last_line(&outcome.stderr);
        line.rsplit_once("seed ").expect("a seed").1.to_owned()
    });
    assert_ne!(seeds[0], seeds[1]);
}

#[test]
fn a_dash_reads_the_prompt_from_stdin() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_baton"))
        .args(["run", "-", "--raw", "--max-tokens", "8", "--temperature", "0", "--model"])
        .arg(data("smollm2/model.gguf"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("baton starts");
    child.stdin.take().expect("piped").write_all(b"Once upon").expect("written");
    let output = child.wait_with_output().expect("baton ends");
    let typed = run(&["Once upon", "--raw", "--temperature", "0"]).success();
    assert_eq!(String::from_utf8_lossy(&output.stdout), typed);
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_baton"))
        .args(["run", "Hi", "--raw", "--max-tokens", "400", "--model"])
        .arg(data("smollm2/model.gguf"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("baton starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("baton ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn a_prompt_that_does_not_fit_is_refused_before_anything_is_computed() {
    let message = run(&["--ctx", "8", "--raw", "one two three four five six seven"]).bad_input();
    assert!(message.contains("the prompt has") && message.contains("a context of 8"), "{message}");
}

#[test]
fn a_context_that_does_not_fit_in_memory_says_what_would() {
    let message = run(&["--ctx", "1024M", "Hi"]).bad_input();
    assert!(message.contains("a context of 1073741824 tokens needs"), "{message}");
    assert!(message.contains("tokens would fit"), "{message}");
}

#[test]
fn bad_settings_are_refused_by_name() {
    let cases = [
        ("--temperature", "-1", "temperature is -1"),
        ("--temperature", "nan", "temperature is NaN"),
        ("--top-p", "2", "top-p is 2"),
        ("--min-p", "-0.1", "min-p is -0.1"),
        ("--repeat-penalty", "0", "repeat penalty is 0"),
    ];
    for (flag, value, reason) in cases {
        let message = run(&["Hi", flag, value]).bad_input();
        assert!(message.contains(reason), "{message}");
    }
}

#[test]
fn what_is_no_model_is_refused_in_one_line() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let whole = fs::read(data("smollm2/model.gguf")).expect("test data");
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("written");
        path
    };
    let cases = [
        (write("cut.gguf", &whole[..whole.len() - 1]), "cut.gguf"),
        (write("text.gguf", b"Once upon a time"), "is not a model file"),
        (folder.path().join("missing.gguf"), "no such file"),
        (data("quant").join(".."), "holds no model"),
        ("smollm3".into(), "known: smollm2-135m"),
    ];
    for (model, reason) in cases {
        let message = run_model(&model, &["Hi"]).bad_input();
        assert!(message.contains(reason), "{message}");
    }
}

#[test]
fn a_model_without_a_prompt_is_noticed() {
    for model in ["smollm2-135m", "model.gguf"] {
        let message = baton(["run", model]).bad_input();
        assert!(message.contains("there is no prompt"), "{message}");
    }
}
#[test]
fn a_folder_and_a_gguf_file_of_one_model_answer_alike() {
    let words = ["Once upon a time", "--raw", "--temperature", "0"];
    let folder = run_model(&data("smollm2/hf"), &words).success();
    assert_eq!(run(&words).success(), folder);
}
