//! What is known of a process: what a reading consists of. The order of the fields is that of the
//! file; new ones come last.
//!
//! Times are microseconds since 1970 (UTC), 0 for never. Counts begin with the object that they
//! belong to. Messages that are counted have all their parts; bytes are those of whole frames.

use crate::record::{Number, record};

/// Declares an enumeration that is stored as a number. Others than the known ones are read as the
/// first one.
macro_rules! states {
    (
        $(#[$about:meta])*
        $name:ident {
            $(#[$about_first:meta])* $first:ident = $first_number:literal $first_word:literal,
            $( $(#[$about_state:meta])* $state:ident = $number:literal $word:literal, )*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[non_exhaustive]
        pub enum $name {
            $(#[$about_first])*
            #[default]
            $first = $first_number,
            $( $(#[$about_state])* $state = $number, )*
        }

        impl $name {
            /// In a word.
            pub fn as_str(self) -> &'static str {
                match self {
                    $name::$first => $first_word,
                    $( $name::$state => $word, )*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl Number for $name {
            fn number(&self) -> u64 {
                *self as u64
            }

            fn of(number: u64) -> Self {
                match number {
                    $( $number => $name::$state, )*
                    _ => Self::default(),
                }
            }
        }
    };
}

states! {
    /// What becomes of a socket.
    SocketState {
        /// The program has it.
        Open = 0 "open",
        /// The program has closed it. What it has still to send goes on for ZMQ_LINGER.
        Lingering = 1 "lingering",
    }
}

states! {
    /// How far an endpoint has come.
    EndpointState {
        /// Nothing has happened yet that tells.
        Unknown = 0 "unknown",
        /// Bound: peers may come.
        Listening = 1 "listening",
        /// An attempt to connect is under way.
        Connecting = 2 "connecting",
        /// The last attempt has failed, and the next one comes after a pause.
        Waiting = 3 "waiting",
        /// A stream is there, and the peers shake hands.
        Handshaking = 4 "handshaking",
        /// Messages flow.
        Connected = 5 "connected",
        /// It is not tried again.
        Stopped = 6 "stopped",
        /// It could not be bound.
        Failed = 7 "failed",
    }
}

states! {
    /// What there is between a socket and a peer.
    PeerState {
        /// The peer was not reached yet, or was lost and may come back. What is sent is queued.
        Connecting = 0 "connecting",
        /// Messages flow.
        Connected = 1 "connected",
        /// The peer has gone for good, and has left something that the program has not received.
        Gone = 2 "gone",
        /// The program has closed the socket, and something is still to be sent.
        Lingering = 3 "lingering",
    }
}

/// Options of a socket that are on or off: bits of [`Socket::options`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options;

impl Options {
    /// ZMQ_IMMEDIATE.
    pub const IMMEDIATE: u64 = 1;
    /// ZMQ_CONFLATE. Messages of such a socket are not counted.
    pub const CONFLATE: u64 = 2;
    /// ZMQ_ROUTER_MANDATORY.
    pub const ROUTER_MANDATORY: u64 = 4;
    /// ZMQ_XPUB_NODROP.
    pub const XPUB_NODROP: u64 = 8;
    /// ZMQ_REQ_RELAXED.
    pub const REQ_RELAXED: u64 = 16;
}

record! {
    /// The process, and the look that this reading is of.
    Process = 1
    numbers {
        /// Its number.
        pid: u32,
        /// Its user.
        uid: u32,
        /// When it was started, in the system's ticks since it runs; 0 if that is not known. With
        /// the number it names the process.
        start_ticks: u64,
        /// Since when it is observed.
        since: u64,
        /// When it was looked at.
        written: u64,
        /// How many microseconds are between two looks.
        interval_us: u64,
        /// How many nanoseconds the last look took.
        look_ns: u64,
        /// How many looks there were.
        looks: u64,
        /// How many records had no room.
        omitted: u64,
        /// How many events there were, with those that are not kept any more.
        events: u64,
    }
    texts {
        /// The name of its program, without arguments.
        program: String,
        /// The version of the library.
        version: String,
        /// The path of its control socket for taps; empty if there is none.
        tap: String,
    }
}

record! {
    /// A context.
    Context = 2
    numbers {
        /// Names it in the process.
        id: u64,
        /// Since when there is one.
        since: u64,
        /// How many I/O threads it has.
        io_threads: u64,
        /// Most sockets that it may have.
        max_sockets: u64,
        /// Since when the program waits for it to end; 0 if it does not.
        terminating: u64,
    }
    texts {}
}

record! {
    /// A socket.
    Socket = 3
    numbers {
        /// Names it in the process.
        id: u64,
        /// Its context.
        context: u64,
        /// The number of its type, as in `zmq.h`.
        type_code: u32,
        /// What becomes of it.
        state: SocketState,
        /// Since when there is one.
        since: u64,
        /// ZMQ_SNDHWM; 0 is unlimited.
        send_hwm: u64,
        /// ZMQ_RCVHWM; 0 is unlimited.
        receive_hwm: u64,
        /// ZMQ_LINGER in milliseconds; -1 is for ever.
        linger_ms: i64,
        /// ZMQ_HEARTBEAT_IVL in milliseconds; 0 is none.
        heartbeat_ms: u64,
        /// Options that are on: bits of [`Options`].
        options: u64,
        /// How many different topics a SUB is subscribed to; of other types 0.
        subscriptions: u64,
        /// How many peers it has, or is connecting to.
        peers: u64,
        /// Messages handed to the peers' queues, these and former ones.
        messages_out: u64,
        /// Their bytes.
        bytes_out: u64,
        /// Messages that have come from the peers, these and former ones.
        messages_in: u64,
        /// Their bytes.
        bytes_in: u64,
        /// Messages that wait to be sent.
        queued_out: u64,
        /// Messages that wait for the program.
        queued_in: u64,
        /// Messages not sent because a peer was at its high-water mark.
        dropped: u64,
        /// Messages not sent because there is no peer of that routing id.
        unroutable: u64,
        /// Messages queued for peers that have gone for good.
        lost: u64,
        /// Peers lost and found again.
        reconnects: u64,
        /// Attempts to connect that came to nothing.
        failed_connects: u64,
        /// Peers that broke off, or were not let in.
        failed_handshakes: u64,
        /// Calls of a REQ or REP that were refused because it was not their turn (EFSM).
        out_of_turn: u64,
        /// It carries the events of a monitor: the library's end of it, or the program's.
        monitor: bool,
        /// Times that it turned out that what names stand for cannot be asked for.
        names_away: u64,
    }
    texts {
        /// Its type: `PUB`, `ROUTER`.
        type_name: String,
        /// The mechanism of its connections: `NULL`, `PLAIN`, `CURVE`.
        mechanism: String,
        /// ZMQ_ROUTING_ID.
        routing_id: Vec<u8>,
        /// The routing id of the last message that was not sent because no peer has it.
        astray: Vec<u8>,
    }
}

record! {
    /// What a socket was bound or connected to.
    Endpoint = 4
    numbers {
        /// Its socket.
        socket: u64,
        /// Bound, not connected.
        bound: bool,
        /// How far it has come.
        state: EndpointState,
        /// Since when.
        since: u64,
        /// Attempts that came to nothing, one after the other, until now.
        failures: u64,
        /// When the first of them did.
        failing_since: u64,
        /// The errno of the last one, or its ZMQ_PROTOCOL_ERROR, or its ZAP status.
        error: u64,
        /// The event by which the last one did, as in [`Event::code`].
        failed_by: u32,
        /// Peers that have come to it.
        accepted: u64,
    }
    texts {
        /// As the program gave it.
        given: String,
        /// As it has come out: `tcp://127.0.0.1:40123`.
        name: String,
        /// Why the last attempt came to nothing, in words.
        reason: String,
    }
}

record! {
    /// A peer of a socket.
    Peer = 5
    numbers {
        /// Its socket.
        socket: u64,
        /// Names it in the socket, as long as it is there.
        id: u64,
        /// What there is between them.
        state: PeerState,
        /// This socket has connected to it; else it has come.
        connected_here: bool,
        /// Since when the present session is there; 0 before the first one.
        since: u64,
        /// Bytes go through shared memory.
        shared_memory: bool,
        /// Messages handed to its queue.
        messages_out: u64,
        /// Their bytes. Of a long message by inproc they count when it is received.
        bytes_out: u64,
        /// Messages that have come from it.
        messages_in: u64,
        /// Their bytes.
        bytes_in: u64,
        /// Messages that wait to be sent to it.
        queued_out: u64,
        /// Their bytes.
        queued_out_bytes: u64,
        /// Messages from it that wait for the program.
        queued_in: u64,
        /// Their bytes.
        queued_in_bytes: u64,
        /// Most messages that may wait to be sent; 0 is any number.
        limit_out: u64,
        /// Most messages that may wait for the program; 0 is any number.
        limit_in: u64,
        /// Messages not sent because it was at its high-water mark.
        dropped: u64,
        /// How often a message has found the queue to it full.
        full: u64,
        /// Since when the queue to it is full; 0 if it is not. As seen by the looks.
        full_since: u64,
        /// For how many microseconds it was full before that.
        full_us: u64,
        /// Since when the queue from it is full; 0 if it is not.
        full_in_since: u64,
        /// How often it was lost and found again.
        reconnects: u64,
        /// When something was last sent to it, as seen by the looks.
        last_out: u64,
        /// When something last came from it.
        last_in: u64,
        /// How many microseconds a heartbeat took there and back; 0 if there was none yet.
        round_trip_us: u64,
    }
    texts {
        /// Its end of the connection: `tcp://10.0.0.7:51234`; empty for inproc.
        address: String,
        /// Our end.
        local: String,
        /// What was bound or connected here.
        endpoint: String,
        /// Peer-Address of its messages. Of a local peer with user, group and process.
        host: String,
        /// The mechanism: `NULL`, `PLAIN`, `CURVE`.
        mechanism: String,
        /// The user that the authentication handler has said it is.
        user_id: String,
        /// By which ROUTER and others know it.
        routing_id: Vec<u8>,
    }
}

record! {
    /// Something that has happened.
    Event = 6
    numbers {
        /// When.
        at: u64,
        /// To which socket.
        socket: u64,
        /// The number of the event, as in `zmq.h`; of Tautline's own 0x80000000 (an attempt to
        /// connect has failed), 0x40000000 (a connection in use was lost) and 0x10000000 (a peer
        /// may not use a topic).
        code: u32,
        /// Its value.
        value: u64,
    }
    texts {
        /// Its name: `connected`.
        name: String,
        /// Our end of the connection.
        local: String,
        /// The peer's end.
        remote: String,
        /// Why, in words; may be empty.
        reason: String,
    }
}

record! {
    /// What the program does with the messages of a socket beyond the socket, as it counts that
    /// itself: `taut bridge` has a route between each of its sockets and NATS.
    Route = 7
    numbers {
        /// Its socket.
        socket: u64,
        /// Since when there is one.
        since: u64,
        /// Messages that have come from where the route begins.
        received: u64,
        /// Messages that are done, as the route promises.
        done: u64,
        /// Messages in its hands now.
        waiting: u64,
        /// Messages let go of where nothing is promised.
        dropped: u64,
        /// Messages that cannot go this way at all.
        refused: u64,
        /// Messages that found no receiver.
        unwanted: u64,
        /// Attempts after the first.
        again: u64,
        /// Messages that were there already.
        known: u64,
    }
    texts {
        /// Its name.
        name: String,
        /// What it promises: `stored`.
        promise: String,
    }
}

/// All that is known of a process at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Reading {
    /// The process.
    pub process: Process,
    /// Its contexts.
    pub contexts: Vec<Context>,
    /// Their sockets.
    pub sockets: Vec<Socket>,
    /// What these were bound or connected to.
    pub endpoints: Vec<Endpoint>,
    /// Their peers.
    pub peers: Vec<Peer>,
    /// What has happened lately, the oldest first.
    pub events: Vec<Event>,
    /// What the program does with the messages of its sockets, where it says so.
    pub routes: Vec<Route>,
}

impl Reading {
    /// The socket of this number.
    pub fn socket(&self, id: u64) -> Option<&Socket> {
        self.sockets.iter().find(|socket| socket.id == id)
    }

    /// Leaves out the sockets that carry the events of monitors, and all that belongs to them. How
    /// many there were.
    pub fn leave_out_monitors(&mut self) -> usize {
        let mut monitors: Vec<u64> =
            self.sockets.iter().filter(|socket| socket.monitor).map(|socket| socket.id).collect();
        monitors.sort_unstable();
        let is_of_program = |socket: &u64| monitors.binary_search(socket).is_err();
        self.sockets.retain(|socket| !socket.monitor);
        self.endpoints.retain(|endpoint| is_of_program(&endpoint.socket));
        self.peers.retain(|peer| is_of_program(&peer.socket));
        self.events.retain(|event| is_of_program(&event.socket));
        monitors.len()
    }

    /// The route of a socket, if it has one.
    pub fn route_of(&self, socket: u64) -> Option<&Route> {
        self.routes.iter().find(|route| route.socket == socket)
    }

    /// The peers of a socket.
    pub fn peers_of(&self, socket: u64) -> impl Iterator<Item = &Peer> {
        self.peers.iter().filter(move |peer| peer.socket == socket)
    }

    /// The endpoints of a socket.
    pub fn endpoints_of(&self, socket: u64) -> impl Iterator<Item = &Endpoint> {
        self.endpoints.iter().filter(move |endpoint| endpoint.socket == socket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Record;

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
    fn a_state_that_is_not_known_is_the_first_one() {
        assert_eq!(EndpointState::of(5), EndpointState::Connected);
        assert_eq!(EndpointState::of(99), EndpointState::Unknown);
        assert_eq!(format!("{:>10}|", PeerState::Gone), "      gone|");
    }
}
