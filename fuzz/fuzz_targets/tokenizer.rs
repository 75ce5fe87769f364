#![no_main]

libfuzzer_sys::fuzz_target!(|file: &[u8]| engine_core::testing::fuzz::tokenizer(file));
