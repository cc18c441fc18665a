//! Connects to the control socket of an observed process, also of one of another user or with other
//! mounts.
//!
//! The path of the socket comes from the process. So root follows the path from the root directory
//! of the process and without links, and sends nothing unless the user of the process listens.

use std::io::{self, ErrorKind};
use std::os::unix::net::UnixStream;
use std::path::Path;

use tautline_observe::ObservedProcess;

use crate::inspect::users;

/// Connects to the control socket at `path`.
pub fn connect(found: &ObservedProcess, path: &Path) -> io::Result<UnixStream> {
    if found.user == users::own() && !found.path.starts_with("/proc") {
        return UnixStream::connect(path);
    }
    let stream = open(found.pid, path)?;
    match is_listener(&stream, found.user)? {
        true => Ok(stream),
        false => Err(io::Error::new(ErrorKind::PermissionDenied, "another user listens at this socket")),
    }
}

#[cfg(target_os = "linux")]
fn open(pid: u32, path: &Path) -> io::Result<UnixStream> {
    use std::os::fd::AsRawFd;

    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, open, openat2};

    let handle = OFlags::PATH | OFlags::CLOEXEC;
    let root = open(format!("/proc/{pid}/root"), handle | OFlags::DIRECTORY, Mode::empty())?;
    let inside = path.strip_prefix("/").unwrap_or(path);
    let socket = match openat2(&root, inside, handle | OFlags::NOFOLLOW, Mode::empty(), ResolveFlags::IN_ROOT)
    {
        // Linux before 5.6 has no such call. The listener is checked below.
        Err(rustix::io::Errno::NOSYS) => {
            rustix::fs::openat(CWD, path, handle | OFlags::NOFOLLOW, Mode::empty())
        }
        opened => opened,
    }?;
    UnixStream::connect(format!("/proc/self/fd/{}", socket.as_raw_fd()))
}

#[cfg(not(target_os = "linux"))]
fn open(_: u32, path: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(path)
}

/// True if `user` listens at the other end.
#[cfg(target_os = "linux")]
fn is_listener(stream: &UnixStream, user: u32) -> io::Result<bool> {
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    Ok(peer.uid.as_raw() == user)
}

#[cfg(not(target_os = "linux"))]
fn is_listener(_: &UnixStream, user: u32) -> io::Result<bool> {
    Ok(user == users::own())
}
