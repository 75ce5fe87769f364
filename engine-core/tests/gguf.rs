//! GGUF files that are good, cut or lying, one case each.

use std::path::Path;

use engine_core::testing::GgufWriter;
use engine_core::weights::{
    Array, DType, Gguf, GgufFault, GgufHeader, TensorFault, TensorType, Value,
};

/// A small file with every value type that the format has.
fn good() -> GgufWriter {
    GgufWriter::new()
        .text("general.architecture", "llama")
        .entry("a.u8", Value::U8(200))
        .entry("a.i8", Value::I8(-100))
        .entry("a.u16", Value::U16(60_000))
        .entry("a.i16", Value::I16(-30_000))
        .entry("a.u32", Value::U32(4_000_000_000))
        .entry("a.i32", Value::I32(-2_000_000_000))
        .entry("a.u64", Value::U64(u64::MAX))
        .entry("a.i64", Value::I64(i64::MIN))
        .entry("a.f32", Value::F32(0.1))
        .entry("a.f64", Value::F64(0.1))
        .entry("a.bool", Value::Bool(true))
        .entry("v.u8", Value::Array(Array::U8(vec![1, 2])))
        .entry("v.i8", Value::Array(Array::I8(vec![-1, 2])))
        .entry("v.u16", Value::Array(Array::U16(vec![1, 2])))
        .entry("v.i16", Value::Array(Array::I16(vec![-1, 2])))
        .entry("v.u32", Value::Array(Array::U32(vec![1, 2])))
        .entry("v.i32", Value::Array(Array::I32(vec![-1, 2])))
        .entry("v.u64", Value::Array(Array::U64(vec![1, 2])))
        .entry("v.i64", Value::Array(Array::I64(vec![-1, 2])))
        .entry("v.f32", Value::Array(Array::F32(vec![0.5, -0.0])))
        .entry("v.f64", Value::Array(Array::F64(vec![])))
        .entry("v.bool", Value::Array(Array::Bool(vec![true, false])))
        .entry("v.text", Value::Array(Array::String(vec!["a".into(), "".into(), "ü".into()])))
        .entry(
            "v.nested",
            Value::Array(Array::Nested(vec![Array::I32(vec![1]), Array::U8(vec![])])),
        )
        .tensor("embed", &[3, 32], DType::Q8_0, &[7; 3 * 34])
        .tensor("norm", &[32], DType::F32, &[1; 32 * 4])
        .tensor("experts", &[2, 3, 64], DType::F16, &[2; 2 * 3 * 64 * 2])
}

fn write(folder: &Path, name: &str, file: &GgufWriter) -> std::path::PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, file.to_bytes()).unwrap();
    path
}

#[test]
fn a_good_file_reads_back_as_written() {
    for version in [2, 3] {
        let header = GgufHeader::parse(&good().version(version).to_bytes()).unwrap();
        assert_eq!(header.version, version);
        let rewritten = header
            .metadata
            .iter()
            .fold(GgufWriter::new(), |writer, (key, value)| writer.entry(key, value.clone()));
        let again = GgufHeader::parse(&rewritten.to_bytes()).unwrap();
        assert_eq!(again.metadata, header.metadata);
        assert_eq!(header.metadata.get("a.u64"), Some(&Value::U64(u64::MAX)));
        let names: Vec<_> = header.tensors.iter().map(|tensor| tensor.name()).collect();
        assert_eq!(names, ["embed", "norm", "experts"]);
        assert_eq!(header.tensors[2].shape().dims(), [2, 3, 64]);
    }
}

#[test]
fn tensors_give_their_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let model = Gguf::open(&write(folder.path(), "good.gguf", &good())).unwrap();
    let weights = &model.weights;
    let norm = weights.get("norm").unwrap();
    assert_eq!(norm.dtype(), Ok(DType::F32));
    assert_eq!(weights.slice(norm).unwrap().bytes(), [1; 32 * 4]);
    assert_eq!(norm.offset() % 32, 0);
    assert!(weights.get("absent").is_none());
    assert_eq!(weights.total_bytes().get(), 3 * 34 + 32 * 4 + 2 * 3 * 64 * 2);
}

#[test]
fn a_cut_file_is_an_error_at_every_length() {
    let whole = good().to_bytes();
    for length in 0..whole.len() {
        let fault = GgufHeader::parse(&whole[..length]).expect_err("cut");
        match fault {
            GgufFault::NotGguf { .. } => assert!(length < 4),
            GgufFault::Cut { at, left, .. } => assert_eq!(at + left, length as u64),
            GgufFault::Tensor(TensorFault::PastEnd { end, length: found, .. }) => {
                assert_eq!((end, found), (whole.len() as u64, length as u64));
            }
            other => panic!("{length} bytes: {other}"),
        }
    }
}

#[test]
fn unknown_types_can_be_listed_but_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let file = good().raw_tensor("odd", &[4], 31, None, &[0; 64]).raw_tensor(
        "odder",
        &[4],
        99,
        None,
        &[0; 64],
    );
    let model = Gguf::open(&write(folder.path(), "odd.gguf", &file)).unwrap();
    let odd = model.weights.get("odd").unwrap();
    assert_eq!((odd.stored_as(), odd.size()), (&TensorType::GgufNumber(31), None));
    let message = model.weights.slice(odd).unwrap_err().to_string();
    assert!(message.contains("`odd`") && message.contains("31 (Q4_0_4_4)"), "{message}");
    let message = model.weights.get("odder").unwrap().dtype().unwrap_err().to_string();
    assert!(message.contains("type number 99,"), "{message}");
}
