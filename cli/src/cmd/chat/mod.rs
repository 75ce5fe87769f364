//! `baton chat`: a conversation, with a terminal or without.

mod input;
mod lines;

use std::io::{self, Write};

use engine_core::tokenizer::Message;
use engine_core::{FinishReason, Prompt, Session};

use self::input::{HELP, Input};
use self::lines::Lines;
use super::answer::{answer, end_line, load};
use crate::args::ChatArgs;
use crate::failure::{Failure, chain};
use crate::interrupt::Interrupt;
use crate::report::explain;
use crate::settings::{AnswerSettings, ModelRef};

pub(crate) fn run(args: ChatArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let settings = AnswerSettings::check(args.answer)?;
    let model = ModelRef::parse(args.model.model())?;
    let mut engine = load(&model, &args.engine, settings.max_tokens, interrupt)?;
    let mut lines = Lines::open()?;
    if lines.is_terminal() {
        tell!("{} tokens of context; Ctrl-C stops an answer, Ctrl-D leaves, /help", engine.n_ctx());
    }
    let messages = settings.opening();
    let mut chat = Chat { session: engine.session(), settings, messages, interrupt };
    while let Some(line) = lines.next()? {
        match Input::parse(&line) {
            Input::Nothing => {}
            Input::Help => tell!("{HELP}"),
            Input::Quit => break,
            Input::Reset => chat.reset(),
            Input::System(text) => chat.instruct(text),
            Input::Unknown(command) => tell!("there is no {command}; /help lists commands"),
            Input::Message(text) => match chat.say(text) {
                Err(Failure::Input(error)) if lines.is_terminal() => {
                    tell!("baton: {}; /reset starts anew", chain(error.as_ref()));
                }
                Err(failure) => return Err(failure),
                Ok(FinishReason::Cancelled) if !lines.is_terminal() => {
                    return Err(Failure::Interrupted);
                }
                Ok(_) => {}
            },
        }
    }
    Ok(())
}

/// A conversation and what it runs on.
struct Chat<'a> {
    session: Session<'a>,
    settings: AnswerSettings,
    messages: Vec<Message>,
    interrupt: &'a Interrupt,
}

impl Chat<'_> {
    /// Starts anew, with the same instruction.
    fn reset(&mut self) {
        self.messages = self.settings.opening();
    }

    /// Starts anew, with another instruction, or with none.
    fn instruct(&mut self, text: &str) {
        self.settings.system = (!text.is_empty()).then(|| text.to_owned());
        self.reset();
    }

    /// Answers a message. After a failure the conversation is as before.
    fn say(&mut self, text: &str) -> Result<FinishReason, Failure> {
        self.messages.push(Message::new("user", text));
        let request = self.settings.request(Prompt::Chat(self.messages.clone()));
        let mut out = io::stdout().lock();
        let answered = answer(&mut self.session, &request, self.interrupt, |text| {
            out.write_all(text.as_bytes()).and_then(|()| out.flush())
        });
        let answer = answered.inspect_err(|_| {
            self.messages.pop();
        })?;
        end_line(&mut out, &answer.text).map_err(Failure::output)?;
        if !matches!(answer.reason, FinishReason::EndOfTurn | FinishReason::Stop) {
            tell!("[{}]", explain(answer.reason));
        }
        self.messages.push(Message::new("assistant", &answer.text));
        Ok(answer.reason)
    }
}
