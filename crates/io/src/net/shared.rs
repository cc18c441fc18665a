//! Shared memory between the two ends of a Unix domain socket, in place of the kernel's buffers.
//!
//! The socket carries bytes like any other socket, and a peer that runs libzmq sees only these
//! bytes. Once the peer is known ([`SharedLink::begin`]), an end that has written several times
//! sends a *question* along: one end of a new socket pair. A peer that can share memory rings that
//! socket. A peer that does not look for descriptors closes it, or the question cannot be sent at
//! all. Both mean no, but only for now, because the peer may not know us yet. After a yes, the
//! writer makes a region of memory and sends its descriptor along with the next bytes. The other
//! end maps the region, and the region records that. From then on the writer puts its bytes there,
//! and notes how many bytes of the socket precede them. Each direction does this on its own. The
//! socket then carries *bells*: single bytes that mean "look again".
//!
//! * A reader that found no data may look again as often as it likes, without a system call. Before
//!   it waits for the descriptor to become readable, it asks for a bell
//!   ([`SharedLink::request_wakeup`]), and the writer rings with its next bytes.
//! * A writer that found no space is rung at a separate socket, which came with the offer
//!   ([`SharedLink::space_fd`]). The stream's socket does not serve for this: it may be full of
//!   other data, which the reader must empty.
//!
//! The stream ends when the socket has ended and the region is empty. `region.rs` and `ring.rs`
//! handle a peer that misuses the region, `rights.rs` one that misuses descriptors. Descriptors are
//! accepted only between `begin` and the region.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use super::rights::{self, PeerFd};
use super::transfer::{self, Sources, Targets};
use crate::{lending, sys};

mod bell;
mod loans;
mod region;
mod ring;

// Atomics in mapped memory are real ones even in a model of loom.
#[cfg(not(simulated))]
use std::sync::atomic;
#[cfg(simulated)]
use tautline_mem::sync::simulated as atomic;

use atomic::AtomicBool;
use atomic::Ordering::{Acquire, Release};
pub use loans::Loan;
pub(crate) use loans::start_caretaker;
use region::Region;
pub(super) use ring::LOAN_AHEAD;
use ring::{RegionReader, RegionWriter};

/// Number of writes before the peer is asked, so that a connection with little traffic never asks.
/// Also the interval at which we look for the answer. If the question could not be sent or the
/// answer was no, we ask again after 64, 128, 256 writes and so on, up to `PATIENCE`. Small in a
/// simulation, so that most connections get there.
const ASK: u32 = if cfg!(simulated) { 2 } else { 32 };
/// Number of writes before a region is offered.
const WRITES: u32 = if cfg!(simulated) { 5 } else { 64 };
/// Number of writes after the offer before we withdraw it. The other end then has no space for the
/// region.
const PATIENCE: u32 = 1024;
/// Limit of waiting bells. A correct peer never has this many waiting.
const MOST_BELLS: usize = 64;
/// Number of reads without data before we check the socket, which alone shows that the peer is
/// gone.
const LOOKS: u32 = 1024;

/// State that belongs to a socket with shared memory.
pub(super) struct SharedLink {
    own: Weak<SharedLink>,
    incoming: Mutex<Incoming>,
    outgoing: Mutex<Outgoing>,
    /// Socket at which the reader of our data rings.
    space_fd: OnceLock<OwnedFd>,
    /// True if writes go into the region.
    puts: AtomicBool,
    /// True if the reader takes loans.
    lends: AtomicBool,
    /// True if reads come from the region.
    takes: AtomicBool,
}

#[derive(Default)]
struct Incoming {
    /// Number of bytes read from the socket.
    received: u64,
    /// True once descriptors are inspected.
    begun: bool,
    /// True if loans are permitted.
    borrows: bool,
    /// True if the reader takes loans as a whole.
    adopts: bool,
    /// True if it does not take the next one.
    copies: bool,
    /// Region, and the socket at which its writer is rung.
    ring: Option<Box<(RegionReader, Arc<PeerFd>)>>,
    /// True once all bytes of the socket are read. Later bytes are in the region.
    switched: bool,
    /// True once the socket has ended.
    ended: bool,
    /// Number of reads in a row that found no data.
    idle: u32,
}

#[derive(Default)]
struct Outgoing {
    /// Number of bytes sent to the socket.
    sent: u64,
    /// Number of writes to the socket. Exceeds `WRITES` from the offer on.
    writes: u32,
    ring: Option<Box<RegionWriter>>,
    /// Socket at which the reader will ring, until the reader takes part: first to answer, later
    /// for space.
    bell: Option<OwnedFd>,
    stage: Stage,
    /// True if loans are permitted.
    lends: bool,
    /// True once the reader takes part and all data goes into the region.
    switched: bool,
    /// True once the reader is gone.
    reader_closed: bool,
    /// Descriptors to send with the next bytes: the socket of the question, or a region and its
    /// socket.
    attached_fds: [Option<OwnedFd>; 2],
}

/// Known ability of the other end to share memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stage {
    Unknown,
    Asked,
    Able,
    /// A region was made, or will never be made, unless sharing has not begun yet.
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

impl std::fmt::Debug for SharedLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("puts", &self.puts).field("takes", &self.takes).finish_non_exhaustive()
    }
}

impl SharedLink {
    /// Creates the state for a socket that has not carried any data.
    pub(super) fn new() -> Option<Arc<Self>> {
        Some(Arc::new_cyclic(|own| SharedLink {
            own: own.clone(),
            incoming: Mutex::default(),
            outgoing: Mutex::default(),
            space_fd: OnceLock::new(),
            puts: AtomicBool::new(false),
            lends: AtomicBool::new(false),
            takes: AtomicBool::new(false),
        }))
    }

    /// Starts to inspect the peer's descriptors and to ask the peer in turn. `lends` permits loans,
    /// which show the peer all bodies in a slab.
    pub(super) fn begin(&self, socket: BorrowedFd<'_>, lends: bool) {
        {
            let mut incoming = lock(&self.incoming);
            (incoming.begun, incoming.borrows) = (true, lends);
        }
        {
            let mut outgoing = lock(&self.outgoing);
            (outgoing.stage, outgoing.lends) = (Stage::Unknown, lends);
        }
        rights::allow(socket);
    }

    // ---- reading

    /// Reads the available data into the buffers.
    pub(super) fn read(&self, socket: BorrowedFd<'_>, targets: &Targets<'_>) -> io::Result<usize> {
        let mut incoming = lock(&self.incoming);
        if !self.has_switched(&mut incoming) {
            let n = incoming.receive(socket, targets)?;
            // Also checked after a read with data. The read may have taken a bell, and the reader
            // must know that it has to listen again.
            if !self.has_switched(&mut incoming) || n > 0 {
                return Ok(n);
            }
        }
        incoming.take(socket, targets)
    }

    /// True if incoming data is in a region, so that looking for it takes no system call.
    pub(super) fn takes_from_memory(&self) -> bool {
        self.takes.load(Acquire)
    }

    /// True if all bytes of the socket are read and later bytes are in the region.
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
            if incoming.ring.as_ref().is_some_and(|ring| ring.0.borrows()) {
                loans::watch(self.own.clone());
            }
        }
        incoming.switched
    }

    /// Makes the socket become readable when data arrives. Called by the reader. Returns false if
    /// there is data now.
    pub(super) fn request_wakeup(&self, socket: BorrowedFd<'_>) -> bool {
        let mut incoming = lock(&self.incoming);
        !self.has_switched(&mut incoming) || incoming.request_wakeup(socket)
    }

    /// Makes the socket become readable when data arrives, for a reader that has only read data
    /// since its last request. Costs less if that request is still in force. Returns false if there
    /// is data now.
    pub(super) fn request_wakeup_again(&self, socket: BorrowedFd<'_>) -> bool {
        let mut incoming = lock(&self.incoming);
        !self.has_switched(&mut incoming) || incoming.still_listens() || incoming.request_wakeup(socket)
    }

    /// Makes a read stop before a loan, and fail with [`LOAN_AHEAD`] at one.
    pub(super) fn adopt_loans(&self) {
        lock(&self.incoming).adopts = true;
    }

    /// Takes the loan at which a read has failed, if `fits` is true for its length. Otherwise the
    /// next read copies its bytes.
    pub(super) fn take_loan(&self, fits: impl FnOnce(usize) -> bool) -> io::Result<Option<Loan>> {
        let mut incoming = lock(&self.incoming);
        let Some((ring, bell)) = incoming.ring.as_deref_mut() else { return Ok(None) };
        if ring.loan_length().is_some_and(fits)
            && let Some(loan) = ring.take_loan(bell)?
        {
            if ring.take_blocked() {
                let _ = ring_bell(bell.as_fd());
            }
            lending::add(lending::Count::Adopted, 1);
            return Ok(Some(loan));
        }
        incoming.copies = true;
        Ok(None)
    }

    // ---- writing

    /// Writes as much of the buffers as there is space for.
    pub(super) fn write(&self, socket: BorrowedFd<'_>, sources: &Sources<'_>) -> io::Result<usize> {
        let mut outgoing = lock(&self.outgoing);
        if !outgoing.switched {
            let Some(bell) = outgoing.switch() else {
                return outgoing.send(socket, sources);
            };
            let _ = self.space_fd.set(bell);
            let lends = outgoing.ring.as_ref().is_some_and(|ring| ring.lends());
            self.lends.store(lends, Release);
            self.puts.store(true, Release);
            if lends {
                loans::watch(self.own.clone());
            }
        }
        outgoing.put(socket, sources, self.space_fd.get())
    }

    /// Ends loans that the peer has returned, and the use of slabs that the peer gives back. Leaves
    /// out a direction in use, which does the same.
    pub(super) fn tidy(&self) {
        if let Ok(mut outgoing) = self.outgoing.try_lock()
            && let Some(ring) = &mut outgoing.ring
        {
            ring.tidy();
        }
        if let Ok(mut incoming) = self.incoming.try_lock()
            && let Some((ring, bell)) = incoming.ring.as_deref_mut()
        {
            ring.tidy(bell.as_fd());
        }
    }

    /// True if the reader takes loans.
    pub(super) fn lends(&self) -> bool {
        self.lends.load(Acquire)
    }

    /// Returns the socket that becomes readable when there is space again, after a write that found
    /// no space. `None` means that the stream's own socket becomes writable.
    pub(super) fn space_fd(&self) -> Option<BorrowedFd<'_>> {
        self.space_fd.get().filter(|_| self.puts.load(Acquire)).map(AsFd::as_fd)
    }
}

impl Drop for SharedLink {
    fn drop(&mut self) {
        let outgoing = self.outgoing.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let (Some(writer), Some(reader)) = (outgoing.ring.take(), self.space_fd.take()) {
            loans::keep(*writer, reader);
        }
    }
}

impl Incoming {
    /// Reads from the socket. Returns 0 if the socket has ended or all its bytes for us are read.
    fn receive(&mut self, socket: BorrowedFd<'_>, targets: &Targets<'_>) -> io::Result<usize> {
        let n = if self.ring.is_some() {
            // These are the last one or two reads. They must stop at the writer's switch to the
            // region, if that position is known.
            rights::receive(socket, &targets.beginning(self.expected()))?
        } else if self.begun {
            let (n, rights) = rights::receive_all(socket, targets)?;
            self.look_at(socket, rights);
            n
        } else {
            rights::receive(socket, targets)?
        };
        // If the writer has switched in between, the further bytes are bells.
        let n = n.min(self.expected());
        self.received += n as u64;
        Ok(n)
    }

    /// Answers a question or accepts an offer. Closes all other descriptors.
    fn look_at(&mut self, socket: BorrowedFd<'_>, mut rights: Vec<PeerFd>) {
        match (rights.pop(), rights.pop()) {
            // A peer that misses the answer will not make an offer.
            (Some(question), None) if question.is_stream() => drop(ring_bell(question.as_fd())),
            (Some(bell), Some(memory)) if rights.is_empty() && bell.is_stream() => {
                if let Ok(region) = Region::accept(&memory) {
                    self.ring = Some(Box::new((RegionReader::new(region, self.borrows), Arc::new(bell))));
                    rights::refuse(socket);
                }
            }
            _ => {}
        }
    }

    /// Returns the number of bytes still to come from the socket, as far as known.
    fn expected(&self) -> usize {
        let at = self.ring.as_ref().and_then(|ring| ring.0.switched_at()).unwrap_or(u64::MAX);
        usize::try_from(at.saturating_sub(self.received)).unwrap_or(usize::MAX)
    }

    /// Takes data from the region.
    fn take(&mut self, socket: BorrowedFd<'_>, targets: &Targets<'_>) -> io::Result<usize> {
        let Some((ring, bell)) = self.ring.as_deref_mut() else { return Ok(0) };
        let n = ring.take(targets, bell, self.adopts && !self.copies)?;
        if n > 0 {
            (self.idle, self.copies) = (0, false);
            if ring.take_blocked() {
                // A peer that is gone needs no space.
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
            self.drain_bells(socket);
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn still_listens(&mut self) -> bool {
        self.ring
            .as_mut()
            .is_some_and(|ring| ring.0.is_asleep() && !ring.0.has_bytes(ring.1.as_fd()).unwrap_or(true))
    }

    fn request_wakeup(&mut self, socket: BorrowedFd<'_>) -> bool {
        // Empty the socket before asking for a bell, so that the requested bell is not taken away.
        self.drain_bells(socket);
        let Some(ring) = self.ring.as_mut().filter(|_| !self.ended) else { return false };
        ring.0.sleep(ring.1.as_fd()).unwrap_or(false)
    }

    /// Takes the bells from the socket, and notes its end.
    fn drain_bells(&mut self, socket: BorrowedFd<'_>) {
        self.ended = self.ended || !take_bells(socket);
    }
}

impl Outgoing {
    /// Switches all later writes to the region if the reader takes part. Returns the socket at
    /// which the reader rings.
    fn switch(&mut self) -> Option<OwnedFd> {
        let ring = self.ring.as_mut().filter(|ring| ring.is_accepted())?;
        ring.switch(self.sent, self.lends);
        self.switched = true;
        self.bell.take()
    }

    /// Writes to the socket. May attach the question whether the reader can share memory, or a
    /// region if it can.
    fn send(&mut self, socket: BorrowedFd<'_>, sources: &Sources<'_>) -> io::Result<usize> {
        self.writes = self.writes.saturating_add(1);
        if self.stage != Stage::Decided {
            self.advance();
        }
        let n = match &self.attached_fds {
            [None, _] => transfer::send(socket, sources)?,
            [Some(first), second] => {
                let rights = [first.as_fd(), second.as_ref().unwrap_or(first).as_fd()];
                let rights = &rights[..1 + usize::from(second.is_some())];
                match transfer::send_with_rights(socket, sources, rights) {
                    Ok(n) => {
                        // The descriptors travel with the first byte.
                        if n > 0 {
                            self.attached_fds = [None, None];
                        }
                        n
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(error),
                    // The system may refuse descriptors although it accepts bytes: the other end
                    // takes no descriptors (EPERM), too many are in flight (ETOOMANYREFS), memory
                    // is short, or a sandbox forbids them. We then send the bytes alone. An error
                    // of the stream itself will repeat.
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

    /// Keeps the stream on the socket.
    fn give_up(&mut self) {
        (self.ring, self.bell, self.attached_fds) = (None, None, [None, None]);
        self.stage = Stage::Decided;
    }

    /// Asks, looks for the answer, or makes a region, when it is time.
    fn advance(&mut self) {
        match self.stage {
            Stage::Unknown if self.writes > PATIENCE => self.stage = Stage::Decided,
            Stage::Unknown if self.writes >= ASK && self.writes.is_power_of_two() => {
                if let Ok((mine, yours)) = bell() {
                    self.bell = Some(mine);
                    self.attached_fds = [Some(yours), None];
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
            // Start counting `PATIENCE` now, however long a region could not be made.
            self.writes = WRITES;
            if let Ok(offer) = self.make_offer() {
                self.attached_fds = offer.map(Some);
            }
        }
    }

    /// Makes a region. Returns the two descriptors that the other end needs: the memory, and the
    /// socket to ring.
    fn make_offer(&mut self) -> io::Result<[OwnedFd; 2]> {
        let (region, memory) = Region::create()?;
        let (mine, yours) = bell()?;
        self.ring = Some(Box::new(RegionWriter::new(region)));
        self.bell = Some(mine);
        Ok([memory, yours])
    }

    fn put(
        &mut self,
        socket: BorrowedFd<'_>,
        sources: &Sources<'_>,
        room: Option<&OwnedFd>,
    ) -> io::Result<usize> {
        let Some(ring) = self.ring.as_mut().filter(|_| !self.reader_closed) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        // Empty the socket before asking for the next bell, so that the requested bell is not taken
        // away.
        let n =
            ring.put(sources, room.map(AsFd::as_fd), || room.is_some_and(|room| take_bells(room.as_fd())))?;
        if n > 0 && ring.take_asleep() {
            // The peer may have read the published data already. As with a socket, the next write
            // fails.
            self.reader_closed = ring_bell(socket).is_err();
        }
        if n == 0 && sources.raw().iter().any(|raw| raw.iov_len > 0) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(n)
    }
}

/// Creates a socket to be rung at, which accepts bytes only, and the end that rings it.
fn bell() -> io::Result<(OwnedFd, OwnedFd)> {
    let (mine, yours) = sys::socket_pair()?;
    rights::refuse(mine.as_fd());
    Ok((mine, yours))
}

/// Wakes the thread that waits at the other end of this socket. A socket full of bells has the same
/// effect.
fn ring_bell(socket: BorrowedFd<'_>) -> io::Result<()> {
    match transfer::send(socket, &Sources::one(&[0])) {
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
        _ => Ok(()),
    }
}

/// Takes all waiting bells. Returns false if the other end is gone or misbehaves. A correct peer
/// rings once per request, and we request again only after its bell. So a peer that has rung
/// `MOST_BELLS` times is faulty.
fn take_bells(socket: BorrowedFd<'_>) -> bool {
    let mut bells = [MaybeUninit::uninit(); MOST_BELLS];
    match rights::receive(socket, &Targets::one(&mut bells)) {
        Ok(n) => (1..MOST_BELLS).contains(&n),
        Err(error) => error.kind() == io::ErrorKind::WouldBlock,
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
