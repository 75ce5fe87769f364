//! `baton perplexity`: how well a model predicts a text.

use std::io;

use engine_core::perplexity::{self, Chunk, Score};
use engine_core::tokenizer::{Specials, Tokenizer};
use engine_core::{Engine, EngineOptions, open_tokenizer};
use indicatif::{ProgressBar, ProgressStyle};

use crate::args::PerplexityArgs;
use crate::devices;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::report::{self, PerplexityReport};
use crate::settings::{ModelRef, UsageError, place, read_file};
use crate::whole_file::WholeFile;

/// Most positions whose logits one pass computes: more would take memory and save no time.
const OUTPUTS_PER_PASS: u32 = 128;

pub(crate) fn run(args: PerplexityArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let text = read_file(&args.file)?;
    let path = ModelRef::parse(args.model.model())?.locate(interrupt)?;
    let tokenizer = open_tokenizer(&path)?;
    let chunks = if args.whole {
        whole(&tokenizer, &text)?
    } else {
        windows(&tokenizer, &text, args.ctx as usize)?
    };
    let n_ctx = chunks[0].tokens.len() as u32;
    let options = EngineOptions {
        n_ctx: Some(n_ctx),
        n_outputs: OUTPUTS_PER_PASS,
        ..EngineOptions::default()
    };
    // Nothing is answered.
    let options = place(options, &args.device, &args.placing, Some(0))?;
    let mut engine = Engine::load(&path, &options, devices::backends(&args.device)?)?;
    let mut logits = args.logits.as_deref().map(WholeFile::create).transpose()?;
    let score = score(&mut engine, &chunks, logits.as_mut(), interrupt)?;
    if let Some(logits) = logits {
        logits.finish()?;
    }
    let report = PerplexityReport::new(&score, n_ctx, chunks.len());
    let mut out = io::stdout().lock();
    let printed = if args.json { report::json(&mut out, &report) } else { report.print(&mut out) };
    printed.map_err(Failure::output)
}

/// The text in one piece.
fn whole(tokenizer: &Tokenizer, text: &str) -> Result<Vec<Chunk>, Failure> {
    let tokens = tokenizer.encode_prompt(text, Specials::Literal)?;
    let too_short = UsageError::TextTooShort { found: tokens.len(), needed: 2 };
    Ok(vec![perplexity::whole(&tokens).ok_or(too_short)?])
}

/// The text in windows of `n_ctx` tokens.
fn windows(tokenizer: &Tokenizer, text: &str, n_ctx: usize) -> Result<Vec<Chunk>, Failure> {
    // As llama.cpp reads a file: the newline that ends it is not part of the text.
    let text = text.strip_suffix('\n').unwrap_or(text);
    let tokens = tokenizer.encode_prompt(text, Specials::Literal)?;
    let begin = tokenizer.begin().filter(|_| tokenizer.adds_begin());
    let chunks = perplexity::chunks(&tokens, n_ctx, begin);
    if chunks.is_empty() {
        return Err(UsageError::TextTooShort { found: tokens.len(), needed: n_ctx.max(4) }.into());
    }
    Ok(chunks)
}

fn score(
    engine: &mut Engine,
    chunks: &[Chunk],
    mut logits: Option<&mut WholeFile>,
    interrupt: &Interrupt,
) -> Result<Score, Failure> {
    let style =
        ProgressStyle::with_template("[{wide_bar}] {pos} of {len} windows, {eta} left {msg}")
            .expect("the template is valid")
            .progress_chars("=> ");
    let bar = ProgressBar::new(chunks.len() as u64).with_style(style);
    let mut session = engine.session();
    let _watch = interrupt.watch(&session.cancel());
    let mut score = Score::default();
    for chunk in chunks {
        let mut written = Ok(());
        session.score(chunk, |position, row| {
            score.add(perplexity::nll(row, chunk.tokens[position + 1]));
            if let (Some(file), Ok(())) = (&mut logits, &written) {
                written = row.iter().try_for_each(|x| file.write(&x.to_le_bytes()));
            }
        })?;
        written?;
        bar.inc(1);
        bar.set_message(score.perplexity().map_or(String::new(), |p| format!("perplexity {p:.4}")));
    }
    bar.finish_and_clear();
    Ok(score)
}
