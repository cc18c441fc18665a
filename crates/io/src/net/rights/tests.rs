use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::*;
use crate::net::transfer::{Sources, send_with_rights, uninit};
use crate::poll::{PollFd, poll};
#[cfg(linux_kernel)]
use crate::sys::socket_pair;
use tautline_testkit::with_watchdog;

/// Creates a pipe. Its reading end hangs up when the writing end is closed.
fn pipe() -> (OwnedFd, OwnedFd) {
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two descriptors, both ours alone.
    unsafe {
        assert_eq!(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC), 0);
        (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))
    }
}

fn wait_for_the_end(reading: &OwnedFd) {
    let mut fds = [PollFd::new(reading.as_raw_fd(), 0)];
    poll(&mut fds, None).unwrap();
    assert_ne!(fds[0].revents & PollFd::HUP, 0);
}

#[test]
fn dropped_descriptors_close_on_another_thread() {
    with_watchdog(Duration::from_secs(60), "closed", || {
        for _ in 0..100 {
            let ends: Vec<_> = (0..5).map(|_| pipe()).collect();
            let (reading, writing): (Vec<_>, Vec<_>) = ends.into_iter().unzip();
            drop(writing.into_iter().map(PeerFd::from).collect::<Vec<_>>());
            reading.iter().for_each(wait_for_the_end);
        }
    });
}

/// Unread data keeps the closing thread for the linger time that the sender has set.
#[test]
fn a_socket_that_lingers_does_not_keep_the_thread_that_drops_it() {
    with_watchdog(Duration::from_secs(60), "lingers", || {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let near = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        near.set_nonblocking(true).unwrap();
        while io::Write::write(&mut &near, &[0; 65536]).is_ok() {}
        // Switched on, for a million seconds.
        let linger = [1_i32.to_ne_bytes(), 1_000_000_i32.to_ne_bytes()].concat();
        crate::net::option::set_bytes(near.as_fd(), libc::SOL_SOCKET, libc::SO_LINGER, &linger).unwrap();
        drop(PeerFd::from(OwnedFd::from(near)));
        // An in-line close would hang here. Once the data is read, the next descriptor is closed as
        // well.
        assert!(io::copy(&mut far, &mut io::sink()).unwrap() > 0);
        let (reading, writing) = pipe();
        drop(PeerFd::from(writing));
        wait_for_the_end(&reading);
    });
}

#[test]
fn descriptors_that_come_in_where_none_are_wanted_are_closed() {
    with_watchdog(Duration::from_secs(60), "unwanted", || {
        let (near, far) = UnixStream::pair().unwrap();
        let (reading, writing) = pipe();
        let sent = send_with_rights(far.as_fd(), &Sources::one(&[1, 2]), &[writing.as_fd(), writing.as_fd()]);
        assert_eq!(sent.unwrap(), 2);
        drop(writing);
        let mut buffer = [0; 10];
        assert_eq!(receive_all(near.as_fd(), &Targets::one(uninit(&mut buffer))).unwrap().0, 2);
        wait_for_the_end(&reading);
    });
}

/// We receive as many descriptors as the system lets a process send, so that the system never has
/// to close any.
#[cfg(linux_kernel)]
#[test]
fn all_descriptors_that_can_be_sent_arrive() {
    let (near, far) = UnixStream::pair().unwrap();
    let mut control = [0_u64; (16 + 4 * MOST_RECEIVED).div_ceil(8)];
    let mut byte = [7_u8];
    let mut iov = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let length = (MOST_RECEIVED * 4) as u32;
    // SAFETY: a struct of integers and pointers, with space for a header and the descriptors behind
    // `msg_control`.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        (message.msg_iov, message.msg_iovlen) = (&mut iov, 1);
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(length) as _;
        let header = libc::CMSG_FIRSTHDR(&message);
        ((*header).cmsg_level, (*header).cmsg_type) = (libc::SOL_SOCKET, libc::SCM_RIGHTS);
        (*header).cmsg_len = libc::CMSG_LEN(length) as _;
        let data = libc::CMSG_DATA(header).cast::<i32>();
        (0..MOST_RECEIVED).for_each(|i| data.add(i).write_unaligned(far.as_raw_fd()));
        assert_eq!(libc::sendmsg(far.as_raw_fd(), &message, 0), 1);
    }
    let mut buffer = [0; 10];
    let (n, rights) =
        transfer::receive_with_rights(near.as_fd(), &Targets::one(uninit(&mut buffer))).unwrap();
    assert_eq!((n, rights.len()), (1, MOST_RECEIVED));
}

#[cfg(linux_kernel)]
#[test]
fn only_a_stream_of_the_unix_domain_is_one() {
    let is_stream = |fd: OwnedFd| PeerFd::from(fd).is_stream();
    assert!(is_stream(socket_pair().unwrap().0));
    assert!(!is_stream(std::os::unix::net::UnixDatagram::unbound().unwrap().into()));
    assert!(!is_stream(std::net::TcpListener::bind("127.0.0.1:0").unwrap().into()));
    assert!(!is_stream(pipe().0));
    assert!(!is_stream(File::open("/dev/null").unwrap().into()));
}

/// Linux 6.16: no descriptor arrives.
#[cfg(linux_kernel)]
#[test]
fn refused_descriptors_do_not_arrive_until_allowed() {
    let (near, far) = socket_pair().unwrap();
    refuse(near.as_fd());
    if !are_refused() {
        return;
    }
    let send = || send_with_rights(far.as_fd(), &Sources::one(&[1]), &[far.as_fd()]);
    assert_eq!(send().unwrap_err().raw_os_error(), Some(libc::EPERM));
    allow(near.as_fd());
    assert_eq!(send().unwrap(), 1);
}
