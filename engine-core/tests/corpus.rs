//! The fuzz targets' bodies on their committed corpus, so that every test run covers it without a fuzzer.

use std::path::Path;

use engine_core::testing::fuzz;

fn run(target: &str, body: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let mut n_inputs = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        body(&std::fs::read(entry.unwrap().path()).unwrap());
        n_inputs += 1;
    }
    assert!(n_inputs > 0, "{} is empty", folder.display());
}

#[test]
fn gguf() {
    run("gguf", fuzz::gguf);
}

#[test]
fn safetensors() {
    run("safetensors", fuzz::safetensors);
}

#[test]
fn tokenizer() {
    run("tokenizer", fuzz::tokenizer);
}
