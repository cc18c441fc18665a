//! Numbers of events and errors that findings are about.

/// An attempt to connect has failed: an event of Tautline's own.
pub const CONNECT_FAILED: u32 = 1 << 31;
/// A connection that was in use is lost: an event of Tautline's own.
pub const LOST: u32 = 1 << 30;

/// Error numbers of the system that findings are about.
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
