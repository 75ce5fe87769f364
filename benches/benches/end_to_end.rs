//! A whole model from end to end: prefill, decode, and from nothing to the first token.
//!
//! Runs on the default model in the user's cache (`baton pull smollm2-135m`), or on the one that `BATON_BENCH_MODEL`
//! names. Without either there is nothing to measure, and it says so.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use backend_cpu::{CpuBackend, CpuOptions};
use benches::answers;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use engine_core::backend::Backends;
use engine_core::tokenizer::TokenId;
use engine_core::{Engine, EngineOptions, Event, Prompt, Request, Stats};

const DEFAULT_MODEL: &str = "baton/models/SmolLM2-135M-Instruct.Q4_1.gguf";

/// Tokens decoded in one measurement.
const N_DECODED: u32 = 64;

fn model() -> Option<PathBuf> {
    let named = std::env::var_os("BATON_BENCH_MODEL").map(PathBuf::from);
    let cached = || dirs::cache_dir().map(|folder| folder.join(DEFAULT_MODEL));
    named.or_else(cached).filter(|path| path.exists())
}

fn load(path: &Path, options: CpuOptions) -> Engine {
    let cpu = CpuBackend::new(options).expect("threads start");
    let backends = Backends::cpu_only(cpu);
    Engine::load(path, &EngineOptions::default(), backends).expect("the model loads")
}

/// An answer, which there always is.
fn answer(engine: &mut Engine, n_prompt: u32, max_tokens: u32) -> (Vec<TokenId>, Stats) {
    answers::answer(engine, n_prompt, max_tokens).expect("a valid request is answered")
}

/// The answer must not depend on the number of threads.
fn check(path: &Path, engine: &mut Engine) {
    let one = CpuOptions { threads: NonZeroUsize::MIN, ..CpuOptions::default() };
    let expected = answer(&mut load(path, one), 20, 20).0;
    assert_eq!(answer(engine, 20, 20).0, expected, "the same answer by one thread");
}

fn end_to_end(c: &mut Criterion) {
    let Some(path) = model() else {
        println!("no model to measure: run `baton pull smollm2-135m` or set BATON_BENCH_MODEL");
        return;
    };
    let mut engine = load(&path, CpuOptions::default());
    check(&path, &mut engine);

    let mut group = c.benchmark_group("end_to_end");
    group.sample_size(10).warm_up_time(Duration::from_secs(1));
    for n_prompt in [64, 512] {
        group.throughput(Throughput::Elements(n_prompt.into()));
        group.bench_function(format!("prefill/{n_prompt}"), |b| {
            b.iter_custom(|n| {
                let passes = (0..n).map(|_| answer(&mut engine, n_prompt, 1).1.prefill.get());
                Duration::from_secs_f64(passes.sum())
            });
        });
    }
    group.throughput(Throughput::Elements(u64::from(N_DECODED)));
    group.bench_function(format!("decode/{N_DECODED}"), |b| {
        b.iter_custom(|n| {
            let runs = (0..n).map(|_| {
                let stats = answer(&mut engine, 8, N_DECODED + 1).1;
                // An answer that ends early counts for as many tokens as it has.
                let per_token = stats.decode.get() / f64::from(stats.n_generated.max(2) - 1);
                per_token * f64::from(N_DECODED)
            });
            Duration::from_secs_f64(runs.sum())
        });
    });
    group.throughput(Throughput::Elements(1));
    group.bench_function("start_to_first_token", |b| {
        b.iter_custom(|n| (0..n).map(|_| first_token(&path)).sum());
    });
    group.finish();
}

/// Loads the model and answers a question of five words up to the first token.
fn first_token(path: &Path) -> Duration {
    let start = Instant::now();
    let mut engine = load(path, CpuOptions::default());
    let question = Prompt::user("Why is the sky blue?");
    let request = Request { max_tokens: Some(1), ..Request::from(question) };
    let mut session = engine.session();
    let first = session.generate(&request).expect("a valid request").next();
    assert!(matches!(first, Some(Ok(Event::Token { .. }))), "a first token");
    start.elapsed()
}

criterion_group!(benches, end_to_end);
criterion_main!(benches);
