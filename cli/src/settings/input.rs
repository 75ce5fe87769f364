//! Texts that the user gives: typed, piped or in a file.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use super::UsageError;
use super::model::looks_like_model;

/// The prompt as typed, or all of stdin for `-`. A lone model where a prompt belongs is noticed.
pub(crate) fn read_prompt(typed: String, model_given: bool) -> Result<String, UsageError> {
    match typed.as_str() {
        "-" => read_stdin(),
        model if !model_given && looks_like_model(model) => {
            Err(UsageError::NoPrompt { model: typed })
        }
        _ => Ok(typed),
    }
}

/// All of stdin.
pub(crate) fn read_stdin() -> Result<String, UsageError> {
    let mut bytes = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut bytes);
    text("stdin".to_owned(), read.map(|_| bytes))
}

/// All of a file.
pub(crate) fn read_file(path: &Path) -> Result<String, UsageError> {
    text(path.display().to_string(), fs::read(path))
}

fn text(from: String, read: io::Result<Vec<u8>>) -> Result<String, UsageError> {
    match read.map(String::from_utf8) {
        Ok(Ok(text)) => Ok(text),
        Ok(Err(error)) => Err(UsageError::NotText { from, at: error.utf8_error().valid_up_to() }),
        Err(source) => Err(UsageError::Read { from, source }),
    }
}
