//! A `udp` endpoint: the far side of a pipe whose near side belongs to a RADIO, DISH or DGRAM.
//!
//! The pipe is an inproc one, and to the owner this endpoint looks like the other socket of the
//! pipe. The owner's thread sends the owner's messages itself ([`Device::serve`]). The I/O thread
//! receives, and sends the messages that the kernel did not accept. Datagrams have no connection,
//! so there are no events for connects or disconnects. At the receive high-water mark datagrams
//! stay in the kernel, which drops them when its buffer is full.
//!
//! A datagram of RADIO is one octet with the length of the group, the group, the body. A datagram
//! of DGRAM is the body alone; its address is the first part of the message.

use std::net::SocketAddr;
use std::sync::Weak;
use std::time::Duration;

use super::{EventLoop, EventSource, Resident, Site};
use crate::conn::inproc::{Device, Offer};
use crate::conn::{News, SocketInbox, Waker};
use crate::error::Error;
use std::io::ErrorKind;
use tautline_io::net::{Address, Datagram};
use tautline_io::reactor::{Event, Interest, Mode, Token};
use tautline_io::resolve::parse_literal;
use tautline_io::wake::WakeFd;
use tautline_proto::frame;
use tautline_queue::handoff::inbox::Inbox;
use tautline_queue::message::Message;
use tautline_queue::sync::atomic::AtomicU8;
use tautline_queue::sync::atomic::Ordering::Relaxed;
use tautline_queue::sync::{Arc, Mutex, lock};
use tautline_queue::{FrameHead, FrameReader, FrameWriter};

/// Number of datagrams that are received before other sources get their turn.
const BATCH: usize = 64;
/// Size of the receive buffer: the longest datagram of either address family fits.
const ROOM: usize = 65_536;

/// Format of the datagrams of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Group and body, sent to one destination or received from any address.
    Groups,
    /// Bodies, to and from any address.
    Raw,
}

/// This side's queue ends, and the datagrams in progress.
struct Far {
    offer: Offer,
    /// Destination of all datagrams (RADIO), once it is known.
    destination: Option<SocketAddr>,
    /// The datagram being built, or one that the kernel did not accept, and its destination.
    outgoing: Vec<u8>,
    to: Option<SocketAddr>,
    incoming: Vec<u8>,
    closed: bool,
    /// True if the owner has released its side and its messages wait for the destination.
    lingers: bool,
    /// Maximum time that these messages may wait (ZMQ_LINGER).
    linger: Option<Duration>,
    linger_timer: u64,
}

/// A `udp` endpoint.
pub(crate) struct DatagramPort {
    site: Arc<Site>,
    /// Canonical text of the endpoint.
    name: Box<str>,
    form: Form,
    /// True if the endpoint receives.
    receives: bool,
    socket: Datagram,
    inbox: Arc<SocketInbox>,
    wake: Arc<WakeFd>,
    far: Mutex<Far>,
    /// Registrations of the socket and of the wake descriptor.
    tokens: Mutex<Option<(Token, Token)>>,
    /// Interest of the socket's registration: reading (1), writing (2).
    // Relaxed: own: accessed only under the lock of `tokens`.
    interest: AtomicU8,
}

impl DatagramPort {
    /// True if the endpoint receives, false if it sends.
    pub(crate) fn receives(&self) -> bool {
        self.receives
    }

    /// Starts to serve `socket` on the I/O thread. `offer` is this side's end of the pipe; the
    /// other end is the owner's. If there is no `destination` yet, [`DatagramPort::aim`] sets it
    /// later, or each message has its own.
    pub(crate) fn start(
        site: &Arc<Site>,
        name: &str,
        socket: Datagram,
        offer: Offer,
        form: Form,
        receives: bool,
        destination: Option<SocketAddr>,
    ) -> Result<Arc<Self>, Error> {
        let inbox = Arc::new(Inbox::new(Waker::new()));
        let wake = inbox.waker().descriptor()?;
        inbox.expose();
        // The owner's effective high-water mark is its own plus this one.
        offer.end.attach(&inbox, 0, 1);
        offer.end.refuse_commands();
        let port = Arc::new(DatagramPort {
            site: site.clone(),
            name: name.into(),
            form,
            receives,
            socket,
            inbox,
            wake,
            far: Mutex::new(Far {
                offer,
                destination,
                outgoing: Vec::new(),
                to: None,
                incoming: Vec::new(),
                closed: false,
                lingers: false,
                linger: None,
                linger_timer: 0,
            }),
            tokens: Mutex::new(None),
            interest: AtomicU8::new(receives.into()),
        });
        let weak: Weak<DatagramPort> = Arc::downgrade(&port);
        lock(&port.far).offer.end.serve(weak);
        site.enter(Resident::Datagram(port.clone()));
        let newborn = port.clone();
        site.driver.post(Box::new(move |turn| newborn.register(turn)));
        Ok(port)
    }

    /// The canonical text of the endpoint.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Sets the time that the owner's messages may wait for the destination, before the owner
    /// releases its side.
    pub(crate) fn set_linger(&self, linger: Option<Duration>) {
        lock(&self.far).linger = linger;
    }

    /// Sets the resolved destination. `None` means that there is no destination and all messages
    /// are dropped.
    pub(crate) fn aim(self: &Arc<Self>, destination: Option<SocketAddr>) {
        let lingers = {
            let mut far = lock(&self.far);
            far.destination = destination;
            far.closed |= destination.is_none();
            far.lingers
        };
        self.serve();
        if lingers {
            let port = self.clone();
            self.site.driver.post(Box::new(move |turn| port.end(turn)));
        }
    }

    /// Handles an owner that has released its side. Its messages wait for the destination, but not
    /// longer than ZMQ_LINGER.
    fn linger(self: &Arc<Self>, turn: &mut EventLoop) {
        let waits = {
            let mut far = lock(&self.far);
            let Far { offer, destination, closed, lingers, linger, linger_timer, .. } = &mut *far;
            let unsent = offer.incoming.as_mut().is_ok_and(|reader| reader.is_ready());
            let aimless = self.form == Form::Groups && destination.is_none() && !*closed;
            *lingers = aimless && unsent && *linger != Some(Duration::ZERO);
            if let (true, Some(time)) = (*lingers, *linger) {
                *linger_timer = turn.set_timer(time, self);
            }
            *lingers
        };
        if !waits {
            self.end(turn);
        }
    }

    /// Sends the queued messages that the kernel accepts, then ends.
    pub(super) fn end(self: &Arc<Self>, turn: &mut EventLoop) {
        self.serve();
        if let Some((socket, wake)) = lock(&self.tokens).take() {
            turn.unregister(socket, self.socket.as_fd());
            turn.unregister(wake, self.wake.as_fd());
        }
        lock(&self.far).closed = true;
        self.site.leave(&Resident::Datagram(self.clone()));
    }

    fn register(self: &Arc<Self>, turn: &mut EventLoop) {
        let interest = if self.receives { Interest::READ } else { Interest::NONE };
        let Ok(socket) = turn.register(self.clone(), self.socket.as_fd(), interest, Mode::Level) else {
            return self.end(turn);
        };
        match turn.register(self.clone(), self.wake.as_fd(), Interest::READ, Mode::Level) {
            Ok(wake) => *lock(&self.tokens) = Some((socket, wake)),
            Err(_) => {
                turn.unregister(socket, self.socket.as_fd());
                self.end(turn);
            }
        }
    }

    fn listen_for(&self, read: bool, write: bool) {
        let interest = match (read, write) {
            (false, false) => Interest::NONE,
            (true, false) => Interest::READ,
            (false, true) => Interest::WRITE,
            (true, true) => Interest::BOTH,
        };
        let bits = u8::from(read) | u8::from(write) << 1;
        if let Some((socket, _)) = *lock(&self.tokens)
            && self.interest.swap(bits, Relaxed) != bits
        {
            self.site.driver.rearm(self.socket.as_fd(), socket, interest, Mode::Level);
        }
    }

    /// Sends the queued messages, and makes room for a sender that waits for it. Returns false if
    /// the kernel accepts no more at the moment.
    fn flush(&self) -> bool {
        let mut far = lock(&self.far);
        let taken = self.send(&mut far);
        if let Ok(reader) = &mut far.offer.incoming {
            reader.credit();
        }
        far.offer.end.notify_room();
        taken
    }

    /// Receives datagrams. Returns true if reading should go on because there is room for more. If
    /// not, the owner reports when there is room.
    fn receive(&self) -> bool {
        let mut far = lock(&self.far);
        let Far { offer, incoming, .. } = &mut *far;
        let Ok(writer) = &mut offer.outgoing else { return false };
        writer.set_limit(offer.end.send_limit(1));
        incoming.resize(ROOM, 0);
        let mut any = false;
        let mut goes_on = true;
        for _ in 0..BATCH {
            if !writer.has_room() {
                offer.end.request_room(writer.limit());
                tautline_queue::sync::barrier_heavy();
                if !writer.has_room() {
                    goes_on = false;
                    break;
                }
            }
            match self.socket.receive(incoming) {
                Ok((len, from)) => any |= self.deliver(writer, &incoming[..len], from),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // A port at some destination was closed. The next datagram is independent of this
                // error.
                Err(_) => {}
            }
        }
        if any {
            offer.end.notify();
        }
        goes_on
    }

    fn deliver(&self, writer: &mut FrameWriter, datagram: &[u8], from: SocketAddr) -> bool {
        let name;
        let (first, second) = match self.form {
            Form::Raw => {
                name = Address::Inet(from).to_string();
                (name.as_bytes(), datagram)
            }
            Form::Groups => {
                let split = datagram.split_first().and_then(|(&len, rest)| rest.split_at_checked(len.into()));
                // This datagram is not from a RADIO.
                let Some((group, body)) = split else { return false };
                (group, body)
            }
        };
        // If there is no memory for a datagram, it is lost, as any datagram may be.
        let queued = writer.append(frame::MORE, first).and_then(|()| writer.append(0, second)).is_ok();
        if queued {
            writer.publish()
        } else {
            writer.rollback()
        }
        queued
    }

    /// Sends the queued messages. Returns false if the kernel accepts no more at the moment.
    fn send(&self, far: &mut Far) -> bool {
        let Far { offer, destination, outgoing, to, closed, .. } = far;
        let Ok(reader) = &mut offer.incoming else { return true };
        loop {
            if let Some(address) = to {
                match self.socket.send(outgoing, address) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock && !*closed => return false,
                    // The datagram was sent, or it failed for a reason that a retry would not
                    // change.
                    _ => *to = None,
                }
            }
            if self.form == Form::Groups && destination.is_none() && !*closed {
                // The destination is not known yet.
                return true;
            }
            let Some(address) = next_datagram(reader, self.form, outgoing) else { return true };
            // Datagrams that are too long are dropped by the system. Datagrams without a
            // destination are dropped here.
            *to = match self.form {
                Form::Groups => *destination,
                Form::Raw => address,
            };
        }
    }
}

/// Makes a datagram of the next message: its body, and for RADIO the group before it. Returns the
/// address in DGRAM's first part. Returns `None` if there is no message. If there is no memory for
/// a message, it is lost, as any datagram may be.
fn next_datagram(reader: &mut FrameReader, form: Form, out: &mut Vec<u8>) -> Option<Option<SocketAddr>> {
    let mut part = Message::new();
    while reader.is_ready() {
        let head = read_or_skip(reader, &mut part)?;
        if head.is_none_or(|head| head.flags & (frame::COMMAND | frame::MORE) != frame::MORE) {
            continue;
        }
        out.clear();
        let name = part.as_slice();
        let mut address = None;
        match (form, u8::try_from(name.len())) {
            (Form::Groups, Ok(len)) => {
                out.push(len);
                out.extend_from_slice(name);
            }
            (Form::Groups, Err(_)) => {}
            (Form::Raw, _) => {
                address = std::str::from_utf8(name).ok().and_then(read_address);
            }
        }
        let mut body = Message::new();
        if read_or_skip(reader, &mut body)?.is_some() && out.try_reserve(body.len()).is_ok() {
            out.extend_from_slice(body.as_slice());
            return Some(address);
        }
    }
    None
}

/// Reads the next part, if there is one. Returns `Some(None)` if the part was dropped because there
/// was no memory for it.
fn read_or_skip(reader: &mut FrameReader, out: &mut Message) -> Option<Option<FrameHead>> {
    let read = reader.read_message(out);
    if read.is_err() {
        reader.skip();
    }
    read.map_or(Some(None), |head| head.map(Some))
}

/// Parses an address in the form that ZMQ_LAST_ENDPOINT shows behind the scheme.
fn read_address(text: &str) -> Option<SocketAddr> {
    text.parse().ok().or_else(|| {
        // An IPv6 zone may be given by its name.
        let (host, port) = text.rsplit_once(':').filter(|_| text.starts_with('['))?;
        parse_literal(host, port.parse().ok()?)
    })
}

impl Device for DatagramPort {
    fn serve(&self) {
        if !self.flush() {
            self.listen_for(self.receives, true);
        }
    }
}

impl EventSource for DatagramPort {
    fn on_ready(self: Arc<Self>, turn: &mut EventLoop, event: &Event) {
        let woken = lock(&self.tokens).is_some_and(|(_, wake)| wake == event.token);
        if woken {
            self.inbox.waker().clear();
            let mut news = self.inbox.drain().into_iter();
            if news.any(|news| matches!(news, News::PeerClosed(_))) {
                return self.linger(turn);
            }
        }
        let taken = self.flush();
        let read = self.receives && self.receive();
        self.listen_for(read, !taken);
    }

    fn on_timer(self: Arc<Self>, turn: &mut EventLoop, key: u64) {
        let due = lock(&self.far).linger_timer == key;
        if due {
            self.end(turn);
        }
    }
}
