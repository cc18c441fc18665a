//! What both kinds of ends have in common.

use bench_contract::Run;
use tautline::Message;

/// How an end receives, and to whom a ROUTER sends.
pub struct Way {
    pub messages: bool,
    pub room: usize,
    pub to: Message,
}

impl Way {
    pub fn new(run: &Run) -> Self {
        Way { messages: run.api == "messages", room: run.size, to: Message::new() }
    }
}

/// An enum with a variant for the socket of each kind, and how to open it.
macro_rules! ends {
    ($side:ident, $($kind:ident $(. $option:ident ($value:expr))? for $role:ident),*; $socket:ident, $become:expr) => {
        #[allow(dead_code)] // who only sends needs no way
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

/// Receives by `recv` or into the caller's buffer, as the run asks; `$wait` is `.await` or nothing.
macro_rules! receive {
    ($socket:expr, $way:expr, $into:expr $(, $wait:tt)?) => {{
        if $way.messages {
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
