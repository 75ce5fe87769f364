//! `baton tokenize`: text to token ids, and back.

use std::io::{self, BufRead, Write};

use engine_core::open_tokenizer;
use engine_core::tokenizer::{ControlText, Specials, TokenId, Tokenizer};
use serde::Serialize;

use crate::args::TokenizeArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::report::{self, piece};
use crate::settings::{ModelRef, UsageError, read_stdin};

pub(crate) fn run(args: TokenizeArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let path = ModelRef::parse(&args.model)?.locate(interrupt)?;
    let tokenizer = open_tokenizer(&path)?;
    let mut codec =
        Codec { tokenizer, special: args.special, json: args.json, out: io::stdout().lock() };
    if let Some(ids) = args.ids {
        codec.decode(&ids)
    } else if args.lines {
        codec.encode_lines()
    } else if args.text == "-" {
        codec.encode(&read_stdin()?)
    } else {
        codec.encode(&args.text)
    }
}

/// A text and its tokens, as JSON.
#[derive(Serialize)]
struct Record<'a> {
    text: &'a str,
    ids: Vec<u32>,
}

struct Codec<W> {
    tokenizer: Tokenizer,
    special: bool,
    json: bool,
    out: W,
}

impl<W: Write> Codec<W> {
    fn ids(&self, text: &str) -> Result<Vec<TokenId>, Failure> {
        Ok(if self.special {
            self.tokenizer.encode_prompt(text, Specials::Parse)?
        } else {
            self.tokenizer.encode(text, Specials::Literal)?
        })
    }

    /// Prints one token a line, or one object.
    fn encode(&mut self, text: &str) -> Result<(), Failure> {
        let ids = self.ids(text)?;
        if self.json {
            return self.record(text, &ids);
        }
        let rows = ids.iter().map(|&id| [id.to_string(), piece(self.tokenizer.piece(id))]);
        report::table(&mut self.out, rows, &[0]).map_err(Failure::output)?;
        writeln!(self.out, "{} tokens", ids.len()).map_err(Failure::output)
    }

    /// Prints the ids of each line of stdin on a line, or an object for each.
    fn encode_lines(&mut self) -> Result<(), Failure> {
        for line in io::stdin().lock().lines() {
            let from = || "stdin".to_owned();
            let line = line.map_err(|source| UsageError::Read { from: from(), source })?;
            let ids = self.ids(&line)?;
            if self.json {
                self.record(&line, &ids)?;
            } else {
                let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
                writeln!(self.out, "{}", ids.join(" ")).map_err(Failure::output)?;
            }
        }
        Ok(())
    }

    fn decode(&mut self, ids: &[u32]) -> Result<(), Failure> {
        let n_vocab = self.tokenizer.n_vocab();
        if let Some(&id) = ids.iter().find(|&&id| id as usize >= n_vocab) {
            return Err(UsageError::UnknownId { id, n_vocab }.into());
        }
        let ids: Vec<TokenId> = ids.iter().copied().map(TokenId).collect();
        let text = self.tokenizer.decode(&ids, ControlText::Show);
        if self.json {
            return self.record(&text, &ids);
        }
        writeln!(self.out, "{text}").map_err(Failure::output)
    }

    fn record(&mut self, text: &str, ids: &[TokenId]) -> Result<(), Failure> {
        let record = Record { text, ids: ids.iter().map(|id| id.0).collect() };
        report::json(&mut self.out, &record).map_err(Failure::output)
    }
}
