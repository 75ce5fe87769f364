//! An answer on its way from the engine to the user.

use std::io::{self, Write};

use engine_core::{Engine, EngineOptions, Event, FinishReason, Request, Session, Stats};

use crate::args::EngineArgs;
use crate::devices;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::settings::{ModelRef, place};

/// A complete answer.
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) reason: FinishReason,
    pub(super) stats: Stats,
}

/// Loads a model, fetched first if need be, for answers of at most so many tokens, if they are limited.
pub(super) fn load(
    model: &ModelRef,
    args: &EngineArgs,
    max_tokens: Option<u32>,
    interrupt: &Interrupt,
) -> Result<Engine, Failure> {
    let path = model.locate(interrupt)?;
    let options = EngineOptions { n_ctx: args.ctx, ..EngineOptions::default() };
    let options = place(options, &args.device, &args.placing, max_tokens)?;
    Ok(Engine::load(&path, &options, devices::backends(&args.device)?)?)
}

/// Ends a text with a newline, unless it has one.
pub(super) fn end_line(out: &mut impl Write, text: &str) -> io::Result<()> {
    if text.ends_with('\n') { Ok(()) } else { writeln!(out) }
}

/// Has a request answered; hands over the text piece by piece. Ctrl-C ends the answer, and is its reason then.
pub(super) fn answer(
    session: &mut Session<'_>,
    request: &Request,
    interrupt: &Interrupt,
    mut on_text: impl FnMut(&str) -> io::Result<()>,
) -> Result<Answer, Failure> {
    let _watch = interrupt.watch(&session.cancel());
    let mut whole = String::new();
    for event in session.generate(request)? {
        match event? {
            Event::Token { text, .. } => {
                on_text(&text).map_err(Failure::output)?;
                whole.push_str(&text);
            }
            Event::Done { reason, stats } => return Ok(Answer { text: whole, reason, stats }),
        }
    }
    unreachable!("events end with Done or an error")
}
