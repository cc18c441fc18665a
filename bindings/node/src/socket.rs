//! One socket, as JavaScript calls it. Results are numbers: a negative errno, or a value that the method describes.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ptr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use napi::bindgen_prelude::Buffer;
use napi::{Env, Error as JsError, JsValue, Status, Unknown, sys};
use napi_derive::napi;
use tautline_core::{self as core, Error, Flags, Message, SocketType};

use crate::context::NativeContext;
use crate::errors::{code, outcome};
use crate::readiness::WaitingSocket;
use crate::runtime::{Environment, Runtime};
use crate::typed_arrays;

/// Flag in the table of a batch: the part is not in the chunk; `take_large_part` returns it.
const LARGE: u32 = 1 << 30;
/// Flag in the table of a batch: more parts of the same message follow.
const MORE: u32 = 1 << 31;
/// Result of a send: the part is a buffer of `loan`, and was sent without a copy. `end_loan` must follow.
const LENT: i32 = 1;
/// Longer parts get separate memory, so that a kept part does not keep a whole chunk.
const SMALL_MAX: usize = 4096;
/// A batch ends after the message whose large parts bring their total to this many bytes. The total may exceed it by that message.
const LARGE_BYTES: usize = 256 * 1024;
/// ZMQ_CONFLATE. Only the newest message counts, so the binding takes a message only when the program asks for it.
const CONFLATE: i32 = 54;
/// ZMQ_EVENTS. Reading it consumes events that a wait may need.
const EVENTS: i32 = 15;
/// ZMQ_TAUTLINE_LOANS.
const LOANS: i32 = 0x5441_0011;

/// The native object behind a JavaScript socket.
#[napi]
pub struct NativeSocket(Rc<SocketInner>);

pub(crate) struct SocketInner {
    pub(crate) watched: Rc<WaitingSocket>,
    shared: Rc<Environment>,
    /// Number of the socket in the runtime.
    number: u32,
    /// True if the socket sent a message in this turn of the loop.
    has_sent: Cell<bool>,
    closed: Cell<bool>,
    /// Large parts of the last batch that JavaScript has not taken yet.
    large: RefCell<VecDeque<Message>>,
    /// Routing id of the peer that sent the last received message, for SERVER and PEER.
    routing_id: Cell<u32>,
    /// Group of the last received message, for DISH.
    group: RefCell<Vec<u8>>,
    /// True if a batch has only one message.
    no_batching: Cell<bool>,
}

/// True for types that receive one message between two sends, and for types whose messages have a routing id or a group.
fn has_no_batching(socket_type: SocketType) -> bool {
    use SocketType::{Dish, Peer, Rep, Req, Server};
    matches!(socket_type, Req | Rep | Server | Dish | Peer)
}

#[napi]
impl NativeSocket {
    /// Creates a socket. `peer` is the JavaScript socket that the runtime passes to its function.
    #[napi(constructor)]
    pub fn new(
        env: Env,
        runtime: &Runtime,
        context: &NativeContext,
        socket_type: u8,
        peer: Unknown<'_>,
    ) -> napi::Result<Self> {
        let known = SocketType::from_code(socket_type).ok_or(Error::Invalid);
        let made = known.and_then(|known| {
            let mut socket = context.0.socket(known)?;
            // The runtime reads a buffer twice to decode it, so it must not change.
            socket.set_option(LOANS, &0_i32.to_ne_bytes())?;
            Ok(socket)
        });
        // The text is the errno, from which `lib/` creates the exception.
        let socket = made.map_err(|error| JsError::new(Status::GenericFailure, code(error).to_string()))?;
        let one_by_one = has_no_batching(socket.socket_type());
        let mut reference = ptr::null_mut();
        // SAFETY: a value of this environment, and a place to write to. The count 0 makes the reference weak.
        let status = unsafe { sys::napi_create_reference(env.raw(), peer.raw(), 0, &mut reference) };
        if status != sys::Status::napi_ok {
            return Err(JsError::from_status(Status::from(status)));
        }
        let shared = runtime.0.clone();
        let watched = WaitingSocket::new(shared.clone(), socket, reference);
        Ok(NativeSocket(runtime.0.register_socket(|number| {
            Rc::new(SocketInner {
                watched,
                shared,
                number,
                has_sent: Cell::new(false),
                closed: Cell::new(false),
                large: RefCell::default(),
                routing_id: Cell::new(0),
                group: RefCell::default(),
                no_batching: Cell::new(one_by_one),
            })
        })))
    }

    /// Returns the number by which the runtime's calls name the socket.
    #[napi(getter, catch_unwind)]
    pub fn number(&self) -> u32 {
        self.0.number
    }

    /// Sends a part with a routing id (SERVER, PEER) or a group (RADIO). Returns 0, `LENT` or an error.
    #[napi(catch_unwind)]
    pub fn send_addressed(&self, env: Env, part: Unknown<'_>, routing_id: u32, group: Unknown<'_>) -> i32 {
        let (Some(part), Some(group)) =
            (typed_arrays::bytes(env.raw(), part.raw()), typed_arrays::bytes(env.raw(), group.raw()))
        else {
            return code(Error::Fault);
        };
        let lent = self.0.shared.loans.message(part);
        let sent = if lent.is_some() { LENT } else { 0 };
        let mut message = lent.unwrap_or_else(|| Message::from_slice(part));
        message.set_routing_id(routing_id);
        if !message.set_group(group) {
            return code(Error::Invalid);
        }
        let result = self.0.watched.with_socket(|socket| socket.send_message(&mut message, Flags::DONTWAIT));
        result.map_or_else(code, |()| sent)
    }

    /// Returns the length of the next large part.
    #[napi(catch_unwind)]
    pub fn large_part_length(&self) -> f64 {
        self.0.large.borrow().front().map_or(0, Message::len) as f64
    }

    /// Copies the next large part, whose length must be that of `room`. Returns 0 or an error.
    #[napi(catch_unwind)]
    pub fn take_large_part(&self, env: Env, room: Unknown<'_>) -> i32 {
        let Some(room) = typed_arrays::bytes_mut(env.raw(), room.raw()) else { return code(Error::Fault) };
        let Some(message) = self.0.large.borrow_mut().pop_front() else { return code(Error::Fault) };
        if room.len() != message.len() {
            return code(Error::MessageSize);
        }
        room.copy_from_slice(message.as_slice());
        0
    }

    /// Returns the routing id of the last message, if the socket receives one by one.
    #[napi(catch_unwind)]
    pub fn last_routing_id(&self) -> u32 {
        self.0.routing_id.get()
    }

    #[napi(catch_unwind)]
    pub fn last_group(&self) -> Buffer {
        Buffer::from(self.0.group.borrow().as_slice())
    }

    #[napi(catch_unwind)]
    pub fn bind(&self, endpoint: String) -> i32 {
        outcome(self.0.watched.with_socket(|socket| socket.bind(&endpoint)))
    }

    #[napi(catch_unwind)]
    pub fn unbind(&self, endpoint: String) -> i32 {
        outcome(self.0.watched.with_socket(|socket| socket.unbind(&endpoint)))
    }

    #[napi(catch_unwind)]
    pub fn connect(&self, endpoint: String) -> i32 {
        outcome(self.0.watched.with_socket(|socket| socket.connect(&endpoint)))
    }

    #[napi(catch_unwind)]
    pub fn disconnect(&self, endpoint: String) -> i32 {
        outcome(self.0.watched.with_socket(|socket| socket.disconnect(&endpoint)))
    }

    #[napi(catch_unwind)]
    pub fn join(&self, env: Env, group: Unknown<'_>, on: bool) -> i32 {
        let Some(group) = typed_arrays::bytes(env.raw(), group.raw()) else { return code(Error::Fault) };
        outcome(
            self.0.watched.with_socket(|socket| if on { socket.join(group) } else { socket.leave(group) }),
        )
    }

    /// Sets an option from its bytes.
    #[napi(catch_unwind)]
    pub fn set_option(&self, env: Env, number: i32, value: Unknown<'_>) -> i32 {
        let Some(value) = typed_arrays::bytes(env.raw(), value.raw()) else { return code(Error::Fault) };
        if number == CONFLATE {
            self.0.no_batching.set(true);
        }
        outcome(self.0.watched.with_socket(|socket| socket.set_option(number, value)))
    }

    /// Sets an option to its empty value.
    #[napi(catch_unwind)]
    pub fn clear_option(&self, number: i32) -> i32 {
        outcome(self.0.watched.with_socket(|socket| socket.set_option_null(number)))
    }

    /// Returns a sentence that names an option and the reason for its refusal. Empty if the reason is unknown, as for a closed socket.
    #[napi(catch_unwind)]
    pub fn option_error(&self, env: Env, number: i32, value: Unknown<'_>) -> String {
        let value = typed_arrays::bytes(env.raw(), value.raw()).unwrap_or_default();
        let fault =
            self.0.watched.with_socket(|socket| Ok(core::option_fault(socket.socket_type(), number, value)));
        fault.unwrap_or_default()
    }

    /// Returns the reason why an option could not be read into a buffer of this size.
    #[napi(catch_unwind)]
    pub fn option_read_error(&self, number: i32, size: u32) -> String {
        core::option_read_fault(number, usize::try_from(size).unwrap_or(usize::MAX))
    }

    /// Reads an option into `room`. Returns its length or an error.
    #[napi(catch_unwind)]
    pub fn get_option(&self, env: Env, number: i32, room: Unknown<'_>) -> i32 {
        let Some(room) = typed_arrays::bytes_mut(env.raw(), room.raw()) else { return code(Error::Fault) };
        let read = self.0.watched.with_socket(|socket| socket.option(number, room));
        if number == EVENTS {
            self.0.watched.poll_again_soon();
        }
        read.map_or_else(code, |len| i32::try_from(len).unwrap_or(i32::MAX))
    }

    /// Sends the events of this socket's connections to the PAIR that connects to `endpoint`.
    #[napi(catch_unwind)]
    pub fn monitor(&self, endpoint: String, events: u32) -> i32 {
        outcome(
            self.0
                .watched
                .with_socket(|socket| socket.monitor(Some(&endpoint), events.into(), 3, SocketType::Pair)),
        )
    }

    /// Returns 0 if at least `count` peers are connected. EAGAIN if not yet, or another error.
    #[napi(catch_unwind)]
    pub fn has_peers(&self, count: u32) -> i32 {
        self.query(|socket, deadline| socket.wait_for_peers(count as usize, deadline))
    }

    /// Returns 0 if at least `count` topics have subscriptions. EAGAIN if not yet, or another error.
    #[napi(catch_unwind)]
    pub fn has_subscriptions(&self, count: u32) -> i32 {
        self.query(|socket, deadline| socket.wait_for_subscriptions(count as usize, deadline))
    }

    /// Marks the socket as the control of a proxy: if this thread ends first, the socket sends TERMINATE.
    #[napi(catch_unwind)]
    pub fn end_proxy_at_exit(&self) {
        self.0.watched.set_final_message(b"TERMINATE");
    }

    #[napi(catch_unwind)]
    pub fn close(&self) {
        self.0.close();
    }

    /// Calls `wait` with a deadline that is long enough to check the connections once.
    fn query(&self, wait: impl FnOnce(&mut core::Socket, Option<Instant>) -> Result<(), Error>) -> i32 {
        let deadline = Some(Instant::now() + Duration::from_micros(10));
        let result = self.0.watched.with_socket(|socket| wait(socket, deadline));
        self.0.watched.poll_again_soon();
        outcome(result)
    }

    pub(crate) fn take(&self) -> Option<core::Socket> {
        self.0.watched.take()
    }

    pub(crate) fn put_back(&self, socket: core::Socket) {
        self.0.watched.put_back(socket);
    }
}

impl SocketInner {
    /// Sends a part. Returns 0, `LENT` or an error.
    pub(crate) fn send(self: &Rc<Self>, part: &[u8], more: bool) -> i32 {
        let flags = if more { Flags(Flags::DONTWAIT.0 | Flags::MORE.0) } else { Flags::DONTWAIT };
        let sent = match self.shared.loans.message(part) {
            None => self.watched.with_socket(|socket| socket.send(part, flags)).map(|()| 0),
            Some(mut body) => {
                self.watched.with_socket(|socket| socket.send_message(&mut body, flags)).map(|()| LENT)
            }
        };
        if !self.has_sent.replace(true) {
            self.shared.flush_at_turn_end(self);
        }
        sent.unwrap_or_else(code)
    }

    /// Flushes the socket at the end of the turn.
    pub(crate) fn flush(&self) {
        self.has_sent.set(false);
        // If the socket was closed in this turn, closing has flushed it.
        let _ = self.watched.with_socket(|socket| {
            socket.flush();
            Ok(())
        });
    }

    /// Receives a batch of the queued parts, and packs small parts into `room`. The first word of `table` is the number of bytes used in
    /// `room`. Each further word has the length and flags of a part. Returns the number of parts, or an error if no part was received.
    /// The last parts of a message may come with the next batch.
    pub(crate) fn receive(&self, room: &mut [u8], table: &mut [u32]) -> i32 {
        let Some((used, table)) = table.split_first_mut() else { return code(Error::Fault) };
        *used = 0;
        self.watched.with_socket(|socket| Ok(self.fill(socket, room, used, table))).unwrap_or_else(code)
    }

    fn fill(&self, socket: &mut core::Socket, mut room: &mut [u8], used: &mut u32, table: &mut [u32]) -> i32 {
        let mut large = 0;
        let mut count = 0;
        for entry in table {
            let mut message = Message::new();
            match socket.recv_message(&mut message, Flags::DONTWAIT) {
                Ok(_) => {}
                // The next call reports the error.
                Err(_) if count > 0 => break,
                Err(error) => return code(error),
            }
            count += 1;
            let more = message.more();
            let body = message.as_slice();
            *entry = if more { MORE } else { 0 };
            if body.len() <= SMALL_MAX && body.len() <= room.len() {
                *entry |= body.len() as u32;
                *used += body.len() as u32;
                let (place, rest) = std::mem::take(&mut room).split_at_mut(body.len());
                place.copy_from_slice(body);
                room = rest;
            } else {
                *entry |= LARGE;
                large += body.len();
            }
            if self.no_batching.get() && !more {
                self.routing_id.set(message.routing_id());
                *self.group.borrow_mut() = message.group().to_bytes().to_vec();
            }
            if *entry & LARGE != 0 {
                self.large.borrow_mut().push_back(message);
            }
            if !more && (self.no_batching.get() || room.len() < SMALL_MAX || large >= LARGE_BYTES) {
                break;
            }
        }
        count
    }

    pub(crate) fn close(&self) {
        self.watched.close();
        // Only once, because a new socket may have the number later.
        if !self.closed.replace(true) {
            self.shared.unregister_socket(self.number);
        }
    }
}

/// The garbage collector has collected the socket, or the environment ends.
impl Drop for NativeSocket {
    fn drop(&mut self) {
        self.0.close();
    }
}
