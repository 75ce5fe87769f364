//! Ctrl-C: ends the program, except while work runs that can be cancelled.

use std::process;
use std::sync::{Arc, Mutex, PoisonError};

use engine_core::Cancel;

use crate::failure::INTERRUPTED;

/// Where Ctrl-C arrives.
#[derive(Debug)]
pub(crate) struct Interrupt {
    /// What the next Ctrl-C cancels.
    work: Arc<Mutex<Option<Cancel>>>,
}

impl Interrupt {
    /// Takes over Ctrl-C: it ends the program at once, unless work is [watched](Self::watch) and not cancelled yet.
    pub(crate) fn listen() -> Result<Interrupt, ctrlc::Error> {
        let interrupt = Interrupt { work: Arc::default() };
        let work = Arc::clone(&interrupt.work);
        ctrlc::set_handler(move || match &*work.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(cancel) if !cancel.is_cancelled() => cancel.cancel(),
            _ => process::exit(INTERRUPTED.into()),
        })?;
        Ok(interrupt)
    }

    /// Until the guard is dropped, Ctrl-C cancels this work instead of ending the program.
    #[must_use]
    pub(crate) fn watch(&self, cancel: &Cancel) -> Watch<'_> {
        self.set(Some(cancel.clone()));
        Watch(self)
    }

    fn set(&self, work: Option<Cancel>) {
        *self.work.lock().unwrap_or_else(PoisonError::into_inner) = work;
    }
}

/// While it lives, Ctrl-C cancels work instead of ending the program.
pub(crate) struct Watch<'a>(&'a Interrupt);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}
