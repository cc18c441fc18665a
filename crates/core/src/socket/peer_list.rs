//! The peers of a socket, for the program: our own options ZMQ_TAUTLINE_PEERS and the waits for
//! peers and subscriptions. These options use counters that exist anyway, so they add no cost per
//! message.

use super::{PollEvents, Socket, signals};
use crate::error::Error;
use crate::pipe::{PeerReport, PeerState};
use std::time::{Duration, Instant};

/// Bytes of a `zmq_tautline_peer_t`.
const RECORD: usize = 1168;
/// Sizes in bytes of the texts in a record, each with a terminating NUL. In order: address, local,
/// endpoint, user id, host, mechanism.
const TEXTS: [usize; 6] = [128, 128, 256, 192, 64, 16];
/// Maximum number of bytes of the routing id in a record.
const ROUTING_ID: usize = 256;

const CONNECTED_HERE: u32 = 1;
const SHARED_MEMORY: u32 = 2;

/// Maximum time between two checks for news from peers.
const SLICE: Duration = Duration::from_millis(10);

impl Socket {
    /// Returns the current peers with their counters, without the times of the last activity. A
    /// peer that is being connected to is included.
    ///
    /// # Errors
    /// [`Error::Terminated`].
    pub fn peers(&mut self) -> Result<Vec<PeerReport>, Error> {
        self.check_alive()?;
        Ok(self.pipes.all().into_iter().filter_map(|id| self.pipes.describe_with_counters(id)).collect())
    }

    /// Waits until at least this many peers are connected. A `deadline` of `None` means for ever.
    ///
    /// # Errors
    /// [`Error::Again`] at the deadline, [`Error::Terminated`], [`Error::Interrupted`].
    pub fn wait_for_peers(&mut self, count: usize, deadline: Option<Instant>) -> Result<(), Error> {
        self.wait_until(deadline, |socket| {
            let peers = socket.pipes.all();
            let connected = peers
                .into_iter()
                .filter(|id| socket.pipes.state(*id) == Some(PeerState::Connected))
                .take(count);
            connected.count() == count
        })
    }

    /// Waits until the peers of a PUB or XPUB have subscribed to at least this many different
    /// topics. A `deadline` of `None` means for ever.
    ///
    /// # Errors
    /// [`Error::NotSupported`] for types without topics, and as [`Socket::wait_for_peers`].
    pub fn wait_for_subscriptions(&mut self, count: usize, deadline: Option<Instant>) -> Result<(), Error> {
        self.check_alive()?;
        if self.pattern.topics_count().is_none() {
            return Err(Error::NotSupported);
        }
        self.wait_until(deadline, |socket| {
            // Some pipes (inproc) do not announce new subscriptions.
            socket.pattern.can_recv(&mut socket.pipes);
            while socket.pattern.has_more_to_do() {
                socket.pattern.can_recv(&mut socket.pipes);
            }
            socket.pattern.topics_count().is_some_and(|topics| topics >= count)
        })
    }

    fn wait_until(
        &mut self,
        deadline: Option<Instant>,
        mut holds: impl FnMut(&mut Self) -> bool,
    ) -> Result<(), Error> {
        let outcome = loop {
            if let Err(error) = self.check_alive() {
                break Err(error);
            }
            if holds(self) {
                break Ok(());
            }
            let now = Instant::now();
            if deadline.is_some_and(|deadline| deadline <= now) {
                break Err(Error::Again);
            }
            let slice = now + SLICE;
            let until = deadline.map_or(slice, |deadline| deadline.min(slice));
            match self.wait(PollEvents { read: false, write: false }, Some(until)) {
                Ok(()) | Err(Error::Again) => {}
                Err(error) => break Err(error),
            }
        };
        // The result reports peers only, so signal messages and room to the program again.
        signals::signal_again(self);
        outcome
    }

    /// Writes as many peers as fit into `out`, a `zmq_tautline_peer_t` each. Returns the number of
    /// bytes written.
    pub(super) fn write_peers(&mut self, out: &mut [u8]) -> Result<usize, Error> {
        let peers = self.peers()?;
        let places = out.chunks_exact_mut(RECORD);
        Ok(places.zip(&peers).map(|(place, peer)| write_peer(place, peer)).count() * RECORD)
    }

    /// Waits for the number of peers, or of subscriptions, in `value`, for at most ZMQ_SNDTIMEO.
    /// For the options that do the same as [`Socket::wait_for_peers`] and
    /// [`Socket::wait_for_subscriptions`].
    pub(super) fn wait_by_option(&mut self, subscriptions: bool, value: &[u8]) -> Result<(), Error> {
        let number = <[u8; 4]>::try_from(value).map(i32::from_ne_bytes);
        let count = number.ok().and_then(|number| usize::try_from(number).ok()).ok_or(Error::Invalid)?;
        let deadline = self.pipes.options.send_timeout.and_then(|time| Instant::now().checked_add(time));
        if subscriptions {
            self.wait_for_subscriptions(count, deadline)
        } else {
            self.wait_for_peers(count, deadline)
        }
    }
}

/// Writes a peer. `place` has the right size.
fn write_peer(place: &mut [u8], peer: &PeerReport) {
    let flags = if peer.connected_here { CONNECTED_HERE } else { 0 }
        | if peer.shared_memory { SHARED_MEMORY } else { 0 };
    let routing_id = &peer.routing_id[..peer.routing_id.len().min(ROUTING_ID)];
    let numbers = [
        peer.id,
        peer.since,
        peer.messages_out,
        peer.bytes_out,
        peer.messages_in,
        peer.bytes_in,
        peer.queued_out,
        peer.queued_out_bytes,
        peer.queued_in,
        peer.queued_in_bytes,
        peer.dropped,
        peer.full,
        peer.reconnects,
        peer.round_trip_us,
    ];
    let small = [peer.state as u32, flags, routing_id.len() as u32, 0];
    let texts = [&peer.address, &peer.local, &peer.endpoint, &peer.user_id, &peer.host, &peer.mechanism];
    let mut bytes = Vec::with_capacity(RECORD);
    numbers.iter().for_each(|number| bytes.extend(number.to_ne_bytes()));
    small.iter().for_each(|number| bytes.extend(number.to_ne_bytes()));
    bytes.extend(routing_id);
    bytes.resize(bytes.len() + ROUTING_ID - routing_id.len(), 0);
    for (text, room) in texts.iter().zip(TEXTS) {
        // Truncate the text so that the NUL fits.
        let text = &text.as_bytes()[..text.len().min(room - 1)];
        bytes.extend(text);
        bytes.resize(bytes.len() + room - text.len(), 0);
    }
    place.iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte);
}
