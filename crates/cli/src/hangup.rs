//! Detects that the reader of standard output is gone.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// Returns a descriptor that becomes readable when the reader of a pipe, the peer of a socket, or
/// the terminal is gone. Returns `None` for an output without such an event: a file.
///
/// A separate thread waits for this event only. Readable data on the same descriptor do not matter.
pub fn hangup_descriptor(out: &File) -> io::Result<Option<UnixStream>> {
    let kind = out.metadata()?.file_type();
    if !(kind.is_fifo() || kind.is_socket() || kind.is_char_device()) {
        return Ok(None);
    }
    let (seen, tells) = UnixStream::pair()?;
    let out = out.try_clone()?;
    thread::Builder::new().name("outlook".to_owned()).spawn(move || {
        // `poll` always reports errors, even if no event is requested.
        let mut items = [PollFd::from_borrowed_fd(out.as_fd(), PollFlags::empty())];
        while matches!(poll(&mut items, None), Ok(0) | Err(Errno::INTR)) {}
        drop(tells);
    })?;
    Ok(Some(seen))
}
