//! How the program ends when it does not end well: which exit code, and one line that says why.

use std::error::Error;
use std::io;

use engine_core::backend::BackendError;
use engine_core::measure::MeasureError;
use engine_core::tokenizer::TokenizerError;
use engine_core::weights::OpenError;
use engine_core::{EngineError, SamplerError};
use planner::PlanError;

use crate::fetch::FetchError;
use crate::report::visible;
use crate::settings::UsageError;

/// Exit code for a failure of the program itself.
pub(crate) const INTERNAL: u8 = 1;
/// Exit code for bad input or use.
pub(crate) const BAD_INPUT: u8 = 2;
/// Exit code after Ctrl-C: 128 + SIGINT, as shells report it.
pub(crate) const INTERRUPTED: u8 = 130;

/// Why a command ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The user can mend it.
    Input(anyhow::Error),
    /// Only Baton or the machine can.
    Internal(anyhow::Error),
    /// The user asked to stop.
    Interrupted,
    /// Nobody reads the output any more, as after `| head`. Not a failure of anyone.
    ClosedPipe,
}

impl Failure {
    /// Bad input or use.
    pub(crate) fn input(error: impl Error + Send + Sync + 'static) -> Failure {
        Failure::Input(error.into())
    }

    /// A failure to write results.
    pub(crate) fn output(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => Failure::Internal(anyhow::Error::new(error).context("cannot write the output")),
        }
    }

    /// The exit code.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Input(_) => BAD_INPUT,
            Failure::Internal(_) => INTERNAL,
            Failure::Interrupted => INTERRUPTED,
            Failure::ClosedPipe => 0,
        }
    }

    /// What to tell the user, when there is something to tell.
    pub(crate) fn message(&self) -> Option<String> {
        match self {
            Failure::Input(error) | Failure::Internal(error) => Some(chain(error.as_ref())),
            Failure::Interrupted => Some("interrupted".to_owned()),
            Failure::ClosedPipe => None,
        }
    }
}

impl From<UsageError> for Failure {
    fn from(error: UsageError) -> Failure {
        Failure::input(error)
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Failure {
        match error {
            EngineError::Cancelled => Failure::Interrupted,
            EngineError::Kv(_)
            | EngineError::Backend(BackendError::Unsupported { .. })
            | EngineError::Sampler(SamplerError::NotANumber { .. }) => {
                Failure::Internal(error.into())
            }
            error => Failure::input(error),
        }
    }
}

impl From<MeasureError> for Failure {
    fn from(error: MeasureError) -> Failure {
        match error {
            MeasureError::Cancelled => Failure::Interrupted,
            MeasureError::NoArithmetic { .. } | MeasureError::Backend(_) => Failure::input(error),
            error => Failure::Internal(error.into()),
        }
    }
}

impl From<TokenizerError> for Failure {
    fn from(error: TokenizerError) -> Failure {
        Failure::input(error)
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Failure {
        Failure::input(error)
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Failure {
        Failure::input(error)
    }
}

impl From<FetchError> for Failure {
    fn from(error: FetchError) -> Failure {
        match error {
            FetchError::Interrupted => Failure::Interrupted,
            error => Failure::input(error),
        }
    }
}

/// An error and its causes on one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let part = error.to_string();
        // Some libraries repeat the cause in their own message.
        if !text.contains(&part) {
            text = format!("{text}: {part}");
        }
        cause = error.source();
    }
    visible(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_follow_on_the_same_line() {
        let error = anyhow::anyhow!("no\nsuch file").context("cannot open x.gguf");
        assert_eq!(chain(error.as_ref()), "cannot open x.gguf: no such file");
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let failure = Failure::output(io::ErrorKind::BrokenPipe.into());
        assert_eq!((failure.exit_code(), failure.message()), (0, None));
        let failure = Failure::output(io::ErrorKind::StorageFull.into());
        assert_eq!(failure.exit_code(), INTERNAL);
    }
}
