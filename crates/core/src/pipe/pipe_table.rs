//! The pipes of a socket by number. While a tool taps the socket, the last accessed pipe is
//! recorded: the peer of a message.
//!
//! Recording has no other cost. While it is on, the pipes are stored in another vector. An access
//! does not find the pipe in the usual vector and takes a separate path.

use super::{Pipe, PipeId};
use std::mem;

/// The pipes by number. The entry of a removed pipe is empty.
#[derive(Default)]
pub(super) struct PipeTable {
    /// All pipes. Empty while accesses are recorded.
    usual: Vec<Option<Pipe>>,
    recording: Option<Box<RecordedPipes>>,
}

/// The pipes while accesses are recorded.
struct RecordedPipes {
    pipes: Vec<Option<Pipe>>,
    last: Option<PipeId>,
}

impl PipeTable {
    /// Returns the pipe of this number, if it exists. Records the access if recording is on.
    #[inline]
    pub(super) fn get(&mut self, id: PipeId) -> Option<&mut Pipe> {
        match self.usual.get_mut(id.0 as usize) {
            Some(slot) => slot.as_mut(),
            None => get_recorded(&mut self.recording, id),
        }
    }

    /// Returns the pipe of this number, if it exists. While accesses are recorded, always returns
    /// `None`.
    #[inline(always)]
    pub(super) fn get_unrecorded(&mut self, id: PipeId) -> Option<&mut Pipe> {
        self.usual.get_mut(id.0 as usize)?.as_mut()
    }

    /// Returns the entry of this number, if there is one. Does not record the access.
    #[inline]
    pub(super) fn entry(&self, id: PipeId) -> Option<&Option<Pipe>> {
        match self.usual.get(id.0 as usize) {
            Some(slot) => Some(slot),
            None => recorded_entry(self.recording.as_deref(), id),
        }
    }

    /// Returns all entries. Does not record the access.
    pub(super) fn all(&self) -> &[Option<Pipe>] {
        self.recording.as_ref().map_or(&self.usual, |noted| &noted.pipes)
    }

    /// Returns all entries, to change them. Does not record the access.
    pub(super) fn all_mut(&mut self) -> &mut Vec<Option<Pipe>> {
        self.recording.as_mut().map_or(&mut self.usual, |noted| &mut noted.pipes)
    }

    /// Switches the recording of accesses on or off.
    pub(super) fn set_recording(&mut self, is_noted: bool) {
        match (is_noted, self.recording.take()) {
            (true, None) => {
                let pipes = mem::take(&mut self.usual);
                self.recording = Some(Box::new(RecordedPipes { pipes, last: None }));
            }
            (true, noted) => self.recording = noted,
            (false, Some(noted)) => self.usual = noted.pipes,
            (false, None) => {}
        }
    }

    /// Returns, once, the last number that [`PipeTable::get`] was called with. `None` if accesses
    /// are not recorded.
    pub(super) fn take_last(&mut self) -> Option<PipeId> {
        self.recording.as_mut()?.last.take()
    }
}

#[cold]
#[inline(never)]
fn get_recorded(noted: &mut Option<Box<RecordedPipes>>, id: PipeId) -> Option<&mut Pipe> {
    let noted = noted.as_mut()?;
    noted.last = Some(id);
    noted.pipes.get_mut(id.0 as usize)?.as_mut()
}

#[cold]
#[inline(never)]
fn recorded_entry(noted: Option<&RecordedPipes>, id: PipeId) -> Option<&Option<Pipe>> {
    noted?.pipes.get(id.0 as usize)
}
