//! The `baton` program from outside: exit codes, stdout, stderr. Needs no network and no real model.

mod chat;
mod inspect;
mod perplexity;
mod plan;
mod profile;
#[cfg(unix)]
mod pull;
mod run;
mod tokenize;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// How a run of the program ended.
#[derive(Debug)]
struct Outcome {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs the program to its end, without anything on stdin.
fn baton<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Outcome {
    let output = Command::new(env!("CARGO_BIN_EXE_baton"))
        .args(args)
        .stdin(Stdio::null())
        .output()
        .expect("baton starts");
    Outcome::of(output)
}

impl Outcome {
    fn of(output: Output) -> Outcome {
        Outcome {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
        }
    }

    /// What it printed, having ended well.
    #[track_caller]
    fn success(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }

    /// Its one line about bad input, having printed nothing else.
    #[track_caller]
    fn bad_input(self) -> String {
        assert_eq!(self.code, Some(2), "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        let message = self.stderr.strip_prefix("baton: ").expect("starts with the program's name");
        assert_eq!(message.lines().count(), 1, "{message}");
        message.trim_end().to_owned()
    }
}

/// A file of the engine's test data.
fn data(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine-core/tests/data").join(path)
}
