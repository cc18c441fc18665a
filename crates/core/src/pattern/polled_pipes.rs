//! The pipes that PUB, XPUB and RADIO poll in every call: pipes that do not announce new messages
//! (inproc), and pipes that were not read to the end because a message to be sent had its turn.

use crate::pipe::{Pipe, PipeId, Pipes};

#[derive(Debug)]
struct PolledPipe {
    id: PipeId,
    /// True if the pipe announces new messages. Such a pipe need not be polled once it was read to
    /// the end.
    announces: bool,
    /// True if the pipe was not read to the end. Its peer may wait to learn of the end, so the pipe
    /// must be read even if it looks empty.
    unfinished: bool,
}

/// List of polled pipes. A round iterates by index, because reading a pipe may remove pipes.
#[derive(Debug, Default)]
pub(super) struct PolledPipes {
    entries: Vec<PolledPipe>,
}

impl PolledPipes {
    /// True if the list is empty.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// True if the list contains only this pipe, and it was read to the end.
    #[inline]
    pub(super) fn is_only(&self, id: PipeId) -> bool {
        matches!(self.entries[..], [PolledPipe { id: only, unfinished: false, .. }] if only == id)
    }

    /// Adds a pipe that does not announce new messages.
    pub(super) fn add(&mut self, id: PipeId) {
        self.entries.push(PolledPipe { id, announces: false, unfinished: false });
    }

    /// Notes that the pipe was not read to the end.
    pub(super) fn leave_unfinished(&mut self, id: PipeId) {
        match self.entries.iter_mut().find(|entry| entry.id == id) {
            Some(entry) => entry.unfinished = true,
            None => self.entries.push(PolledPipe { id, announces: true, unfinished: true }),
        }
    }

    /// Removes a pipe that is gone.
    pub(super) fn forget(&mut self, id: PipeId) {
        self.entries.retain(|entry| entry.id != id);
    }

    /// Returns the next pipe to read, from this index on. `None` at the end of the round.
    #[inline]
    pub(super) fn next(&self, index: &mut usize, pipes: &mut Pipes) -> Option<PipeId> {
        loop {
            let &PolledPipe { id, unfinished, .. } = self.entries.get(*index)?;
            if unfinished || pipes.get(id).is_some_and(|pipe| pipe.incoming.sees_more()) {
                return Some(id);
            }
            *index += 1;
        }
    }

    /// Notes that the pipe at this index was read, maybe to the end. The round continues at
    /// `index`.
    #[inline]
    pub(super) fn record_read(&mut self, index: &mut usize, id: PipeId, finished: bool) {
        let Some(entry) = self.entries.get_mut(*index).filter(|entry| entry.id == id) else {
            // The pipe was removed: the next one has taken its index.
            return;
        };
        entry.unfinished = !finished;
        if finished && entry.announces {
            self.entries.swap_remove(*index);
        } else {
            *index += 1;
        }
    }
}

/// True if a pipe that looked empty was read to the end. If its peer waits for room, the peer is
/// notified.
pub(super) fn is_read_to_the_end(pipe: &mut Pipe) -> bool {
    pipe.can_recv();
    !pipe.incoming.sees_more()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PipeId = PipeId(3);
    const B: PipeId = PipeId(1);

    fn all(polled: &PolledPipes) -> Vec<(PipeId, bool)> {
        polled.entries.iter().map(|entry| (entry.id, entry.unfinished)).collect()
    }

    /// Index at which the round continues.
    fn read(polled: &mut PolledPipes, mut index: usize, id: PipeId, finished: bool) -> usize {
        polled.record_read(&mut index, id, finished);
        index
    }

    #[test]
    fn announcing_pipe_is_polled_until_read_to_the_end() {
        let mut polled = PolledPipes::default();
        polled.add(A);
        polled.leave_unfinished(B);
        polled.leave_unfinished(A);
        assert_eq!(all(&polled), [(A, true), (B, true)]);
        assert_eq!(read(&mut polled, 0, A, true), 1);
        assert_eq!(read(&mut polled, 1, B, false), 2);
        assert_eq!(all(&polled), [(A, false), (B, true)]);
        assert_eq!(read(&mut polled, 1, B, true), 1);
        assert_eq!(all(&polled), [(A, false)]);
    }

    #[test]
    fn round_continues_after_a_pipe_is_removed() {
        let mut polled = PolledPipes::default();
        for id in [A, B] {
            polled.leave_unfinished(id);
        }
        polled.forget(A);
        assert_eq!(read(&mut polled, 0, A, true), 0);
        assert_eq!(all(&polled), [(B, true)]);
        polled.forget(B);
        assert_eq!(read(&mut polled, 0, B, true), 0);
        assert!(polled.is_empty());
    }
}
