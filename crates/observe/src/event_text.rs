//! Names of events. The numbers are those of `zmq.h`.

/// An attempt to connect has failed: an event of Tautline's own.
pub const CONNECT_FAILED: u32 = 1 << 31;
/// A connection that was in use is lost: an event of Tautline's own.
pub const LOST: u32 = 1 << 30;

/// A peer may not use a topic: an event of Tautline's own.
const TOPIC_REFUSED: u32 = 1 << 28;
/// The addresses of a name have changed, or it cannot be resolved: an event of Tautline's own.
const NAME: u32 = 1 << 29;

/// Error numbers of the system that hints are about.
#[cfg(unix)]
pub(crate) mod errno {
    pub(crate) const REFUSED: u64 = libc::ECONNREFUSED as u64;
    pub(crate) const NO_ENTRY: u64 = libc::ENOENT as u64;
    pub(crate) const NO_ACCESS: u64 = libc::EACCES as u64;
    pub(crate) const TOO_MANY_FILES: [u64; 2] = [libc::EMFILE as u64, libc::ENFILE as u64];
}

/// Error numbers for systems without observation: those of Linux.
#[cfg(not(unix))]
pub(crate) mod errno {
    pub(crate) const REFUSED: u64 = 111;
    pub(crate) const NO_ENTRY: u64 = 2;
    pub(crate) const NO_ACCESS: u64 = 13;
    pub(crate) const TOO_MANY_FILES: [u64; 2] = [24, 23];
}

/// Returns the name of an event.
pub fn event_name(event: u32) -> &'static str {
    match event {
        0x1 => "connected",
        0x2 => "connecting",
        0x4 => "reconnecting",
        0x8 => "listening",
        0x10 => "bind failed",
        0x20 => "accepted",
        0x40 => "accept failed",
        0x80 => "closed",
        0x100 => "close failed",
        0x200 => "disconnected",
        0x400 => "monitoring stopped",
        0x800 | 0x2000 | 0x4000 => "handshake failed",
        0x1000 => "handshake succeeded",
        0x10000 => "queues",
        CONNECT_FAILED => "connect failed",
        LOST => "lost",
        TOPIC_REFUSED => "topic refused",
        NAME => "name",
        _ => "event",
    }
}
