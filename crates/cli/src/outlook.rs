//! Whether a reader is left at the other end of standard output.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// A descriptor that becomes readable when the reader of a pipe, the other end of a socket, or the
/// terminal is gone. `None` for an output of which no end is told: a file.
///
/// A thread waits for that alone: what may be readable on the same descriptor does not matter.
pub fn watch(out: &File) -> io::Result<Option<UnixStream>> {
    let kind = out.metadata()?.file_type();
    if !(kind.is_fifo() || kind.is_socket() || kind.is_char_device()) {
        return Ok(None);
    }
    let (seen, tells) = UnixStream::pair()?;
    let out = out.try_clone()?;
    thread::Builder::new().name("outlook".to_owned()).spawn(move || {
        // Errors are told unasked.
        let mut items = [PollFd::from_borrowed_fd(out.as_fd(), PollFlags::empty())];
        while matches!(poll(&mut items, None), Ok(0) | Err(Errno::INTR)) {}
        drop(tells);
    })?;
    Ok(Some(seen))
}
