//! Resident memory at its peak, of a model with weights enough to be seen in it: each of them is resident once in the
//! mapped file, and those on the GPU in its arena besides, which a simulated one has in host memory.

#![cfg(target_os = "linux")]

mod placing;

use std::fs::{self, File};
use std::path::Path;

use backend_cpu::{SimOptions, SimulatedGpu};
use engine_core::backend::Backends;
use engine_core::perplexity::Chunk;
use engine_core::testing::GgufWriter;
use engine_core::tokenizer::TokenId;
use engine_core::weights::{DType, Gguf, Value};
use engine_core::{Engine, Plans};
use planner::{Bytes, Method};

use self::placing::{cpu, gguf_of, options, placing};

/// Columns of the FFN: its matrices have 8 MiB each.
const N_FF: u64 = 131_072;

/// Code, stacks of threads, tables of plans, the tokenizer: about half of this. A copy of what the GPU has would exceed it.
const BESIDES: Bytes = Bytes::mib(12);

/// Writes the model of a fixture with a wide FFN, all its weights zero; gives the size of the file.
fn write_wide(path: &Path) -> Bytes {
    let fixture = Gguf::open(&gguf_of("llama")).unwrap();
    let mut file = GgufWriter::new();
    for (key, value) in fixture.metadata.iter() {
        let wide = Value::U32(N_FF as u32);
        let value = if key == "llama.feed_forward_length" { wide } else { value.clone() };
        file = file.entry(key, value);
    }
    let mut end = 0;
    for tensor in fixture.weights.tensors() {
        let mut dims = tensor.shape().dims().to_vec();
        match tensor.name() {
            name if name.contains("ffn_down") => dims[1] = N_FF,
            name if name.contains("ffn_gate") || name.contains("ffn_up") => dims[0] = N_FF,
            _ => {}
        }
        let dtype = if dims.len() > 1 { DType::F16 } else { DType::F32 };
        file = file.raw_tensor(tensor.name(), &dims, dtype.gguf_id(), Some(end), &[]);
        let (columns, rows) = dims.split_last().unwrap();
        end += dtype.row_bytes(*columns).unwrap().get() * rows.iter().product::<u64>();
        end = end.next_multiple_of(32);
    }
    let header = file.to_bytes();
    fs::write(path, &header).unwrap();
    // The tensors themselves are a hole in the file.
    let size = header.len() as u64 + end;
    File::options().write(true).open(path).unwrap().set_len(size).unwrap();
    Bytes::new(size)
}

/// The most memory that was resident so far.
fn peak() -> Bytes {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib = line.trim().trim_end_matches(" kB");
    Bytes::new(kib.parse::<u64>().unwrap() << 10)
}

#[test]
fn weights_are_resident_once_and_on_the_gpu() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wide.gguf");
    let mapped = write_wide(&path);
    let vram = Bytes::mib(28);
    assert!(mapped > Bytes::mib(48) && vram < mapped);
    let before = peak();

    let sim = SimOptions { vram, ..SimOptions::default() };
    let gpu = SimulatedGpu::new(sim).unwrap();
    let backends = Backends { cpu: Box::new(cpu()), gpu: Some(Box::new(gpu)) };
    let placing = placing(vram, Plans::By(Method::Search));
    let mut engine = Engine::load(&path, &options(Some(placing)), backends).unwrap();
    let tokens: Vec<TokenId> = (0..40).map(|i| TokenId(3 + (i * 7) % 50)).collect();
    engine.session().score(&Chunk { tokens, scored: 1..40 }, |_, _| ()).unwrap();

    let arena = engine.plans().iter().map(|plan| plan.plan.vram.total()).max().unwrap();
    assert!(Bytes::mib(8) < arena && arena <= vram, "{arena}");
    let allowed = mapped + arena + engine.memory_need().total() + BESIDES;
    let taken = peak().saturating_sub(before);
    assert!(taken < allowed, "{taken}, not {allowed}");
}
