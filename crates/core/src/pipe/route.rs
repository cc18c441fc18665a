//! Routes: they say where messages go, or come from, without a decision of the pattern.
//!
//! Most sockets have one peer, and most messages go to the same peer as the message before. So a
//! pattern that has sent or received a part returns a [`Route`], which holds for the parts after
//! it. The socket keeps the route in its [`Routes`] and follows it, in one function and without the
//! pattern. The pattern has no access to the kept routes. `pattern::Routed` has the rules by which
//! a route ends.
//!
//! A route says where a part goes, not whether it can go there. The pattern is still asked about a
//! part with more parts to follow, about a part without room in its pipe or that is not available,
//! and when the pipe is gone.

use super::address_cache::IdKey;
use super::{Delivered, OnFull, Part, Pipe, PipeId, Pipes, Target};
use crate::error::NoMemory;
use tautline_queue::COPIED;
use tautline_queue::message::Message;
use tautline_timing::rules::{Rule, is_disabled};

/// The next part is the peer's name and not the message. Used only with `NAMED`.
const NAME: u32 = 1 << 31;
/// The number in the route is the number of a broadcast and not of a pipe.
const BROADCAST: u32 = 1 << 30;
/// A name comes before each message.
const NAMED: u32 = 1 << 29;
/// Input from the target pipe must be handled before the next message is sent.
const UNTIL_INPUT: u32 = 1 << 28;
/// Number of a missing pipe: there are never that many pipes.
const NO_PIPE: u32 = UNTIL_INPUT - 1;

/// A pattern's decision about the parts after this one: a number, and its kind. In one word, so
/// that it is returned in a register, even as a `Result`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Route(u32);

impl Route {
    /// The pattern is asked about each part.
    pub(crate) const NONE: Route = Route(NO_PIPE);

    /// Returns a route to or from this pipe for messages of one part, which are passed unchanged,
    /// and for the last part of a begun message. `None`: the pattern is asked.
    #[inline]
    pub(crate) fn pipe(pipe: Option<PipeId>) -> Route {
        Route::with(0, pipe)
    }

    /// For sending: returns a route to this pipe that ends when the pipe has received messages.
    #[inline]
    pub(crate) fn pipe_until_input(pipe: PipeId) -> Route {
        Route::with(UNTIL_INPUT, Some(pipe))
    }

    /// For sending: each short message of one part goes to the members of this broadcast, if all of
    /// them certainly have room.
    #[inline]
    pub(crate) fn broadcast(number: u32) -> Route {
        Route::with(BROADCAST, Some(PipeId(number)))
    }

    /// For sending: each message begins with the name of its target peer, which is not sent (see
    /// `AddressCache`). The other parts of a begun message go to this pipe.
    #[inline]
    pub(crate) fn by_routing_id(begun: Option<PipeId>) -> Route {
        match begun {
            Some(pipe) => Route::with(NAMED, Some(pipe)),
            None => Route(NAMED | NAME | NO_PIPE),
        }
    }

    /// For receiving: all messages come from this pipe, and the name of its peer is delivered
    /// before each of them. If `begun` is set, the name was delivered and the message comes next.
    /// `None`: the pattern is asked.
    #[inline]
    pub(crate) fn with_routing_id(pipe: Option<PipeId>, begun: bool) -> Route {
        Route::with(if begun { NAMED } else { NAMED | NAME }, pipe)
    }

    #[inline]
    fn with(flag: u32, number: Option<PipeId>) -> Route {
        match number {
            Some(PipeId(number)) if number < NO_PIPE => Route(flag | number),
            _ => Route::NONE,
        }
    }

    /// Returns the pipe of the next part, if it is the last one of its message. If there is no such
    /// pipe, returns an unused id.
    #[inline]
    fn next(self) -> PipeId {
        PipeId(self.0 & (NAME | BROADCAST | NO_PIPE))
    }

    /// Returns the pipe whose peer's name comes before each message. If there is no such pipe,
    /// returns an unused id.
    #[inline]
    fn id_source(self) -> PipeId {
        PipeId((self.0 & !NAME).wrapping_sub(NAMED))
    }

    #[inline]
    fn number(self) -> u32 {
        self.0 & NO_PIPE
    }

    #[inline(always)]
    fn has(self, flags: u32) -> bool {
        self.0 & flags != 0
    }
}

/// The current routes of one socket.
#[derive(Debug)]
pub(crate) struct Routes {
    out: Route,
    /// Target of the next part if it is the last one of its message. An unused id if there is no
    /// such pipe, or if a name comes first.
    next_target: PipeId,
    incoming: Route,
    /// Source of the next part if it is the last one of its message. An unused id if there is no
    /// such pipe, or if a name comes first.
    next_source: PipeId,
}

impl Default for Routes {
    fn default() -> Self {
        Routes {
            out: Route::NONE,
            next_target: PipeId(NO_PIPE),
            incoming: Route::NONE,
            next_source: PipeId(NO_PIPE),
        }
    }
}

/// Keeping the routes.
impl Routes {
    /// Ends both routes: the pattern is asked about the next part in each direction.
    #[inline]
    pub(crate) fn end(&mut self) {
        *self = Routes::default();
    }

    /// Ends the route for sending: the pattern is asked about the next part.
    #[cold]
    pub(crate) fn end_out(&mut self) {
        self.keep_out(Route::NONE);
    }

    /// Ends the route for receiving: the pattern is asked for the next part.
    #[cold]
    pub(crate) fn end_incoming(&mut self) {
        self.keep_incoming(Route::NONE);
    }

    /// Keeps the route that the pattern returned after sending.
    #[inline]
    pub(crate) fn keep_out(&mut self, route: Route) {
        let route = if is_disabled(Rule::Routes) { Route::NONE } else { route };
        (self.out, self.next_target) = (route, route.next());
    }

    /// Keeps the route that the pattern returned after receiving.
    #[inline]
    pub(crate) fn keep_incoming(&mut self, route: Route) {
        let route = if is_disabled(Rule::Routes) { Route::NONE } else { route };
        (self.incoming, self.next_source) = (route, route.next());
    }
}

/// Following the routes. If a method returns false or `None`, the state is unchanged and the
/// pattern must be asked.
impl Routes {
    /// Begins a message with the name of its target peer.
    #[inline(always)]
    pub(crate) fn try_begin_addressed(&mut self, pipes: &mut Pipes, name: &[u8]) -> bool {
        if !self.out.has(NAMED) || pipes.address_cache.message_target().is_some() {
            return false;
        }
        let key = IdKey::of(name);
        if let Some(id) = pipes.find_repeated(key) {
            self.set_target(pipes, id);
            return true;
        }
        let Some(id) = pipes.find_predicted(key, name) else { return false };
        self.set_target(pipes, id);
        true
    }

    #[inline(always)]
    fn set_target(&mut self, pipes: &mut Pipes, to: PipeId) {
        pipes.address_cache.begin(Some(to));
        self.next_target = to;
    }

    /// Returns the pipe for the last part of a message, if there certainly is room.
    #[inline(always)]
    fn pipe_out<'a>(&self, pipes: &'a mut Pipes) -> Option<&'a mut Pipe> {
        let pipe = pipes.get(self.next_target)?;
        (pipe.outgoing.has_room(OnFull::SlowPath)
            && !(self.out.has(UNTIL_INPUT) && pipe.incoming.sees_more()))
        .then_some(pipe)
    }

    /// Called after the last part of a message was sent.
    #[inline(always)]
    fn record_send(&mut self, pipes: &mut Pipes) {
        if pipes.address_cache.message_target().is_some() {
            pipes.address_cache.finish();
            self.next_target = PipeId(NO_PIPE);
        }
    }

    #[inline(always)]
    fn publish(&self, pipes: &mut Pipes, bytes: &[u8]) -> bool {
        self.out.has(BROADCAST) && pipes.try_publish_fast(self.out.number(), bytes)
    }

    /// Sends the last part of a message, if it is not long.
    #[inline(always)]
    pub(crate) fn try_send_short(&mut self, pipes: &mut Pipes, bytes: &[u8], patient: bool) -> bool {
        let Some(pipe) = self.pipe_out(pipes) else { return self.publish(pipes, bytes) };
        if !pipe.try_send_short(bytes, patient) {
            return false;
        }
        self.record_send(pipes);
        true
    }

    /// Sends the last part of a message, if its body is short or can travel by reference to an
    /// inproc peer.
    #[inline(always)]
    pub(crate) fn send_owned(&mut self, pipes: &mut Pipes, message: &mut Message, patient: bool) -> bool {
        let Some(pipe) = self.pipe_out(pipes) else {
            return message.shorter_than(COPIED).is_some_and(|bytes| self.publish(pipes, bytes));
        };
        if !pipe.try_send_owned(message, patient) {
            return false;
        }
        self.record_send(pipes);
        true
    }

    /// Sends the last part of a message of any length.
    pub(crate) fn send(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<bool, NoMemory> {
        if part.more {
            return Ok(false);
        }
        let Some(pipe) = self.pipe_out(pipes) else { return Ok(false) };
        pipe.send(part)?;
        self.record_send(pipes);
        Ok(true)
    }

    /// Receives the last part of a message with `take`, if it is available. Returns its length.
    #[inline(always)]
    pub(crate) fn recv(
        &mut self,
        pipes: &mut Pipes,
        take: impl FnOnce(&mut Pipe) -> Option<usize>,
    ) -> Option<usize> {
        let pipe = pipes.get(self.next_source)?;
        let len = take(pipe)?;
        if pipes.receiving {
            pipes.receiving = false;
            // A name comes next, or the pattern is asked.
            self.next_source = PipeId(NO_PIPE);
        }
        Some(len)
    }

    /// Receives the name before a message, if the message is available and there is memory for the
    /// name.
    #[inline]
    pub(crate) fn recv_name(&mut self, pipes: &mut Pipes, target: &mut Target<'_>) -> Option<Delivered> {
        let id = self.incoming.id_source();
        let is_begun = pipes.receiving;
        let pipe = pipes.get(id)?;
        if is_begun || !pipe.incoming.has_more() {
            return None;
        }
        let received = pipe.peer.deliver_routing_id(&pipe.peer.routing_id, target).ok()?;
        pipes.receiving = true;
        self.next_source = id;
        Some(received)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn route_keeps_its_number() {
        for number in [0, 1, NO_PIPE - 1] {
            let pipe = Some(PipeId(number));
            for route in
                [Route::pipe(pipe), Route::pipe_until_input(PipeId(number)), Route::by_routing_id(pipe)]
            {
                assert_eq!(route.next(), PipeId(number));
            }
            assert_eq!(Route::with_routing_id(pipe, true).next(), PipeId(number));
            for begun in [false, true] {
                assert_eq!(Route::with_routing_id(pipe, begun).id_source(), PipeId(number));
            }
            assert!(Route::pipe(pipe).id_source().0 > NO_PIPE, "such a route has no name");
            for route in [Route::broadcast(number), Route::with_routing_id(pipe, false)] {
                assert_eq!(route.number(), number);
                assert!(route.next().0 > NO_PIPE, "the id belongs to no pipe");
            }
        }
        assert!(Route::by_routing_id(None).next().0 > NO_PIPE);
        for none in [Route::pipe(None), Route::with_routing_id(None, true), Route::broadcast(NO_PIPE)] {
            assert_eq!(none, Route::NONE);
        }
    }

    #[test]
    fn a_result_fits_into_a_register() {
        assert_eq!(size_of::<Result<Route, crate::error::Error>>(), 8);
    }
}
