//! Loads a model, asks it something and prints the answer as it comes, then how long that took:
//! `cargo run --release -p engine-core --example generate -- MODEL "Why is the sky blue?"`
//!
//! MODEL is a GGUF file or a Hugging Face folder.

use std::error::Error;
use std::io::Write;
use std::path::Path;

use backend_cpu::{CpuBackend, CpuOptions};
use engine_core::backend::Backends;
use engine_core::{Engine, EngineOptions, Event, Prompt, Request, Speculation};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(model), Some(question), None) = (args.next(), args.next(), args.next()) else {
        return Err("give a model and a question".into());
    };
    answer(Path::new(&model), &question)
}

fn answer(model: &Path, question: &str) -> Result<(), Box<dyn Error>> {
    // What computes is the caller's choice; the engine knows no device.
    let backends = Backends::cpu_only(CpuBackend::new(CpuOptions::default())?);
    let mut engine = Engine::load(model, &EngineOptions::default(), backends)?;

    // A session keeps its KV cells from request to request, so the next turn of a conversation runs only what is new.
    let mut session = engine.session();
    let request = Request {
        max_tokens: Some(200),
        speculation: Speculation::Lookup,
        ..Request::from(Prompt::user(question))
    };
    let mut out = std::io::stdout().lock();
    for event in session.generate(&request)? {
        match event? {
            Event::Token { text, .. } => {
                write!(out, "{text}")?;
                out.flush()?;
            }
            Event::Done { reason, stats } => {
                let tps = stats.tps().unwrap_or_default();
                writeln!(out, "\n{reason:?}: {} tokens, {tps:.1} TPS", stats.n_generated)?;
            }
        }
    }
    Ok(())
}
