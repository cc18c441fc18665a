//! Common parts of both kinds of ends.

use bench_contract::Run;
use tautline::{Message, Multipart};

/// Mode of sending and receiving, and the receiver of a ROUTER's messages.
pub struct Way {
    pub messages: bool,
    pub room: usize,
    pub to: Message,
    /// Sends are gathered until the flush, and many messages are received at a time.
    pub batches: bool,
    pub gathered: Vec<Message>,
    pub addressed: Vec<Multipart>,
    pub taken: Vec<Message>,
}

/// Number of messages received at a time.
pub const MOST: usize = 100;

impl Way {
    pub fn new(run: &Run) -> Self {
        Way {
            messages: run.api == "messages",
            room: run.size,
            to: Message::new(),
            batches: run.mode.starts_with("batches"),
            gathered: Vec::new(),
            addressed: Vec::new(),
            taken: Vec::new(),
        }
    }
}

/// Returns the next part of the received messages, which `taken` holds in reverse order.
pub fn next_taken(taken: &mut Vec<Message>) -> Message {
    taken.pop().unwrap_or_default()
}

/// Defines an enum with a variant for the socket of each kind, and its constructor.
macro_rules! ends {
    ($side:ident, $($kind:ident $(. $option:ident ($value:expr))? for $role:ident),*; $socket:ident, $become:expr) => {
        #[allow(dead_code)] // an end that only sends does not use it
        pub enum $side {
            $($kind($socket<tautline::kind::$kind>, Way)),*
        }

        impl $side {
            fn open(context: &tautline::Context, role: Role, run: &Run, bound: &dyn Fn()) -> tautline::Result<$side> {
                let way = Way::new(run);
                Ok(match role {
                    $(Role::$role => {
                        let builder = tautline::$kind::builder(context)$(.$option($value))?;
                        let socket = if role.binds() {
                            let socket = builder.bind(&run.endpoint)?;
                            bound();
                            socket
                        } else {
                            builder.connect(&run.endpoint)?
                        };
                        $side::$kind($become(socket), way)
                    }),*
                })
            }
        }
    };
}

/// Receives by `recv` or into the caller's buffer, as the run demands. `$wait` is `.await` or empty.
macro_rules! receive {
    ($socket:expr, $way:expr, $into:expr $(, $wait:tt)?) => {{
        if $way.batches {
            if $way.taken.is_empty() {
                $socket.recv_batch(&mut $way.taken, $crate::ends::MOST)$(.$wait)??;
                $way.taken.reverse();
            }
            $into.clear();
            $into.extend_from_slice(&$crate::ends::next_taken(&mut $way.taken));
        } else if $way.messages {
            let message = $socket.recv()$(.$wait)??;
            $into.clear();
            $into.extend_from_slice(&message);
        } else {
            $into.resize($way.room, 0);
            let length = $socket.recv_into($into)$(.$wait)??;
            $into.truncate(length);
        }
    }};
}

/// Sends one part, or gathers it.
macro_rules! send {
    ($socket:expr, $way:expr, $body:expr $(, $wait:tt)?) => {{
        if $way.batches {
            $way.gathered.push($body.into());
        } else {
            $socket.send($body)$(.$wait)??;
        }
    }};
}

/// Sends the gathered messages.
macro_rules! flush {
    ($socket:expr, $way:expr $(, $wait:tt)?) => {{
        if $way.batches {
            $socket.send_batch($way.gathered.drain(..))$(.$wait)??;
        }
    }};
}
