//! `baton perplexity`: the score, and the logits that it is made of.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::{Outcome, baton, data};

const TEXT: &str =
    "The rain in Spain stays mainly in the plain, and the runner passes the baton on.\n";

fn text_file(text: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("text.txt");
    fs::write(&path, text).expect("written");
    (folder, path)
}

fn perplexity(text: &[u8], flags: &[&str]) -> Outcome {
    let (_folder, text) = text_file(text);
    let start = ["perplexity".into(), data("smollm2/model.gguf"), "--file".into(), text];
    baton(start.into_iter().chain(flags.iter().map(PathBuf::from)))
}

#[test]
fn the_table_and_the_json_agree() {
    let json = perplexity(TEXT.as_bytes(), &["--ctx", "16", "--json"]).success();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let number = |key: &str| json[key].as_f64().expect("a number");
    assert!((number("mean_nll").exp() - number("perplexity")).abs() < 1e-9 * number("perplexity"));
    // The second half of each window, and each position scores the token after it.
    assert_eq!(json["scored_tokens"].as_u64(), json["windows"].as_u64().map(|n| n * 7));
    let line = perplexity(TEXT.as_bytes(), &["--ctx", "16"]).success();
    assert!(line.starts_with(&format!("perplexity {:.4}", number("perplexity"))), "{line}");
}

#[test]
fn the_logits_are_those_that_were_scored() {
    let (folder, text) = text_file(TEXT.as_bytes());
    let logits = folder.path().join("logits");
    let words = ["perplexity".into(), data("smollm2/model.gguf"), "--file".into(), text];
    let flags = ["--whole".into(), "--json".into(), "--logits".into(), logits.clone()];
    let json = baton(words.into_iter().chain(flags)).success();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let rows = json["scored_tokens"].as_u64().expect("a count");
    let bytes = fs::metadata(&logits).expect("the file").len();
    assert_eq!(bytes % (rows * 4), 0);
    assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 2, "nothing else is left");
}

#[test]
fn texts_that_cannot_be_scored_are_refused() {
    let message = perplexity(TEXT.as_bytes(), &[]).bad_input();
    assert!(message.contains("--whole"), "{message}");
    let message = perplexity(b"\xff\xfe", &[]).bad_input();
    assert!(message.contains("is not UTF-8 text"), "{message}");
    let message = baton(["perplexity", "--file", "no-such-text"]).bad_input();
    assert!(message.contains("cannot read no-such-text"), "{message}");
}

#[test]
fn a_folder_and_a_gguf_file_of_one_model_score_alike() {
    let (_folder, text) = text_file(TEXT.as_bytes());
    let score = |model: &str| {
        let words = ["perplexity".into(), data(model), "--file".into(), text.clone()];
        // The two order the dimensions of a head differently, so that sums are rounded differently: by how much depends
        // on the kernels, so they are the same on each CPU.
        let flags = ["--whole", "--json", "--isa", "scalar"].map(PathBuf::from);
        let json = baton(words.into_iter().chain(flags)).success();
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        json["mean_nll"].as_f64().expect("a number")
    };
    let (file, folder) = (score("smollm2/model.gguf"), score("smollm2/hf"));
    assert!((file - folder).abs() < 1e-6, "{file} and {folder}");
}
