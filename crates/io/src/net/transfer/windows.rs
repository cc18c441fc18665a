//! Sends and receives bytes without blocking. Takes one buffer or several.

use std::io;
use std::ptr::null_mut;

use windows_sys::Win32::Foundation::ERROR_BROKEN_PIPE;
use windows_sys::Win32::Networking::WinSock::{SOCKET, WSAESHUTDOWN, WSARecv, WSASend};

pub(super) use super::buffers::{Sources, Targets, uninit};
use crate::fd::{AsRawFd, BorrowedFd};
use crate::sys::{check, retry};

/// Sends as much as there is space for.
#[inline]
pub(super) fn send(fd: BorrowedFd<'_>, sources: &Sources<'_>) -> io::Result<usize> {
    let (socket, raw) = (fd.as_raw_fd() as SOCKET, sources.raw());
    let (buffers, number, mut count) = (raw.as_ptr(), raw.len() as u32, 0);
    // SAFETY: the socket is open while borrowed. Each buffer may be read, and the operation ends
    // with the call.
    let mut call = || unsafe { WSASend(socket, buffers, number, &mut count, 0, null_mut(), None) };
    retry(|| check(call())).map_err(|error| match error.raw_os_error() {
        // Number that the standard library maps to the error of the other systems.
        Some(WSAESHUTDOWN) => io::Error::from_raw_os_error(ERROR_BROKEN_PIPE as i32),
        _ => error,
    })?;
    Ok(count as usize)
}

/// Receives the available data and returns its length, 0 at the end of the stream. As many bytes at
/// the start of the targets are then initialised.
#[inline]
pub(super) fn receive(fd: BorrowedFd<'_>, targets: &Targets<'_>) -> io::Result<usize> {
    let (socket, raw) = (fd.as_raw_fd() as SOCKET, targets.raw());
    let (buffers, number, mut count, mut flags) = (raw.as_ptr(), raw.len() as u32, 0, 0);
    // SAFETY: the socket is open while borrowed. Each buffer may be written, and the operation ends
    // with the call.
    let mut call = || unsafe { WSARecv(socket, buffers, number, &mut count, &mut flags, null_mut(), None) };
    retry(|| check(call()))?;
    Ok(count as usize)
}
