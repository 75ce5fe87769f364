//! Host memory whose reader can be held up: it makes a copy stay in flight for as long as a test wants.

use std::sync::{Arc, Condvar, Mutex};

use engine_core::backend::{HostRegion, HostSlice};

/// Lets readers of a region through, or not.
#[derive(Clone)]
pub(crate) struct Gate(Arc<(Mutex<State>, Condvar)>);

struct State {
    is_open: bool,
    waiting: usize,
}

struct Gated {
    bytes: Vec<u8>,
    gate: Gate,
}

impl AsRef<[u8]> for Gated {
    fn as_ref(&self) -> &[u8] {
        self.gate.pass();
        &self.bytes
    }
}

impl Gate {
    /// All of a new region, behind a gate that is closed.
    pub(crate) fn before(bytes: Vec<u8>) -> (Gate, HostSlice) {
        let state = State { is_open: true, waiting: 0 };
        let gate = Gate(Arc::new((Mutex::new(state), Condvar::new())));
        let region = HostRegion::new(Gated { bytes, gate: gate.clone() });
        let slice = HostSlice::whole(region);
        gate.set(false);
        (gate, slice)
    }

    /// Lets everybody through from now on.
    pub(crate) fn open(&self) {
        self.set(true);
    }

    /// Returns when somebody waits.
    pub(crate) fn await_reader(&self) {
        let (state, changed) = &*self.0;
        drop(changed.wait_while(state.lock().unwrap(), |state| state.waiting == 0).unwrap());
    }

    fn set(&self, is_open: bool) {
        let (state, changed) = &*self.0;
        state.lock().unwrap().is_open = is_open;
        changed.notify_all();
    }

    fn pass(&self) {
        let (state, changed) = &*self.0;
        let mut state = state.lock().unwrap();
        state.waiting += 1;
        changed.notify_all();
        let mut state = changed.wait_while(state, |state| !state.is_open).unwrap();
        state.waiting -= 1;
    }
}
