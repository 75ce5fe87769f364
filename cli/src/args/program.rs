//! The program: its commands and what `--help` says of all of them.

use clap::{Parser, Subcommand};

use super::{
    ChatArgs, InspectArgs, PerplexityArgs, PlanArgs, ProfileArgs, PullArgs, RunArgs, TokenizeArgs,
};

const NOTES: &str = "\
Examples:
  baton run \"Why is the sky blue?\"           answer with the default model, fetched first if missing
  baton run model.gguf \"Name three rivers.\"  answer with a model of your own
  git log | baton run --system Summarise. -  take the prompt from stdin
  baton chat --temperature 0.7               talk; Ctrl-C stops an answer, Ctrl-D leaves
  baton inspect model.gguf                   what is in a file
  baton plan model.gguf --vram 2GiB,8GiB     where its shards should live, and how fast that would be
  baton profile                              measure this machine, once, for predictions

A MODEL is a known name (`baton pull --list`), a GGUF file (any part of a split one), or a Hugging
Face folder with config.json, tokenizer.json and *.safetensors.

Units: token counts may end in K, 1K = 1024 tokens; sizes end in MiB or GiB; TPS is tokens per
second; times are in seconds.
Exit codes: 0 fine, 1 failure inside Baton, 2 bad input or use, 130 stopped by Ctrl-C.
Fetched models are kept in baton/models in your cache folder ($XDG_CACHE_HOME, else ~/.cache);
the profile of this machine is baton/machine.toml in your configuration folder ($XDG_CONFIG_HOME, else
~/.config).";

/// Runs language models on ordinary PCs.
#[derive(Debug, Parser)]
#[command(name = "baton", version, after_help = NOTES, max_term_width = 110)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArgs),
    Chat(ChatArgs),
    Pull(PullArgs),
    Inspect(InspectArgs),
    Tokenize(TokenizeArgs),
    Perplexity(PerplexityArgs),
    Plan(PlanArgs),
    Profile(ProfileArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn run(words: &[&str]) -> Result<RunArgs, clap::Error> {
        let args = Args::try_parse_from([&["baton", "run"], words].concat())?;
        let Command::Run(args) = args.command else { panic!("a run") };
        Ok(args)
    }

    #[test]
    fn the_definitions_are_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_lone_word_is_the_prompt() {
        let args = run(&["Why?"]).expect("valid");
        assert_eq!((args.model.model(), &*args.prompt), ("smollm2-135m", "Why?"));
    }

    #[test]
    fn a_model_goes_before_the_prompt_or_behind_a_flag() {
        for words in
            [&["m.gguf", "Why?"][..], &["Why?", "--model", "m.gguf"], &["-m", "m.gguf", "Why?"]]
        {
            let args = run(words).expect("valid");
            assert_eq!((args.model.model(), &*args.prompt), ("m.gguf", "Why?"));
        }
        assert!(run(&["a.gguf", "Why?", "--model", "b.gguf"]).is_err());
    }

    #[test]
    fn numbers_are_read_with_their_sign_and_suffix() {
        let args = run(&["Why?", "--presence-penalty", "-0.5", "--ctx", "16K", "-n", "1"]);
        let args = args.expect("valid");
        assert_eq!(args.answer.sampling.presence_penalty, -0.5);
        assert_eq!((args.engine.ctx, args.answer.max_tokens), (Some(16384), Some(1)));
    }

    #[test]
    fn contradictions_are_refused() {
        assert!(run(&[]).is_err());
        assert!(run(&["Why?", "--raw", "--system", "Be brief."]).is_err());
        assert!(run(&["Why?", "--stop", ""]).is_err());
        assert!(run(&["Why?", "--threads", "0"]).is_err());
    }
}
