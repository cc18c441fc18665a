//! One socket, as JavaScript calls it. Results are numbers: an errno, negative, or what the method says.

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
use crate::readiness::Watched;
use crate::runtime::{Runtime, Shared};
use crate::view;

/// In the table of a batch: the part is not in the chunk, `take_large` has it.
const LARGE: u32 = 1 << 30;
/// In the table of a batch: more parts of the same message follow.
const MORE: u32 = 1 << 31;
/// Parts beyond this length get memory of their own, so that keeping one does not keep a chunk for long.
const SMALL_MAX: usize = 4096;
/// A batch ends with so many bytes of large parts.
const LARGE_BYTES: usize = 256 * 1024;
/// Only the newest message counts, so none is taken before it is asked for.
const CONFLATE: i32 = 54;
/// Reading it takes note of the news.
const EVENTS: i32 = 15;

/// The native object behind a JavaScript socket.
#[napi]
pub struct NativeSocket(Rc<Inner>);

pub(crate) struct Inner {
    pub(crate) watched: Rc<Watched>,
    shared: Rc<Shared>,
    /// In the runtime.
    number: u32,
    /// Has sent something in this turn of the loop.
    has_sent: Cell<bool>,
    closed: Cell<bool>,
    /// Large parts of the last batch that were not taken yet.
    large: RefCell<VecDeque<Message>>,
    /// What goes with the last part that was received: the routing id of a SERVER's peer, the group of a DISH's message.
    routing_id: Cell<u32>,
    group: RefCell<Vec<u8>>,
    /// No message is taken ahead.
    one_by_one: Cell<bool>,
}

/// Those that receive one message between two sends, and those whose messages bring something along.
fn one_by_one(socket_type: SocketType) -> bool {
    use SocketType::{Dish, Peer, Rep, Req, Server};
    matches!(socket_type, Req | Rep | Server | Dish | Peer)
}

#[napi]
impl NativeSocket {
    /// `peer` is what the runtime's function is called with.
    #[napi(constructor)]
    pub fn new(
        env: Env,
        runtime: &Runtime,
        context: &NativeContext,
        socket_type: u8,
        peer: Unknown<'_>,
    ) -> napi::Result<Self> {
        let known = SocketType::from_code(socket_type).ok_or(Error::Invalid);
        let made = known.and_then(|known| context.0.socket(known));
        // The errno in place of a text: `lib/` makes the exception.
        let socket = made.map_err(|error| JsError::new(Status::GenericFailure, code(error).to_string()))?;
        let one_by_one = one_by_one(socket.socket_type());
        let mut reference = ptr::null_mut();
        // SAFETY: a value of this environment, and a place to write to; with 0 the reference is weak.
        let status = unsafe { sys::napi_create_reference(env.raw(), peer.raw(), 0, &mut reference) };
        if status != sys::Status::napi_ok {
            return Err(JsError::from_status(Status::from(status)));
        }
        let shared = runtime.0.clone();
        let watched = Watched::new(shared.clone(), socket, reference);
        Ok(NativeSocket(runtime.0.enlist(|number| {
            Rc::new(Inner {
                watched,
                shared,
                number,
                has_sent: Cell::new(false),
                closed: Cell::new(false),
                large: RefCell::default(),
                routing_id: Cell::new(0),
                group: RefCell::default(),
                one_by_one: Cell::new(one_by_one),
            })
        })))
    }

    /// By which the runtime's calls name it.
    #[napi(getter, catch_unwind)]
    pub fn number(&self) -> u32 {
        self.0.number
    }

    /// Sends a part with what some kinds of sockets need beside it. 0 or an error.
    #[napi(catch_unwind)]
    pub fn send_addressed(&self, env: Env, part: Unknown<'_>, routing_id: u32, group: Unknown<'_>) -> i32 {
        let (Some(part), Some(group)) =
            (view::bytes(env.raw(), part.raw()), view::bytes(env.raw(), group.raw()))
        else {
            return code(Error::Fault);
        };
        let mut message = Message::from_slice(part);
        message.set_routing_id(routing_id);
        if !message.set_group(group) {
            return code(Error::Invalid);
        }
        outcome(self.0.watched.with(|socket| socket.send_message(&mut message, Flags::DONTWAIT)))
    }

    /// How long the next large part is.
    #[napi(catch_unwind)]
    pub fn large_length(&self) -> f64 {
        self.0.large.borrow().front().map_or(0, Message::len) as f64
    }

    /// Copies the next large part, which is as long as `room`. 0 or an error.
    #[napi(catch_unwind)]
    pub fn take_large(&self, env: Env, room: Unknown<'_>) -> i32 {
        let Some(room) = view::bytes_mut(env.raw(), room.raw()) else { return code(Error::Fault) };
        let Some(message) = self.0.large.borrow_mut().pop_front() else { return code(Error::Fault) };
        if room.len() != message.len() {
            return code(Error::MessageSize);
        }
        room.copy_from_slice(message.as_slice());
        0
    }

    /// What came with the last message of a socket that receives one by one.
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
        outcome(self.0.watched.with(|socket| socket.bind(&endpoint)))
    }

    #[napi(catch_unwind)]
    pub fn unbind(&self, endpoint: String) -> i32 {
        outcome(self.0.watched.with(|socket| socket.unbind(&endpoint)))
    }

    #[napi(catch_unwind)]
    pub fn connect(&self, endpoint: String) -> i32 {
        outcome(self.0.watched.with(|socket| socket.connect(&endpoint)))
    }

    #[napi(catch_unwind)]
    pub fn disconnect(&self, endpoint: String) -> i32 {
        outcome(self.0.watched.with(|socket| socket.disconnect(&endpoint)))
    }

    #[napi(catch_unwind)]
    pub fn join(&self, env: Env, group: Unknown<'_>, on: bool) -> i32 {
        let Some(group) = view::bytes(env.raw(), group.raw()) else { return code(Error::Fault) };
        outcome(self.0.watched.with(|socket| if on { socket.join(group) } else { socket.leave(group) }))
    }

    /// Sets an option from its bytes.
    #[napi(catch_unwind)]
    pub fn set_option(&self, env: Env, number: i32, value: Unknown<'_>) -> i32 {
        let Some(value) = view::bytes(env.raw(), value.raw()) else { return code(Error::Fault) };
        if number == CONFLATE {
            self.0.one_by_one.set(true);
        }
        outcome(self.0.watched.with(|socket| socket.set_option(number, value)))
    }

    /// Sets an option to nothing.
    #[napi(catch_unwind)]
    pub fn clear_option(&self, number: i32) -> i32 {
        outcome(self.0.watched.with(|socket| socket.set_option_null(number)))
    }

    /// Why an option was refused: a sentence that names it. Empty if that is not known, as of a socket that is closed.
    #[napi(catch_unwind)]
    pub fn option_fault(&self, env: Env, number: i32, value: Unknown<'_>) -> String {
        let value = view::bytes(env.raw(), value.raw()).unwrap_or_default();
        let fault = self.0.watched.with(|socket| Ok(core::option_fault(socket.socket_type(), number, value)));
        fault.unwrap_or_default()
    }

    /// Why an option could not be read into a buffer of this size.
    #[napi(catch_unwind)]
    pub fn option_read_fault(&self, number: i32, size: u32) -> String {
        core::option_read_fault(number, usize::try_from(size).unwrap_or(usize::MAX))
    }

    /// Reads an option into `room`; its length or an error.
    #[napi(catch_unwind)]
    pub fn get_option(&self, env: Env, number: i32, room: Unknown<'_>) -> i32 {
        let Some(room) = view::bytes_mut(env.raw(), room.raw()) else { return code(Error::Fault) };
        let read = self.0.watched.with(|socket| socket.option(number, room));
        if number == EVENTS {
            self.0.watched.look_again();
        }
        read.map_or_else(code, |len| i32::try_from(len).unwrap_or(i32::MAX))
    }

    /// Tells the PAIR that connects to `endpoint` what happens to this socket's connections.
    #[napi(catch_unwind)]
    pub fn monitor(&self, endpoint: String, events: u32) -> i32 {
        outcome(
            self.0.watched.with(|socket| socket.monitor(Some(&endpoint), events.into(), 3, SocketType::Pair)),
        )
    }

    /// Whether this many peers are connected, or this many topics subscribed to: 0, EAGAIN if not yet, or another error.
    #[napi(catch_unwind)]
    pub fn has(&self, topics: bool, count: u32) -> i32 {
        // Long enough to look at the connections once.
        let deadline = Some(Instant::now() + Duration::from_micros(10));
        let count = count as usize;
        let has = self.0.watched.with(|socket| match topics {
            true => socket.wait_for_subscriptions(count, deadline),
            false => socket.wait_for_peers(count, deadline),
        });
        self.0.watched.look_again();
        outcome(has)
    }

    /// Steers a proxy, which is to end with this thread.
    #[napi(catch_unwind)]
    pub fn set_steering(&self) {
        self.0.watched.set_farewell(b"TERMINATE");
    }

    #[napi(catch_unwind)]
    pub fn close(&self) {
        self.0.close();
    }

    pub(crate) fn take(&self) -> Option<core::Socket> {
        self.0.watched.take()
    }

    pub(crate) fn put_back(&self, socket: core::Socket) {
        self.0.watched.put_back(socket);
    }
}

impl Inner {
    /// Sends a part. 0 or an error.
    pub(crate) fn send(self: &Rc<Self>, part: &[u8], more: bool) -> i32 {
        let flags = if more { Flags(Flags::DONTWAIT.0 | Flags::MORE.0) } else { Flags::DONTWAIT };
        let sent = self.watched.with(|socket| socket.send(part, flags));
        if !self.has_sent.replace(true) {
            self.shared.has_sent(self);
        }
        outcome(sent)
    }

    /// The end of the turn.
    pub(crate) fn flush(&self) {
        self.has_sent.set(false);
        // Closed meanwhile, it was flushed by that.
        let _ = self.watched.with(|socket| {
            socket.flush();
            Ok(())
        });
    }

    /// Receives what is there: packs parts into `room`, and says of each in `table` how long it is and whether more follow; the table
    /// begins with how many bytes that were. Returns the number of parts, or an error if there was none. What belongs to one message may
    /// end in the next batch.
    pub(crate) fn receive(&self, room: &mut [u8], table: &mut [u32]) -> i32 {
        let Some((used, table)) = table.split_first_mut() else { return code(Error::Fault) };
        *used = 0;
        self.watched.with(|socket| Ok(self.fill(socket, room, used, table))).unwrap_or_else(code)
    }

    fn fill(&self, socket: &mut core::Socket, mut room: &mut [u8], used: &mut u32, table: &mut [u32]) -> i32 {
        let mut large = 0;
        let mut count = 0;
        for entry in table {
            let mut message = Message::new();
            match socket.recv_message(&mut message, Flags::DONTWAIT) {
                Ok(_) => {}
                // It is reported by the next call.
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
            if self.one_by_one.get() && !more {
                self.routing_id.set(message.routing_id());
                *self.group.borrow_mut() = message.group().to_bytes().to_vec();
            }
            if *entry & LARGE != 0 {
                self.large.borrow_mut().push_back(message);
            }
            if !more && (self.one_by_one.get() || room.len() < SMALL_MAX || large >= LARGE_BYTES) {
                break;
            }
        }
        count
    }

    pub(crate) fn close(&self) {
        self.watched.close();
        // Once: another socket may have the number now.
        if !self.closed.replace(true) {
            self.shared.strike(self.number);
        }
    }
}

/// Collected by the garbage collector, or the environment ends.
impl Drop for NativeSocket {
    fn drop(&mut self) {
        self.0.close();
    }
}
