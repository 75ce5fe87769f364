//! What each thread of the device works with.

use std::time::Instant;

use engine_core::backend::{BufferId, HostSlice};
use engine_core::op::{Op, View};

use super::link::Link;
use crate::arena::Arena;
use crate::pace::rest_until;
use crate::threads::{Memory, Team};
use crate::wave::Runner;

/// A thread's own hold on all buffers.
pub(super) trait Holder {
    fn arena(&mut self) -> &mut Arena;

    fn hold(&mut self, id: BufferId, memory: Memory) {
        self.arena().hold(id, memory);
    }

    fn free(&mut self, id: BufferId) {
        self.arena().free(id);
    }
}

/// The thread that computes.
pub(super) struct Computer {
    pub(super) arena: Arena,
    pub(super) team: Team,
    pub(super) runner: Runner,
    /// When the device would be done with the last ops at its pace.
    pub(super) free: Instant,
    pub(super) link: Link,
}

impl Computer {
    /// Runs ops that were ready to begin at `ready`, and lends nothing afterwards. A thread that the system resumed late
    /// catches up with its pace.
    pub(super) fn run(&mut self, ops: &[Op], ready: Instant) {
        let Computer { arena, team, runner, free, .. } = self;
        let paced = team.assemble(|crew| runner.run(ops, arena, crew));
        arena.reclaim();
        *free = ready.max(*free) + paced;
        rest_until(*free);
    }

    /// Writes a few bytes.
    pub(super) fn write(&mut self, dst: &View, src: &[u8]) {
        let Computer { arena, link, .. } = self;
        arena.fill(dst, src.len(), |bytes| link.copy(src, bytes, Instant::now()));
    }
}

impl Holder for Computer {
    fn arena(&mut self) -> &mut Arena {
        &mut self.arena
    }
}

/// The thread that makes uploads.
pub(super) struct Copier {
    pub(super) arena: Arena,
    pub(super) link: Link,
}

impl Copier {
    /// Makes an upload that was ready to begin at `ready`.
    pub(super) fn upload(&mut self, src: &HostSlice, dst: &View, ready: Instant) {
        let Copier { arena, link } = self;
        arena.fill(dst, src.range().len(), |bytes| link.copy(src.bytes(), bytes, ready));
    }
}

impl Holder for Copier {
    fn arena(&mut self) -> &mut Arena {
        &mut self.arena
    }
}
