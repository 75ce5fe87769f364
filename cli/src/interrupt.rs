//! Ctrl-C as a flag that long work looks at between its steps.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::INTERRUPTED;

/// Whether the user asked to stop. Clones share one flag.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Raises the flag at Ctrl-C from now on. A second Ctrl-C before anyone took notice ends the program at once.
    pub(crate) fn listen() -> Result<Interrupt, ctrlc::Error> {
        let interrupt = Interrupt::default();
        let raised = interrupt.clone();
        ctrlc::set_handler(move || {
            if raised.0.swap(true, Ordering::Relaxed) {
                process::exit(INTERRUPTED.into());
            }
        })?;
        Ok(interrupt)
    }

    /// Whether the user asked to stop.
    pub(crate) fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// One that is raised already.
    #[cfg(test)]
    pub(crate) fn raised() -> Interrupt {
        Interrupt(Arc::new(AtomicBool::new(true)))
    }
}
