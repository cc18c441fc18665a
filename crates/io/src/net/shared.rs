//! Memory in place of the kernel's buffers, between the two ends of a Unix domain socket.
//!
//! The socket carries bytes as any does, and what libzmq's end sees is no more than that. But once
//! its peer is known ([`Link::begin`]) an end that has written some times sends a *question* along:
//! a socket of its own. One that can share memory rings there; with one that does not look for
//! descriptors it is closed, or cannot be sent at all, which is an answer too, but not for ever: it
//! may not know its peer yet. Then the writer makes a region of memory, and sends its descriptor
//! along with the next bytes. The other end maps it and says so in it; from then on the writer puts
//! its bytes there, and says behind how many bytes of the socket they come. Both directions do that
//! each for itself. The socket then carries *bells*: single bytes that mean "look again".
//!
//! * A reader that found nothing may look as often as it likes, without a system call. Before it
//!   waits for the descriptor to become readable it says so ([`Link::listen`]), and the writer
//!   rings with its next bytes.
//! * A writer that found no room is rung at a socket of its own, which came with the offer
//!   ([`Link::room`]): its peer's may be full of other things, and is the reader's to empty.
//!
//! The socket's end is the stream's, behind what lies in the region. What a peer may do with the
//! region is in `region.rs` and `ring.rs`, what it may do with descriptors in `rights.rs`: they are
//! taken between `begin` and the region, and at no other time.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::rights::{self, Foreign};
use super::transfer::{self, Sources, Targets};
use crate::sys;

mod bell;
mod region;
mod resize;
mod ring;

// Those of memory that is mapped are real ones also in a model of loom's.
#[cfg(not(simulated))]
use std::sync::atomic;
#[cfg(simulated)]
use tautline_mem::sync::simulated as atomic;

use atomic::AtomicBool;
use atomic::Ordering::{Acquire, Release};
use region::Region;
use ring::{Consumer, Producer};

/// Writes before the other end is asked: connections that are never busy do without. So often its
/// answer is looked for. One that could not be asked, or has said no, is asked again after 64, 128,
/// 256 and so on, up to `PATIENCE` of them. In a simulation few: most connections get there.
const ASK: u32 = if cfg!(simulated) { 2 } else { 32 };
/// Writes before a region is offered.
const WRITES: u32 = if cfg!(simulated) { 5 } else { 64 };
/// Writes after it until it is given up: the other end has no room for it.
const PATIENCE: u32 = 1024;
/// Bells that are not rung before the first one is taken.
const MOST_BELLS: usize = 64;
/// Looks that find nothing before the socket is looked at, which alone tells that the peer is gone.
const LOOKS: u32 = 1024;

/// What lies beside the socket.
pub(super) struct Link {
    incoming: Mutex<Incoming>,
    outgoing: Mutex<Outgoing>,
    /// Where the reader of what is written here rings.
    room: OnceLock<OwnedFd>,
    /// Bytes are put into the region.
    puts: AtomicBool,
    /// Bytes are taken from the region.
    takes: AtomicBool,
}

#[derive(Default)]
struct Incoming {
    /// Bytes of the socket that were read.
    received: u64,
    /// Descriptors are looked at.
    begun: bool,
    /// The region, and where to ring for its writer.
    ring: Option<Box<(Consumer, Foreign)>>,
    /// All that the socket had is read, and the rest is in the region.
    switched: bool,
    /// The socket has ended.
    ended: bool,
    /// Looks in a row that have found nothing.
    idle: u32,
}

#[derive(Default)]
struct Outgoing {
    /// Bytes that went to the socket.
    sent: u64,
    /// Writes to it, from the offer on beyond `WRITES`.
    writes: u32,
    ring: Option<Box<Producer>>,
    /// Where the reader is going to ring, until it takes part: to answer, and then for room.
    bell: Option<OwnedFd>,
    stage: Stage,
    /// The reader takes part: all goes into the region.
    switched: bool,
    /// The reader is gone.
    widowed: bool,
    /// What goes along with the next bytes: the question's socket, or a region and another one.
    enclosed: [Option<OwnedFd>; 2],
}

/// What the other end is known to be able to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stage {
    Unknown,
    Asked,
    Able,
    /// A region has been made; or none will be, unless sharing has yet to begin.
    #[default]
    Decided,
}

#[cfg_attr(simulated, track_caller)]
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    #[cfg(simulated)]
    tautline_mem::sync::simulated::before_lock(mutex);
    let guard = mutex.lock().unwrap_or_else(PoisonError::into_inner);
    #[cfg(simulated)]
    tautline_mem::sync::simulated::locked(mutex);
    guard
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("puts", &self.puts).field("takes", &self.takes).finish_non_exhaustive()
    }
}

impl Link {
    /// Beside a socket that nothing was sent to or received from.
    pub(super) fn new() -> Option<Self> {
        Some(Link {
            incoming: Mutex::default(),
            outgoing: Mutex::default(),
            room: OnceLock::new(),
            puts: AtomicBool::new(false),
            takes: AtomicBool::new(false),
        })
    }

    /// From now on the peer's descriptors are looked at, and it is asked in its turn.
    pub(super) fn begin(&self, socket: BorrowedFd<'_>) {
        lock(&self.incoming).begun = true;
        lock(&self.outgoing).stage = Stage::Unknown;
        rights::admit(socket);
    }

    // ---- reading

    /// Reads what there is into the buffers.
    pub(super) fn read(&self, socket: BorrowedFd<'_>, targets: &Targets<'_>) -> io::Result<usize> {
        let mut incoming = lock(&self.incoming);
        if !self.has_switched(&mut incoming) {
            let n = incoming.receive(socket, targets)?;
            // Asked also if there is something: with it a bell may have been taken, and the reader
            // must know that it has to listen again.
            if !self.has_switched(&mut incoming) || n > 0 {
                return Ok(n);
            }
        }
        incoming.take(socket, targets)
    }

    /// Whether what comes lies in a region, so that looking for it takes no system call.
    pub(super) fn takes_from_memory(&self) -> bool {
        self.takes.load(Acquire)
    }

    /// Whether all that the socket had is read, and the rest lies in the region.
    fn has_switched(&self, incoming: &mut Incoming) -> bool {
        if !incoming.switched
            && incoming
                .ring
                .as_ref()
                .and_then(|ring| ring.0.switched_at())
                .is_some_and(|at| at <= incoming.received)
        {
            incoming.switched = true;
            self.takes.store(true, Release);
        }
        incoming.switched
    }

    /// For the reader: from now on the socket becomes readable when there is something to read.
    /// False if there is something now.
    pub(super) fn listen(&self, socket: BorrowedFd<'_>) -> bool {
        let mut incoming = lock(&self.incoming);
        !self.has_switched(&mut incoming) || incoming.listen(socket)
    }

    /// The same, if nothing has changed but that the reader has read: cheaper where it has never
    /// stopped listening.
    pub(super) fn listen_on(&self, socket: BorrowedFd<'_>) -> bool {
        let mut incoming = lock(&self.incoming);
        !self.has_switched(&mut incoming) || incoming.still_listens() || incoming.listen(socket)
    }

    // ---- writing

    /// Writes as much of the buffers as there is room for.
    pub(super) fn write(&self, socket: BorrowedFd<'_>, sources: &Sources<'_>) -> io::Result<usize> {
        let mut outgoing = lock(&self.outgoing);
        if !outgoing.switched {
            let Some(bell) = outgoing.switch() else {
                return outgoing.send(socket, sources);
            };
            let _ = self.room.set(bell);
            self.puts.store(true, Release);
        }
        outgoing.put(socket, sources, self.room.get())
    }

    /// The socket that becomes readable when there is room again, after a write that found none.
    /// `None`: it is the stream's own, which becomes writable.
    pub(super) fn room(&self) -> Option<BorrowedFd<'_>> {
        self.room.get().filter(|_| self.puts.load(Acquire)).map(AsFd::as_fd)
    }
}

impl Incoming {
    /// Reads from the socket. 0: it has ended, or all that it had for us is read.
    fn receive(&mut self, socket: BorrowedFd<'_>, targets: &Targets<'_>) -> io::Result<usize> {
        let n = if self.ring.is_some() {
            // The last time or two; and then not beyond what the writer has switched at, if that is
            // known.
            rights::receive(socket, &targets.beginning(self.expected()))?
        } else if self.begun {
            let (n, rights) = rights::receive_all(socket, targets)?;
            self.look_at(socket, rights);
            n
        } else {
            rights::receive(socket, targets)?
        };
        // What is more are bells, if the writer has switched meanwhile.
        let n = n.min(self.expected());
        self.received += n as u64;
        Ok(n)
    }

    /// A question is answered and an offer taken. All else is closed.
    fn look_at(&mut self, socket: BorrowedFd<'_>, mut rights: Vec<Foreign>) {
        match (rights.pop(), rights.pop()) {
            // An end that does not hear it will not offer anything.
            (Some(question), None) if question.is_stream() => drop(ring_bell(question.as_fd())),
            (Some(bell), Some(memory)) if rights.is_empty() && bell.is_stream() => {
                if let Ok(region) = Region::accept(&memory) {
                    self.ring = Some(Box::new((Consumer::new(region), bell)));
                    rights::refuse(socket);
                }
            }
            _ => {}
        }
    }

    /// How many bytes of the socket are still to come, as far as that is known.
    fn expected(&self) -> usize {
        let at = self.ring.as_ref().and_then(|ring| ring.0.switched_at()).unwrap_or(u64::MAX);
        usize::try_from(at.saturating_sub(self.received)).unwrap_or(usize::MAX)
    }

    /// Takes from the region.
    fn take(&mut self, socket: BorrowedFd<'_>, targets: &Targets<'_>) -> io::Result<usize> {
        let Some((ring, bell)) = self.ring.as_deref_mut() else { return Ok(0) };
        let n = ring.take(targets)?;
        if n > 0 {
            self.idle = 0;
            if ring.take_blocked() {
                // An end that is gone needs no room.
                let _ = ring_bell(bell.as_fd());
            }
            return Ok(n);
        }
        if self.ended {
            return Ok(0);
        }
        self.idle += 1;
        if self.idle >= LOOKS {
            self.idle = 0;
            self.empty(socket);
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn still_listens(&mut self) -> bool {
        self.ring.as_mut().is_some_and(|ring| ring.0.is_asleep() && !ring.0.has_bytes().unwrap_or(true))
    }

    fn listen(&mut self, socket: BorrowedFd<'_>) -> bool {
        // Before the bell is asked for: this one must not be taken away.
        self.empty(socket);
        let Some(ring) = self.ring.as_mut().filter(|_| !self.ended) else { return false };
        ring.0.sleep().unwrap_or(false)
    }

    /// Takes the bells that were rung, and notes the socket's end.
    fn empty(&mut self, socket: BorrowedFd<'_>) {
        self.ended = self.ended || !take_bells(socket);
    }
}

impl Outgoing {
    /// If the reader takes part: all that is written from now on goes into the region, and here is
    /// where the reader rings.
    fn switch(&mut self) -> Option<OwnedFd> {
        let ring = self.ring.as_ref().filter(|ring| ring.is_accepted())?;
        ring.switch(self.sent);
        self.switched = true;
        self.bell.take()
    }

    /// Writes to the socket, and maybe encloses the question whether the reader can share memory,
    /// or a region for one that can.
    fn send(&mut self, socket: BorrowedFd<'_>, sources: &Sources<'_>) -> io::Result<usize> {
        self.writes = self.writes.saturating_add(1);
        if self.stage != Stage::Decided {
            self.advance();
        }
        let n = match &self.enclosed {
            [None, _] => transfer::send(socket, sources)?,
            [Some(first), second] => {
                let rights = [first.as_fd(), second.as_ref().unwrap_or(first).as_fd()];
                let rights = &rights[..1 + usize::from(second.is_some())];
                match transfer::send_with_rights(socket, sources, rights) {
                    Ok(n) => {
                        // They go with the first byte.
                        if n > 0 {
                            self.enclosed = [None, None];
                        }
                        n
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(error),
                    // Descriptors may be refused where bytes are not: the other end takes none
                    // (EPERM), too many are in flight (ETOOMANYREFS), there is no memory for them,
                    // a sandbox does not allow it. The bytes go without them; an error of the
                    // stream itself comes again.
                    Err(_) => {
                        let asked = self.stage == Stage::Asked;
                        self.give_up();
                        if asked {
                            self.stage = Stage::Unknown;
                        }
                        transfer::send(socket, sources)?
                    }
                }
            }
        };
        if self.writes > WRITES + PATIENCE && self.ring.is_some() {
            self.give_up();
        }
        self.sent += n as u64;
        Ok(n)
    }

    /// The stream stays with the socket.
    fn give_up(&mut self) {
        (self.ring, self.bell, self.enclosed) = (None, None, [None, None]);
        self.stage = Stage::Decided;
    }

    /// Asks, looks for the answer, or makes a region, if it is time to.
    fn advance(&mut self) {
        match self.stage {
            Stage::Unknown if self.writes > PATIENCE => self.stage = Stage::Decided,
            Stage::Unknown if self.writes >= ASK && self.writes.is_power_of_two() => {
                if let Ok((mine, yours)) = bell() {
                    self.bell = Some(mine);
                    self.enclosed = [Some(yours), None];
                    self.stage = Stage::Asked;
                }
            }
            Stage::Asked if self.writes.is_multiple_of(ASK) => {
                let answer = self.bell.as_ref().map_or(Ok(0), |bell| {
                    rights::receive(bell.as_fd(), &Targets::one(&mut [MaybeUninit::uninit()]))
                });
                self.stage = match answer {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                    Ok(1) => Stage::Able,
                    _ => Stage::Unknown,
                };
                self.bell = None;
            }
            _ => {}
        }
        if self.stage == Stage::Able && self.writes > WRITES && region::within_budget() {
            self.stage = Stage::Decided;
            // Patience begins now, however long there was no room for a region.
            self.writes = WRITES;
            if let Ok(offer) = self.make_offer() {
                self.enclosed = offer.map(Some);
            }
        }
    }

    /// Makes a region. What the other end needs of it: the memory, and where to ring.
    fn make_offer(&mut self) -> io::Result<[OwnedFd; 2]> {
        let (region, memory) = Region::create()?;
        let (mine, yours) = bell()?;
        self.ring = Some(Box::new(Producer::new(region)));
        self.bell = Some(mine);
        Ok([memory, yours])
    }

    fn put(
        &mut self,
        socket: BorrowedFd<'_>,
        sources: &Sources<'_>,
        room: Option<&OwnedFd>,
    ) -> io::Result<usize> {
        let Some(ring) = self.ring.as_mut().filter(|_| !self.widowed) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let n = ring.put(sources, || {
            // Before the next bell is asked for: it must not be taken away.
            room.is_some_and(|room| take_bells(room.as_fd()))
        })?;
        if n > 0 && ring.take_sleeper() {
            // What was shown may have been read before: as with a socket, the next write fails.
            self.widowed = ring_bell(socket).is_err();
        }
        if n == 0 && sources.raw().iter().any(|raw| raw.iov_len > 0) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(n)
    }
}

/// A socket to be rung at, which takes bytes only, and the end to ring with.
fn bell() -> io::Result<(OwnedFd, OwnedFd)> {
    let (mine, yours) = sys::socket_pair()?;
    rights::refuse(mine.as_fd());
    Ok((mine, yours))
}

/// Wakes the thread that waits for the other end of this socket. If it is full of bells already,
/// that is as good.
fn ring_bell(socket: BorrowedFd<'_>) -> io::Result<()> {
    match transfer::send(socket, &Sources::one(&[0])) {
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
        _ => Ok(()),
    }
}

/// Takes all bells that were rung. False: the other end is gone, or might as well be. An end that
/// is asked to rings once, and is asked again when it was heard, so an end that rings `MOST_BELLS`
/// times is none to listen to.
fn take_bells(socket: BorrowedFd<'_>) -> bool {
    let mut bells = [MaybeUninit::uninit(); MOST_BELLS];
    match rights::receive(socket, &Targets::one(&mut bells)) {
        Ok(n) => (1..MOST_BELLS).contains(&n),
        Err(error) => error.kind() == io::ErrorKind::WouldBlock,
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
