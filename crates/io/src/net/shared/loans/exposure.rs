//! Bodies that a program may write to: pages of a private mapping, which the system copies when
//! they are written.
//!
//! A page that was copied no longer follows the writer's memory. So the copied pages in the place
//! of a body are dropped before the body is exposed. The reason for a copy does not matter: a
//! write, or memory that the program has locked.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::Mutex;

use crate::lending::{self, Count};
use crate::sys::{check, retry};
use crate::{fork, libc, memfd, slab};

/// Entries of proc_pid_pagemap(5) that are read at once.
const ENTRIES: usize = 1024;
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
/// The page belongs to the file, and was not copied.
const OF_FILE: u64 = 1 << 61;
/// MADV_DONTNEED_LOCKED, since Linux 5.18.
const DONTNEED_LOCKED: libc::c_int = 24;

/// The page map of a process, opened by it.
struct PageMap {
    /// Never closed: once the program has closed it, its number may belong to another file.
    file: ManuallyDrop<File>,
    identity: (u64, u64),
    generation: u32,
}

impl PageMap {
    fn open() -> io::Result<Self> {
        let file = ManuallyDrop::new(File::open("/proc/self/pagemap")?);
        Ok(PageMap { identity: memfd::identity(&file)?, file, generation: fork::generation() })
    }

    /// True if the program has not closed the file, and if no fork has come in between.
    fn is_current(&self) -> bool {
        self.generation == fork::generation()
            && memfd::identity(&self.file).is_ok_and(|now| now == self.identity)
    }
}

/// The page map of this process, once it was opened.
static PAGE_MAP: Mutex<Option<PageMap>> = Mutex::new(None);

/// Calls `use_map` with the page map of this process.
fn with_page_map(use_map: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    // In a forked child, a thread of the parent may have held the lock.
    let Ok(mut known) = PAGE_MAP.try_lock() else { return use_map(&File::open("/proc/self/pagemap")?) };
    if !known.as_ref().is_some_and(PageMap::is_current) {
        *known = Some(PageMap::open()?);
    }
    known.as_ref().map_or(Ok(()), |known| use_map(&known.file))
}

/// Drops the copies of pages between `start` and `start + length`, which is a part of a private
/// mapping of a file and begins on a page. Fails if the system does not show which pages are
/// copies.
pub(super) fn drop_copies(start: NonNull<u8>, length: usize) -> io::Result<()> {
    with_page_map(|file| drop_copies_by(file, start, length))
}

fn drop_copies_by(file: &File, start: NonNull<u8>, length: usize) -> io::Result<()> {
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
