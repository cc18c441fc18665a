//! The pipes of a socket by number. While a tool taps the socket, it is noted which of them was
//! looked at last: the peer of a message.
//!
//! The note costs nothing else: while it is taken the pipes lie apart, so that a look finds no pipe
//! where they usually lie and takes a path of its own.

use super::{Pipe, PipeId};
use std::mem;

/// The pipes by number. A number whose pipe is gone stands empty.
#[derive(Default)]
pub(super) struct Slots {
    /// All of them, or none while looks are noted.
    usual: Vec<Option<Pipe>>,
    noted: Option<Box<Noted>>,
}

/// The pipes while looks are noted.
struct Noted {
    pipes: Vec<Option<Pipe>>,
    last: Option<PipeId>,
}

impl Slots {
    /// The pipe of this number, if it is there. The look is noted, if looks are.
    #[inline]
    pub(super) fn get(&mut self, id: PipeId) -> Option<&mut Pipe> {
        match self.usual.get_mut(id.0 as usize) {
            Some(slot) => slot.as_mut(),
            None => look(&mut self.noted, id),
        }
    }

    /// The same, unless looks are noted: then there is none.
    #[inline(always)]
    pub(super) fn get_unnoted(&mut self, id: PipeId) -> Option<&mut Pipe> {
        self.usual.get_mut(id.0 as usize)?.as_mut()
    }

    /// The place of this number, if there is one. No look is noted.
    #[inline]
    pub(super) fn place(&self, id: PipeId) -> Option<&Option<Pipe>> {
        match self.usual.get(id.0 as usize) {
            Some(slot) => Some(slot),
            None => place(self.noted.as_deref(), id),
        }
    }

    /// All places. No look is noted.
    pub(super) fn all(&self) -> &[Option<Pipe>] {
        self.noted.as_ref().map_or(&self.usual, |noted| &noted.pipes)
    }

    /// The same, to be changed.
    pub(super) fn all_mut(&mut self) -> &mut Vec<Option<Pipe>> {
        self.noted.as_mut().map_or(&mut self.usual, |noted| &mut noted.pipes)
    }

    /// From now on looks are noted, or not any more.
    pub(super) fn set_noted(&mut self, is_noted: bool) {
        match (is_noted, self.noted.take()) {
            (true, None) => {
                let pipes = mem::take(&mut self.usual);
                self.noted = Some(Box::new(Noted { pipes, last: None }));
            }
            (true, noted) => self.noted = noted,
            (false, Some(noted)) => self.usual = noted.pipes,
            (false, None) => {}
        }
    }

    /// The number that [`Slots::get`] was called with last, once; `None` if looks are not noted.
    pub(super) fn take_last(&mut self) -> Option<PipeId> {
        self.noted.as_mut()?.last.take()
    }
}

#[cold]
#[inline(never)]
fn look(noted: &mut Option<Box<Noted>>, id: PipeId) -> Option<&mut Pipe> {
    let noted = noted.as_mut()?;
    noted.last = Some(id);
    noted.pipes.get_mut(id.0 as usize)?.as_mut()
}

#[cold]
#[inline(never)]
fn place(noted: Option<&Noted>, id: PipeId) -> Option<&Option<Pipe>> {
    noted?.pipes.get(id.0 as usize)
}
