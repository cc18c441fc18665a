//! A bound endpoint: accepts peers.
//!
//! Each new peer costs the I/O thread tens of microseconds. If many peers arrive and hardly any
//! completes a handshake, it is a flood. During a flood we accept new peers only for a part of the
//! time and leave them in the system's backlog otherwise, so that the connected peers get the
//! processor.

use std::time::{Duration, Instant};

use super::origin::Origin;
use super::peer_source::PeerSource;
use super::security::Security;
use super::wire::{CHECK, Wire, is_silent, is_stranger};
use super::{EXHAUSTED, EventLoop, EventSource, Resident, Site};
use crate::error::check_shortage;
use crate::host::{ConnectedPeer, Gate, Refusal};
use crate::monitor::{Ends, event};
use crate::options::Options;
use crate::transport::{self, Bound, CarrierFactory, Leftover};
use std::collections::{HashMap, VecDeque};
use std::io::ErrorKind;
use std::sync::Weak;
use tautline_io::errno;
use tautline_io::fd::AsRawFd;
use tautline_io::net::{self, Listener};
use tautline_io::reactor::{Event, Interest, Mode, Token};
use tautline_queue::sync::atomic::AtomicU32;
use tautline_queue::sync::atomic::Ordering::Relaxed;
use tautline_queue::sync::{Arc, Mutex, lock};

/// Number of peers that are accepted before other sources get their turn.
const BATCH: usize = 64;
/// From this number of strangers on it is a flood. A stranger is a new peer that has not completed
/// its handshake, even if it has left.
const FLOOD: u32 = 1024;
/// Upper limit of the count, so that a few completed handshakes are enough to end the flood.
const MOST_STRANGERS: u32 = 16 * FLOOD;
/// In a flood: the pause after a batch of accepts, as a multiple of the time that the batch took,
/// and its bounds. (The measured time may be long because another thread had the processor.)
const PAUSE: u32 = 5;
const LEAST_PAUSE: Duration = Duration::from_millis(1);
const MOST_PAUSE: Duration = Duration::from_millis(20);
/// Number of handshakes that are compared to choose one for eviction. The new peer waits for this
/// search.
const LOOKED_AT: usize = 256;

struct AcceptorState {
    listener: Option<Listener>,
    registration: Option<Token>,
    wait_timer: u64,
    check_timer: u64,
    /// Accepted peers whose handshakes may not be complete, oldest first. Kept only if there is a
    /// policy.
    shaking: VecDeque<PendingHandshake>,
}

/// A peer whose handshake may not be complete, and its source address.
type PendingHandshake = (Weak<Wire>, PeerSource);

/// Removes the handshake to evict for a new peer. Chooses the source with the most handshakes, so
/// that one host cannot keep others away; within it a peer that has sent no byte; among these the
/// oldest. Compares only the oldest handshakes.
fn evict(shaking: &mut VecDeque<PendingHandshake>, newcomer: PeerSource) -> Option<Arc<Wire>> {
    while shaking.front().is_some_and(|entry| !is_shaking(entry)) {
        shaking.pop_front();
    }
    let known: Vec<_> =
        shaking.iter().take(LOOKED_AT).enumerate().filter(|(_, entry)| is_shaking(entry)).collect();
    let mut counts = HashMap::from([(newcomer, 1_usize)]);
    for (_, (_, source)) in &known {
        *counts.entry(*source).or_default() += 1;
    }
    let rank = |(wire, source): &PendingHandshake| {
        let is_silent = wire.upgrade().is_some_and(|wire| is_silent(&wire));
        (counts.get(source).copied(), is_silent)
    };
    // Take the first of the highest rank. `max_by_key` returns the last one, so reverse the order.
    let (index, _) = known.into_iter().rev().max_by_key(|(_, entry)| rank(entry))?;
    shaking.remove(index)?.0.upgrade()
}

fn is_shaking((wire, _): &PendingHandshake) -> bool {
    wire.upgrade().is_some_and(|wire| is_stranger(&wire))
}

/// A bound endpoint.
pub(crate) struct Acceptor {
    site: Arc<Site>,
    options: Arc<Options>,
    pub(super) security: Security,
    endpoint: Ends,
    unlink: Option<Leftover>,
    /// WebSocket or TLS wrapper of the streams. `None` for plain ZMTP.
    pub(super) carrying: Option<CarrierFactory>,
    /// Number of accepted peers since the last completed handshakes. Each completed handshake
    /// halves the number.
    // Relaxed: own, only the I/O thread uses it.
    strangers: AtomicU32,
    /// Number of accepted peers whose handshake is incomplete. Kept only if there is a policy.
    // Relaxed: own, only the I/O thread uses it.
    shaking: AtomicU32,
    /// The policy's rules for accepted peers, if there is a policy.
    gate: Option<Arc<dyn Gate>>,
    state: Mutex<AcceptorState>,
}

impl Acceptor {
    /// Starts to accept peers of `bound` on the I/O thread.
    pub(crate) fn start(
        site: &Arc<Site>,
        options: Arc<Options>,
        bound: Bound,
        gate: Option<Arc<dyn Gate>>,
    ) -> Arc<Self> {
        transport::forbid_loans_of_encrypted(&options);
        let fd = bound.listener.as_fd().as_raw_fd();
        let acceptor = Arc::new(Acceptor {
            site: site.clone(),
            security: Security::new(&options),
            options,
            endpoint: Ends::bound(bound.endpoint),
            unlink: bound.unlink,
            carrying: bound.carrying,
            strangers: AtomicU32::new(0),
            shaking: AtomicU32::new(0),
            gate,
            state: Mutex::new(AcceptorState {
                listener: Some(bound.listener),
                registration: None,
                wait_timer: 0,
                check_timer: 0,
                shaking: VecDeque::new(),
            }),
        });
        site.events.emit(event::LISTENING, fd as u32, &acceptor.endpoint);
        let newborn = acceptor.clone();
        site.driver.post(Box::new(move |turn| {
            newborn.register(turn);
            newborn.check_later(turn);
        }));
        acceptor
    }

    /// The options in force when the endpoint was bound.
    pub(super) fn options(&self) -> &Arc<Options> {
        &self.options
    }

    /// The policy's rules for accepted peers, if there is a policy.
    pub(super) fn gate(&self) -> Option<&Arc<dyn Gate>> {
        self.gate.as_ref()
    }

    /// The site of the socket that owns this endpoint.
    pub(super) fn site(&self) -> &Arc<Site> {
        &self.site
    }

    /// The endpoint as LAST_ENDPOINT shows it.
    pub(crate) fn endpoint(&self) -> &str {
        self.endpoint.name()
    }

    /// Stops accepting at once: the address is free when this returns. The connected peers stay if
    /// `linger` is `None`. With a `linger` time, the peers are served for at most that time (see
    /// `Wire::linger`).
    pub(crate) fn stop(self: &Arc<Self>, linger: Option<Option<Duration>>) {
        let (listener, registration) = {
            let mut state = lock(&self.state);
            (state.listener.take(), state.registration.take())
        };
        let Some(listener) = listener else { return };
        let fd = listener.as_fd().as_raw_fd() as u32;
        self.site.driver.deregister(listener.as_fd());
        if let Some(leftover) = &self.unlink {
            leftover.remove();
        }
        drop(listener);
        self.site.events.emit(event::CLOSED, fd, &self.endpoint);
        let acceptor = self.clone();
        self.site.driver.post(Box::new(move |turn| {
            if let Some(token) = registration {
                turn.forget(token);
            }
            let Some(linger) = linger else { return };
            for resident in acceptor.site.residents() {
                if let Resident::Wire(wire) = resident
                    && wire.is_accepted_by(&acceptor)
                {
                    wire.linger(turn, linger);
                }
            }
        }));
    }

    fn register(self: &Arc<Self>, turn: &mut EventLoop) {
        let mut state = lock(&self.state);
        let AcceptorState { listener: Some(listener), registration, .. } = &mut *state else { return };
        match turn.register(self.clone(), listener.as_fd(), Interest::READ, Mode::Level) {
            Ok(token) => *registration = Some(token),
            Err(_) => state.wait_timer = turn.set_timer(EXHAUSTED, self),
        }
    }

    /// Notes that an accepted peer has completed its handshake.
    pub(super) fn note_completed_handshake(&self) {
        self.strangers.store(self.strangers.load(Relaxed) / 2, Relaxed);
        self.forget_stranger();
    }

    /// Notes that an accepted peer has completed its handshake, or has left before that.
    pub(super) fn forget_stranger(&self) {
        if self.gate.is_some() {
            self.shaking.store(self.shaking.load(Relaxed).saturating_sub(1), Relaxed);
        }
    }

    /// Adds a new peer to the list of handshakes. If the list exceeds its limit, evicts one of the
    /// other handshakes.
    fn greet(&self, turn: &mut EventLoop, newcomer: &Arc<Wire>) {
        let Some(gate) = self.gate.as_ref().filter(|_| is_stranger(newcomer)) else { return };
        let count = self.shaking.load(Relaxed);
        let is_beyond = gate.most_handshakes().is_some_and(|limit| u64::from(count) > limit);
        let too_many = {
            let mut state = lock(&self.state);
            let shaking = &mut state.shaking;
            if shaking.len() > 2 * count as usize + BATCH {
                shaking.retain(is_shaking);
            }
            let source = newcomer.source();
            let evicted = if is_beyond { evict(shaking, source) } else { None };
            shaking.push_back((Arc::downgrade(newcomer), source));
            evicted
        };
        if let Some(evicted) = too_many {
            evicted.end_beyond(turn, "handshakes");
        }
    }

    fn accept(self: &Arc<Self>, turn: &mut EventLoop) {
        let began = Instant::now();
        self.accept_some(turn);
        if self.strangers.load(Relaxed) >= FLOOD {
            self.wait(turn, (PAUSE * began.elapsed()).clamp(LEAST_PAUSE, MOST_PAUSE));
        }
    }

    fn accept_some(self: &Arc<Self>, turn: &mut EventLoop) {
        for _ in 0..BATCH {
            if let Some(pause) = self.gate.as_ref().and_then(|gate| gate.pause()) {
                return self.wait(turn, pause);
            }
            let accepted = match &lock(&self.state).listener {
                Some(_) if check_shortage().is_err() => Err(ErrorKind::OutOfMemory.into()),
                Some(listener) => listener.accept(),
                None => return,
            };
            match accepted {
                Ok(stream) => self.handle_accept(turn, Arc::new(stream)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => {
                    self.site.events.emit(
                        event::ACCEPT_FAILED,
                        errno::of(&error).unwrap_or(errno::ENOMEM) as u32,
                        &self.endpoint,
                    );
                    // The peer that could not be accepted stays in the backlog, so the listener
                    // stays readable.
                    if !net::concerns_one_connection(&error) {
                        return self.wait(turn, EXHAUSTED);
                    }
                }
            }
        }
    }

    fn handle_accept(self: &Arc<Self>, turn: &mut EventLoop, stream: Arc<tautline_io::net::Stream>) {
        if !transport::admit(&stream, &self.options) {
            self.site.events.emit(event::ACCEPT_FAILED, errno::EACCES as u32, &self.endpoint);
            return;
        }
        let counted =
            match self.gate.as_ref().map(|gate| gate.clone().admit(ConnectedPeer(&stream))).transpose() {
                Ok(counted) => counted,
                Err(Refusal(why)) => {
                    let errno = errno::EACCES as u32;
                    return self.site.events.emit_because(event::ACCEPT_FAILED, errno, &self.endpoint, &why);
                }
            };
        self.strangers.store((self.strangers.load(Relaxed) + 1).min(MOST_STRANGERS), Relaxed);
        if self.gate.is_some() {
            self.shaking.store(self.shaking.load(Relaxed) + 1, Relaxed);
        }
        let ends = transport::ends(&stream, self.endpoint.name(), true);
        self.site.events.emit(event::ACCEPTED, stream.as_fd().as_raw_fd() as u32, &ends);
        let wire = Wire::start(turn, Origin::Accepted(self.clone(), counted), stream, ends, 1);
        self.greet(turn, &wire);
    }

    /// Sets a timer to check again if the peers may stay.
    fn check_later(self: &Arc<Self>, turn: &mut EventLoop) {
        if self.gate.as_ref().is_some_and(|gate| gate.may_change()) {
            lock(&self.state).check_timer = turn.set_timer(CHECK, self);
        }
    }

    /// Ends the connections of peers that the policy no longer allows.
    fn check(self: &Arc<Self>, turn: &mut EventLoop) {
        let Some(gate) = &self.gate else { return };
        // Do this even without peers: it starts the clock for how long a list has been unreadable.
        let _ = gate.check_lists();
        for resident in self.site.residents() {
            if let Resident::Wire(wire) = resident
                && wire.is_accepted_by(self)
            {
                wire.check(turn, &**gate);
            }
        }
        self.check_later(turn);
    }

    /// Stops listening for this time.
    fn wait(self: &Arc<Self>, turn: &mut EventLoop, time: Duration) {
        let mut state = lock(&self.state);
        if let (Some(listener), Some(token)) = (&state.listener, state.registration) {
            turn.modify(token, listener.as_fd(), Interest::NONE, Mode::Level);
        }
        state.wait_timer = turn.set_timer(time, self);
    }
}

impl EventSource for Acceptor {
    fn on_ready(self: Arc<Self>, turn: &mut EventLoop, _event: &Event) {
        self.accept(turn);
    }

    fn on_timer(self: Arc<Self>, turn: &mut EventLoop, key: u64) {
        let checks = {
            let state = lock(&self.state);
            state.check_timer == key && state.listener.is_some()
        };
        if checks {
            return self.check(turn);
        }
        let registration = {
            let state = lock(&self.state);
            if state.wait_timer != key {
                return;
            }
            match (&state.listener, state.registration) {
                (Some(listener), Some(token)) => {
                    turn.modify(token, listener.as_fd(), Interest::READ, Mode::Level);
                    true
                }
                (Some(_), None) => false,
                (None, _) => return,
            }
        };
        if !registration {
            self.register(turn);
        }
    }
}
