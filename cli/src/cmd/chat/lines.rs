//! Where messages come from: a line editor with history on a terminal, plain lines otherwise.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

use rustyline::error::ReadlineError;
use rustyline::{Behavior, Config, DefaultEditor};

use crate::failure::Failure;
use crate::settings::UsageError;

/// The user's lines.
pub(super) enum Lines {
    Terminal(Box<Editor>),
    Pipe(io::Lines<io::StdinLock<'static>>),
}

/// A line editor whose history outlives the program.
pub(super) struct Editor {
    editor: DefaultEditor,
    history: Option<PathBuf>,
}

impl Lines {
    /// Those of stdin.
    pub(super) fn open() -> Result<Lines, Failure> {
        if io::stdin().is_terminal() {
            Ok(Lines::Terminal(Box::new(Editor::open()?)))
        } else {
            Ok(Lines::Pipe(io::stdin().lines()))
        }
    }

    /// Whether a person types them.
    pub(super) fn is_terminal(&self) -> bool {
        matches!(self, Lines::Terminal(_))
    }

    /// The next one; none after the last, or Ctrl-D.
    pub(super) fn next(&mut self) -> Result<Option<String>, Failure> {
        match self {
            Lines::Terminal(editor) => editor.next(),
            Lines::Pipe(lines) => lines
                .next()
                .transpose()
                .map_err(|source| UsageError::Read { from: "stdin".to_owned(), source }.into()),
        }
    }
}

impl Editor {
    fn open() -> Result<Editor, Failure> {
        // The terminal is asked for lines even when the answers go into a file.
        let config = Config::builder().auto_add_history(true).behavior(Behavior::PreferTerm);
        let mut editor = DefaultEditor::with_config(config.build()).map_err(internal)?;
        let history = history_file();
        if let Some(path) = &history {
            // There is none before the first conversation.
            let _ = editor.load_history(path);
        }
        Ok(Editor { editor, history })
    }

    fn next(&mut self) -> Result<Option<String>, Failure> {
        loop {
            match self.editor.readline("> ") {
                Ok(line) => return Ok(Some(line)),
                Err(ReadlineError::Eof) => return Ok(None),
                Err(ReadlineError::Interrupted) => tell!("Ctrl-D leaves"),
                Err(error) => return Err(internal(error)),
            }
        }
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let Some(path) = &self.history else { return };
        if let Err(error) = self.editor.save_history(path) {
            tell!("the history of this conversation is lost: {}: {error}", path.display());
        }
    }
}

/// Where typed lines are kept: in the system's folder for state (XDG on Linux), which is made if need be.
fn history_file() -> Option<PathBuf> {
    let folder = dirs::state_dir().or_else(dirs::data_local_dir)?.join("baton");
    fs::create_dir_all(&folder).ok()?;
    Some(folder.join("chat_history"))
}

fn internal(error: ReadlineError) -> Failure {
    Failure::Internal(anyhow::Error::new(error).context("cannot read from the terminal"))
}
