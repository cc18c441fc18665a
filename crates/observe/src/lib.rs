//! Run-time state of a program that uses Tautline, published for tools.
//!
//! An observed process writes one file of counters. This crate has the layout of that file, the
//! writer that the library uses, and the reader for tools:
//!
//! ```no_run
//! for found in tautline_observe::processes() {
//!     match tautline_observe::read(&found.path) {
//!         Ok(reading) => println!("{}: {} sockets", found.pid, reading.sockets.len()),
//!         Err(fault) => eprintln!("{}: {fault}", found.pid),
//!     }
//! }
//! ```
//!
//! ```text
//!  library ── Image ── Output ──▶ file ──▶ read ── Reading ── diagnose
//!             records  two images            records  why nothing moves
//! ```
//!
//! The reader stops nothing, takes no lock and maps no memory. The page
//! `docs/reference/counters-file.md` describes the file byte by byte.

#![forbid(unsafe_code)]

#[cfg(not(unix))]
mod absent;
mod diagnosis;
#[cfg(unix)]
mod discovery;
mod event_text;
#[cfg(unix)]
mod everyone;
mod image;
mod model;
#[cfg(unix)]
mod output;
mod process_end;
mod read_error;
mod reader;
mod record;
mod states;
pub mod tap;

#[cfg(not(unix))]
pub use absent::{
    ObservedProcess, folders, processes, processes_in, processes_of, processes_of_folder, read, read_of,
    read_process, record_end, remove_outdated, start_ticks, visible_processes,
};
pub use diagnosis::{Finding, Level, Namespaces, Observed, ProcessState, Unacknowledged, diagnose};
#[cfg(unix)]
pub use discovery::{
    ObservedProcess, folders, processes, processes_in, processes_of, record_end, remove_outdated, start_ticks,
};
pub use event_text::{CONNECT_FAILED, LOST};
#[cfg(unix)]
pub use everyone::{processes_of_folder, read_process, visible_processes};
pub use image::Image;
pub use model::{Context, Endpoint, Event, Loans, Peer, Process, Reading, Route, Socket, Topic};
#[cfg(unix)]
pub use output::{Identity, Output, note_exit, note_forked_calls};
pub use process_end::{EndCause, ProcessEnd};
pub use read_error::ReadError;
pub use reader::parse;
#[cfg(unix)]
pub use reader::{read, read_of};
pub use states::{DiscardReason, EndpointState, LoanState, Options, PeerState, SocketState};

/// Version of the layout that this crate writes. The reader accepts only this version.
pub const VERSION: u32 = 1;

/// First bytes of a counters file.
pub const MAGIC: [u8; 8] = *b"TAUTLINE";

/// Bytes before the first image.
pub const HEADER: usize = 4096;

/// Maximum number of bytes of an image. Records that do not fit are omitted, and counted in
/// [`Process::omitted`].
pub const ROOM: usize = 16 << 20;

/// Maximum number of records that are read from one image.
pub const RECORDS: usize = 1 << 18;

/// Offsets of the two image descriptions.
const DESCRIPTIONS: [usize; 2] = [64, 96];

/// Offset of the number of calls of forked children that were refused.
const FORKED: usize = 152;

/// Bytes of one description.
#[cfg(any(unix, test))]
const DESCRIPTION: usize = 32;

/// Returns the checksum of an image.
pub fn checksum(image: &[u8]) -> u64 {
    let mut words = image.chunks_exact(8);
    let mut sum = image.len() as u64;
    let mut add = |word: u64| sum = (sum ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    for word in &mut words {
        add(u64::from_le_bytes(word.try_into().unwrap_or_default()));
    }
    let mut last = [0; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    add(u64::from_le_bytes(last));
    sum
}
