//! Sending and receiving bytes, without ever blocking or raising SIGPIPE: one buffer or several, with descriptors or without.

use std::io::{self, IoSlice, IoSliceMut};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use crate::sys::{NO_SIGNAL, check_length, retry};

/// More buffers in one call are EMSGSIZE.
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
    One([libc::iovec; 1]),
    Several(&'a [libc::iovec]),
}

impl List<'_> {
    fn raw(&self) -> &[libc::iovec] {
        match self {
            List::One(one) => one,
            List::Several(several) => &several[..several.len().min(MAX_BUFFERS)],
        }
    }
}

impl<'a> Sources<'a> {
    pub(super) fn one(bytes: &'a [u8]) -> Self {
        let raw = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        Sources { list: List::One([raw]), bytes: PhantomData }
    }

    /// Of very many, the first 1024.
    pub(super) fn several(buffers: &'a [IoSlice<'a>]) -> Self {
        // SAFETY: IoSlice has the layout of iovec (documented), and both slices the same length and lifetime.
        let raw = unsafe { std::slice::from_raw_parts(buffers.as_ptr().cast(), buffers.len()) };
        Sources { list: List::Several(raw), bytes: PhantomData }
    }

    /// Each is valid for reads of its length, for `'a`.
    pub(super) fn raw(&self) -> &[libc::iovec] {
        self.list.raw()
    }
}

impl<'a> Targets<'a> {
    pub(super) fn one(buffer: &'a mut [MaybeUninit<u8>]) -> Self {
        let raw = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        Targets { list: List::One([raw]), bytes: PhantomData }
    }

    /// Of very many, the first 1024.
    pub(super) fn several(buffers: &'a mut [IoSliceMut<'_>]) -> Self {
        // SAFETY: IoSliceMut has the layout of iovec (documented), and both slices the same length; the buffers outlive `'a`.
        let raw = unsafe { std::slice::from_raw_parts(buffers.as_ptr().cast(), buffers.len()) };
        Targets { list: List::Several(raw), bytes: PhantomData }
    }

    /// Each is valid for writes of its length, for `'a`.
    pub(super) fn raw(&self) -> &[libc::iovec] {
        self.list.raw()
    }

    /// The first `most` bytes of the first one that has any.
    pub(super) fn beginning(&self, most: usize) -> Targets<'_> {
        let first = self.raw().iter().find(|raw| raw.iov_len > 0);
        let first = first.map_or(libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }, |raw| {
            libc::iovec { iov_base: raw.iov_base, iov_len: raw.iov_len.min(most) }
        });
        Targets { list: List::One([first]), bytes: PhantomData }
    }
}

/// As memory that need not be initialised, for what only writes to it.
pub(super) fn uninit(buffer: &mut [u8]) -> &mut [MaybeUninit<u8>] {
    // SAFETY: the same layout; who gets it here (`receive`, and the rings of `shared`) puts nothing there but bytes.
    unsafe { &mut *(std::ptr::from_mut(buffer) as *mut [MaybeUninit<u8>]) }
}

/// Sends as much as there is room for.
#[inline]
pub(super) fn send(fd: BorrowedFd<'_>, sources: &Sources<'_>) -> io::Result<usize> {
    if let [one] = sources.raw() {
        let flags = libc::MSG_DONTWAIT | NO_SIGNAL;
        return retry(|| {
            // SAFETY: the descriptor is open; pointer and length describe memory that may be read.
            check_length(unsafe { libc::send(fd.as_raw_fd(), one.iov_base, one.iov_len, flags) })
        });
    }
    send_message(fd, &message(sources.raw(), None))
}

/// Receives what there is, 0 at the end of the stream: as many first bytes of the targets, as the result says, are initialised then.
#[inline]
pub(super) fn receive(fd: BorrowedFd<'_>, targets: &Targets<'_>) -> io::Result<usize> {
    if let [one] = targets.raw() {
        let flags = libc::MSG_DONTWAIT;
        return retry(|| {
            // SAFETY: the descriptor is open; pointer and length describe memory that may be written.
            check_length(unsafe { libc::recv(fd.as_raw_fd(), one.iov_base, one.iov_len, flags) })
        });
    }
    receive_message(fd, &mut message(targets.raw(), None))
}

fn send_message(fd: BorrowedFd<'_>, message: &libc::msghdr) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | NO_SIGNAL;
    // SAFETY: the descriptor is open; the message was made by `message`, of buffers that may be read.
    retry(|| check_length(unsafe { libc::sendmsg(fd.as_raw_fd(), message, flags) }))
}

fn receive_message(fd: BorrowedFd<'_>, message: &mut libc::msghdr) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | CLOSE_ON_EXEC;
    // SAFETY: the descriptor is open; the message was made by `message`, of buffers that may be written.
    retry(|| check_length(unsafe { libc::recvmsg(fd.as_raw_fd(), message, flags) }))
}

/// A message header for these buffers, and maybe a control message.
fn message(buffers: &[libc::iovec], control: Option<&mut Control>) -> libc::msghdr {
    // SAFETY: msghdr is a struct of integers and pointers (with padding in some C libraries), for which all
    // zeroes means "nothing".
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = buffers.as_ptr().cast_mut();
    message.msg_iovlen = buffers.len() as _;
    if let Some(control) = control {
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = Control::length(MOST_RIGHTS) as _;
    }
    message
}

// ---- descriptors that travel with bytes (unix(7), SCM_RIGHTS)

/// Most that go together.
pub(super) const MOST_RIGHTS: usize = 2;

/// What received descriptors are to be at once.
#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOSE_ON_EXEC: libc::c_int = libc::MSG_CMSG_CLOEXEC;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOSE_ON_EXEC: libc::c_int = 0;

/// Room for one control message with them. Of more that come the system closes what does not fit.
#[repr(C, align(8))]
struct Control([u8; 64]);

impl Control {
    /// Bytes of one with so many.
    const fn length(rights: usize) -> usize {
        // SAFETY: arithmetic only.
        unsafe { libc::CMSG_SPACE((rights * size_of::<RawFd>()) as u32) as usize }
    }
}

/// Sends as `send`, and with the first byte the descriptors, of which there are one or two.
pub(super) fn send_with_rights(
    fd: BorrowedFd<'_>,
    sources: &Sources<'_>,
    rights: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    let rights = &rights[..rights.len().min(MOST_RIGHTS)];
    let mut control = Control([0; 64]);
    let mut message = message(sources.raw(), Some(&mut control));
    message.msg_controllen = Control::length(rights.len()) as _;
    // SAFETY: the control buffer has room for one header with its data, which the macros point into.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        ((*header).cmsg_level, (*header).cmsg_type) = (libc::SOL_SOCKET, libc::SCM_RIGHTS);
        (*header).cmsg_len = libc::CMSG_LEN(size_of_val(rights) as u32) as _;
        let data = libc::CMSG_DATA(header).cast::<RawFd>();
        rights.iter().enumerate().for_each(|(i, fd)| data.add(i).write_unaligned(fd.as_raw_fd()));
    }
    send_message(fd, &message)
}

/// Receives as `receive`, and the descriptors that come with it.
pub(super) fn receive_with_rights(
    fd: BorrowedFd<'_>,
    targets: &Targets<'_>,
) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut control = Control([0; 64]);
    let mut message = message(targets.raw(), Some(&mut control));
    let n = receive_message(fd, &mut message)?;
    let mut rights = Vec::new();
    if message.msg_controllen != 0 {
        // SAFETY: the kernel has filled in the control buffer, and the macros stay within the length that it gave; the descriptors are
        // open, and ours alone.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(&message);
            if !header.is_null() && (*header).cmsg_type == libc::SCM_RIGHTS {
                let count = ((*header).cmsg_len as usize - libc::CMSG_LEN(0) as usize) / size_of::<RawFd>();
                let fds = libc::CMSG_DATA(header).cast::<RawFd>();
                rights.extend((0..count).map(|i| OwnedFd::from_raw_fd(fds.add(i).read_unaligned())));
            }
        }
    }
    Ok((n, rights))
}
