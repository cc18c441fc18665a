//! Sends and receives bytes without blocking or raising SIGPIPE. Takes one buffer or several, with
//! or without descriptors.

use std::io;
use std::mem::MaybeUninit;

pub(super) use super::buffers::{Sources, Targets, uninit};
use super::rights::PeerFd;
use crate::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use crate::sys::{NO_SIGNAL, check_length, is_refused};

/// Returns the length that `call` transfers. Repeats the call while a signal interrupts it.
#[inline]
fn transferred(mut call: impl FnMut() -> libc::ssize_t) -> io::Result<usize> {
    loop {
        match check_length(call()) {
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            outcome => return outcome,
        }
    }
}

/// Sends as much as there is space for.
#[inline]
pub(super) fn send(fd: BorrowedFd<'_>, sources: &Sources<'_>) -> io::Result<usize> {
    if let [one] = sources.raw() {
        return send_one(fd, one);
    }
    match send_message(fd, &message(sources.raw(), NO_CONTROL)) {
        Err(error) if is_refused(&error) => one_by_one(sources.raw(), |one| send_one(fd, one)),
        outcome => outcome,
    }
}

/// Sends from one source.
#[inline]
fn send_one(fd: BorrowedFd<'_>, one: &libc::iovec) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | NO_SIGNAL;
    // SAFETY: the descriptor is open; pointer and length describe memory that may be read.
    transferred(|| unsafe { libc::send(fd.as_raw_fd(), one.iov_base, one.iov_len, flags) })
}

/// Receives the available data and returns its length, 0 at the end of the stream. As many bytes at
/// the start of the targets are then initialised.
#[inline]
pub(super) fn receive(fd: BorrowedFd<'_>, targets: &Targets<'_>) -> io::Result<usize> {
    if let [one] = targets.raw() {
        return receive_one(fd, one);
    }
    match receive_message(fd, &mut message(targets.raw(), NO_CONTROL)) {
        Err(error) if is_refused(&error) => one_by_one(targets.raw(), |one| receive_one(fd, one)),
        outcome => outcome,
    }
}

/// Receives into one target.
#[inline]
fn receive_one(fd: BorrowedFd<'_>, one: &libc::iovec) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT;
    // SAFETY: the descriptor is open; pointer and length describe memory that may be written.
    transferred(|| unsafe { libc::recv(fd.as_raw_fd(), one.iov_base, one.iov_len, flags) })
}

/// Transfers each buffer with a separate call, for a sandbox that refuses sendmsg or recvmsg. Stops
/// after the first buffer that is not transferred completely. An error after some bytes were
/// transferred repeats at the next call.
#[cold]
fn one_by_one(
    buffers: &[libc::iovec],
    mut transfer: impl FnMut(&libc::iovec) -> io::Result<usize>,
) -> io::Result<usize> {
    let mut total = 0;
    for buffer in buffers.iter().filter(|buffer| buffer.iov_len > 0) {
        match transfer(buffer) {
            Ok(n) if n == buffer.iov_len => total += n,
            Ok(n) => return Ok(total + n),
            Err(error) => return if total > 0 { Ok(total) } else { Err(error) },
        }
    }
    Ok(total)
}

fn send_message(fd: BorrowedFd<'_>, message: &libc::msghdr) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | NO_SIGNAL;
    // SAFETY: the descriptor is open. `message` made the header, from buffers that may be read.
    transferred(|| unsafe { libc::sendmsg(fd.as_raw_fd(), message, flags) })
}

fn receive_message(fd: BorrowedFd<'_>, message: &mut libc::msghdr) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | CLOSE_ON_EXEC;
    // SAFETY: the descriptor is open. `message` made the header, from buffers that may be written.
    transferred(|| unsafe { libc::recvmsg(fd.as_raw_fd(), message, flags) })
}

/// Creates a message header for these buffers, with optional space for control messages.
fn message<const N: usize>(
    buffers: &[libc::iovec],
    control: Option<&mut MaybeUninit<Control<N>>>,
) -> libc::msghdr {
    // SAFETY: msghdr is a struct of integers and pointers (with padding in some C libraries), for
    // which all zeroes is the empty value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = buffers.as_ptr().cast_mut();
    message.msg_iovlen = buffers.len() as _;
    if let Some(control) = control {
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = N as _;
    }
    message
}

// ---- descriptors that travel with bytes (unix(7), SCM_RIGHTS)

/// Most descriptors that we send together.
#[cfg(any(linux_kernel, test))]
const MOST_SENT: usize = 2;
/// Most descriptors that the system lets a process send together (SCM_MAX_FD of Linux).
pub(super) const MOST_RECEIVED: usize = 253;

/// Flag that makes received descriptors close-on-exec at once.
#[cfg(linux_kernel)]
const CLOSE_ON_EXEC: libc::c_int = libc::MSG_CMSG_CLOEXEC;
#[cfg(not(linux_kernel))]
const CLOSE_ON_EXEC: libc::c_int = 0;

/// Space for control messages. The system closes descriptors that do not fit, on the receiving
/// thread.
#[repr(C, align(8))]
struct Control<const N: usize>([u8; N]);

/// No space for control messages.
const NO_CONTROL: Option<&mut MaybeUninit<Control<0>>> = None;

/// Returns the length of a control message with `rights` descriptors.
const fn control_length(rights: usize) -> usize {
    // SAFETY: arithmetic only.
    unsafe { libc::CMSG_SPACE((rights * size_of::<RawFd>()) as u32) as usize }
}

/// Sends as `send`, and attaches one or two descriptors to the first byte.
#[cfg(any(linux_kernel, test))]
pub(super) fn send_with_rights(
    fd: BorrowedFd<'_>,
    sources: &Sources<'_>,
    rights: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    let rights = &rights[..rights.len().min(MOST_SENT)];
    let mut control = MaybeUninit::new(Control([0; control_length(MOST_SENT)]));
    let mut message = message(sources.raw(), Some(&mut control));
    message.msg_controllen = control_length(rights.len()) as _;
    // SAFETY: the control buffer has space for one header with its data, and the macros point into
    // it.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        ((*header).cmsg_level, (*header).cmsg_type) = (libc::SOL_SOCKET, libc::SCM_RIGHTS);
        (*header).cmsg_len = libc::CMSG_LEN(size_of_val(rights) as u32) as _;
        let data = libc::CMSG_DATA(header).cast::<RawFd>();
        rights.iter().enumerate().for_each(|(i, fd)| data.add(i).write_unaligned(fd.as_raw_fd()));
    }
    send_message(fd, &message)
}

/// Receives as `receive`, with all descriptors that come along. Returns no descriptor if the
/// process had no space for all of them.
pub(super) fn receive_with_rights(
    fd: BorrowedFd<'_>,
    targets: &Targets<'_>,
) -> io::Result<(usize, Vec<PeerFd>)> {
    // A socket may be set to add the sender (in two forms) and a label to each message. The buffer
    // has space for these as well.
    let mut control = MaybeUninit::<Control<{ control_length(MOST_RECEIVED) + 512 }>>::uninit();
    let mut message = message(targets.raw(), Some(&mut control));
    let n = match receive_message(fd, &mut message) {
        // Receive without control data. The kernel closes attached descriptors.
        Err(error) if is_refused(&error) => {
            return one_by_one(targets.raw(), |one| receive_one(fd, one)).map(|n| (n, Vec::new()));
        }
        outcome => outcome?,
    };
    if message.msg_controllen == 0 {
        return Ok((n, Vec::new()));
    }
    // SAFETY: the kernel has filled in the control buffer. The descriptors in it are open, and ours
    // alone.
    let mut rights = unsafe { take_rights(&message) };
    if message.msg_flags & libc::MSG_CTRUNC != 0 {
        rights.clear();
    }
    Ok((n, rights))
}

/// Returns the descriptors in the control messages of type SCM_RIGHTS. Closes the descriptors of
/// other message types.
///
/// # Safety
/// The kernel has written the control messages, each with its header and as many bytes of data as
/// the header says. The caller owns the descriptors in them.
#[allow(clippy::unnecessary_cast, reason = "the length of a control message is no usize everywhere")]
unsafe fn take_rights(message: &libc::msghdr) -> Vec<PeerFd> {
    let mut rights = Vec::new();
    // SAFETY: the macros stay within the control buffer, whose length comes from the kernel.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: null, or a header in the control buffer.
    while let Some(head) = unsafe { header.as_ref() } {
        if head.cmsg_level == libc::SOL_SOCKET && carries_rights(head.cmsg_type) {
            // SAFETY: arithmetic only.
            let length = (head.cmsg_len as usize).saturating_sub(unsafe { libc::CMSG_LEN(0) } as usize);
            // SAFETY: the data follow the header.
            let data = unsafe { libc::CMSG_DATA(header) }.cast::<RawFd>();
            for index in 0..length / size_of::<RawFd>() {
                // SAFETY: within the data; an open descriptor with no other owner.
                let fd = unsafe { OwnedFd::from_raw_fd(data.add(index).read_unaligned()) };
                if head.cmsg_type == libc::SCM_RIGHTS {
                    rights.push(PeerFd::from(fd));
                }
            }
        }
        // SAFETY: as for the first header.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    rights
}

/// True if control messages of this type carry descriptors that the kernel has opened for us.
fn carries_rights(kind: libc::c_int) -> bool {
    /// Type on a socket with SO_PASSPIDFD, which a program may hand over with ZMQ_USE_FD. Added in
    /// Linux 6.5; the C library's headers may be older.
    const SCM_PIDFD: libc::c_int = 4;
    kind == libc::SCM_RIGHTS || cfg!(linux_kernel) && kind == SCM_PIDFD
}

#[cfg(test)]
mod tests {
    use std::mem::ManuallyDrop;

    use super::*;
    use crate::fd::{AsFd, IntoRawFd};
    use crate::sys::socket_pair;

    /// True if a descriptor is open.
    fn is_open(fd: RawFd) -> bool {
        // SAFETY: fcntl accepts any number.
        unsafe { libc::fcntl(fd, libc::F_GETFD) != -1 }
    }

    /// Returns the result of `take_rights` for these control messages: level, type and a descriptor
    /// each.
    fn taken(messages: &[(libc::c_int, libc::c_int, RawFd)]) -> Vec<RawFd> {
        let mut control = [0_u64; 16];
        // SAFETY: every header with its data lies in the buffer.
        unsafe {
            let mut message = message(&[], NO_CONTROL);
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = (messages.len() * control_length(1)) as _;
            let mut header = libc::CMSG_FIRSTHDR(&message);
            for &(level, kind, fd) in messages {
                ((*header).cmsg_level, (*header).cmsg_type) = (level, kind);
                (*header).cmsg_len = libc::CMSG_LEN(4) as _;
                libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(fd);
                header = libc::CMSG_NXTHDR(&message, header);
            }
            // The test does not close them here.
            take_rights(&message).into_iter().map(|fd| ManuallyDrop::new(fd).as_fd().as_raw_fd()).collect()
        }
    }

    #[test]
    fn only_socket_level_messages_carry_descriptors() {
        let (first, second) = socket_pair().unwrap();
        let (first, second) = (first.into_raw_fd(), second.into_raw_fd());
        // At another level this type has another meaning: with IPPROTO_IP it is IP_TOS.
        assert_eq!(taken(&[(libc::IPPROTO_IP, libc::SCM_RIGHTS, first)]), []);
        assert!(is_open(first), "a number that is no descriptor of ours");
        assert_eq!(taken(&[(libc::SOL_SOCKET, libc::SCM_RIGHTS, first)]), [first]);
        let behind = [(libc::IPPROTO_IP, 1, 7), (libc::SOL_SOCKET, libc::SCM_RIGHTS, second)];
        assert_eq!(taken(&behind), [second], "behind another one");
        for fd in [first, second] {
            // SAFETY: owned by this test; `taken` returned them.
            drop(unsafe { OwnedFd::from_raw_fd(fd) });
        }
    }

    /// A socket with SO_PASSPIDFD receives a process descriptor with every message, which we do not
    /// use.
    #[cfg(linux_kernel)]
    #[test]
    fn descriptors_of_other_kinds_are_closed() {
        const SO_PASSPIDFD: libc::c_int = 76;
        let (near, far) = socket_pair().unwrap();
        let on: libc::c_int = 1;
        // SAFETY: the option's value is an int that outlives the call.
        let set = unsafe {
            libc::setsockopt(near.as_raw_fd(), libc::SOL_SOCKET, SO_PASSPIDFD, (&raw const on).cast(), 4)
        };
        send(far.as_fd(), &Sources::one(b"hello")).unwrap();
        let mut buffer = [MaybeUninit::uninit(); 10];
        let (n, rights) = receive_with_rights(near.as_fd(), &Targets::one(&mut buffer)).unwrap();
        assert_eq!((n, rights.len()), (5, 0));
        assert!(set != 0 || count_pidfds() == 0, "nothing stays open");
    }

    #[cfg(linux_kernel)]
    fn count_pidfds() -> usize {
        let all = std::fs::read_dir("/proc/self/fd").unwrap();
        let links = all.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        links.filter(|link| link.to_string_lossy().contains("pidfd")).count()
    }

    #[test]
    fn one_by_one_stops_at_first_partial_buffer() {
        let all = [3, 0, 4, 5].map(|iov_len| libc::iovec { iov_base: std::ptr::null_mut(), iov_len });
        let moved = |room: usize| {
            let mut left = room;
            one_by_one(&all, |one| match one.iov_len.min(left) {
                0 => Err(io::ErrorKind::WouldBlock.into()),
                n => {
                    left -= n;
                    Ok(n)
                }
            })
        };
        for room in 1..=12 {
            assert_eq!(moved(room).unwrap(), room);
        }
        assert_eq!(moved(100).unwrap(), 12);
        assert_eq!(moved(0).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
