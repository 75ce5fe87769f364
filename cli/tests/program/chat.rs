//! `baton chat` without a terminal: messages come line by line from a pipe.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::{Outcome, data};

/// Holds a conversation with the tiny SmolLM2.
fn chat(lines: &str, flags: &[&str]) -> Outcome {
    let mut child = Command::new(env!("CARGO_BIN_EXE_baton"))
        .arg("chat")
        .arg(data("smollm2/model.gguf"))
        .args(["--max-tokens", "6", "--temperature", "0"])
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("baton starts");
    child.stdin.take().expect("piped").write_all(lines.as_bytes()).expect("written");
    Outcome::of(child.wait_with_output().expect("baton ends"))
}

#[test]
fn each_line_is_answered() {
    let one = chat("Hi\n", &[]).success();
    let two = chat("Hi\nAnd you?\n", &[]).success();
    assert!(two.starts_with(&one) && two.len() > one.len(), "{two}");
}

#[test]
fn after_a_reset_the_answer_is_as_at_first() {
    let one = chat("Hi\n", &[]).success();
    assert_eq!(chat("Hi\n/reset\nHi\n", &[]).success(), format!("{one}{one}"));
}

#[test]
fn an_instruction_can_be_set_on_the_way() {
    let flag = chat("Hi\n", &["--system", "Be brief."]).success();
    assert_eq!(chat("/system Be brief.\nHi\n", &[]).success(), flag);
    assert_ne!(chat("Hi\n", &[]).success(), flag);
}

#[test]
fn leaving_and_asking_for_help_need_no_answer() {
    let outcome = chat("/help\n\n/nonsense\n/quit\nHi\n", &[]);
    for part in ["/reset", "there is no /nonsense"] {
        assert!(outcome.stderr.contains(part), "{}", outcome.stderr);
    }
    assert_eq!(outcome.success(), "");
}

#[test]
fn a_conversation_that_outgrows_the_context_ends_with_the_reason() {
    let outcome = chat("Hello there, how are you?\n", &["--ctx", "8"]);
    let message = outcome.bad_input();
    assert!(message.contains("a context of 8"), "{message}");
}
