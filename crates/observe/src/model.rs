//! The parts of a reading: all known facts about a process. The fields are in the order of the
//! file. New fields are added at the end.
//!
//! Times are microseconds since 1970 (UTC); 0 means never. Counts begin when their object is
//! created. A message counts once all its parts are there; bytes are those of whole frames.

use std::collections::HashMap;

use crate::record::record;
use crate::states::{DiscardReason, EndpointState, LoanState, PeerState, SocketState};

record! {
    /// The process, and the snapshot of this reading.
    Process = 1
    numbers {
        /// Process ID.
        pid: u32,
        /// User ID.
        uid: u32,
        /// Start time in system ticks since boot; 0 if unknown. Together with `pid` it identifies
        /// the process.
        start_ticks: u64,
        /// Start of the observation.
        since: u64,
        /// Time of this snapshot.
        written: u64,
        /// Microseconds between two snapshots.
        interval_us: u64,
        /// Nanoseconds of processor time that the last snapshot took.
        look_ns: u64,
        /// Number of snapshots so far.
        looks: u64,
        /// Number of records that did not fit.
        omitted: u64,
        /// Number of events so far, including events that are not kept any longer.
        events: u64,
    }
    texts {
        /// Name of the program: TAUT_NAME, the script of an interpreter, or the file. Without
        /// arguments.
        program: String,
        /// Version of the library.
        version: String,
        /// Path of the control socket for taps; empty without one.
        tap: String,
    }
}

record! {
    /// A context.
    Context = 2
    numbers {
        /// ID within the process.
        id: u64,
        /// Creation time.
        since: u64,
        /// Number of I/O threads.
        io_threads: u64,
        /// Most sockets of the context.
        max_sockets: u64,
        /// Time since which the program waits for the context to terminate; 0 if it does not wait.
        terminating: u64,
        /// Number of sockets that the program has closed and that are gone.
        closed_sockets: u64,
        /// Messages that these sockets discarded unsent, because ZMQ_LINGER or the end of a peer
        /// allowed no more time.
        closed_discarded: u64,
        /// Number of these sockets that discarded messages.
        closed_discarding: u64,
        /// Time at which the last of them ended that discarded messages, or whose messages matched
        /// no subscription.
        closed_last: u64,
        /// ZMQ_LINGER of that socket in milliseconds; -1 is infinite.
        closed_linger_ms: i64,
        /// Messages of these sockets that matched no subscription.
        closed_unmatched: u64,
    }
    texts {
        /// Type of that socket: `PUSH`.
        closed_type: String,
        /// Its first endpoint.
        closed_endpoint: String,
    }
}

record! {
    /// A socket.
    Socket = 3
    numbers {
        /// ID within the process.
        id: u64,
        /// ID of its context.
        context: u64,
        /// Number of its type, as in `zmq.h`.
        type_code: u32,
        /// State of the socket.
        state: SocketState,
        /// Creation time.
        since: u64,
        /// ZMQ_SNDHWM; 0 is unlimited.
        send_hwm: u64,
        /// ZMQ_RCVHWM; 0 is unlimited.
        receive_hwm: u64,
        /// ZMQ_LINGER in milliseconds; -1 is infinite.
        linger_ms: i64,
        /// ZMQ_HEARTBEAT_IVL in milliseconds; 0 means no heartbeats.
        heartbeat_ms: u64,
        /// Enabled options: bits of [`Options`](crate::Options).
        options: u64,
        /// Number of distinct topics of a SUB; 0 for other types.
        subscriptions: u64,
        /// Number of peers, including peers to which it is connecting.
        peers: u64,
        /// Messages handed to the queues of present and former peers.
        messages_out: u64,
        /// Bytes of the sent messages.
        bytes_out: u64,
        /// Messages received from present and former peers.
        messages_in: u64,
        /// Bytes of the received messages.
        bytes_in: u64,
        /// Messages queued for sending.
        queued_out: u64,
        /// Messages queued for the program.
        queued_in: u64,
        /// Messages not sent because a peer was at its high-water mark.
        dropped: u64,
        /// Messages not sent because no peer has that routing ID.
        unroutable: u64,
        /// Messages queued for peers that are gone for good.
        lost: u64,
        /// Number of reconnects.
        reconnects: u64,
        /// Number of failed attempts to connect.
        failed_connects: u64,
        /// Number of peers that broke off the handshake, or were refused.
        failed_handshakes: u64,
        /// Calls of a REQ or REP that were refused because it was not their turn (EFSM).
        out_of_turn: u64,
        /// True if the socket carries monitor events, at the library's end or at the program's.
        monitor: bool,
        /// Number of times that name resolution became unavailable.
        names_away: u64,
        /// Received or sent messages that the socket discarded because their form or their time
        /// was wrong. Messages that a SUB has not subscribed to do not count.
        discarded: u64,
        /// Reason of the last discarded message.
        discarded_by: DiscardReason,
        /// Peers that were refused because their routing ID belongs to another peer.
        duplicates: u64,
        /// Peers whose routing ID a newer peer took over (ZMQ_ROUTER_HANDOVER).
        taken_over: u64,
        /// Messages of a PUB or XPUB that matched no subscription. They are counted in steps.
        unmatched: u64,
        /// Connections in use that were lost because the peer answered no heartbeat.
        lost_silent: u64,
        /// Connections in use that the peer closed or reset.
        lost_closed: u64,
        /// Accepted or made connections that ended before the handshake, or within a second
        /// after it.
        brief: u64,
        /// Messages discarded unsent after the socket was closed. Not in `lost`, which counts those
        /// of peers that disconnected before.
        discarded_unsent: u64,
        /// ZMQ_HEARTBEAT_TIMEOUT in milliseconds; 0 means no heartbeats.
        heartbeat_timeout_ms: u64,
        /// ZMQ_HEARTBEAT_TTL in milliseconds; 0 is none.
        heartbeat_ttl_ms: u64,
        /// Number of distinct topics that the peers of a PUB or XPUB subscribe to.
        subscribed: u64,
    }
    texts {
        /// Socket type: `PUB`, `ROUTER`.
        type_name: String,
        /// Mechanism of its connections: `NULL`, `PLAIN`, `CURVE`.
        mechanism: String,
        /// ZMQ_ROUTING_ID.
        routing_id: Vec<u8>,
        /// Routing ID of the last message that was not sent because no peer has that ID.
        astray: Vec<u8>,
        /// Last routing ID that belonged to two peers: see `duplicates` and `taken_over`.
        duplicate_id: Vec<u8>,
        /// First bytes, at most 64, of the first part of a recent message without a subscription.
        unmatched_topic: Vec<u8>,
    }
}

record! {
    /// An endpoint that a socket was bound or connected to.
    Endpoint = 4
    numbers {
        /// ID of its socket.
        socket: u64,
        /// True if bound, false if connected.
        bound: bool,
        /// State of the endpoint.
        state: EndpointState,
        /// Time of the last change of state.
        since: u64,
        /// Number of consecutive failed attempts up to now.
        failures: u64,
        /// Time of the first of these failures.
        failing_since: u64,
        /// Cause of the last failure: its errno, its ZMQ_PROTOCOL_ERROR, or its ZAP status.
        error: u64,
        /// Event of the last failure, as in [`Event::code`].
        failed_by: u32,
        /// Number of accepted peers.
        accepted: u64,
        /// Connections in use that were lost because the peer answered no heartbeat.
        lost_silent: u64,
        /// Connections in use that the peer closed or reset.
        lost_closed: u64,
        /// Time of the last failure, or of the last lost connection.
        failed_at: u64,
    }
    texts {
        /// Address as the program gave it.
        given: String,
        /// Resolved address: `tcp://127.0.0.1:40123`.
        name: String,
        /// Reason of the last failure, in words.
        reason: String,
        /// Mechanism of a bound endpoint, after the policy: `NULL`, `PLAIN`, `CURVE`, or `TLS` if
        /// the policy put TLS on it. Empty for other endpoints.
        mechanism: String,
        /// Address that the name of the last attempt resolved to: `tcp://10.0.0.7:5555`. Empty for
        /// bound endpoints, and before the first attempt.
        resolved: String,
        /// Socket type that the peer announced in the last handshake that failed because the
        /// types do not fit.
        peer_type: String,
    }
}

record! {
    /// A peer of a socket.
    Peer = 5
    numbers {
        /// ID of its socket.
        socket: u64,
        /// ID within the socket, while the peer exists.
        id: u64,
        /// State of the link to the peer.
        state: PeerState,
        /// True if this socket connected to the peer, false if the peer connected.
        connected_here: bool,
        /// Start of the present session; 0 before the first one.
        since: u64,
        /// True if bytes go through shared memory.
        shared_memory: bool,
        /// Messages handed to the queue of the peer.
        messages_out: u64,
        /// Bytes of these messages. Over inproc, the bytes of a long message count when it is
        /// received.
        bytes_out: u64,
        /// Messages received from the peer.
        messages_in: u64,
        /// Bytes of the received messages.
        bytes_in: u64,
        /// Messages queued for sending to the peer.
        queued_out: u64,
        /// Bytes of these queued messages.
        queued_out_bytes: u64,
        /// Messages from the peer that are queued for the program.
        queued_in: u64,
        /// Bytes of these queued messages.
        queued_in_bytes: u64,
        /// Most messages in the send queue; 0 is unlimited.
        limit_out: u64,
        /// Most messages in the receive queue; 0 is unlimited.
        limit_in: u64,
        /// Messages not sent because the peer was at its high-water mark.
        dropped: u64,
        /// Number of times that a message found the send queue full.
        full: u64,
        /// Time since which the send queue is full, as seen by the snapshots; 0 if it is not full.
        full_since: u64,
        /// Microseconds for which the send queue was full before that.
        full_us: u64,
        /// Time since which the receive queue is full; 0 if it is not full.
        full_in_since: u64,
        /// Number of reconnects of the peer.
        reconnects: u64,
        /// Time of the last message to the peer, as seen by the snapshots.
        last_out: u64,
        /// Time of the last message from the peer.
        last_in: u64,
        /// Round-trip time of a heartbeat in microseconds; 0 before the first one.
        round_trip_us: u64,
        /// Time since which the send queue has grown, as seen by the snapshots: it was never
        /// shorter than `growing_from` since then. 0 if it does not grow.
        growing_since: u64,
        /// Messages in the send queue at that time.
        growing_from: u64,
        /// The same for the receive queue.
        growing_in_since: u64,
        /// Messages in the receive queue at that time.
        growing_in_from: u64,
        /// Time since which received messages wait and the program took none, as seen by the
        /// snapshots. 0 if none waits, or if the program takes messages.
        idle_since: u64,
        /// Longest such wait in microseconds that ended because the program took messages.
        longest_idle_us: u64,
        /// Time since which the program owes the peer of a REP a reply; 0 if it does not.
        reply_since: u64,
        /// Longest time in microseconds that the program needed for a reply.
        longest_reply_us: u64,
    }
    texts {
        /// Remote address of the connection: `tcp://10.0.0.7:51234`; empty for inproc.
        address: String,
        /// Local address of the connection.
        local: String,
        /// Local endpoint that was bound or connected.
        endpoint: String,
        /// Peer-Address of its messages. For a local peer it includes user, group and process.
        host: String,
        /// Mechanism of the connection: `NULL`, `PLAIN`, `CURVE`.
        mechanism: String,
        /// User ID that the authentication handler has assigned.
        user_id: String,
        /// Routing ID by which a ROUTER addresses the peer.
        routing_id: Vec<u8>,
        /// Socket type of the peer, as it announced it: `SUB`. Empty if it announced none.
        socket_type: String,
    }
}

record! {
    /// An event.
    Event = 6
    numbers {
        /// Time of the event.
        at: u64,
        /// ID of its socket.
        socket: u64,
        /// Number of the event, as in `zmq.h`. Tautline adds 0x80000000 (an attempt to connect has
        /// failed), 0x40000000 (a connection in use was lost) and 0x10000000 (a peer may not use a
        /// topic).
        code: u32,
        /// Value of the event.
        value: u64,
    }
    texts {
        /// Name of the event: `connected`.
        name: String,
        /// Local address of the connection.
        local: String,
        /// Remote address of the connection.
        remote: String,
        /// Reason of the event, in words; may be empty.
        reason: String,
    }
}

record! {
    /// Loans: large bodies over ipc that the receiver reads in the memory of the sender. The
    /// numbers from `short` on count bodies that were copied although the peer takes loans.
    Loans = 8
    numbers {
        /// State of the loans of the process.
        state: LoanState,
        /// Bodies lent to peers.
        lent: u64,
        /// Loans that peers have returned.
        returned: u64,
        /// Bytes of the loans that peers hold.
        held_bytes: u64,
        /// Loans received from peers without a copy.
        adopted: u64,
        /// Loans received from peers with a copy.
        copied: u64,
        /// Received loans that the program may write to.
        exposed: u64,
        /// Pages of earlier loans that the program has written to.
        copied_pages: u64,
        /// The body is below the limit for loans.
        short: u64,
        /// The body lies elsewhere in the memory of the sender.
        no_slab: u64,
        /// The memory for loans is used up.
        over_budget: u64,
        /// The peer holds too many bytes.
        peer_limit: u64,
        /// The peer holds too many loans.
        no_place: u64,
        /// The peer has not mapped the memory yet.
        not_mapped: u64,
        /// The peer could not map the memory.
        refused: u64,
        /// A socket of the process encrypts.
        encrypted: u64,
        /// A setting has turned loans off.
        forbidden: u64,
    }
    texts {}
}

record! {
    /// Counters that the program itself keeps for the messages of a socket: `taut bridge` has a
    /// route between each of its sockets and NATS.
    Route = 7
    numbers {
        /// ID of its socket.
        socket: u64,
        /// Creation time.
        since: u64,
        /// Messages received from the source of the route.
        received: u64,
        /// Messages completed as the route promises.
        done: u64,
        /// Messages in progress.
        waiting: u64,
        /// Messages dropped on a route without a promise.
        dropped: u64,
        /// Messages that this route can never carry.
        refused: u64,
        /// Messages without a receiver.
        unwanted: u64,
        /// Number of retries.
        again: u64,
        /// Duplicate messages.
        known: u64,
    }
    texts {
        /// Name of the route.
        name: String,
        /// Promise of the route: `stored`.
        promise: String,
    }
}

record! {
    /// A topic of a socket. A SUB has one for each of its first 16 subscriptions, a PUB or XPUB
    /// one for each of 16 topics that it published when the snapshots asked for one.
    Topic = 9
    numbers {
        /// ID of its socket.
        socket: u64,
        /// True for a published topic, false for a subscription.
        published: bool,
        /// Time at which the topic was last seen in a sent message; 0 for a subscription.
        at: u64,
        /// Length in bytes of the whole subscription, or of the whole first part.
        length: u64,
    }
    texts {
        /// The subscription, or the first part of the message. At most 64 bytes.
        prefix: Vec<u8>,
    }
}

/// All known facts about a process at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Reading {
    /// The process.
    pub process: Process,
    /// Contexts of the process.
    pub contexts: Vec<Context>,
    /// Sockets of the contexts.
    pub sockets: Vec<Socket>,
    /// Endpoints of the sockets.
    pub endpoints: Vec<Endpoint>,
    /// Peers of the sockets.
    pub peers: Vec<Peer>,
    /// Recent events, the oldest first.
    pub events: Vec<Event>,
    /// Routes of the sockets, if the program reports them.
    pub routes: Vec<Route>,
    /// Subscriptions of SUB sockets, and topics that PUB sockets published.
    pub topics: Vec<Topic>,
    /// Loans of the process. All zero if it has lent and received none.
    pub loans: Loans,
    /// Names of programs by process ID, for local peers. Not in the file: a tool that knows other
    /// processes may add them.
    pub programs: HashMap<u32, String>,
    /// Calls of a forked child that were refused, because it used sockets of its parent; written at
    /// 1, 2, 4, 8 calls. In the header of the file.
    pub forked_calls: u64,
    /// Number of the copy of the library in the process, from the name of the file; 0 for the
    /// first.
    pub copy: u32,
}

impl Peer {
    /// Returns the process of a local peer (`ipc`), if the system tells it.
    pub fn process(&self) -> Option<u32> {
        let mut numbers = self.host.strip_prefix("localhost:")?.split(':');
        let (_user, _group, process) = (numbers.next()?, numbers.next()?, numbers.next()?);
        process.parse().ok().filter(|process| *process > 0 && numbers.next().is_none())
    }
}

impl Reading {
    /// Returns the name of the process for people: its process ID, and the number of the copy of
    /// the library, unless it is the first: `4711`, `4711.1`.
    pub fn name(&self) -> String {
        let pid = self.process.pid;
        if self.copy == 0 { pid.to_string() } else { format!("{pid}.{}", self.copy) }
    }

    /// Returns the socket with this ID.
    pub fn socket(&self, id: u64) -> Option<&Socket> {
        self.sockets.iter().find(|socket| socket.id == id)
    }

    /// Removes the sockets that carry monitor events, with all their parts. Returns the number of
    /// removed sockets.
    pub fn leave_out_monitors(&mut self) -> usize {
        let mut monitors: Vec<u64> =
            self.sockets.iter().filter(|socket| socket.monitor).map(|socket| socket.id).collect();
        monitors.sort_unstable();
        let is_of_program = |socket: &u64| monitors.binary_search(socket).is_err();
        self.sockets.retain(|socket| !socket.monitor);
        self.endpoints.retain(|endpoint| is_of_program(&endpoint.socket));
        self.peers.retain(|peer| is_of_program(&peer.socket));
        self.events.retain(|event| is_of_program(&event.socket));
        self.topics.retain(|topic| is_of_program(&topic.socket));
        monitors.len()
    }

    /// Returns the program of a local peer with its process: `orders.py (4711)`.
    pub fn peer_program(&self, peer: &Peer) -> Option<String> {
        let process = peer.process()?;
        Some(match self.programs.get(&process) {
            Some(program) => format!("{program} ({process})"),
            None => format!("process {process}"),
        })
    }

    /// Returns the route of a socket, if it has one.
    pub fn route_of(&self, socket: u64) -> Option<&Route> {
        self.routes.iter().find(|route| route.socket == socket)
    }

    /// Returns the topics of a socket.
    pub fn topics_of(&self, socket: u64) -> impl Iterator<Item = &Topic> {
        self.topics.iter().filter(move |topic| topic.socket == socket)
    }

    /// Returns the peers of a socket.
    pub fn peers_of(&self, socket: u64) -> impl Iterator<Item = &Peer> {
        self.peers.iter().filter(move |peer| peer.socket == socket)
    }

    /// Returns the endpoints of a socket.
    pub fn endpoints_of(&self, socket: u64) -> impl Iterator<Item = &Endpoint> {
        self.endpoints.iter().filter(move |endpoint| endpoint.socket == socket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Number, Record};

    /// The tables in docs/reference/counters-file.md have the fields of each kind of record.
    #[test]
    fn the_documented_layout_is_this_one() {
        let page = include_str!("../../../docs/reference/counters-file.md");
        let mut documented = Vec::new();
        let mut kind = "";
        for line in page.lines() {
            if let Some(heading) = line.strip_prefix("### ") {
                kind = heading;
            } else if !kind.is_empty()
                && let Some(row) = line.strip_prefix("| ")
                && let Some((place, row)) = row.split_once(" | `")
                && let Some((name, _)) = row.split_once('`')
            {
                documented.push(format!("{kind}: {place} {name}"));
            }
        }
        let mut expected = Vec::new();
        let mut add = |name: &str, kind: u8, numbers: &[&str], texts: &[&str]| {
            for (fields, letter) in [(numbers, 'n'), (texts, 't')] {
                for (place, field) in fields.iter().enumerate() {
                    expected.push(format!("{name} (kind {kind}): {letter}{place} {field}"));
                }
            }
        };
        add("Process", Process::KIND, Process::NUMBERS, Process::TEXTS);
        add("Context", Context::KIND, Context::NUMBERS, Context::TEXTS);
        add("Socket", Socket::KIND, Socket::NUMBERS, Socket::TEXTS);
        add("Endpoint", Endpoint::KIND, Endpoint::NUMBERS, Endpoint::TEXTS);
        add("Peer", Peer::KIND, Peer::NUMBERS, Peer::TEXTS);
        add("Event", Event::KIND, Event::NUMBERS, Event::TEXTS);
        add("Route", Route::KIND, Route::NUMBERS, Route::TEXTS);
        add("Loans", Loans::KIND, Loans::NUMBERS, Loans::TEXTS);
        add("Topic", Topic::KIND, Topic::NUMBERS, Topic::TEXTS);
        assert_eq!(documented, expected);
    }

    #[test]
    fn monitors_are_left_out_with_all_that_is_theirs() {
        let mut reading = Reading::default();
        for id in [3, 1, 7, 2] {
            let socket = Socket { id, monitor: id == 7 || id == 1, ..Socket::default() };
            reading.sockets.push(socket);
            reading.endpoints.push(Endpoint { socket: id, ..Endpoint::default() });
            reading.peers.push(Peer { socket: id, ..Peer::default() });
            reading.events.push(Event { socket: id, ..Event::default() });
        }
        assert_eq!(reading.leave_out_monitors(), 2);
        assert_eq!(reading.sockets.iter().map(|socket| socket.id).collect::<Vec<_>>(), [3, 2]);
        assert_eq!(reading.endpoints.iter().map(|endpoint| endpoint.socket).collect::<Vec<_>>(), [3, 2]);
        assert_eq!(reading.peers.iter().map(|peer| peer.socket).collect::<Vec<_>>(), [3, 2]);
        assert_eq!(reading.events.iter().map(|event| event.socket).collect::<Vec<_>>(), [3, 2]);
        assert_eq!(reading.leave_out_monitors(), 0);
    }

    #[test]
    fn local_peers_have_the_name_of_their_program() {
        let mut reading = Reading::default();
        reading.programs.insert(4711, "orders.py".to_owned());
        for (host, name) in [
            ("localhost:1000:100:4711", Some("orders.py (4711)")),
            ("localhost:1000:100:4712", Some("process 4712")),
            // The process is in a container whose processes have no numbers here.
            ("localhost:1000:100:0", None),
            ("localhost", None),
            ("localhost:1000:100:x", None),
            ("localhost:1:2:3:4", None),
            ("10.0.0.7", None),
        ] {
            let peer = Peer { host: host.to_owned(), ..Peer::default() };
            assert_eq!(reading.peer_program(&peer).as_deref(), name, "{host}");
        }
    }

    #[test]
    fn a_further_copy_of_the_library_has_a_number() {
        let mut reading = Reading::default();
        reading.process.pid = 4711;
        assert_eq!(reading.name(), "4711");
        reading.copy = 2;
        assert_eq!(reading.name(), "4711.2");
    }

    #[test]
    fn a_state_that_is_not_known_is_the_first_one() {
        assert_eq!(EndpointState::of(5), EndpointState::Connected);
        assert_eq!(EndpointState::of(99), EndpointState::Unknown);
        assert_eq!(format!("{:>10}|", PeerState::Gone), "      gone|");
    }
}
