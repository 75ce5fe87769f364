//! `baton inspect`, on files that run and on files that cannot.

use std::fs;

use engine_core::testing::GgufWriter;

use crate::{baton, data};

fn inspect(file: &[u8], flags: &[&str]) -> crate::Outcome {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("model.gguf");
    fs::write(&path, file).expect("written");
    baton([&["inspect", path.to_str().expect("UTF-8")], flags].concat())
}

#[test]
fn the_tables_show_metadata_tensors_and_sums() {
    let shown = baton(["inspect".as_ref(), data("quant/q4_0.gguf").as_os_str()]).success();
    for part in ["GGUF version 3", "general.architecture", "\"llama\"", "token_embd.weight", "Q4_0"]
    {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}

#[test]
fn any_part_of_a_split_model_shows_all_of_it() {
    for part in ["mistral/model-00001-of-00002.gguf", "mistral/model-00002-of-00002.gguf"] {
        let json = baton(["inspect".as_ref(), data(part).as_os_str(), "--json".as_ref()]).success();
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json["files"].as_array().expect("files").len(), 2);
        assert_eq!(json["tensors"].as_array().expect("tensors").len(), 21);
        assert_eq!(json["metadata"]["llama.block_count"], 2);
    }
}

#[test]
fn a_hugging_face_folder_shows_its_configuration() {
    let folder = data("qwen3/hf");
    let shown = baton(["inspect".as_ref(), folder.as_os_str()]).success();
    for part in ["safetensors", "config.json: hidden_size", "model.embed_tokens.weight"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let json = baton(["inspect".as_ref(), folder.as_os_str(), "--json".as_ref()]).success();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["metadata"]["config.json"]["model_type"], "qwen3");
}

#[test]
fn a_folder_without_a_model_is_refused() {
    let message =
        baton(["inspect".as_ref(), data("quant").parent().expect("above").as_os_str()]).bad_input();
    assert!(message.contains("holds no model"), "{message}");
}

#[test]
fn files_that_cannot_run_are_shown_all_the_same() {
    let file = GgufWriter::new()
        .text("general.architecture", "from-the-future")
        .raw_tensor("odd\u{1b}.weight", &[32], 199, None, &[0; 16])
        .to_bytes();
    let shown = inspect(&file, &[]).success();
    assert!(shown.contains("from-the-future"), "{shown}");
    assert!(shown.contains("type number 199"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "a name cannot steer the terminal");
}

#[test]
fn what_is_no_model_is_refused_in_one_line() {
    let whole = fs::read(data("quant/q4_0.gguf")).expect("test data");
    let cases: [(&str, &[u8], &str); 3] = [
        ("cut", &whole[..whole.len() / 2], "model.gguf"),
        ("text", b"Once upon a time", "is not a model file"),
        ("empty", b"", "an empty file"),
    ];
    for (name, file, reason) in cases {
        let message = inspect(file, &[]).bad_input();
        assert!(message.contains(reason), "{name}: {message}");
    }
}

#[test]
fn a_missing_file_and_an_unknown_name_are_told_apart() {
    let message = baton(["inspect", "no-such-file.gguf"]).bad_input();
    assert_eq!(message, "no-such-file.gguf: there is no such file or folder");
    let message = baton(["inspect", "smolm"]).bad_input();
    assert_eq!(message, "no model is known by the name smolm; known: smollm2-135m");
}
