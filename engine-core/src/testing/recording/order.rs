//! What is certain about the order of work on a device with two queues: uploads, and lists of ops with small writes.
//!
//! The model is that of [`Backend`](crate::backend::Backend), and knows nothing of who calls it: each queue keeps its
//! order; a fence that a call names is reached before its work begins; what the host has waited for is done before
//! anything it asks for later. Nothing else is certain. Source for clocks of that kind: Mattern, "Virtual Time and
//! Global States of Distributed Systems", 1989.

use std::ops::Range;

use crate::backend::{BufferId, Fence};

/// One of the two queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Queue {
    Uploads,
    Runs,
}

/// A piece of work: the queue, and how many there were on it with this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Work {
    queue: Queue,
    number: u64,
}

/// What is surely done: so many pieces of work of each queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Done([u64; 2]);

impl Done {
    fn and(self, other: Done) -> Done {
        Done([self.0[0].max(other.0[0]), self.0[1].max(other.0[1])])
    }

    fn of(self, queue: Queue) -> u64 {
        self.0[queue as usize]
    }

    pub(super) fn covers(self, work: Work) -> bool {
        self.of(work.queue) >= work.number
    }
}

/// How memory is touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Touch {
    Read,
    Write,
}

#[derive(Debug, Clone)]
struct Access {
    work: Work,
    touch: Touch,
    buffer: BufferId,
    range: Range<u64>,
}

/// Two uses of the same bytes, at least one of which writes, that may happen at the same time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Race {
    pub(super) range: Range<u64>,
    /// Whether the earlier use wrote, and which work it was.
    pub(super) earlier: (Touch, Work),
    pub(super) later: Touch,
}

/// Work that was asked for, and what is done before it begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begun {
    pub(super) work: Work,
    before: Done,
}

/// Everything asked for so far.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// What the host knows to be done.
    host: Done,
    /// What is done when each fence is reached.
    fences: Vec<Done>,
    /// What is done when the last work of each queue is.
    last: [Done; 2],
    /// Uses of memory that the host does not know to be over.
    open: Vec<Access>,
}

impl Order {
    /// Asks for work on a queue.
    ///
    /// # Panics
    /// If a fence is of nobody.
    pub(super) fn begin(&mut self, queue: Queue, after: &[Fence]) -> Begun {
        let last = &self.last[queue as usize];
        let before = after.iter().fold(self.host.and(*last), |done, f| done.and(self.at(*f)));
        let number = last.of(queue) + 1;
        let mut done = before;
        done.0[queue as usize] = number;
        self.last[queue as usize] = done;
        Begun { work: Work { queue, number }, before }
    }

    /// A fence that is reached when the last work of a queue is done.
    pub(super) fn fence(&mut self, queue: Queue) -> Fence {
        self.fences.push(self.last[queue as usize]);
        Fence(self.fences.len() as u64)
    }

    fn at(&self, fence: Fence) -> Done {
        let index = (fence.0 as usize).checked_sub(1);
        let done = index.and_then(|index| self.fences.get(index));
        *done.unwrap_or_else(|| panic!("{fence:?} is not of this backend"))
    }

    /// The host has waited for fences; gives what it knows to be done now.
    pub(super) fn reached(&mut self, fences: &[Fence]) -> Done {
        self.host = fences.iter().fold(self.host, |done, f| done.and(self.at(*f)));
        let host = self.host;
        self.open.retain(|access| !host.covers(access.work));
        host
    }

    /// Work uses memory.
    pub(super) fn touch(
        &mut self,
        begun: Begun,
        touch: Touch,
        buffer: BufferId,
        range: Range<u64>,
    ) -> Result<(), Race> {
        self.check(begun.before, begun.work, touch, buffer, &range)?;
        let access = Access { work: begun.work, touch, buffer, range };
        // Whoever is in order with this access is so with those that it stands for.
        self.open.retain(|old| !access.stands_for(old));
        self.open.push(access);
        Ok(())
    }

    /// The host uses memory itself, at once.
    pub(super) fn touch_by_host(&self, buffer: BufferId, range: &Range<u64>) -> Result<(), Race> {
        let nobody = Work { queue: Queue::Runs, number: u64::MAX };
        self.check(self.host, nobody, Touch::Read, buffer, range)
    }

    fn check(
        &self,
        before: Done,
        work: Work,
        touch: Touch,
        buffer: BufferId,
        range: &Range<u64>,
    ) -> Result<(), Race> {
        let race = self.open.iter().find(|old| {
            let writes = touch == Touch::Write || old.touch == Touch::Write;
            let meets = old.range.start < range.end && range.start < old.range.end;
            writes && meets && old.buffer == buffer && old.work != work && !before.covers(old.work)
        });
        match race {
            None => Ok(()),
            Some(old) => {
                let range = range.start.max(old.range.start)..range.end.min(old.range.end);
                Err(Race { range, earlier: (old.touch, old.work), later: touch })
            }
        }
    }
}

impl Access {
    /// Whether this later access of the same queue uses all that an earlier one uses, in the same way.
    fn stands_for(&self, old: &Access) -> bool {
        (self.buffer, self.touch, self.work.queue) == (old.buffer, old.touch, old.work.queue)
            && self.range.start <= old.range.start
            && old.range.end <= self.range.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: Range<u64> = 0..64;

    fn use_slot(order: &mut Order, queue: Queue, after: &[Fence]) -> Result<Fence, Race> {
        let begun = order.begin(queue, after);
        let touch = if queue == Queue::Uploads { Touch::Write } else { Touch::Read };
        order.touch(begun, touch, BufferId(0), SLOT)?;
        Ok(order.fence(queue))
    }

    #[test]
    fn what_is_read_must_have_been_copied() {
        let mut order = Order::default();
        let copied = use_slot(&mut order, Queue::Uploads, &[]).unwrap();
        assert!(use_slot(&mut order, Queue::Runs, &[copied]).is_ok());
        assert!(use_slot(&mut order, Queue::Runs, &[]).is_ok(), "the queue keeps its order");

        let mut order = Order::default();
        use_slot(&mut order, Queue::Uploads, &[]).unwrap();
        let race = use_slot(&mut order, Queue::Runs, &[]).unwrap_err();
        assert_eq!((race.range, race.earlier.0, race.later), (SLOT, Touch::Write, Touch::Read));
    }

    #[test]
    fn what_is_still_read_must_not_be_overwritten() {
        let mut order = Order::default();
        let copied = use_slot(&mut order, Queue::Uploads, &[]).unwrap();
        let first = use_slot(&mut order, Queue::Runs, &[copied]).unwrap();
        let last = use_slot(&mut order, Queue::Runs, &[]).unwrap();
        assert!(use_slot(&mut order, Queue::Uploads, &[first]).is_err(), "the last reader counts");
        assert!(use_slot(&mut order, Queue::Uploads, &[last]).is_ok());
    }

    #[test]
    fn what_the_host_has_waited_for_is_done() {
        let mut order = Order::default();
        let copied = use_slot(&mut order, Queue::Uploads, &[]).unwrap();
        assert!(order.touch_by_host(BufferId(0), &SLOT).is_err());
        let ran = use_slot(&mut order, Queue::Runs, &[copied]).unwrap();
        // Whoever waits for the reader has waited for the copy.
        order.reached(&[ran]);
        assert!(order.touch_by_host(BufferId(0), &SLOT).is_ok());
        assert!(use_slot(&mut order, Queue::Uploads, &[]).is_ok());
    }

    #[test]
    fn other_bytes_do_not_matter() {
        let mut order = Order::default();
        use_slot(&mut order, Queue::Uploads, &[]).unwrap();
        for (buffer, range) in [(0, 64..128), (1, SLOT)] {
            let begun = order.begin(Queue::Runs, &[]);
            assert!(order.touch(begun, Touch::Write, BufferId(buffer), range).is_ok());
        }
    }
}
