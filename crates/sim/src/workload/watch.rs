//! What a socket tells of its connections, as a part of the story; and in which order it may.

use std::sync::{Arc, Mutex};

use tautline_core::{LOST, Observed, Observer};

use super::peer::say;

/// Connections of a socket so far.
#[derive(Debug, Default)]
struct Counts {
    opened: u32,
    in_use: u32,
    failed: u32,
    lost: u32,
}

// zmq_socket_monitor(3).
const CONNECTED: u32 = 0x1;
const ACCEPTED: u32 = 0x20;
const HANDSHAKE_SUCCEEDED: u32 = 0x1000;
const HANDSHAKE_FAILED: u32 = 0x800 | 0x2000 | 0x4000;

/// An observer for one socket.
pub(super) fn observer() -> Arc<Observer> {
    let counts = Mutex::new(Counts::default());
    Arc::new(move |seen: &Observed<'_>| {
        say(|| format!("event {:#x} {} {} {}", seen.event, seen.value, seen.local, seen.remote));
        let mut counts = counts.lock().unwrap();
        match seen.event {
            CONNECTED | ACCEPTED => counts.opened += 1,
            HANDSHAKE_SUCCEEDED => counts.in_use += 1,
            LOST => counts.lost += 1,
            event if event & HANDSHAKE_FAILED != 0 => counts.failed += 1,
            _ => {}
        }
        assert!(counts.in_use + counts.failed <= counts.opened, "a handshake without a stream: {counts:?}");
        assert!(counts.lost <= counts.in_use, "a connection is lost that was never in use: {counts:?}");
    })
}
