//! States and options in a reading, stored as numbers.

use crate::record::Number;

/// Declares an enumeration that is stored as a number. An unknown number is read as the first
/// value.
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
            /// Returns the value as one word.
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
    /// State of a socket.
    SocketState {
        /// The program holds the socket.
        Open = 0 "open",
        /// The program has closed the socket. Its queued messages are still sent for up to
        /// ZMQ_LINGER.
        Lingering = 1 "lingering",
    }
}

states! {
    /// State of an endpoint.
    EndpointState {
        /// No event has shown the state yet.
        Unknown = 0 "unknown",
        /// Bound: peers may connect.
        Listening = 1 "listening",
        /// An attempt to connect is in progress.
        Connecting = 2 "connecting",
        /// The last attempt has failed. The next one follows after a pause.
        Waiting = 3 "waiting",
        /// The stream is connected, and the peers shake hands.
        Handshaking = 4 "handshaking",
        /// Messages flow.
        Connected = 5 "connected",
        /// The endpoint is not retried.
        Stopped = 6 "stopped",
        /// The endpoint could not be bound.
        Failed = 7 "failed",
    }
}

states! {
    /// State of the link between a socket and a peer.
    PeerState {
        /// The peer has not been reached yet, or was lost and may return. Messages to it are
        /// queued.
        Connecting = 0 "connecting",
        /// Messages flow.
        Connected = 1 "connected",
        /// The peer is gone for good, but the program has not received all its messages.
        Gone = 2 "gone",
        /// The program has closed the socket, but queued messages must still be sent.
        Lingering = 3 "lingering",
    }
}

/// Boolean options of a socket: bits of [`Socket::options`](crate::Socket::options).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options;

impl Options {
    /// ZMQ_IMMEDIATE.
    pub const IMMEDIATE: u64 = 1;
    /// ZMQ_CONFLATE. Messages of a conflating socket are not counted.
    pub const CONFLATE: u64 = 2;
    /// ZMQ_ROUTER_MANDATORY.
    pub const ROUTER_MANDATORY: u64 = 4;
    /// ZMQ_XPUB_NODROP.
    pub const XPUB_NODROP: u64 = 8;
    /// ZMQ_REQ_RELAXED.
    pub const REQ_RELAXED: u64 = 16;
    /// The CURVE public key of the socket does not belong to its secret key.
    pub const KEY_PAIR_MISMATCH: u64 = 32;
}

states! {
    /// Whether large bodies over ipc are lent to other processes.
    LoanState {
        /// The library cannot lend bodies.
        Absent = 0 "absent",
        /// Large bodies are lent.
        On = 1 "on",
        /// A setting has turned loans off.
        Off = 2 "off",
        /// Loans are off because a socket of the process encrypts.
        Encrypted = 3 "encrypted",
    }
}

states! {
    /// Why a socket discarded a received message.
    DiscardReason {
        /// It discarded none, or the reason is not known.
        None = 0 "none",
        /// A REP received a message without an empty delimiter.
        NoDelimiter = 1 "no delimiter",
        /// A REQ received a reply that does not answer its present request: it came late, from
        /// another peer, or has the wrong ZMQ_REQ_CORRELATE number.
        StaleReply = 2 "stale reply",
        /// A REQ received a reply without an empty delimiter.
        NoReplyDelimiter = 3 "no delimiter in a reply",
        /// A socket with ZMQ_CONFLATE sent or received a message with several parts.
        SeveralParts = 4 "several parts with ZMQ_CONFLATE",
        /// A message came from a peer whose routing ID the socket refused.
        RefusedPeer = 5 "peer was refused",
        /// A socket of a type without parts received a message with several parts.
        TooManyParts = 6 "several parts",
    }
}
