use crate::fd::{AsFd, AsRawFd};
use crate::libc;
use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddr};

use tautline_testkit::endpoint::loopback;

use super::*;
use crate::poll::{PollFd, poll};

/// Waits until `fd` is ready for `events`.
fn ready(fd: impl AsFd, events: i16) {
    let mut fds = [PollFd::new(fd.as_fd().as_raw_fd(), events)];
    assert_eq!(poll(&mut fds, None).unwrap(), 1);
}

fn bind(address: &str) -> Listener {
    let address = Address::Inet(address.parse().unwrap());
    Listener::bind(&address, &StreamOptions::default(), 10, false).unwrap()
}

fn connect_with(
    listener: &Listener,
    source: Option<&SocketAddr>,
    options: &StreamOptions,
) -> (Stream, Stream) {
    let address = listener.local_address().unwrap();
    let (client, at_once) = Stream::connect(&address, source, options).unwrap();
    if !at_once {
        ready(&client, PollFd::OUT);
    }
    assert!(client.finish_connect().unwrap());
    ready(listener, PollFd::IN);
    (client, listener.accept().unwrap())
}

fn connect(listener: &Listener) -> (Stream, Stream) {
    connect_with(listener, None, &StreamOptions::default())
}

fn read_exactly(stream: &Stream, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < length {
        ready(stream, PollFd::IN);
        match stream.read(&mut bytes[filled..]).unwrap() {
            0 => panic!("stream ended after {filled} bytes"),
            count => filled += count,
        }
    }
    bytes
}

/// Checks the behaviour common to all pairs of connected streams.
fn exchange(client: &Stream, server: &Stream) {
    assert_eq!(client.read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(client.write(b"ping").unwrap(), 4);
    assert_eq!(read_exactly(server, 4), b"ping");

    let parts: [&[u8]; 4] = [b"gather", b"", b"ed ", b"bytes"];
    let written = server.writev(&parts.map(IoSlice::new)).unwrap();
    assert_eq!(written, 14);
    ready(client, PollFd::IN);
    let (mut head, mut tail) = ([0; 5], [0; 20]);
    let count = client.readv(&mut [IoSliceMut::new(&mut head), IoSliceMut::new(&mut tail)]).unwrap();
    assert_eq!((count, &head, &tail[..9]), (14, b"gathe", &b"red bytes"[..]));

    client.write(b"x").unwrap();
    ready(server, PollFd::IN);
    let mut byte = [MaybeUninit::uninit(); 4];
    let mut more = [MaybeUninit::uninit(); 4];
    assert_eq!(server.read_uninit([&mut byte, &mut more]).unwrap(), [b"x", &b""[..]]);
    client.write(b"first").unwrap();
    ready(server, PollFd::IN);
    assert_eq!(server.read_uninit([&mut byte, &mut more]).unwrap(), [b"firs", &b"t"[..]]);

    // A list with more buffers than the system takes at once is written in part.
    let many = vec![IoSlice::new(b"y"); 5000];
    let count = server.writev(&many).unwrap();
    assert!((1..=5000).contains(&count));
    assert_eq!(read_exactly(client, count), vec![b'y'; count]);

    client.shutdown(Shutdown::Write).unwrap();
    ready(server, PollFd::IN);
    assert_eq!(server.read(&mut [0; 8]).unwrap(), 0);
    assert_eq!(client.write(b"after the end").unwrap_err().kind(), ErrorKind::BrokenPipe);
}

#[test]
fn v4() {
    let listener = bind("127.0.0.1:0");
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    let (client, server) = connect(&listener);
    assert_eq!(client.family(), Family::V4);
    assert_eq!(client.local_address().unwrap(), server.peer_address().unwrap());
    assert_eq!(client.peer_address().unwrap(), listener.local_address().unwrap());
    assert_eq!(server.peer_credentials().unwrap_err().raw_os_error(), Some(libc::ENOTSUP));
    exchange(&client, &server);
}

#[test]
fn v6_accepts_v4_by_default() {
    let address = Address::Inet("[::]:0".parse().unwrap());
    let options = StreamOptions { tos: 0x10, ..StreamOptions::default() };
    let loopback = Address::Inet("[::1]:0".parse().unwrap());
    if Listener::bind(&loopback, &StreamOptions::default(), 10, false).is_err() {
        return; // A machine without IPv6.
    }
    let listener = Listener::bind(&address, &options, 10, false).unwrap();
    let Address::Inet(at) = listener.local_address().unwrap() else { panic!("not TCP") };
    for ip in ["::1", "127.0.0.1"] {
        let address = Address::Inet(SocketAddr::new(ip.parse().unwrap(), at.port()));
        let (client, at_once) = Stream::connect(&address, None, &options).unwrap();
        if !at_once {
            ready(&client, PollFd::OUT);
        }
        assert!(client.finish_connect().unwrap());
        ready(&listener, PollFd::IN);
        let server = listener.accept().unwrap();
        assert_eq!(server.family(), Family::V6);
        exchange(&client, &server);
    }

    // The port is still free for IPv4, unless another program happens to use it.
    let twice = (0..100).any(|_| {
        let only = Listener::bind(&address, &options, 10, true).unwrap();
        let Address::Inet(at) = only.local_address().unwrap() else { panic!("not TCP") };
        let of_ipv4 = Address::Inet(SocketAddr::new([0, 0, 0, 0].into(), at.port()));
        Listener::bind(&of_ipv4, &options, 10, false).is_ok()
    });
    assert!(twice);
}

#[test]
fn v4_is_reached_by_a_mapped_address() {
    if !is_ipv6_supported() {
        return;
    }
    let listener = bind("127.0.0.1:0");
    let Address::Inet(at) = listener.local_address().unwrap() else { panic!("not TCP") };
    let mapped = Address::Inet((Ipv4Addr::LOCALHOST.to_ipv6_mapped(), at.port()).into());
    let (client, at_once) = Stream::connect(&mapped, None, &StreamOptions::default()).unwrap();
    if !at_once {
        ready(&client, PollFd::OUT);
    }
    assert!(client.finish_connect().unwrap());
    ready(&listener, PollFd::IN);
    exchange(&client, &listener.accept().unwrap());
}

#[cfg(unix)]
#[test]
fn unix_path() {
    let directory = temporary_directory().unwrap();
    let path = directory.join("socket");
    let address = Address::Unix { path: path.clone() };
    let options = StreamOptions::default();
    let listener = Listener::bind(&address, &options, 10, false).unwrap();
    assert_eq!(listener.local_address().unwrap(), address);
    let (client, server) = connect(&listener);
    assert_eq!(client.family(), Family::Unix);
    assert_eq!(client.peer_address().unwrap(), address);
    assert_eq!(server.peer_address().unwrap(), Address::Unix { path: "".into() });
    client.set_nodelay(true).unwrap();
    exchange(&client, &server);

    // The file outlives its socket.
    drop(listener);
    let again = Listener::bind(&address, &options, 10, false);
    assert_eq!(again.unwrap_err().error.raw_os_error(), Some(libc::EADDRINUSE));
    clear_path(&path).unwrap();
    clear_path(&path).unwrap();
    assert!(!path.exists());
    std::fs::remove_dir_all(directory).unwrap();
}

#[cfg(unix)]
#[test]
fn only_the_own_file_is_removed() {
    let directory = temporary_directory().unwrap();
    let path = directory.join("socket");
    let listen = || {
        let address = Address::Unix { path: path.clone() };
        Listener::bind(&address, &StreamOptions::default(), 10, false).unwrap()
    };
    let first = listen();
    let file = SocketFile::at(&path).unwrap();
    clear_path(&path).unwrap();
    assert!(SocketFile::at(&path).is_err());
    let second = listen();
    file.remove();
    assert!(path.exists());
    SocketFile::at(&path).unwrap().remove();
    assert!(!path.exists());
    drop((first, second));
    std::fs::remove_dir_all(directory).unwrap();
}

#[cfg(unix)]
#[test]
fn clear_path_removes_links_and_empty_files() {
    let directory = temporary_directory().unwrap();
    let [path, target] = ["path", "target"].map(|name| directory.join(name));
    std::fs::write(&target, "precious").unwrap();
    std::os::unix::fs::symlink(&target, &path).unwrap();
    clear_path(&path).unwrap();
    std::fs::write(&path, "").unwrap();
    clear_path(&path).unwrap();
    assert!(!path.exists());
    std::fs::create_dir(&path).unwrap();
    for kept in [&path, &target] {
        assert_eq!(clear_path(kept).unwrap_err().raw_os_error(), Some(libc::EADDRINUSE));
    }
    assert_eq!(std::fs::read(&target).unwrap(), b"precious");
    std::fs::remove_dir_all(directory).unwrap();
}

#[cfg(linux_kernel)]
#[test]
fn unix_abstract() {
    let name = format!("tautline io test {}", std::process::id());
    let address = Address::Abstract(name.into_bytes());
    let listener = Listener::bind(&address, &StreamOptions::default(), 10, false).unwrap();
    assert_eq!(listener.local_address().unwrap(), address);
    let (client, server) = connect(&listener);
    assert_eq!(client.peer_address().unwrap(), address);
    exchange(&client, &server);
    drop(listener);
    Listener::bind(&address, &StreamOptions::default(), 10, false).unwrap();
}

#[cfg(unix)]
#[test]
fn pair_knows_its_maker() {
    let (first, second) = Stream::pair().unwrap();
    let credentials = first.peer_credentials().unwrap();
    // SAFETY: neither call has arguments or preconditions.
    assert_eq!((credentials.uid, credentials.gid), unsafe { (libc::geteuid(), libc::getegid()) });
    #[cfg(linux_kernel)]
    assert_eq!(credentials.pid, std::process::id() as i32);
    exchange(&first, &second);
}

#[cfg(linux_kernel)]
#[test]
fn source_address_is_used() {
    let listener = bind("127.0.0.1:0");
    let source = "127.0.0.2:0".parse().unwrap();
    let (client, server) = connect_with(&listener, Some(&source), &StreamOptions::default());
    let Address::Inet(seen) = server.peer_address().unwrap() else { panic!("not TCP") };
    assert_eq!(seen.ip(), source.ip());
    // Uses the same port for another destination.
    let other = bind("127.0.0.1:0");
    let (second, _) = connect_with(&other, Some(&seen), &StreamOptions::default());
    assert_eq!(second.local_address().unwrap(), client.local_address().unwrap());
    // This machine does not have the address.
    let foreign = "192.0.2.1:0".parse().unwrap();
    let address = listener.local_address().unwrap();
    let refused = Stream::connect(&address, Some(&foreign), &StreamOptions::default());
    assert_eq!(refused.unwrap_err().error.raw_os_error(), Some(libc::EADDRNOTAVAIL));
}

#[test]
fn a_port_is_taken_once_and_free_after_use() {
    let listener = bind(&format!("{}:0", loopback()));
    let address = listener.local_address().unwrap();
    let options = StreamOptions::default();
    let twice = Listener::bind(&address, &options, 10, false);
    assert_eq!(twice.unwrap_err().error.raw_os_error(), Some(libc::EADDRINUSE));
    let (client, server) = connect(&listener);
    // The listening side closes first, so that its end lingers in TIME_WAIT.
    drop((server, listener));
    ready(&client, PollFd::IN);
    drop(client);
    Listener::bind(&address, &options, 10, false).unwrap();
}

#[test]
fn self_connect_is_refused_and_frees_the_port() {
    for address in [format!("{}:0", loopback()), "[::1]:0".into()] {
        let options = StreamOptions::default();
        let Ok(listener) = Listener::bind(&Address::Inet(address.parse().unwrap()), &options, 10, false)
        else {
            continue; // A system without IPv6.
        };
        let address = listener.local_address().unwrap();
        drop(listener);
        let Address::Inet(own) = address else { panic!("{address:?}") };
        let error = match Stream::connect(&address, Some(&own), &options) {
            Ok((stream, at_once)) => {
                assert!(!at_once);
                ready(&stream, PollFd::OUT);
                stream.finish_connect().unwrap_err()
            }
            Err(failure) => failure.error,
        };
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{address}");
        // A socket without SO_REUSEADDR can bind the port, so the port is not in TIME_WAIT.
        let raw = address::RawAddress::new(&address).unwrap();
        let plain = crate::sys::socket(address.domain(), libc::SOCK_STREAM).unwrap();
        // SAFETY: the descriptor is open. The address outlives the call, and its length is correct.
        let bound = unsafe { libc::bind(plain.as_fd().as_raw_fd(), raw.as_ptr(), raw.length()) };
        crate::sys::check(bound).unwrap();
    }
}

#[test]
fn refused_connection_returns_an_error() {
    let listener = bind(&format!("{}:0", loopback()));
    let address = listener.local_address().unwrap();
    drop(listener);
    let error = match Stream::connect(&address, None, &StreamOptions::default()) {
        Ok((client, at_once)) => {
            assert!(!at_once);
            ready(&client, PollFd::OUT);
            let error = client.finish_connect().unwrap_err();
            assert!(cfg!(windows) || client.take_error().unwrap().is_none(), "told once");
            error
        }
        Err(failure) => failure.error,
    };
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    if !is_unix_supported() {
        return;
    }
    let nowhere = Address::Unix { path: "/nonexistent/socket".into() };
    let missing = Stream::connect(&nowhere, None, &StreamOptions::default());
    assert_eq!(missing.unwrap_err().error.raw_os_error(), Some(libc::ENOENT));
}

#[test]
fn unsupported_options_do_not_prevent_connect() {
    let options = StreamOptions {
        keepalive: Some(true),
        keepalive_count: Some(3),
        keepalive_idle_s: Some(40),
        keepalive_interval_s: Some(50),
        tos: 0x28,
        max_retransmit_ms: Some(6000),
        ..StreamOptions::default()
    };
    for address in ["127.0.0.1:0", "[::1]:0"] {
        if address.starts_with('[') && !is_ipv6_supported() {
            continue;
        }
        let address = Address::Inet(address.parse().unwrap());
        let listener = Listener::bind(&address, &options, 10, false).unwrap();
        let (client, server) = connect_with(&listener, None, &options);
        exchange(&client, &server);
    }
}

#[cfg(not(linux_kernel))]
#[test]
fn what_only_linux_can_grant_is_without_effect_elsewhere() {
    let options = StreamOptions { priority: Some(5), busy_poll: Some(50), ..StreamOptions::default() };
    let listener = bind("127.0.0.1:0");
    let (_client, server) = connect_with(&listener, None, &options);
    server.apply(&options).unwrap();
}

#[cfg(linux_kernel)]
#[test]
fn options_are_read_back() {
    let options = StreamOptions {
        nodelay: true,
        send_buffer: Some(40_000),
        receive_buffer: Some(50_000),
        keepalive: Some(true),
        keepalive_count: Some(3),
        keepalive_idle_s: Some(40),
        keepalive_interval_s: Some(50),
        tos: 0x28,
        priority: Some(5),
        bind_to_device: None,
        max_retransmit_ms: Some(6000),
        busy_poll: None,
        mode: None,
    };
    let listener = bind("127.0.0.1:0");
    let (client, server) = connect_with(&listener, None, &options);
    server.apply(&options).unwrap();
    for stream in [&client, &server] {
        let read = |level, name| option::read(stream.as_fd(), level, name).unwrap();
        assert_ne!(read(libc::IPPROTO_TCP, libc::TCP_NODELAY), 0);
        // Linux doubles buffer sizes, for its own book-keeping.
        assert_eq!(read(libc::SOL_SOCKET, libc::SO_SNDBUF), 80_000);
        assert_eq!(read(libc::SOL_SOCKET, libc::SO_RCVBUF), 100_000);
        assert_ne!(read(libc::SOL_SOCKET, libc::SO_KEEPALIVE), 0);
        assert_eq!(read(libc::IPPROTO_TCP, libc::TCP_KEEPCNT), 3);
        assert_eq!(read(libc::IPPROTO_TCP, libc::TCP_KEEPIDLE), 40);
        assert_eq!(read(libc::IPPROTO_TCP, libc::TCP_KEEPINTVL), 50);
        assert_eq!(read(libc::IPPROTO_IP, libc::IP_TOS), 0x28);
        assert_eq!(read(libc::SOL_SOCKET, libc::SO_PRIORITY), 5);
        assert_eq!(read(libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT), 6000);
    }
    for (limit, set) in [(Some(70_000), 70_000), (None, 0)] {
        client.limit_unsent(limit).unwrap();
        assert_eq!(option::read(client.as_fd(), libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT).unwrap(), set);
        Stream::pair().unwrap().0.limit_unsent(limit).unwrap();
    }
    client.set_nodelay(false).unwrap();
    assert_eq!(option::read(client.as_fd(), libc::IPPROTO_TCP, libc::TCP_NODELAY).unwrap(), 0);
    client.apply(&StreamOptions { keepalive: Some(false), ..StreamOptions::default() }).unwrap();
    assert_eq!(option::read(client.as_fd(), libc::SOL_SOCKET, libc::SO_KEEPALIVE).unwrap(), 0);
    let device = StreamOptions { bind_to_device: Some("no-such-if".into()), ..StreamOptions::default() };
    assert!(client.apply(&device).is_err());
}

#[cfg(unix)]
#[test]
fn foreign_descriptors_are_checked() {
    use crate::fd::IntoRawFd;
    let number = |error: io::Error| error.raw_os_error().unwrap();
    for none in [-1, i32::MAX] {
        assert_eq!(number(Listener::take_over(none).unwrap_err()), libc::EBADF);
    }

    let file = || crate::fd::OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
    assert_eq!(number(Stream::from_fd(file()).unwrap_err()), libc::ENOTSOCK);
    let datagram = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    assert_eq!(number(Stream::from_fd(datagram.into()).unwrap_err()), libc::EPROTOTYPE);

    // Take over a blocking listener that other code created.
    let foreign = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    assert!(is_listening(foreign.as_fd()).unwrap());
    assert_eq!(
        number(Stream::from_fd(foreign.as_fd().try_clone_to_owned().unwrap()).unwrap_err()),
        libc::EINVAL
    );
    let address = foreign.local_addr().unwrap();
    let raw = foreign.into_raw_fd();
    let listener = Listener::take_over(raw).unwrap();
    assert_eq!(number(Listener::take_over(raw).unwrap_err()), libc::EBADF, "it is taken");
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    let (client, server) = connect(&listener);
    assert_eq!(peer_address_of(client.as_fd()).unwrap(), listener.local_address().unwrap());
    // A descriptor that cannot be taken over stays open.
    assert_eq!(number(Listener::take_over(client.as_fd().as_raw_fd()).unwrap_err()), libc::EINVAL);
    exchange(&client, &server);
    drop((client, server));
    drop(listener);
    assert_eq!(std::net::TcpStream::connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn connection_errors_differ_from_persistent_errors() {
    let of = |number| concerns_one_connection(&io::Error::from_raw_os_error(number));
    assert!([libc::ECONNABORTED, libc::EPROTO, libc::ENETDOWN].into_iter().all(of));
    let others = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM, libc::EPERM, libc::ENOSYS];
    assert!(!others.into_iter().any(of));
}

#[cfg(linux_kernel)]
#[test]
fn descriptors_are_closed_on_exec() {
    let listener = bind("127.0.0.1:0");
    let (client, server) = connect(&listener);
    let (first, second) = Stream::pair().unwrap();
    for fd in [listener.as_fd(), client.as_fd(), server.as_fd(), first.as_fd(), second.as_fd()] {
        // SAFETY: the descriptor is open; neither command has an argument.
        let flags = unsafe {
            (libc::fcntl(fd.as_raw_fd(), libc::F_GETFD), libc::fcntl(fd.as_raw_fd(), libc::F_GETFL))
        };
        assert_ne!(flags.0 & libc::FD_CLOEXEC, 0);
        assert_ne!(flags.1 & libc::O_NONBLOCK, 0);
    }
}

/// Tests only a kernel with vsock. Binding needs no hypervisor. A connection to oneself needs a
/// module that few machines have loaded.
#[test]
fn vsock_listens_where_there_is_one() {
    let any = Address::Vsock { cid: VSOCK_ANY, port: VSOCK_ANY };
    let Ok(listener) = Listener::bind(&any, &StreamOptions::default(), 1, false) else { return };
    let Address::Vsock { cid, port } = listener.local_address().unwrap() else { panic!("another family") };
    assert_eq!(cid, VSOCK_ANY);
    assert_ne!(port, VSOCK_ANY);
    #[cfg(unix)]
    let listener = {
        use crate::fd::IntoRawFd;
        let raw = listener.as_fd().try_clone_to_owned().unwrap().into_raw_fd();
        drop(listener);
        Listener::take_over(raw).unwrap()
    };
    assert_eq!(listener.local_address().unwrap(), Address::Vsock { cid, port });
    // The port is taken already.
    let again = Listener::bind(&Address::Vsock { cid, port }, &StreamOptions::default(), 1, false);
    assert!(again.is_err());
}

#[test]
fn a_device_is_kept_to() {
    let device = StreamOptions { bind_to_device: Some("lo".into()), ..StreamOptions::default() };
    let address = Address::Inet("127.0.0.1:0".parse().unwrap());
    // Old kernels allow this only to the administrator. Other systems name their loopback
    // differently.
    let Ok(listener) = Listener::bind(&address, &device, 10, false) else { return };
    let (client, server) = connect_with(&listener, None, &device);
    exchange(&client, &server);
    let nowhere = StreamOptions { bind_to_device: Some("no-such-if".into()), ..StreamOptions::default() };
    let error = Listener::bind(&address, &nowhere, 10, false).unwrap_err().error;
    assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
}
