//! `baton tokenize`: ids, pieces, and back.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::{Outcome, baton, data};

fn tokenize(words: &[&str], stdin: &str) -> Outcome {
    let mut child = Command::new(env!("CARGO_BIN_EXE_baton"))
        .arg("tokenize")
        .arg("--model")
        .arg(data("smollm2/model.gguf"))
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("baton starts");
    // A program that wants no stdin may be gone already.
    let _ = child.stdin.take().expect("piped").write_all(stdin.as_bytes());
    Outcome::of(child.wait_with_output().expect("baton ends"))
}

fn ids(json: &str) -> Vec<u64> {
    let json: serde_json::Value = serde_json::from_str(json).expect("JSON");
    let ids = json["ids"].as_array().expect("ids").iter();
    ids.map(|id| id.as_u64().expect("an id")).collect()
}

#[test]
fn ids_turn_back_into_the_text() {
    let text = "The rain 🦀 in Spain\n";
    let ids = ids(&tokenize(&["--json", text], "").success());
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    assert_eq!(tokenize(&["--ids", &ids.join(",")], "").success(), format!("{text}\n"));
}

#[test]
fn each_token_has_a_row_with_its_piece() {
    let shown = tokenize(&["the rain"], "").success();
    let rows: Vec<&str> = shown.lines().collect();
    let (count, rows) = rows.split_last().expect("rows");
    assert_eq!(*count, format!("{} tokens", rows.len()));
    assert!(rows.iter().all(|row| row.ends_with('"')), "{shown}");
}

#[test]
fn lines_are_encoded_one_by_one() {
    let shown = tokenize(&["--lines", "--json"], "the rain\n\nin Spain\n").success();
    let texts: Vec<serde_json::Value> = shown
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["text"].take())
        .collect();
    assert_eq!(texts, ["the rain", "", "in Spain"]);
    let plain = tokenize(&["--lines"], "the rain\n\nin Spain\n").success();
    assert_eq!(plain.lines().count(), 3);
}

#[test]
fn text_becomes_control_tokens_only_when_asked() {
    let literal = ids(&tokenize(&["--json", "<|im_start|>"], "").success());
    let special = ids(&tokenize(&["--json", "--special", "<|im_start|>"], "").success());
    assert!(literal.len() > special.len(), "{literal:?} {special:?}");
}

#[test]
fn stdin_is_read_when_there_is_no_text() {
    let typed = tokenize(&["--json", "the rain"], "").success();
    assert_eq!(tokenize(&["--json"], "the rain").success(), typed);
}

#[test]
fn an_id_beyond_the_vocabulary_is_refused() {
    let message = tokenize(&["--ids", "1,999999"], "").bad_input();
    assert!(message.contains("token id 999999"), "{message}");
    let outcome = baton(["tokenize", "--ids", "1,x"]);
    assert_eq!(outcome.code, Some(2));
}
