//! `baton run`: one prompt, one answer.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use engine_core::tokenizer::Message;
use engine_core::trace::perfetto;
use engine_core::{Engine, FinishReason, Prompt};

use super::answer::{answer, end_line, load};
use crate::args::RunArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::report::{self, AnswerReport, Explanation};
use crate::settings::{AnswerSettings, ModelRef, read_prompt};
use crate::whole_file::WholeFile;

pub(crate) fn run(args: RunArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let settings = AnswerSettings::check(args.answer)?;
    let model = ModelRef::parse(args.model.model())?;
    let text = read_prompt(args.prompt, args.model.is_given())?;
    let prompt = if args.raw {
        Prompt::Text(text)
    } else {
        let mut messages = settings.opening();
        messages.push(Message::new("user", &text));
        Prompt::Chat(messages)
    };

    let mut engine = load(&model, &args.engine, settings.max_tokens, interrupt)?;
    if args.explain || args.trace.is_some() {
        engine.trace();
    }
    let (load, n_ctx) = (engine.load_time(), engine.n_ctx());
    let mut out = io::stdout().lock();
    let answer = answer(&mut engine.session(), &settings.request(prompt), interrupt, |text| {
        if args.json { Ok(()) } else { out.write_all(text.as_bytes()).and_then(|()| out.flush()) }
    })?;

    let (stats, reason, seed) = (answer.stats, answer.reason, settings.seed);
    let vram = engine.vram();
    let report = AnswerReport { stats, reason, n_ctx, load, seed, vram };
    let ended = if args.json {
        report::json(&mut out, &report.json(&answer.text))
    } else {
        end_line(&mut out, &answer.text)
    };
    ended.map_err(Failure::output)?;
    tell!("{report}");
    account_for(&mut engine, args.explain, args.trace.as_deref())?;
    match reason {
        FinishReason::Cancelled => Err(Failure::Interrupted),
        _ => Ok(()),
    }
}

/// Says where time went, and writes it down, where either is asked for.
fn account_for(engine: &mut Engine, explain: bool, file: Option<&Path>) -> Result<(), Failure> {
    let trace = engine.take_trace()?;
    let predicted: Vec<_> = trace.passes.iter().map(|pass| engine.predicted(pass)).collect();
    let n_layer = engine.config().n_layer();
    if let Some(path) = file {
        let spans: Vec<_> = predicted
            .iter()
            .map(|pass| pass.as_ref().map_or(Vec::new(), |pass| pass.1.clone()))
            .collect();
        let mut file = WholeFile::create(path)?;
        file.write(perfetto(&trace, &spans, n_layer).as_bytes())?;
        file.finish()?;
    }
    if explain {
        let predicted: Vec<_> = predicted.iter().map(|pass| Some(pass.as_ref()?.0)).collect();
        let (trace, plans, predicted) = (&trace, engine.plans(), predicted.as_slice());
        let colour = io::stderr().is_terminal() && env::var_os("NO_COLOR").is_none();
        tell!("{}", Explanation { trace, plans, predicted, n_layer, colour });
    }
    Ok(())
}
