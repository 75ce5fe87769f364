//! `baton run`: one prompt, one answer.

use std::io::{self, Write};

use engine_core::tokenizer::Message;
use engine_core::{FinishReason, Prompt};

use super::answer::{answer, end_line, load};
use crate::args::RunArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::report::{self, AnswerReport};
use crate::settings::{AnswerSettings, ModelRef, read_prompt};

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

    let mut engine = load(&model, &args.engine, interrupt)?;
    let (load, n_ctx, vram) = (engine.load_time(), engine.n_ctx(), engine.vram());
    let mut out = io::stdout().lock();
    let answer = answer(&mut engine.session(), &settings.request(prompt), interrupt, |text| {
        if args.json { Ok(()) } else { out.write_all(text.as_bytes()).and_then(|()| out.flush()) }
    })?;

    let (stats, reason, seed) = (answer.stats, answer.reason, settings.seed);
    let report = AnswerReport { stats, reason, n_ctx, load, seed, vram };
    let ended = if args.json {
        report::json(&mut out, &report.json(&answer.text))
    } else {
        end_line(&mut out, &answer.text)
    };
    ended.map_err(Failure::output)?;
    tell!("{report}");
    match reason {
        FinishReason::Cancelled => Err(Failure::Interrupted),
        _ => Ok(()),
    }
}
