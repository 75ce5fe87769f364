//! GGUF headers that lie, one lie per case, each with the fault it must give.

use engine_core::testing::GgufWriter;
use engine_core::weights::{
    Array, DType, GgufFault as Fault, GgufHeader, Looks, Name, Reading, TensorFault, Value,
};

/// A file with one tensor of 64 bytes.
fn file() -> GgufWriter {
    GgufWriter::new().tensor("t", &[16], DType::F32, &[0; 64])
}

/// A file with one tensor that claims to be something.
fn tensor(dims: &[u64], dtype: DType) -> GgufWriter {
    GgufWriter::new().raw_tensor("t", dims, dtype.gguf_id(), None, &[0; 64])
}

fn fault(file: &GgufWriter) -> Fault {
    fault_of(&file.to_bytes())
}

fn fault_of(bytes: &[u8]) -> Fault {
    match GgufHeader::parse(bytes) {
        Ok(_) => panic!("the lie was believed"),
        Err(fault) => fault,
    }
}

/// The bytes of `file` with the ones `skip` bytes behind `marker` replaced.
fn patched(file: &GgufWriter, marker: &str, skip: usize, new: &[u8]) -> Vec<u8> {
    let mut bytes = file.to_bytes();
    let marker = marker.as_bytes();
    let found = bytes.windows(marker.len()).position(|window| window == marker).unwrap();
    let start = found + marker.len() + skip;
    bytes[start..start + new.len()].copy_from_slice(new);
    bytes
}

#[test]
fn preamble() {
    assert_eq!(fault_of(b"<html>"), Fault::NotGguf { looks: Looks::Html });
    assert_eq!(fault_of(&[]), Fault::NotGguf { looks: Looks::Empty });
    for version in [0, 1, 4, 300] {
        assert_eq!(fault(&file().version(version)), Fault::Version { found: version });
    }
    for version in [2u32, 3] {
        assert_eq!(fault(&file().version(version.swap_bytes())), Fault::BigEndian);
    }
}

#[test]
fn counts() {
    for count in [u64::MAX, 1 << 62, 1 << 32, 1000] {
        let reading = Reading::Tensors(count);
        assert!(
            matches!(fault(&file().claim_tensors(count)), Fault::Cut { reading: r, .. } if r == reading)
        );
        let reading = Reading::Entries(count);
        assert!(
            matches!(fault(&file().claim_entries(count)), Fault::Cut { reading: r, .. } if r == reading)
        );
    }
    // A count that the rest of the file could hold, but does not.
    let more = GgufWriter::new().tensor("t", &[16], DType::F32, &[0xFF; 64]).claim_tensors(2);
    assert!(matches!(fault(&more), Fault::Cut { reading: Reading::Tensor(1), .. }));
}

#[test]
fn lengths_of_text_and_arrays() {
    let with_text = file().text("key", "some text");
    for length in [u64::MAX, 1 << 40, 500] {
        let bytes = patched(&with_text, "key", 4, &length.to_le_bytes());
        let needed_of = |fault| match fault {
            Fault::Cut { reading: Reading::Value(key), needed, .. } if key.as_str() == "key" => {
                needed
            }
            other => panic!("{other}"),
        };
        assert_eq!(needed_of(fault_of(&bytes)), length);
        for array in [Array::F64(vec![0.5]), Array::String(vec!["x".into()]), Array::U8(vec![1])] {
            let with_array = file().entry("key", Value::Array(array));
            let bytes = patched(&with_array, "key", 8, &length.to_le_bytes());
            assert!(needed_of(fault_of(&bytes)) >= length);
        }
    }
    let mut bytes = file().text("k", "").to_bytes();
    bytes[24..32].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(matches!(fault_of(&bytes), Fault::Cut { reading: Reading::Key(0), .. }));
}

#[test]
fn values() {
    let key = || Name::from("key");
    let number = file().entry("key", Value::U8(7));
    let bytes = patched(&number, "key", 0, &13u32.to_le_bytes());
    assert_eq!(fault_of(&bytes), Fault::ValueType { key: key(), found: 13 });
    let truth = patched(&file().entry("key", Value::Bool(true)), "key", 4, &[2]);
    assert_eq!(fault_of(&truth), Fault::Bool { key: key(), found: 2 });
    let truths = file().entry("key", Value::Array(Array::Bool(vec![false, true])));
    let bytes = patched(&truths, "key", 17, &[255]);
    assert_eq!(fault_of(&bytes), Fault::Bool { key: key(), found: 255 });
    let elements = file().entry("key", Value::Array(Array::U8(vec![1])));
    let bytes = patched(&elements, "key", 4, &77u32.to_le_bytes());
    assert_eq!(fault_of(&bytes), Fault::ValueType { key: key(), found: 77 });
}

#[test]
fn deep_arrays() {
    let nested = |depth: usize| {
        let wrap = |inner, _| Array::Nested(vec![inner]);
        file().entry("key", Value::Array((1..depth).fold(Array::U8(vec![1]), wrap)))
    };
    assert!(GgufHeader::parse(&nested(4).to_bytes()).is_ok());
    for depth in [5, 6, 10_000] {
        assert_eq!(fault(&nested(depth)), Fault::Depth { key: "key".into() });
    }
}

#[test]
fn names() {
    let twice = file().text("key", "a").text("key", "b");
    assert_eq!(fault(&twice), Fault::DuplicateKey { key: "key".into() });
    let twice = file().tensor("t", &[16], DType::F32, &[0; 64]);
    assert_eq!(fault(&twice), Fault::Tensor(TensorFault::Twice { tensor: "t".into() }));
    let bytes = patched(&file().text("key", ""), "ke", 0, &[0xFF]);
    assert_eq!(fault_of(&bytes), Fault::NameNotUtf8 { reading: Reading::Key(0) });
    let odd = GgufWriter::new().tensor("name", &[16], DType::F32, &[0; 64]);
    let bytes = patched(&odd, "nam", 0, &[0xFF]);
    assert_eq!(fault_of(&bytes), Fault::NameNotUtf8 { reading: Reading::Tensor(0) });
}

#[test]
fn text_that_is_not_utf8_is_kept() {
    let one = Value::NotUtf8(vec![b'a', 0xFF]);
    let tokens = Value::Array(Array::NotUtf8(vec![b"fine".to_vec(), vec![0xC3]]));
    let file = file().entry("one", one.clone()).entry("tokens", tokens.clone());
    let header = GgufHeader::parse(&file.to_bytes()).unwrap();
    assert_eq!(header.metadata.get("one"), Some(&one));
    assert_eq!(header.metadata.get("tokens"), Some(&tokens));
    assert_eq!(header.metadata.str("one"), None);
    assert_eq!(header.metadata.strings("tokens"), None);
}

#[test]
fn alignment() {
    for found in [0, 3, 12, 33, u32::MAX] {
        let file = file().entry("general.alignment", Value::U32(found));
        assert_eq!(fault(&file), Fault::Alignment { found: found.into() });
    }
    let file = file().text("general.alignment", "32");
    assert_eq!(fault(&file), Fault::AlignmentType { found: "text" });
    for alignment in [1, 8, 64, 4096] {
        let file = GgufWriter::new()
            .alignment(alignment)
            .tensor("a", &[3], DType::I8, &[1; 3])
            .tensor("b", &[1], DType::F32, &[2; 4]);
        let header = GgufHeader::parse(&file.to_bytes()).unwrap();
        let b = header.tensors[1].range().unwrap();
        assert_eq!(file.to_bytes()[b.clone()], [2; 4]);
        assert!(b.start.is_multiple_of(alignment as usize));
    }
    // The tensor data would start behind the end of the address space.
    let far = self::file().entry("general.alignment", Value::U64(1 << 63));
    assert!(matches!(fault(&far), Fault::Tensor(TensorFault::PastEnd { .. })));
}

#[test]
fn dimensions() {
    let name = || Name::from("t");
    let dims = vec![1, 1, 2, u64::MAX];
    assert_eq!(
        fault(&tensor(&dims, DType::F32)),
        Fault::Tensor(TensorFault::Size { tensor: name(), dims })
    );
    // As many values as 64 bits count, but not as many bytes.
    let dims = vec![1 << 62];
    assert_eq!(
        fault(&tensor(&dims, DType::F32)),
        Fault::Tensor(TensorFault::Size { tensor: name(), dims })
    );
    for dims in [vec![0], vec![16, 0], vec![0, 16], vec![u64::MAX, 0, u64::MAX]] {
        assert_eq!(
            fault(&tensor(&dims, DType::F32)),
            Fault::ZeroDimension { tensor: name(), dims }
        );
    }
    let five = tensor(&[1, 1, 1, 1, 16], DType::F32);
    assert_eq!(fault(&five), Fault::Dimensions { tensor: name(), found: 5 });
    let many = patched(&file(), "t", 0, &u32::MAX.to_le_bytes());
    assert_eq!(fault_of(&many), Fault::Dimensions { tensor: name(), found: u32::MAX });
    let row = tensor(&[2, 33], DType::Q4_0);
    assert!(matches!(fault(&row), Fault::PartialBlock { dtype: DType::Q4_0, .. }));
}

#[test]
fn places() {
    let at = |offset| file().raw_tensor("u", &[16], DType::F32.gguf_id(), Some(offset), &[0; 64]);
    assert!(GgufHeader::parse(&at(64).to_bytes()).is_ok());
    let overlap = Fault::Tensor(TensorFault::Overlap { first: "t".into(), second: "u".into() });
    for offset in [0, 32] {
        assert_eq!(fault(&at(offset)), overlap);
    }
    let misaligned = Fault::Misaligned { tensor: "u".into(), offset: 65, alignment: 32 };
    assert_eq!(fault(&at(65)), misaligned);
    for offset in [96, 1 << 40, u64::MAX - 31] {
        assert!(
            matches!(fault(&at(offset)), Fault::Tensor(TensorFault::PastEnd { tensor, .. }) if tensor.as_str() == "u")
        );
    }
    let length = file().to_bytes().len();
    let unknown_at = |offset| file().raw_tensor("u", &[16], 99, Some(offset), &[]).to_bytes();
    assert!(matches!(fault_of(&unknown_at(0)), Fault::Tensor(TensorFault::Overlap { .. })));
    assert!(
        length.is_multiple_of(32)
            && matches!(fault_of(&unknown_at(64)), Fault::Tensor(TensorFault::PastEnd { .. }))
    );
}

#[test]
fn a_cut_tensor_is_named_with_all_missing_bytes() {
    let file =
        file().tensor("u", &[16], DType::F32, &[0; 64]).tensor("last", &[16], DType::F32, &[0; 64]);
    let bytes = file.to_bytes();
    let cut = &bytes[..bytes.len() - 100];
    let message = fault_of(cut).to_string();
    assert!(message.contains("`last`") && message.contains("100 bytes are missing"), "{message}");
}
