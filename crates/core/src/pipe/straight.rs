//! The straight way: messages that go to one pipe, or come from one, with nothing for the pattern
//! to decide.
//!
//! Most sockets have one peer. A pattern that has just sent or received something can say that what
//! comes next goes the same way, if it is the last part of a message; the socket then takes it
//! there without asking. That holds until anything else happens: a pipe comes or goes, news or an
//! option come in, a part with more to follow, or one that the pipe has no room for. Then the
//! pattern is asked again. Any other call of a pattern that changes where messages go must call
//! `ask_where_to`. What a pattern must know of a message that ends this way therefore stands here:
//! whether one has been begun, and where it goes.

use super::names::{Found, Key};
use super::{Else, Part, Pipe, PipeId, Pipes, Received, Target};
use crate::ablation::{Rule, without};
use crate::error::NoMemory;
use crate::message::Message;
use crate::queue::COPIED;

/// The name of no pipe.
const NOBODY: PipeId = PipeId(u32::MAX);
/// Where parts go that are dropped.
const NOWHERE: PipeId = PipeId(u32::MAX - 1);

/// The number of no broadcast.
const NO_BROADCAST: u32 = u32::MAX;

/// The pipes that are sent to and received from straight.
pub(super) struct Straight {
    out: PipeId,
    /// The broadcast that messages of one part go to, if there is no such pipe.
    broadcast: u32,
    incoming: PipeId,
    /// The destination of a message of which some parts were sent.
    begun: PipeId,
    /// The pipe of the peer with this name, which its key tells from all others.
    addressed: PipeId,
    name: Key,
    /// A message that begins with the expected name goes to its pipe.
    as_expected: bool,
    /// Before a message of this pipe comes the name of its peer.
    introduced: PipeId,
    /// What the pipe that is sent to has to say comes first.
    listens: bool,
}

impl Default for Straight {
    fn default() -> Self {
        Straight {
            out: NOBODY,
            broadcast: NO_BROADCAST,
            incoming: NOBODY,
            begun: NOBODY,
            addressed: NOBODY,
            name: Key::NONE,
            as_expected: false,
            introduced: NOBODY,
            listens: false,
        }
    }
}

impl Pipes {
    /// For a pattern that is sending: the next part goes to this pipe and nowhere else, if it is
    /// the last one of its message, there certainly is room, and there is nothing to do for it but
    /// to send it.
    #[inline]
    pub(crate) fn send_straight_to(&mut self, pipe: Option<PipeId>) {
        self.straight.out = pipe.unwrap_or(NOBODY);
        self.straight.listens = false;
    }

    /// The same, unless something has come from this pipe.
    #[inline]
    pub(crate) fn send_straight_while_silent(&mut self, pipe: PipeId) {
        self.straight.out = pipe;
        self.straight.listens = true;
    }

    /// For a pattern that is sending: the next message goes to this broadcast and nowhere else, if
    /// it is a short one of one part and all members certainly have room.
    #[inline]
    pub(crate) fn publish_straight_to(&mut self, broadcast: u32) {
        self.straight.broadcast = if without(Rule::Straight) { NO_BROADCAST } else { broadcast };
    }

    /// For a pattern that is receiving: the next part is the next one of this pipe, if one is
    /// there, it is the last one of its message, and no news have come of another pipe; and there
    /// is nothing to do for it but to receive it.
    #[inline]
    pub(crate) fn receive_straight_from(&mut self, pipe: Option<PipeId>) {
        self.straight.incoming = pipe.filter(|_| !without(Rule::Straight)).unwrap_or(NOBODY);
    }

    /// For a pattern that is sending a message to the peer of this name, again: this is its pipe. A
    /// message that begins with the same name goes there, too, if there certainly is room.
    #[inline]
    pub(crate) fn address_straight(&mut self, name: &[u8], pipe: PipeId) {
        self.address_by_key(Key::of(name), pipe);
    }

    #[inline]
    fn address_by_key(&mut self, name: Key, pipe: PipeId) {
        if name.is_whole() {
            self.straight.name = name;
            self.straight.addressed = pipe;
        }
    }

    /// For a pattern that is sending a message to a peer by name: the next one begins with the name
    /// of one, too, and goes there, if the name is the expected one and there certainly is room.
    #[inline]
    pub(crate) fn begin_as_expected(&mut self) {
        self.straight.as_expected = true;
    }

    /// For a pattern that has just delivered the name of this pipe's peer, and will do so before
    /// each message of it: also before the next one, if one is at hand and no news have come.
    #[inline]
    pub(crate) fn introduce_straight(&mut self, pipe: Option<PipeId>) {
        self.straight.introduced = pipe.filter(|_| !without(Rule::Straight)).unwrap_or(NOBODY);
    }

    /// The pattern must be asked what the next part to be sent means.
    #[inline(always)]
    pub(crate) fn ask_where_to(&mut self) {
        self.straight.out = NOBODY;
        self.straight.broadcast = NO_BROADCAST;
    }

    /// The pattern must be asked for the next part to be received.
    #[inline(always)]
    pub(crate) fn ask_where_from(&mut self) {
        self.straight.incoming = NOBODY;
    }

    /// The pattern must be asked in any case.
    pub(crate) fn ask(&mut self) {
        self.ask_where_to();
        self.ask_where_from();
        self.straight.addressed = NOBODY;
        self.straight.as_expected = false;
        self.straight.introduced = NOBODY;
    }

    /// A message has been begun whose other parts go to this pipe; `None`: they are dropped.
    #[inline]
    pub(crate) fn begin(&mut self, to: Option<PipeId>) {
        self.straight.begun = to.unwrap_or(NOWHERE);
    }

    /// Where the other parts of the begun message go, if one has been begun.
    #[inline]
    pub(crate) fn begun(&self) -> Option<Option<PipeId>> {
        match self.straight.begun {
            NOBODY => None,
            NOWHERE => Some(None),
            id => Some(Some(id)),
        }
    }

    /// The begun message has come to its end.
    #[inline]
    pub(crate) fn finish(&mut self) {
        self.straight.begun = NOBODY;
    }

    /// The pipe that the last part of a message goes to, if the pattern need not be asked and there
    /// is room.
    #[inline(always)]
    fn straight_out(&mut self) -> Option<&mut Pipe> {
        let pipe = self.slots.get_mut(self.straight.out.0 as usize)?.as_mut()?;
        (!without(Rule::Straight) && pipe.has_room(Else::Ask) && !(self.straight.listens && pipe.sees_more()))
            .then_some(pipe)
    }

    /// Something was sent straight.
    #[inline(always)]
    fn sent_straight(&mut self) {
        if self.straight.begun != NOBODY {
            self.finish();
            self.ask_where_to();
        }
    }

    /// Begins a message with a name, if the pattern need not be asked which peer has it.
    #[inline(always)]
    pub(crate) fn begin_straight(&mut self, name: &[u8]) -> bool {
        let Straight { addressed, begun, as_expected, .. } = self.straight;
        if begun != NOBODY || without(Rule::Straight) {
            return false;
        }
        let key = Key::of(name);
        if key == self.straight.name
            && let Some(Some(pipe)) = self.slots.get_mut(addressed.0 as usize)
            && pipe.has_room(Else::Ask)
        {
            self.begin(Some(addressed));
            self.send_straight_to(Some(addressed));
            return true;
        }
        as_expected && self.begin_expected(key, name)
    }

    /// The same, if the name is the expected one. Apart, so that it costs the others no registers.
    #[inline(never)]
    fn begin_expected(&mut self, key: Key, name: &[u8]) -> bool {
        let Some(Found { pipe: id, again }) = self.find_by_key(key, name) else { return false };
        let Some(pipe) = self.get(id) else { return false };
        if !pipe.has_room(Else::Ask) {
            return false;
        }
        if again {
            self.address_by_key(key, id);
        }
        self.begin(Some(id));
        self.send_straight_to(Some(id));
        true
    }

    /// Sends the last part of a message, not a long one, if the pattern need not be asked and there
    /// is room.
    #[inline(always)]
    pub(crate) fn send_straight_at_once(&mut self, bytes: &[u8], patient: bool) -> bool {
        let sent = match self.straight_out() {
            Some(pipe) => pipe.send_at_once(bytes, patient),
            None => {
                let broadcast = self.straight.broadcast;
                return broadcast != NO_BROADCAST && self.publish_at_once(broadcast, bytes);
            }
        };
        if sent {
            self.sent_straight();
        }
        sent
    }

    /// The same for one that goes by reference to an inproc peer.
    #[inline(always)]
    pub(crate) fn send_straight_owned(&mut self, message: &mut Message, patient: bool) -> bool {
        let sent = match self.straight_out() {
            Some(pipe) => pipe.send_owned_at_once(message, patient),
            None => {
                let (broadcast, bytes) = (self.straight.broadcast, message.shorter_than(COPIED));
                return broadcast != NO_BROADCAST
                    && bytes.is_some_and(|bytes| self.publish_at_once(broadcast, bytes));
            }
        };
        if sent {
            self.sent_straight();
        }
        sent
    }

    /// The same for any part.
    pub(crate) fn send_straight(&mut self, part: &mut Part<'_>) -> Result<bool, NoMemory> {
        if part.more {
            return Ok(false);
        }
        let Some(pipe) = self.straight_out() else { return Ok(false) };
        pipe.send(part)?;
        self.sent_straight();
        Ok(true)
    }

    /// Receives the last part of a message by `take`, if the pattern need not be asked and the part
    /// is at hand; its length.
    #[inline(always)]
    pub(crate) fn receive_straight(
        &mut self,
        take: impl FnOnce(&mut Pipe) -> Option<usize>,
    ) -> Option<usize> {
        let pipe = self.slots.get_mut(self.straight.incoming.0 as usize)?.as_mut()?;
        let len = take(pipe)?;
        if self.receiving {
            self.receiving = false;
            self.ask_where_from();
        }
        Some(len)
    }

    /// Receives the name that comes before a message, if the pattern need not be asked and the
    /// message is at hand, and there is memory for it.
    #[inline]
    pub(crate) fn receive_name(&mut self, target: &mut Target<'_>) -> Option<Received> {
        let introduced = self.straight.introduced;
        let pipe = self.slots.get(introduced.0 as usize)?.as_ref()?;
        if self.receiving || !pipe.incoming.has_more() {
            return None;
        }
        let received = pipe.peer.introduce(&pipe.peer.routing_id, target).ok()?;
        self.receiving = true;
        self.straight.incoming = introduced;
        Some(received)
    }
}
