//! The counters of a socket.

use crate::error::Result;
use crate::option::STATISTICS;

macro_rules! statistics {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of a socket and its current queue lengths, from
        /// [`Socket::statistics`](crate::Socket::statistics).
        ///
        /// ```
        /// # fn main() -> tautline::Result<()> {
        /// use tautline::{Context, Pull, Push};
        ///
        /// let context = Context::new();
        /// let mut pull = Pull::builder(&context).bind("inproc://numbers")?;
        /// let mut push = Push::builder(&context).connect("inproc://numbers")?;
        /// push.send("one")?;
        /// push.send("two")?;
        /// pull.recv()?;
        /// assert_eq!(push.statistics()?.messages_sent, 2);
        /// let numbers = pull.statistics()?;
        /// assert_eq!((numbers.messages_received, numbers.queued_in), (1, 1));
        /// # Ok(()) }
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[non_exhaustive]
        pub struct Statistics {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Statistics {
            pub(super) fn read(socket: &mut tautline_core::Socket) -> Result<Statistics> {
                let mut bytes = [0; [$(stringify!($name)),*].len() * 8];
                socket.option(STATISTICS, &mut bytes)?;
                let mut numbers = bytes.as_chunks().0.iter().map(|number| u64::from_ne_bytes(*number));
                Ok(Statistics { $($name: numbers.next().unwrap_or(0),)* })
            }
        }
    };
}

// In the order of `zmq_tautline_statistics_t`.
statistics! {
    /// Messages that entered the peers' queues.
    messages_sent,
    /// Bytes of these messages, with frame headers.
    bytes_sent,
    /// Messages that the program has received.
    messages_received,
    /// Bytes of these messages, with frame headers.
    bytes_received,
    /// Messages not sent because a peer was at its high-water mark (PUB, XPUB, ROUTER).
    dropped_full,
    /// Messages not sent because the routing id is unknown (ROUTER).
    dropped_unroutable,
    /// Messages lost in the queues of permanently disconnected peers.
    lost,
    /// Messages queued for sending.
    queued_out,
    /// Messages queued for the program.
    queued_in,
    /// Peers that are connected or being connected.
    peers,
    /// Connections that were lost and restored.
    reconnects,
    /// Failed connection attempts.
    failed_connects,
    /// Failed or refused handshakes.
    failed_handshakes,
    /// Subscriptions that were not set, and messages that were dropped, because the peer may not
    /// use the topic.
    topics_refused,
}
