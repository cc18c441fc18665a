//! Bodies that a program may write to: pages of a private mapping, which the system copies when
//! they are written.
//!
//! A page that was copied no longer follows the writer's memory. So the copied pages in the place
//! of a body are dropped before the body is exposed. The reason for a copy does not matter: a
//! write, or memory that the program has locked.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

use crate::lending::{self, Count};
use crate::sys::{check, retry};
use crate::{fork, libc, slab};

/// Entries of proc_pid_pagemap(5) that are read at once.
const ENTRIES: usize = 1024;
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
/// The page belongs to the file, and was not copied.
const OF_FILE: u64 = 1 << 61;
/// MADV_DONTNEED_LOCKED, since Linux 5.18.
const DONTNEED_LOCKED: libc::c_int = 24;

/// The descriptor of the page map of this process plus 1, with the generation that it belongs to in
/// the upper half. 0 if there is none. Without a lock, which a thread of a parent may have held.
static PAGE_MAP: AtomicU64 = AtomicU64::new(0);

/// Returns the page map of this process.
fn page_map() -> io::Result<ManuallyDrop<File>> {
    let generation = u64::from(fork::generation()) << 32;
    let mut known = PAGE_MAP.load(Acquire);
    if known & u64::from(u32::MAX) == 0 || known >> 32 != generation >> 32 {
        let new = File::open("/proc/self/pagemap")?;
        let word = generation | (new.as_raw_fd() as u64 + 1);
        known = match PAGE_MAP.compare_exchange(known, word, AcqRel, Acquire) {
            Ok(_) => {
                // Open as long as the process.
                let _ = new.into_raw_fd();
                word
            }
            Err(other) => other,
        };
    }
    // SAFETY: open as long as the process, and not closed here.
    Ok(ManuallyDrop::new(unsafe { File::from_raw_fd((known as u32 - 1) as RawFd) }))
}

/// Drops the copies of pages between `start` and `start + length`, which is a part of a private
/// mapping of a file and begins on a page. Fails if the system does not show which pages are
/// copies.
pub(super) fn drop_copies(start: NonNull<u8>, length: usize) -> io::Result<()> {
    let file = page_map()?;
    let first = start.addr().get() / slab::PAGE;
    let count = length.div_ceil(slab::PAGE);
    let mut bytes = [0; ENTRIES * 8];
    for at in (0..count).step_by(ENTRIES) {
        let entries = &mut bytes[..8 * ENTRIES.min(count - at)];
        file.read_exact_at(entries, 8 * (first + at) as u64)?;
        let entries = entries.as_chunks().0;
        let is_copy = |entry: &[u8; 8]| {
            let entry = u64::from_ne_bytes(*entry);
            entry & SWAPPED != 0 || entry & (PRESENT | OF_FILE) == PRESENT
        };
        let mut next = 0;
        while let Some(skip) = entries[next..].iter().position(is_copy) {
            let run = entries[next + skip..].iter().take_while(|entry| is_copy(entry)).count();
            lending::add(Count::CopiedPages, run as u64);
            drop_pages(start.as_ptr().wrapping_add((at + next + skip) * slab::PAGE), run * slab::PAGE)?;
            next += skip + run;
        }
    }
    Ok(())
}

fn drop_pages(start: *mut u8, length: usize) -> io::Result<()> {
    let drop_by = |advice| {
        // SAFETY: the pages lie in a private mapping of a file, where no body is exposed. They show
        // the file again.
        retry(|| check(unsafe { libc::madvise(start.cast(), length, advice) }))
    };
    match drop_by(libc::MADV_DONTNEED) {
        // The pages are locked in memory.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => drop_by(DONTNEED_LOCKED).map(drop),
        outcome => outcome.map(drop),
    }
}
