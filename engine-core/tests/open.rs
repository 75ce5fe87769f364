//! Opening whole models: which files are taken, and what is said about those that are not.

use std::path::{Path, PathBuf};

use engine_core::testing::GgufWriter;
use engine_core::weights::{DType, Looks, ModelFiles, OpenError};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn open(path: &Path) -> ModelFiles {
    ModelFiles::open(path).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn both_kinds_of_one_model_hold_the_same_values() {
    let ModelFiles::Gguf(gguf) = open(&data("llama/model.gguf")) else { panic!("a GGUF file") };
    let ModelFiles::Checkpoint(folder) = open(&data("llama/hf")) else { panic!("a checkpoint") };
    assert_eq!(gguf.metadata.str("general.architecture"), Some("llama"));
    assert_eq!(folder.config["model_type"], "llama");
    assert!(folder.generation_config.is_some() && folder.tokenizer_path().is_file());
    assert!(folder.json("tokenizer_config.json").unwrap().is_some());
    assert!(folder.json("absent.json").unwrap().is_none());

    let [ours, theirs] =
        [(&gguf.weights, "token_embd.weight"), (&folder.weights, "model.embed_tokens.weight")]
            .map(|(weights, name)| (weights, weights.get(name).unwrap()));
    assert_eq!(ours.1.shape(), theirs.1.shape());
    assert_eq!(theirs.1.dtype(), Ok(DType::F32));
    let [ours, theirs] = [ours, theirs].map(|(weights, tensor)| weights.slice(tensor).unwrap());
    assert_eq!(ours.bytes(), theirs.bytes());
}

#[test]
fn parts_of_either_kind_are_joined() {
    for (path, n_files, tensor) in [
        ("mistral/model-00002-of-00002.gguf", 2, "output_norm.weight"),
        ("mistral", 2, "token_embd.weight"),
        ("qwen3/hf", 2, "model.norm.weight"),
    ] {
        let model = open(&data(path));
        assert_eq!(model.weights().files().len(), n_files, "{path}");
        let tensor = model.weights().get(tensor).expect(path);
        assert!(model.weights().slice(tensor).is_ok());
    }
}

#[test]
fn a_folder_with_one_gguf_model_is_that_model() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str| {
        let bytes = GgufWriter::new().text("general.name", name).to_bytes();
        std::fs::write(folder.path().join(name), bytes).unwrap();
    };
    write("a.gguf");
    write("mmproj-a.gguf");
    // Some GGUF folders carry the config of the checkpoint that they were made from.
    std::fs::write(folder.path().join("config.json"), "{}").unwrap();
    assert!(matches!(open(folder.path()), ModelFiles::Gguf(_)));

    write("b-00001-of-00002.gguf");
    write("b-00002-of-00002.gguf");
    match ModelFiles::open(folder.path()) {
        Err(OpenError::SeveralModels { models, .. }) => {
            assert_eq!(models, ["a.gguf", "b-00001-of-00002.gguf"]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_no_model_is_named_for_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    for (bytes, looks, hint) in [
        (&b"\x0a\0\0\0\0\0\0\0{}        "[..], Looks::Safetensors, "give the folder"),
        (b"PK\x03\x04", Looks::Zip, "ZIP"),
        (b"\x80\x02}", Looks::Pickle, "pickle"),
        (b"<!DOCTYPE html>", Looks::Html, "web page"),
        (b"version https://git-lfs.github.com/spec/v1", Looks::GitLfsPointer, "git lfs pull"),
        (b"", Looks::Empty, "fetch it again"),
    ] {
        let path = folder.path().join("model.gguf");
        std::fs::write(&path, bytes).unwrap();
        let error = ModelFiles::open(&path).unwrap_err();
        assert!(matches!(error, OpenError::NotAModel { looks: found, .. } if found == looks));
        let message = error.to_string();
        assert!(message.contains(hint) && message.contains("model.gguf"), "{message}");
    }
}

#[test]
fn a_path_without_a_model_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let error = ModelFiles::open(&folder.path().join("none")).unwrap_err();
    assert!(matches!(error, OpenError::NotFound { .. }));
    let error = ModelFiles::open(folder.path()).unwrap_err();
    assert!(matches!(error, OpenError::NoModel { .. }));
    std::fs::write(folder.path().join("config.json"), "{}").unwrap();
    std::fs::write(folder.path().join("pytorch_model.bin"), "pickle").unwrap();
    let message = ModelFiles::open(folder.path()).unwrap_err().to_string();
    assert!(message.contains("but pytorch_model.bin"), "{message}");
}
