//! What a typed line asks for.

/// Printed by `/help`.
pub(super) const HELP: &str = "\
/reset         forget the conversation
/system TEXT   start anew with this instruction; without a text, with none
/quit          leave, as Ctrl-D does
/help          this list
Anything else is a message; one that starts with / goes through with a space before it. Ctrl-C stops an answer.";

/// A typed line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Input<'a> {
    Nothing,
    Help,
    Quit,
    Reset,
    System(&'a str),
    Unknown(&'a str),
    Message(&'a str),
}

impl Input<'_> {
    pub(super) fn parse(line: &str) -> Input<'_> {
        let line = line.trim_end();
        if line.is_empty() {
            return Input::Nothing;
        }
        if !line.starts_with('/') {
            return Input::Message(line.trim_start());
        }
        let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match command {
            "/help" => Input::Help,
            "/quit" => Input::Quit,
            "/reset" => Input::Reset,
            "/system" => Input::System(rest.trim_start()),
            unknown => Input::Unknown(unknown),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_start_with_a_slash() {
        assert_eq!(Input::parse("/reset "), Input::Reset);
        assert_eq!(Input::parse("/system  Be brief. "), Input::System("Be brief."));
        assert_eq!(Input::parse("/system"), Input::System(""));
        assert_eq!(Input::parse("/rest now"), Input::Unknown("/rest"));
    }

    #[test]
    fn all_else_is_a_message() {
        assert_eq!(Input::parse("What does /help do?"), Input::Message("What does /help do?"));
        assert_eq!(Input::parse(" /etc/hosts is what?"), Input::Message("/etc/hosts is what?"));
        assert_eq!(Input::parse(" \t"), Input::Nothing);
    }
}
