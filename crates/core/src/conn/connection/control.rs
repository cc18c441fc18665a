//! Control frames of the connection itself: PING and PONG (RFC 37).

use super::Connection;
use tautline_queue::sync::atomic::Ordering::{AcqRel, Release, SeqCst};
use tautline_queue::sync::atomic::fence;
use tautline_queue::sync::{Arc, lock};

/// Control frames of the connection itself. A newer frame replaces a waiting one. So memory does
/// not grow if a peer sends PINGs and does not read.
#[derive(Debug, Default)]
pub(crate) struct Control {
    /// Our PING.
    pub(crate) ping: Vec<u8>,
    /// The PONGs that answer the PINGs of one read.
    pub(super) pongs: Vec<u8>,
}

impl Connection {
    /// Sends a control frame, which `put` adds, at the next message boundary.
    pub(crate) fn send_control(self: &Arc<Self>, put: impl FnOnce(&mut Control)) {
        put(lock(&self.control).get_or_insert_default());
        self.has_control.store(true, Release);
        fence(SeqCst);
        self.pump_now();
    }

    /// Pump, at a message boundary: takes the waiting frames.
    pub(super) fn take_control(&self, out: &mut Vec<u8>) {
        if self.has_control.swap(false, AcqRel) {
            let control = lock(&self.control).take().unwrap_or_default();
            out.extend([control.ping, control.pongs].concat());
        }
    }
}
