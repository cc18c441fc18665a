//! Unit tests of the chains. The counters start just below their wrap-around in every test (see
//! `chain`).

mod adopted;
mod amounts;
mod inbound;
mod inproc;
mod model;
// The barrier of the inbox is a system call that Miri does not have.
#[cfg(not(miri))]
mod news;
mod outbound;

use super::filler::copy;
use super::*;
use crate::message::Message;
use std::ffi::c_void;
use std::io::IoSlice;
use std::sync::atomic::{AtomicUsize, Ordering};
use tautline_mem::reserve::NoMemory;
use tautline_proto::frame::{self, COMMAND, MORE};

/// Returns `len` bytes that differ by position and by seed.
fn body(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| (i.wrapping_mul(31) ^ (i >> 8) ^ seed.wrapping_mul(77)) as u8).collect()
}

/// Returns a frame in its wire form.
fn encoded(flags: u8, body: &[u8]) -> Vec<u8> {
    let mut header = [0; frame::MAX_HEADER];
    let n = frame::encode_header(flags, body.len() as u64, &mut header);
    [&header[..n], body].concat()
}

/// Returns all pending bytes without taking them.
fn pending_bytes(drain: &mut ByteDrain) -> Vec<u8> {
    let mut out = Vec::new();
    drain.pending();
    drain.peek_copy(usize::MAX, &mut out);
    out
}

/// Takes all pending bytes, with the given number of slices.
fn drained(drain: &mut ByteDrain, slices: usize) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let mut buffers = vec![IoSlice::new(&[]); slices];
        let (n, bytes) = drain.slices(&mut buffers);
        assert_eq!(buffers[..n].iter().map(|b| b.len() as u64).sum::<u64>(), bytes);
        buffers[..n].iter().for_each(|buffer| out.extend_from_slice(buffer));
        if bytes == 0 {
            return out;
        }
        drain.advance(bytes);
    }
}

/// Reads one frame into a buffer that is large enough.
fn read(reader: &mut FrameReader) -> Option<(u8, Vec<u8>)> {
    let mut out = vec![0; reader.head()?.len];
    let head = reader.read_into(&mut out)?;
    assert_eq!(head.len, out.len());
    Some((head.flags & !frame::LONG, out))
}

/// Counts the call and frees no memory.
unsafe extern "C" fn count(_: *mut c_void, hint: *mut c_void) {
    // SAFETY: the tests pass a counter that outlives the message.
    unsafe { (*hint.cast::<AtomicUsize>()).fetch_add(1, Ordering::SeqCst) };
}

/// Returns a message over foreign memory whose free function counts in `freed`.
fn foreign(bytes: &[u8], freed: &AtomicUsize) -> Message {
    let hint = (&raw const *freed).cast_mut().cast();
    // SAFETY: the chains never write to a body, and every test drops the chain before the bytes and
    // the counter.
    unsafe { Message::from_foreign(bytes.as_ptr().cast_mut(), bytes.len(), Some(count), hint) }
}

/// Returns lengths around every boundary: header forms, copy widths, segments, bodies by reference.
fn lengths() -> Vec<usize> {
    let around = |n: usize| n.saturating_sub(10)..=n + 10;
    let mut all: Vec<usize> = (0..=70).chain(around(256)).chain(around(1024)).collect();
    for n in [4096, 8192, 16384, 32768, 65536, 131_072] {
        all.extend(around(n));
    }
    if cfg!(miri) {
        all.retain(|&n| n < 300 || (n < 40_000 && n % 7 == 0));
    }
    all
}
