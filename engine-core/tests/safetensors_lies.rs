//! safetensors headers that lie, one lie per case, each with the fault it must give.

use engine_core::weights::{
    DType, Looks, SafetensorsFault as Fault, SafetensorsHeader, TensorFault, TensorType,
};
use safetensors::SafeTensors;

/// A file with this header and as many bytes of data.
fn file(header: &str, data_length: usize) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.resize(file.len() + data_length, 7);
    file
}

fn entry(name: &str, dtype: &str, shape: &str, offsets: [i128; 2]) -> String {
    format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets:?}}}"#)
}

fn of(entries: &[String], data_length: usize) -> Vec<u8> {
    file(&format!("{{{}}}", entries.join(",")), data_length)
}

/// The fault of a file, which the reference implementation must refuse too.
fn fault(file: &[u8]) -> Fault {
    assert!(SafeTensors::deserialize(file).is_err(), "the reference accepts it");
    fault_beyond_reference(file)
}

fn fault_beyond_reference(file: &[u8]) -> Fault {
    match SafetensorsHeader::parse(file) {
        Ok(_) => panic!("the lie was believed"),
        Err(fault) => fault,
    }
}

/// Two tensors, sixteen bytes each, and a remark.
fn good() -> Vec<u8> {
    let remark = r#""__metadata__":{"format":"pt"}"#.to_owned();
    of(&[remark, entry("b", "BF16", "[2,4]", [16, 32]), entry("a", "F32", "[4]", [0, 16])], 32)
}

#[test]
fn a_good_file_is_listed_in_the_order_of_its_bytes() {
    let file = good();
    let header = SafetensorsHeader::parse(&file).unwrap();
    assert_eq!(header.metadata["format"], "pt");
    let [a, b] = &header.tensors[..] else { panic!("two tensors") };
    assert_eq!((a.name(), a.dtype(), a.shape().dims()), ("a", Ok(DType::F32), &[4][..]));
    assert_eq!((b.name(), b.dtype(), b.shape().dims()), ("b", Ok(DType::BF16), &[2, 4][..]));
    assert_eq!(b.range(), Some(file.len() - 16..file.len()));
    assert!(SafetensorsHeader::parse(&self::file("{}   ", 0)).unwrap().tensors.is_empty());
    let empty = of(&[entry("e", "F32", "[0,8]", [0, 0]), entry("a", "I8", "[]", [0, 1])], 1);
    assert_eq!(SafetensorsHeader::parse(&empty).unwrap().tensors.len(), 2);
}

#[test]
fn a_cut_file_is_an_error_at_every_length() {
    let whole = good();
    for length in 0..whole.len() {
        match fault(&whole[..length]) {
            Fault::NotSafetensors { looks: Looks::Empty } => assert_eq!(length, 0),
            Fault::NotSafetensors { looks: Looks::Zeros } | Fault::HeaderCut { .. } => {
                assert!(length < whole.len() - 32);
            }
            Fault::Tensor(TensorFault::PastEnd { end, length: found, .. }) => {
                assert_eq!((end, found), (whole.len() as u64, length as u64));
            }
            other => panic!("{length} bytes: {other}"),
        }
    }
}

#[test]
fn header_length() {
    for length in [u64::MAX, u64::MAX - 7, 1 << 40, 200] {
        let mut file = good();
        file[..8].copy_from_slice(&length.to_le_bytes());
        let left = file.len() as u64 - 8;
        assert!(
            matches!(fault(&file), Fault::HeaderCut { needed, left: l } if (needed, l) == (length, left))
        );
    }
}

#[test]
fn header_text() {
    assert!(matches!(fault(&file("[1,2]", 0)), Fault::NotAnObject { found: Some('[') }));
    assert!(matches!(fault(&file("null", 0)), Fault::NotAnObject { found: Some('n') }));
    assert!(matches!(fault(&file("", 1)), Fault::NotAnObject { found: None }));
    // The format has the header start with a brace; the reference lets spaces pass.
    let spaced = fault_beyond_reference(&file("  {}", 0));
    assert!(matches!(spaced, Fault::NotAnObject { found: Some(' ') }));
    assert!(matches!(fault(&file("{\"a\":", 0)), Fault::Json(_)));
    assert!(matches!(fault(&file("{} {}", 0)), Fault::Json(_)));
    let mut bad = good();
    bad[10] = 0xFF;
    assert!(matches!(fault(&bad), Fault::NotUtf8 { at: 10 }));
    assert!(matches!(fault(b"<html></html>"), Fault::NotSafetensors { looks: Looks::Html }));
    let deep = format!("{{\"a\":{}", "[".repeat(100_000));
    assert!(matches!(fault(&file(&deep, 0)), Fault::Json(_)));
}

#[test]
fn entries() {
    let names_the_tensor = |file: Vec<u8>| {
        let message = fault(&file).to_string();
        assert!(message.contains("`odd`"), "{message}");
    };
    names_the_tensor(of(&[entry("odd", "I8", "[4]", [-4, 0])], 0));
    names_the_tensor(of(&[entry("odd", "I8", "[-4]", [0, 4])], 4));
    names_the_tensor(of(&[entry("odd", "I8", "[99999999999999999999]", [0, 4])], 4));
    names_the_tensor(of(&[entry("odd", "I8", "[4.0]", [0, 4])], 4));
    names_the_tensor(of(&[entry("odd", "I8", "\"4\"", [0, 4])], 4));
    names_the_tensor(file(r#"{"odd":{"dtype":"I8","shape":[4]}}"#, 4));
    names_the_tensor(file(r#"{"odd":{"dtype":"I8","shape":[4],"data_offsets":[0]}}"#, 4));
    names_the_tensor(file(
        r#"{"odd":{"dtype":"I8","dtype":"U8","shape":[4],"data_offsets":[0,4]}}"#,
        4,
    ));
    names_the_tensor(file(r#"{"odd":[1,2,3]}"#, 4));
    let remarks = file(r#"{"__metadata__":{},"__metadata__":{}}"#, 0);
    assert!(fault(&remarks).to_string().contains("`__metadata__`: occurs twice"));
    let reversed = of(&[entry("t", "I8", "[4]", [4, 0])], 4);
    assert!(matches!(fault(&reversed), Fault::Reversed { begin: 4, end: 0, .. }));
}

#[test]
fn sizes() {
    let lie = of(&[entry("t", "F32", "[1000,1000]", [0, 4])], 4);
    assert!(matches!(fault(&lie), Fault::WrongSize { needed: 4_000_000, found: 4, .. }));
    for shape in
        ["[18446744073709551615,2]", "[18446744073709551615]", "[8,4294967296,4294967296,0]"]
    {
        let lie = of(&[entry("t", "F32", shape, [0, 4])], 4);
        assert!(matches!(fault(&lie), Fault::Tensor(TensorFault::Size { .. })), "{shape}");
    }
    // The reference sees no values, but a row of them would be impossible.
    let empty = of(&[entry("t", "F32", "[0,4294967296,4294967296]", [0, 0])], 0);
    assert!(matches!(fault_beyond_reference(&empty), Fault::Tensor(TensorFault::Size { .. })));
    let dims = format!("[{}1]", "1,".repeat(64));
    let many = of(&[entry("t", "I8", &dims, [0, 1])], 1);
    assert!(matches!(fault_beyond_reference(&many), Fault::Dimensions { found: 65, .. }));
    let half_a_byte = of(&[entry("t", "F4", "[3]", [0, 1])], 1);
    assert!(matches!(fault(&half_a_byte), Fault::WrongSize { needed: 2, found: 1, .. }));
}

#[test]
fn places() {
    let two = |first, second, length| {
        of(&[entry("a", "I8", "[4]", first), entry("b", "I8", "[4]", second)], length)
    };
    assert!(SafetensorsHeader::parse(&two([0, 4], [4, 8], 8)).is_ok());
    let shared = two([0, 4], [0, 4], 4);
    assert!(
        matches!(fault(&shared), Fault::Tensor(TensorFault::Overlap { first, second }) if first.as_str() == "a" && second.as_str() == "b")
    );
    assert!(matches!(fault(&two([0, 4], [2, 6], 6)), Fault::Tensor(TensorFault::Overlap { .. })));
    let gap = two([0, 4], [5, 9], 9);
    assert!(matches!(fault(&gap), Fault::Gap { tensor, bytes: 1 } if tensor.as_str() == "b"));
    assert!(matches!(fault(&two([1, 5], [5, 9], 9)), Fault::Gap { bytes: 1, .. }));
    assert!(matches!(fault(&two([0, 4], [4, 8], 11)), Fault::Trailing { bytes: 3 }));
    assert!(matches!(fault(&file("{}", 1)), Fault::Trailing { bytes: 1 }));
    let cut = fault(&two([0, 4], [4, 8], 6)).to_string();
    assert!(cut.contains("`b`") && cut.contains("2 bytes are missing"), "{cut}");
    let far = [u64::MAX.into(); 2];
    assert!(matches!(
        fault(&of(&[entry("t", "I8", "[0]", far)], 4)),
        Fault::Tensor(TensorFault::PastEnd { .. })
    ));
}

/// The reference keeps the last of them and says nothing.
#[test]
fn a_name_that_occurs_twice() {
    let twice = of(&[entry("t", "I8", "[4]", [0, 4]), entry("t", "I8", "[4]", [0, 4])], 4);
    assert!(
        matches!(fault_beyond_reference(&twice), Fault::Tensor(TensorFault::Twice { tensor }) if tensor.as_str() == "t")
    );
}

#[test]
fn unknown_types_can_be_listed_but_not_used() {
    for (dtype, bytes) in [("F8_E4M3", 4), ("U8", 4), ("BOOL", 4), ("F99", 5)] {
        let file = of(&[entry("t", dtype, "[2,2]", [0, bytes])], bytes as usize);
        let header = SafetensorsHeader::parse(&file).unwrap();
        let tensor = &header.tensors[0];
        assert_eq!(tensor.stored_as(), &TensorType::Safetensors(dtype.into()));
        assert_eq!(tensor.size().map(|size| size.get()), Some(bytes as u64));
        let message = tensor.dtype().unwrap_err().to_string();
        assert!(message.contains("`t`") && message.contains(dtype), "{message}");
    }
}
