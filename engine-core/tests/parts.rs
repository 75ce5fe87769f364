//! Models in several files that do not belong together, or not all of which are there.

use std::path::PathBuf;

use engine_core::testing::GgufWriter;
use engine_core::weights::{
    Checkpoint, CheckpointError, DType, Gguf, GgufError, MapError, SafetensorsFault, TensorFault,
    Value,
};
use tempfile::TempDir;

/// Part `number` (from 0) of `count`, with one tensor of that number.
fn part(number: u16, count: u16) -> GgufWriter {
    GgufWriter::new()
        .entry("split.no", Value::U16(number))
        .entry("split.count", Value::U16(count))
        .entry("split.tensors.count", Value::I32(count.into()))
        .tensor(&format!("t{number}"), &[8], DType::F32, &[number as u8; 32])
}

/// A folder with these files of a model in three parts.
fn folder(parts: [GgufWriter; 3]) -> (TempDir, [PathBuf; 3]) {
    let folder = tempfile::tempdir().unwrap();
    let paths = [1, 2, 3].map(|number| folder.path().join(format!("m-0000{number}-of-00003.gguf")));
    for (path, part) in paths.iter().zip(parts) {
        std::fs::write(path, part.to_bytes()).unwrap();
    }
    (folder, paths)
}

fn three() -> [GgufWriter; 3] {
    [0, 1, 2].map(|number| part(number, 3))
}

#[test]
fn any_part_opens_all() {
    let (_folder, paths) = folder(three());
    for path in &paths {
        let model = Gguf::open(path).unwrap();
        let tensor = model.weights.get("t2").unwrap();
        assert_eq!(tensor.region(), 2);
        assert_eq!(model.weights.path(tensor), paths[2]);
        assert_eq!(model.weights.slice(tensor).unwrap().bytes(), [2; 32]);
    }
}

#[test]
fn missing_parts_are_listed() {
    let (_folder, paths) = folder(three());
    std::fs::remove_file(&paths[0]).unwrap();
    std::fs::remove_file(&paths[1]).unwrap();
    let error = Gguf::open(&paths[2]).unwrap_err();
    let message = error.to_string();
    assert!(matches!(error, GgufError::MissingParts { missing, of: 3, .. } if missing.len() == 2));
    assert!(message.contains("m-00001-of-00003.gguf, m-00002-of-00003.gguf"), "{message}");
}

#[test]
fn a_bad_part_is_named() {
    let (_folder, paths) = folder(three());
    let whole = std::fs::read(&paths[1]).unwrap();
    std::fs::write(&paths[1], &whole[..whole.len() - 5]).unwrap();
    let message = Gguf::open(&paths[0]).unwrap_err().to_string();
    assert!(message.contains("m-00002-of-00003.gguf") && message.contains("5 bytes are missing"));
    std::fs::write(&paths[1], b"").unwrap();
    assert!(matches!(Gguf::open(&paths[0]), Err(GgufError::Map(MapError::Empty { .. }))));
}

#[test]
fn names_and_metadata_agree() {
    let (_folder, [first, second, _]) = folder(three());
    let renamed = first.with_file_name("renamed.gguf");
    std::fs::rename(&second, &renamed).unwrap();
    assert!(matches!(Gguf::open(&renamed), Err(GgufError::PartName { number: 2, of: 3, .. })));
    std::fs::copy(&first, &second).unwrap();
    let error = Gguf::open(&first).unwrap_err();
    assert!(matches!(error, GgufError::PartNumber { named: (2, 3), found: (1, 3), .. }));

    let whole = GgufWriter::new().text("general.name", "whole");
    let (_folder, [first, ..]) = folder([whole.clone(), whole.clone(), whole.clone()]);
    let error = Gguf::open(&first).unwrap_err();
    assert!(matches!(error, GgufError::PartNumber { named: (1, 3), found: (1, 1), .. }));
    let only = first.with_file_name("m-00001-of-00001.gguf");
    std::fs::write(&only, whole.to_bytes()).unwrap();
    assert!(Gguf::open(&only).is_ok());
}

#[test]
fn parts_of_two_models_do_not_mix() {
    let other = part(1, 3).tensor("more", &[8], DType::F32, &[0; 32]);
    let (_folder, [first, ..]) = folder([part(0, 3), other, part(2, 3)]);
    let error = Gguf::open(&first).unwrap_err();
    assert!(matches!(error, GgufError::TensorCount { promised: 3, found: 4, .. }));

    let again = GgufWriter::new()
        .entry("split.no", Value::U16(1))
        .entry("split.count", Value::U16(3))
        .tensor("t0", &[8], DType::F32, &[0; 32]);
    let (_folder, [first, second, _]) = folder([part(0, 3), again, part(2, 3)]);
    match Gguf::open(&first) {
        Err(GgufError::DuplicateTensor(twice)) => {
            assert_eq!((twice.tensor.as_str(), twice.first, twice.second), ("t0", first, second));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn raw_pieces_are_told_from_damaged_files() {
    let folder = tempfile::tempdir().unwrap();
    let whole = part(0, 1).to_bytes();
    for (name, is_piece) in
        [("m.gguf-split-a", true), ("m.gguf.part1of2", true), ("m.gguf", false), ("m.bak", false)]
    {
        let path = folder.path().join(name);
        std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        let error = Gguf::open(&path).unwrap_err();
        assert_eq!(matches!(error, GgufError::RawPiece { .. }), is_piece, "{error}");
        std::fs::write(&path, &whole).unwrap();
        assert!(Gguf::open(&path).is_ok());
    }
}

const INDEX: &str = "model.safetensors.index.json";

/// A safetensors file with one tensor of four bytes.
fn weights(tensor: &str) -> Vec<u8> {
    let header = format!(r#"{{"{tensor}":{{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}}}"#);
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0; 4]].concat()
}

/// A folder with these files and a `config.json`.
fn checkpoint(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("config.json"), "{}").unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

fn tensors(folder: &TempDir) -> Vec<String> {
    let weights = Checkpoint::open(folder.path()).unwrap().weights;
    weights.tensors().iter().map(|tensor| tensor.name().to_owned()).collect()
}

fn error(folder: &TempDir) -> CheckpointError {
    match Checkpoint::open(folder.path()) {
        Ok(_) => panic!("it opened"),
        Err(error) => error,
    }
}

#[test]
fn files_of_weights_are_chosen_as_the_reference_does() {
    let [a, b, alone] = ["a", "b", "alone"].map(weights);
    let index = br#"{"metadata":{},"weight_map":{"a":"x.safetensors","b":"y.safetensors"}}"#;
    let indexed: &[(&str, &[u8])] =
        &[("x.safetensors", &a), ("y.safetensors", &b), (INDEX, index), ("z.safetensors", b"junk")];
    assert_eq!(tensors(&checkpoint(indexed)), ["a", "b"]);
    let single = [indexed, &[("model.safetensors", &alone[..])]].concat();
    assert_eq!(tensors(&checkpoint(&single)), ["alone"]);
    assert_eq!(tensors(&checkpoint(&[("any.safetensors", &a)])), ["a"]);
    let parts: &[(&str, &[u8])] =
        &[("m-00001-of-00002.safetensors", &a), ("m-00002-of-00002.safetensors", &b)];
    assert_eq!(tensors(&checkpoint(parts)), ["a", "b"]);
    let two = checkpoint(&[("x.safetensors", &a), ("y.safetensors", &b)]);
    assert!(
        matches!(error(&two), CheckpointError::SeveralWeights { files, .. } if files.len() == 2)
    );
}

#[test]
fn missing_files_are_listed() {
    let a = weights("a");
    let part = checkpoint(&[("m-00002-of-00003.safetensors", &a)]);
    let expected = ["m-00001-of-00003.safetensors", "m-00003-of-00003.safetensors"];
    assert!(
        matches!(error(&part), CheckpointError::MissingFiles { missing, .. } if missing == expected)
    );
    let index = br#"{"weight_map":{"a":"x.safetensors","b":"absent.safetensors"}}"#;
    let indexed = checkpoint(&[("x.safetensors", &a), (INDEX, index)]);
    let missing = error(&indexed);
    assert!(
        matches!(missing, CheckpointError::MissingFiles { missing, .. } if missing == ["absent.safetensors"])
    );
    assert!(matches!(error(&checkpoint(&[])), CheckpointError::NoWeights { .. }));
    let bare = checkpoint(&[("x.safetensors", &a)]);
    std::fs::remove_file(bare.path().join("config.json")).unwrap();
    assert!(matches!(error(&bare), CheckpointError::NoConfig { .. }));
}

#[test]
fn an_index_that_lies() {
    let (a, b) = (weights("a"), weights("b"));
    let with = |index: &[u8]| {
        error(&checkpoint(&[("x.safetensors", &a), ("y.safetensors", &b), (INDEX, index)]))
    };
    let absent = with(br#"{"weight_map":{"a":"x.safetensors","c":"x.safetensors"}}"#);
    assert!(
        matches!(absent, CheckpointError::IndexTensor { tensor, .. } if tensor.as_str() == "c")
    );
    let elsewhere = with(br#"{"weight_map":{"a":"y.safetensors","b":"x.safetensors"}}"#);
    assert!(
        matches!(elsewhere, CheckpointError::IndexTensor { tensor, .. } if tensor.as_str() == "a")
    );
    for file in ["../x.safetensors", "/etc/passwd", "sub/x.safetensors", "..", ""] {
        let index = format!(r#"{{"weight_map":{{"a":"{file}"}}}}"#);
        let error = with(index.as_bytes());
        assert!(matches!(error, CheckpointError::IndexFileName { .. }), "{error}");
    }
    for index in [&b"{}"[..], b"[]", b"", br#"{"weight_map":{"a":1}}"#] {
        assert!(matches!(with(index), CheckpointError::Json { .. }));
    }
    let both = checkpoint(&[
        ("x.safetensors", &a),
        ("y.safetensors", &a),
        (INDEX, br#"{"weight_map":{"a":"x.safetensors","b":"y.safetensors"}}"#),
    ]);
    assert!(matches!(error(&both), CheckpointError::DuplicateTensor(_)));
}

#[test]
fn bad_files_are_named() {
    let a = weights("a");
    let cut = checkpoint(&[("model.safetensors", &a[..a.len() - 1])]);
    match error(&cut) {
        CheckpointError::Bad {
            path,
            fault: SafetensorsFault::Tensor(TensorFault::PastEnd { .. }),
        } => {
            assert!(path.ends_with("model.safetensors"));
        }
        other => panic!("{other}"),
    }
    let pointer =
        checkpoint(&[("model.safetensors", b"version https://git-lfs.github.com/spec/v1\n")]);
    assert!(error(&pointer).to_string().contains("git lfs pull"));
    for config in ["", "[]", "{\"a\":", "nonsense"] {
        let folder = checkpoint(&[("model.safetensors", &a), ("config.json", config.as_bytes())]);
        let error = error(&folder);
        assert!(matches!(error, CheckpointError::Json { .. }), "{error}");
        assert!(error.to_string().contains("config.json"));
    }
}
