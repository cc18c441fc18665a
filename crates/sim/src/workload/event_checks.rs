//! Writes the connection events of a socket to the trace, and checks their order.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use tautline_core::{LOST, Observed, Observer};

use super::peer::trace;

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

/// Smallest reason of LOST that is not an errno (ZMQ_PROTOCOL_ERROR_ZMTP_UNSPECIFIED).
const PROTOCOL_ERROR: u64 = 0x1000_0000;

/// True if foreign peers take part, which may break the protocol.
pub(super) static STRANGERS: AtomicBool = AtomicBool::new(false);

/// An observer for one socket.
pub(super) fn observer() -> Arc<Observer> {
    let counts = Mutex::new(Counts::default());
    Arc::new(move |seen: &Observed<'_>| {
        trace(|| format!("event {:#x} {} {} {}", seen.event, seen.value, seen.local, seen.remote));
        let mut counts = counts.lock().unwrap();
        match seen.event {
            CONNECTED | ACCEPTED => counts.opened += 1,
            HANDSHAKE_SUCCEEDED => counts.in_use += 1,
            LOST => {
                let is_broken = seen.value >= PROTOCOL_ERROR && !STRANGERS.load(SeqCst);
                assert!(!is_broken, "a peer breaks the protocol: {:#x}", seen.value);
                counts.lost += 1;
            }
            event if event & HANDSHAKE_FAILED != 0 => counts.failed += 1,
            _ => {}
        }
        assert!(counts.in_use + counts.failed <= counts.opened, "a handshake without a stream: {counts:?}");
        assert!(counts.lost <= counts.in_use, "a connection is lost that was never in use: {counts:?}");
    })
}

/// Returns an observer that records when the first connection is in use. No connection may be lost
/// until the recorded time is `u64::MAX`.
pub(super) fn steady(begun: Arc<AtomicU64>) -> Arc<Observer> {
    Arc::new(move |seen: &Observed<'_>| {
        trace(|| format!("event {:#x} {} {} {}", seen.event, seen.value, seen.local, seen.remote));
        assert!(seen.event != LOST || begun.load(SeqCst) == u64::MAX, "a connection is lost");
        if seen.event == HANDSHAKE_SUCCEEDED && begun.load(SeqCst) == 0 {
            begun.store(crate::world::current_time(), SeqCst);
        }
    })
}
