//! The I/O thread's view of a socket: enough to serve its connections, even after the socket was
//! closed and lingers.

use std::io::ErrorKind;
use std::sync::OnceLock;
use std::time::Duration;

use super::small_map::{Keyed, SmallMap};
use super::wire::Wire;
use super::{Acceptor, DatagramPort, Dialer, Driver, EventLoop, Ticket};
use crate::conn::reader::ReadSet;
use crate::conn::{
    Connection, ConnectionEvent, ConnectionKind, Handover, IoSide, Loss, NewPipe, SocketInbox,
};
use crate::host::{Admission, SocketReport};
use crate::monitor::EventDispatcher;
use crate::options::Options;
use crate::zap::ZapRegistry;
use tautline_io::net::Stream;
use tautline_io::reactor::{Interest, Token};
use tautline_queue::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use tautline_queue::sync::atomic::{AtomicBool, AtomicU64};
use tautline_queue::sync::{Arc, Mutex, lock};

/// An I/O thread with more sockets than this releases the memory of idle sockets.
const MANY: usize = 64;

/// A socket as its I/O thread sees it. Lives until the socket is closed and all its endpoints have
/// stopped lingering.
pub(crate) struct Site {
    pub(crate) kind: ConnectionKind,
    pub(crate) inbox: Arc<SocketInbox>,
    /// The connections to read. Empty until the socket can have a connection.
    set: OnceLock<Arc<ReadSet>>,
    pub(crate) driver: Arc<Driver>,
    pub(crate) events: Arc<EventDispatcher>,
    /// The report for tools, if the socket is observed.
    pub(super) report: Option<Arc<dyn SocketReport>>,
    /// Residents by their memory addresses. A socket has one or two of them, or thousands.
    residents: Mutex<SmallMap<Resident>>,
    /// The open stream of each connection, by the memory address of the connection.
    open_wires: Mutex<SmallMap<OpenWire>>,
    closed: AtomicBool,
    /// True if the program wants an event for each peer that connects or disconnects.
    // Relaxed: number: an option that is set while a peer disconnects counts for this peer or the
    // next.
    announces_peers: AtomicBool,
    /// Number of failed handshakes and, below, of failed attempts to connect.
    // Relaxed: number, for statistics.
    pub(crate) failed_handshakes: AtomicU64,
    // Relaxed: number, for statistics.
    pub(crate) failed_connects: AtomicU64,
    /// The place where the context's ZAP handler is registered.
    pub(super) desk: Arc<ZapRegistry>,
    /// The host's policy, if there was one when an endpoint was bound or connected.
    admission: OnceLock<Arc<dyn Admission>>,
    /// Must be the last field, and so be dropped last: the context waits for this ticket.
    _ticket: Ticket,
}

impl IoSide for Site {
    fn hand_over(&self, work: Handover) -> u32 {
        self.driver.hand_over(work)
    }

    fn report(self: Arc<Self>, connection: Arc<Connection>, event: ConnectionEvent) {
        let driver = self.driver.clone();
        driver.post(Box::new(move |turn| {
            let wire = self.open_wire_of(&connection);
            let of_session = |number| wire.as_ref().filter(|wire| wire.carries(&connection, number));
            let linger = connection.options.linger;
            match event {
                ConnectionEvent::Unwritable(session, errno) => {
                    of_session(session).inspect(|wire| wire.handle_unwritable(turn, errno));
                }
                ConnectionEvent::Ended(session, why) => {
                    of_session(session).inspect(|wire| wire.end(turn, why));
                }
                ConnectionEvent::GrantedTtl(session) => {
                    of_session(session).inspect(|wire| wire.watch_ttl(turn));
                }
                ConnectionEvent::RefusalSeen => {
                    self.dialer_of(&connection).inspect(|dialer| dialer.handle_refusal_notice(turn));
                }
                ConnectionEvent::GivenUp => match wire {
                    Some(wire) if wire.is_accepted() => wire.linger(turn, linger),
                    _ => {
                        self.dialer_of(&connection).inspect(|dialer| dialer.linger(turn, linger));
                    }
                },
            }
        }));
    }

    fn want_write(&self, stream: &Stream, registration: Token, idle: Interest) -> bool {
        self.driver.want_write(stream, registration, idle)
    }

    fn read_set(&self) -> Option<&Arc<ReadSet>> {
        self.set.get()
    }

    fn announces_peers(&self) -> bool {
        self.announces_peers.load(Relaxed)
    }

    fn serves_many(&self) -> bool {
        self.driver.load.load(Relaxed) > MANY
    }

    fn sweeper_is_idle(&self) -> bool {
        self.driver.sweep.is_idle()
    }
}

/// A part of a socket that lives on the I/O thread independently.
#[derive(Clone)]
pub(crate) enum Resident {
    /// An accepted stream, from its handshake to its end. A dialed stream belongs to its dialer.
    Wire(Arc<Wire>),
    /// A connected endpoint, which reconnects.
    Dialer(Arc<Dialer>),
    /// An endpoint for datagrams.
    Datagram(Arc<DatagramPort>),
}

impl Keyed for Resident {
    fn key(&self) -> usize {
        match self {
            Resident::Wire(wire) => Arc::as_ptr(wire).addr(),
            Resident::Dialer(dialer) => Arc::as_ptr(dialer).addr(),
            Resident::Datagram(port) => Arc::as_ptr(port).addr(),
        }
    }
}

/// The memory address of a connection, and its open stream.
struct OpenWire(usize, Arc<Wire>);

impl Keyed for OpenWire {
    fn key(&self) -> usize {
        self.0
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.events.listen(0, None);
        self.driver.load.fetch_sub(1, Relaxed);
    }
}

impl Site {
    /// Creates a site without residents. The ticket is dropped with it.
    pub(crate) fn new(
        kind: ConnectionKind,
        inbox: Arc<SocketInbox>,
        driver: Arc<Driver>,
        tap: Arc<EventDispatcher>,
        report: Option<Arc<dyn SocketReport>>,
        desk: Arc<ZapRegistry>,
        ticket: Ticket,
    ) -> Self {
        Site {
            kind,
            inbox,
            set: OnceLock::new(),
            driver,
            events: tap,
            report,
            residents: Mutex::default(),
            open_wires: Mutex::default(),
            closed: AtomicBool::new(false),
            announces_peers: AtomicBool::new(false),
            failed_handshakes: AtomicU64::new(0),
            failed_connects: AtomicU64::new(0),
            desk,
            admission: OnceLock::new(),
            _ticket: ticket,
        }
    }

    /// Owner: puts the host's policy in force for all later peers.
    pub(crate) fn set_admission(&self, admission: &Arc<dyn Admission>) {
        if self.admission.get().is_none() {
            let _ = self.admission.set(admission.clone());
        }
    }

    /// The policy of the host, if there is one.
    pub(super) fn admission(&self) -> Option<&Arc<dyn Admission>> {
        self.admission.get()
    }

    /// Owner: creates the set of connections to read. The I/O thread supervises it from now on.
    pub(crate) fn open_set(&self) -> std::io::Result<Arc<ReadSet>> {
        if let Some(set) = self.set.get() {
            return Ok(set.clone());
        }
        let set = ReadSet::new(self.inbox.clone(), self.driver.clone())?;
        let _ = self.set.set(set.clone());
        self.driver.watch_set(set.clone());
        Ok(set)
    }

    /// Owner: sets if the program wants an event for each peer that connects or disconnects.
    pub(crate) fn set_announces_peers(&self, announces: bool) {
        self.announces_peers.store(announces, Relaxed);
    }

    /// True if the I/O thread has, or may have, work for this socket.
    pub(crate) fn is_in_use(&self) -> bool {
        self.set.get().is_some() || lock(&self.residents).values().next().is_some()
    }

    /// Adds a connection to the read set. `open` opens its session; the connection is read from
    /// then on.
    pub(super) fn add_to_set(
        &self,
        connection: &Arc<Connection>,
        open: impl FnOnce(),
    ) -> std::io::Result<()> {
        let Some(set) = self.set.get() else {
            open();
            return Err(ErrorKind::NotFound.into());
        };
        set.admit(connection.clone(), open)
    }

    /// Stops reading a connection.
    pub(super) fn remove_from_set(&self, connection: &Arc<Connection>) {
        if let Some(set) = self.set.get() {
            set.remove(connection);
        }
    }

    /// Reads the final bytes of a connection whose peer has ended its side.
    pub(super) fn read_to_end(&self, connection: &Arc<Connection>) {
        if let Some(set) = self.set.get() {
            set.read_to_end(connection);
        }
    }

    /// Creates a connection without a session, and its owner's queue ends.
    pub(crate) fn new_connection(self: &Arc<Self>, options: Arc<Options>) -> (Arc<Connection>, NewPipe) {
        Connection::new(self.kind, options, self.inbox.clone(), self.clone())
    }

    /// Adds a resident.
    pub(crate) fn enter(&self, resident: Resident) {
        let former = lock(&self.residents).insert(resident);
        drop(former);
    }

    /// Removes a resident.
    pub(super) fn leave(&self, resident: &Resident) {
        let gone = lock(&self.residents).remove(resident.key());
        // Drop it after the lock is released: this may be the last reference to other objects.
        drop(gone);
    }

    /// All residents now.
    pub(super) fn residents(&self) -> Vec<Resident> {
        lock(&self.residents).values().cloned().collect()
    }

    /// The connections of the peers that a bound endpoint has accepted.
    pub(crate) fn accepted_by(&self, acceptor: &Arc<Acceptor>) -> Vec<Arc<Connection>> {
        let residents = self.residents();
        let wires = residents.iter().filter_map(|resident| match resident {
            Resident::Wire(wire) if wire.is_accepted_by(acceptor) => wire.connection(),
            _ => None,
        });
        wires.collect()
    }

    /// The open stream of a connection.
    fn open_wire_of(&self, connection: &Arc<Connection>) -> Option<Arc<Wire>> {
        lock(&self.open_wires).get(Arc::as_ptr(connection).addr()).map(|carrier| carrier.1.clone())
    }

    /// Sets the open stream of `connection`, or removes it when the stream ends.
    pub(super) fn set_open_wire(&self, connection: &Arc<Connection>, wire: Option<&Arc<Wire>>) {
        let address = Arc::as_ptr(connection).addr();
        let former = match wire {
            Some(wire) => lock(&self.open_wires).insert(OpenWire(address, wire.clone())),
            None => lock(&self.open_wires).remove(address),
        };
        drop(former);
    }

    /// The dialer that a connection belongs to.
    fn dialer_of(&self, connection: &Arc<Connection>) -> Option<Arc<Dialer>> {
        lock(&self.residents).values().find_map(|resident| match resident {
            Resident::Dialer(dialer)
                if dialer.current().is_some_and(|mine| Arc::ptr_eq(&mine, connection)) =>
            {
                Some(dialer.clone())
            }
            _ => None,
        })
    }

    /// True if the socket is closed. A closed socket receives no messages.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Acquire)
    }

    /// Closes the socket. Queued messages are still sent for at most `linger` (`None`: without a
    /// limit).
    pub(crate) fn close(self: &Arc<Self>, linger: Option<Duration>) {
        self.closed.store(true, Release);
        let site = self.clone();
        self.driver.post(Box::new(move |turn: &mut EventLoop| {
            for resident in site.residents() {
                match resident {
                    Resident::Dialer(dialer) => dialer.linger(turn, linger),
                    Resident::Wire(wire) => wire.linger(turn, linger),
                    // The owner closes its pipe, which ends the endpoint.
                    Resident::Datagram(_) => {}
                }
            }
            if let Some(set) = site.set.get() {
                site.driver.unwatch_set(set.clone());
            }
        }));
    }

    /// Drops all messages that are still queued after the socket was closed.
    pub(crate) fn drop_unsent(self: &Arc<Self>) {
        let site = self.clone();
        self.driver.post(Box::new(move |turn: &mut EventLoop| {
            for resident in site.residents() {
                match resident {
                    Resident::Dialer(dialer) => dialer.stop(turn),
                    Resident::Wire(wire) => wire.end(turn, Loss::Closed),
                    Resident::Datagram(port) => port.end(turn),
                }
            }
        }));
    }
}
