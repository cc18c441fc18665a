//! Sending and receiving bytes, without ever blocking: one buffer or several.

use std::io::{self, IoSlice, IoSliceMut};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use windows_sys::Win32::Foundation::ERROR_BROKEN_PIPE;
use windows_sys::Win32::Networking::WinSock::{SOCKET, WSABUF, WSAESHUTDOWN, WSARecv, WSASend};

use crate::fd::{AsRawFd, BorrowedFd};
use crate::sys::{check, retry};

/// More buffers are not looked at in one call.
const MAX_BUFFERS: usize = 1024;

/// Bytes to send: one buffer, or several in turn.
#[derive(Clone, Copy)]
pub(super) struct Sources<'a> {
    list: List<'a>,
    bytes: PhantomData<&'a [u8]>,
}

/// Room to receive to: one buffer, or several in turn.
pub(super) struct Targets<'a> {
    list: List<'a>,
    bytes: PhantomData<&'a mut [MaybeUninit<u8>]>,
}

#[derive(Clone, Copy)]
enum List<'a> {
    One([WSABUF; 1]),
    Two([WSABUF; 2]),
    Several(&'a [WSABUF]),
}

impl List<'_> {
    fn raw(&self) -> &[WSABUF] {
        match self {
            List::One(one) => one,
            List::Two(two) => two,
            List::Several(several) => &several[..several.len().min(MAX_BUFFERS)],
        }
    }
}

/// Of a buffer that is longer than Winsock can say, as much as it can.
fn raw_of(start: *mut u8, length: usize) -> WSABUF {
    WSABUF { len: u32::try_from(length).unwrap_or(u32::MAX), buf: start }
}

impl<'a> Sources<'a> {
    pub(super) fn one(bytes: &'a [u8]) -> Self {
        let raw = raw_of(bytes.as_ptr().cast_mut(), bytes.len());
        Sources { list: List::One([raw]), bytes: PhantomData }
    }

    /// Of very many, the first 1024.
    pub(super) fn several(buffers: &'a [IoSlice<'a>]) -> Self {
        // SAFETY: IoSlice has the layout of WSABUF (documented), and both slices the same length and lifetime.
        let raw = unsafe { std::slice::from_raw_parts(buffers.as_ptr().cast(), buffers.len()) };
        Sources { list: List::Several(raw), bytes: PhantomData }
    }
}

impl<'a> Targets<'a> {
    pub(super) fn one(buffer: &'a mut [MaybeUninit<u8>]) -> Self {
        Targets { list: List::One([raw_of(buffer.as_mut_ptr().cast(), buffer.len())]), bytes: PhantomData }
    }

    pub(super) fn two(first: &'a mut [MaybeUninit<u8>], second: &'a mut [MaybeUninit<u8>]) -> Self {
        let raw = [first, second].map(|buffer| raw_of(buffer.as_mut_ptr().cast(), buffer.len()));
        Targets { list: List::Two(raw), bytes: PhantomData }
    }

    /// Of very many, the first 1024.
    pub(super) fn several(buffers: &'a mut [IoSliceMut<'_>]) -> Self {
        // SAFETY: IoSliceMut has the layout of WSABUF (documented), and both slices the same length; the buffers outlive `'a`.
        let raw = unsafe { std::slice::from_raw_parts(buffers.as_ptr().cast(), buffers.len()) };
        Targets { list: List::Several(raw), bytes: PhantomData }
    }
}

/// As memory that need not be initialised, for what only writes to it.
pub(super) fn uninit(buffer: &mut [u8]) -> &mut [MaybeUninit<u8>] {
    // SAFETY: the same layout; who gets it here (`receive`) puts nothing there but bytes.
    unsafe { &mut *(std::ptr::from_mut(buffer) as *mut [MaybeUninit<u8>]) }
}

/// Sends as much as there is room for.
#[inline]
pub(super) fn send(fd: BorrowedFd<'_>, sources: &Sources<'_>) -> io::Result<usize> {
    let (socket, raw) = (fd.as_raw_fd() as SOCKET, sources.list.raw());
    let (buffers, number, mut count) = (raw.as_ptr(), raw.len() as u32, 0);
    // SAFETY: the socket is open while borrowed; each buffer may be read, and nothing goes on after the call.
    let mut call = || unsafe { WSASend(socket, buffers, number, &mut count, 0, null_mut(), None) };
    retry(|| check(call())).map_err(|error| match error.raw_os_error() {
        // The other systems' word for it, which the standard library knows.
        Some(WSAESHUTDOWN) => io::Error::from_raw_os_error(ERROR_BROKEN_PIPE as i32),
        _ => error,
    })?;
    Ok(count as usize)
}

/// Receives what there is, 0 at the end of the stream: as many first bytes of the targets, as the result says, are initialised then.
#[inline]
pub(super) fn receive(fd: BorrowedFd<'_>, targets: &Targets<'_>) -> io::Result<usize> {
    let (socket, raw) = (fd.as_raw_fd() as SOCKET, targets.list.raw());
    let (buffers, number, mut count, mut flags) = (raw.as_ptr(), raw.len() as u32, 0, 0);
    // SAFETY: the socket is open while borrowed; each buffer may be written, and nothing goes on after the call.
    let mut call = || unsafe { WSARecv(socket, buffers, number, &mut count, &mut flags, null_mut(), None) };
    retry(|| check(call()))?;
    Ok(count as usize)
}
