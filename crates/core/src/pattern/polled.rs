//! The pipes that PUB, XPUB and RADIO look at in every call: those that do not announce what they get (inproc), and those that were not
//! read to the end, because a message to be sent had its turn.

use crate::pipe::PipeId;

#[derive(Debug)]
struct Entry {
    id: PipeId,
    /// It announces what it gets: it need not be looked at once it was read to the end.
    announces: bool,
    /// It was not read to the end. Its peer may wait to hear that it was, so it must be read even if it looks empty.
    unfinished: bool,
}

/// The list of them. A round over it goes by index, as what is read may take pipes out.
#[derive(Debug, Default)]
pub(super) struct Polled {
    entries: Vec<Entry>,
}

impl Polled {
    /// Whether there is nothing to look at.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// A pipe that does not announce what it gets.
    pub(super) fn watch(&mut self, id: PipeId) {
        self.entries.push(Entry { id, announces: false, unfinished: false });
    }

    /// The pipe was not read to the end.
    pub(super) fn leave_unfinished(&mut self, id: PipeId) {
        match self.entries.iter_mut().find(|entry| entry.id == id) {
            Some(entry) => entry.unfinished = true,
            None => self.entries.push(Entry { id, announces: true, unfinished: true }),
        }
    }

    /// The pipe is gone.
    pub(super) fn forget(&mut self, id: PipeId) {
        self.entries.retain(|entry| entry.id != id);
    }

    /// The pipe at this place, and whether it is unfinished; `None` at the end of the round.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<(PipeId, bool)> {
        self.entries.get(index).map(|entry| (entry.id, entry.unfinished))
    }

    /// The pipe at this place was looked at, and maybe read to the end. Returns where the round goes on.
    #[inline]
    pub(super) fn looked_at(&mut self, index: usize, id: PipeId, finished: bool) -> usize {
        let Some(entry) = self.entries.get_mut(index).filter(|entry| entry.id == id) else {
            // It was taken out: what came after it stands in its place.
            return index;
        };
        entry.unfinished = !finished;
        if finished && entry.announces {
            self.entries.swap_remove(index);
            return index;
        }
        index + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PipeId = PipeId(3);
    const B: PipeId = PipeId(1);

    fn all(polled: &Polled) -> Vec<(PipeId, bool)> {
        (0..).map_while(|index| polled.get(index)).collect()
    }

    #[test]
    fn who_announces_is_listed_until_it_was_read_to_the_end() {
        let mut polled = Polled::default();
        polled.watch(A);
        polled.leave_unfinished(B);
        polled.leave_unfinished(A);
        assert_eq!(all(&polled), [(A, true), (B, true)]);
        assert_eq!(polled.looked_at(0, A, true), 1);
        assert_eq!(polled.looked_at(1, B, false), 2);
        assert_eq!(all(&polled), [(A, false), (B, true)]);
        assert_eq!(polled.looked_at(1, B, true), 1);
        assert_eq!(all(&polled), [(A, false)]);
    }

    #[test]
    fn a_round_goes_on_where_a_pipe_was_taken_out() {
        let mut polled = Polled::default();
        for id in [A, B] {
            polled.leave_unfinished(id);
        }
        polled.forget(A);
        assert_eq!(polled.looked_at(0, A, true), 0);
        assert_eq!(all(&polled), [(B, true)]);
        polled.forget(B);
        assert_eq!(polled.looked_at(0, B, true), 0);
        assert!(polled.is_empty());
    }
}
