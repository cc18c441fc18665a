//! Effects of bind, connect, unbind and disconnect on peers, files and names.

// A loom model has no sockets.
#![cfg(not(loom))]

mod common;

use common::{bound, last_endpoint, recv, set, test};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use tautline_core::{Context, Error, Flags, Message, Socket, SocketType};
use tautline_testkit::endpoint;

const LINGER: i32 = 17;
const RECONNECT_IVL: i32 = 18;
const EVENTS: i32 = 15;
const SNDHWM: i32 = 23;
const RECONNECT_IVL_MAX: i32 = 21;
const IMMEDIATE: i32 = 39;
const ROUTER_RAW: i32 = 41;
const IPV6: i32 = 42;
const PLAIN_SERVER: i32 = 44;
const CONNECT_ROUTING_ID: i32 = 61;
const SOCKS_PROXY: i32 = 68;
const USE_FD: i32 = 89;
const RECONNECT_STOP: i32 = 109;
const STOP_AFTER_DISCONNECT: i32 = 4;
const POLLIN: i32 = 1;
const CONNECT_DELAYED: u16 = 0x2;
const CONNECT_RETRIED: u16 = 0x4;
const ACCEPTED: u16 = 0x20;
const CLOSED: u16 = 0x80;
const MONITOR_STOPPED: u16 = 0x400;

#[test]
fn wildcard_does_not_unbind_the_bound_endpoint() {
    test("wildcard", |context| {
        for wildcard in ["tcp://127.0.0.1:*", "ipc://*"] {
            let (mut socket, endpoint) = bound(context, SocketType::Pull, wildcard);
            assert_eq!(socket.unbind(wildcard), Err(Error::NoEntry));
            assert_eq!(socket.unbind(&endpoint), Ok(()));
            assert_eq!(socket.unbind(&endpoint), Err(Error::NoEntry));
        }
    });
}

#[test]
fn every_name_of_a_bound_address_unbinds_it() {
    test("names", |context| {
        let (mut socket, endpoint) = bound(context, SocketType::Pull, "tcp://*:*");
        let port = endpoint.rsplit(':').next().unwrap().to_owned();
        assert_eq!(socket.unbind(&format!("tcp://*:{port}")), Ok(()));
    });
}

#[test]
fn the_name_of_a_host_can_be_bound_and_unbound() {
    test("host_name", |context| {
        for scheme in ["tcp", "ws"] {
            let (mut socket, endpoint) = bound(context, SocketType::Pull, &format!("{scheme}://localhost:*"));
            assert!(endpoint.starts_with(&format!("{scheme}://127.0.0.1:")));
            let mut push = context.socket(SocketType::Push).unwrap();
            push.connect(&endpoint).unwrap();
            push.send(b"hello", Flags::NONE).unwrap();
            assert_eq!(recv(&mut socket), b"hello");
            assert_eq!(socket.unbind(&format!("{scheme}://localhost:*")), Err(Error::NoEntry));
            assert_eq!(socket.unbind(&endpoint.replace("127.0.0.1", "localhost")), Ok(()));
        }
        let mut socket = context.socket(SocketType::Pull).unwrap();
        // The name is too long for a name server.
        assert_eq!(socket.bind(&format!("tcp://{}:*", "x".repeat(64))), Err(Error::NoDevice));
    });
}

#[test]
fn without_ipv6_a_mapped_address_means_its_ipv4_address() {
    test("unmapped", |context| {
        let mut server = context.socket(SocketType::Pair).unwrap();
        server.bind("tcp://[::ffff:127.0.0.1]:*").unwrap();
        let endpoint = last_endpoint(&mut server);
        let port = endpoint.strip_prefix("tcp://127.0.0.1:").unwrap();
        let mut client = context.socket(SocketType::Pair).unwrap();
        client.connect(&format!("tcp://127.0.0.1:0;[::ffff:127.0.0.1]:{port}")).unwrap();
        client.send(b"x", Flags::NONE).unwrap();
        assert_eq!(recv(&mut server), b"x");
    });
}

#[test]
fn with_ipv6_an_ipv4_address_shows_as_a_mapped_one() {
    test("mapped", |context| {
        let mut socket = context.socket(SocketType::Pull).unwrap();
        set(&mut socket, IPV6, 1);
        // The bind fails on a system without IPv6.
        if socket.bind("tcp://127.0.0.1:*").is_ok() {
            assert!(last_endpoint(&mut socket).starts_with("tcp://[::ffff:127.0.0.1]:"));
        }
    });
}

#[test]
fn unbinding_lets_the_peers_go_at_once() {
    test("unbind", |context| {
        let (mut bound, endpoint) = bound(context, SocketType::Pair, "tcp://127.0.0.1:*");
        let mut connected = context.socket(SocketType::Pair).unwrap();
        set(&mut connected, RECONNECT_IVL, -1);
        set(&mut connected, LINGER, 0);
        connected.connect(&endpoint).unwrap();
        connected.send(b"hello", Flags::NONE).unwrap();
        assert_eq!(recv(&mut bound), b"hello");
        bound.unbind(&endpoint).unwrap();
        assert_eq!(bound.send(b"x", Flags::DONTWAIT), Err(Error::Again));
        // The peer may not have noticed the end yet.
        let _ = connected.send(b"lost", Flags::DONTWAIT);
        assert_eq!(bound.recv(&mut [0; 8], Flags::DONTWAIT), Err(Error::Again));
    });
}

#[test]
fn unbound_endpoint_can_be_bound_again_at_once() {
    test("rebind", |context| {
        let file = std::env::temp_dir().join(format!("tautline-rebind-{}", std::process::id()));
        let path = format!("ipc://{}", file.display());
        for given in
            ["tcp://127.0.0.1:*", "ws://127.0.0.1:*", "ipc://*", &path, "ipc://@rebind", "inproc://here"]
        {
            let (mut bound, endpoint) = bound(context, SocketType::Pull, given);
            let mut connected = context.socket(SocketType::Push).unwrap();
            set(&mut connected, RECONNECT_IVL, 1);
            connected.connect(&endpoint).unwrap();
            connected.send(b"hello", Flags::NONE).unwrap();
            assert_eq!(recv(&mut bound), b"hello", "{given}");
            // The peer is still connected, or reconnects. (A temporary ipc path cannot be bound again: its directory was
            // removed.)
            for _ in 0..if given == "ipc://*" { 0 } else { 10 } {
                assert_eq!(bound.unbind(&endpoint), Ok(()), "{given}");
                assert_eq!(bound.bind(&endpoint), Ok(()), "{given}");
            }
            assert_eq!(bound.unbind(&endpoint), Ok(()), "{given}");
            assert_eq!(bound.bind(given), Ok(()), "{given}");
        }
        std::fs::remove_file(&file).unwrap();
    });
}

#[cfg(unix)]
#[test]
fn the_file_of_an_ipc_path_stays_for_the_next_server() {
    test("ipc file", |context| {
        let file = std::env::temp_dir().join(format!("tautline-stays-{}", std::process::id()));
        let endpoint = format!("ipc://{}", file.display());
        for unbinds in [true, false] {
            let (mut old, _) = bound(context, SocketType::Pull, &endpoint);
            let (mut new, _) = bound(context, SocketType::Pull, &endpoint);
            if unbinds {
                old.unbind(&endpoint).unwrap();
            }
            old.close();
            let mut client = context.socket(SocketType::Push).unwrap();
            client.connect(&endpoint).unwrap();
            client.send(b"to the new server", Flags::NONE).unwrap();
            assert_eq!(recv(&mut new), b"to the new server");
            new.close();
            std::fs::remove_file(&file).unwrap();
        }
    });
}

#[test]
fn a_temporary_ipc_endpoint_leaves_nothing_behind() {
    test("temporary", |context| {
        let (mut unbound, first) = bound(context, SocketType::Pull, "ipc://*");
        let (closed, second) = bound(context, SocketType::Pull, "ipc://*");
        let directories: Vec<_> = [&first, &second]
            .map(|endpoint| Path::new(&endpoint["ipc://".len()..]).parent().unwrap().to_path_buf())
            .into();
        assert!(directories.iter().all(|directory| directory.is_dir()));
        unbound.unbind(&first).unwrap();
        closed.close();
        assert!(directories.iter().all(|directory| !directory.exists()));
    });
}

#[test]
fn one_disconnect_ends_all_connections_of_an_endpoint() {
    test("disconnect", |context| {
        for endpoint in ["tcp://127.0.0.1:*", "inproc://here"] {
            let (_bound, endpoint) = bound(context, SocketType::Pull, endpoint);
            let mut socket = context.socket(SocketType::Push).unwrap();
            socket.connect(&endpoint).unwrap();
            socket.connect(&endpoint).unwrap();
            assert_eq!(socket.disconnect(&endpoint), Ok(()));
            assert_eq!(socket.disconnect(&endpoint), Err(Error::NoEntry));
            assert_eq!(socket.send(b"x", Flags::DONTWAIT), Err(Error::Again));
        }
    });
}

#[test]
fn an_inproc_peer_that_has_closed_cannot_be_disconnected() {
    test("closed_inproc", |context| {
        let (bound, endpoint) = bound(context, SocketType::Pull, "inproc://gone");
        let mut socket = context.socket(SocketType::Push).unwrap();
        socket.connect(&endpoint).unwrap();
        bound.close();
        assert_eq!(socket.disconnect(&endpoint), Err(Error::NoEntry));
    });
}

#[test]
fn a_raw_router_talks_to_any_stream() {
    test("raw", |context| {
        let mut router = context.socket(SocketType::Router).unwrap();
        set(&mut router, ROUTER_RAW, 1);
        router.bind("tcp://127.0.0.1:*").unwrap();
        let endpoint = last_endpoint(&mut router);
        let mut stream = TcpStream::connect(&endpoint["tcp://".len()..]).unwrap();
        stream.write_all(b"GET /").unwrap();
        let id = recv(&mut router);
        assert_eq!(recv(&mut router), b"GET /");
        router.send(&id, Flags::MORE).unwrap();
        router.send(b"200 OK", Flags::NONE).unwrap();
        let mut answer = [0; 6];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"200 OK");
        router.send(&id, Flags::MORE).unwrap();
        router.send(b"", Flags::NONE).unwrap();
        assert_eq!(stream.read(&mut answer).unwrap(), 0);
    });
}

#[test]
fn a_chosen_routing_id_waits_for_an_immediate_peer() {
    test("immediate", |context| {
        let (mut dealer, endpoint) = bound(context, SocketType::Dealer, "tcp://127.0.0.1:*");
        let mut router = context.socket(SocketType::Router).unwrap();
        set(&mut router, IMMEDIATE, 1);
        router.set_option(CONNECT_ROUTING_ID, b"chosen").unwrap();
        router.connect(&endpoint).unwrap();
        dealer.send(b"hello", Flags::NONE).unwrap();
        assert_eq!(recv(&mut router), b"chosen");
        assert_eq!(recv(&mut router), b"hello");
    });
}

#[test]
fn other_sockets_do_not_see_subscriptions_over_inproc() {
    test("subscriptions", |context| {
        for bound_first in [true, false] {
            let mut dealer = context.socket(SocketType::Dealer).unwrap();
            let mut sub = context.socket(SocketType::XSub).unwrap();
            if bound_first {
                dealer.bind("inproc://odd").unwrap();
            }
            sub.connect("inproc://odd").unwrap();
            sub.send(b"\x01early", Flags::NONE).unwrap();
            if !bound_first {
                dealer.bind("inproc://odd").unwrap();
            }
            let mut events = [0; 4];
            dealer.option(EVENTS, &mut events).unwrap();
            sub.send(b"\x01late", Flags::NONE).unwrap();
            dealer.option(EVENTS, &mut events).unwrap();
            assert_eq!(i32::from_ne_bytes(events) & POLLIN, 0);
        }
    });
}

#[test]
fn nothing_to_send_is_nothing_to_linger_for() {
    test("linger", |context| {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut socket = context.socket(SocketType::Dealer).unwrap();
        socket.connect(&format!("tcp://{}", silent.local_addr().unwrap())).unwrap();
        // The endpoint has no listener.
        socket.connect("tcp://127.0.0.1:1").unwrap();
        let _peer = silent.accept().unwrap();
        socket.close();
        context.terminate().unwrap();
    });
}

/// A body that decrements a counter when it is freed.
struct DropCounter(Arc<AtomicUsize>);

impl AsRef<[u8]> for DropCounter {
    fn as_ref(&self) -> &[u8] {
        &[7; 100]
    }
}

impl Drop for DropCounter {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

#[test]
fn a_body_of_the_applications_is_freed_when_it_is_sent() {
    test("a watched body", |context| {
        let file = std::env::temp_dir().join(format!("tautline-watched-{}", std::process::id()));
        let endpoint = format!("ipc://{}", file.display());
        let mut push = context.socket(SocketType::Push).unwrap();
        set(&mut push, RECONNECT_IVL, 1);
        push.connect(&endpoint).unwrap();
        let alive = Arc::new(AtomicUsize::new(2));
        for more in [true, false] {
            let mut message = Message::from_owner(DropCounter(alive.clone()));
            message.set_more(more);
            let flags = if more { Flags::MORE } else { Flags::NONE };
            push.send_message(&mut message, flags).unwrap();
        }
        assert_eq!(alive.load(SeqCst), 2, "nobody is there");
        let mut pull = context.socket(SocketType::Pull).unwrap();
        pull.bind(&endpoint).unwrap();
        assert_eq!([recv(&mut pull), recv(&mut pull)], [[7; 100]; 2]);
        while alive.load(SeqCst) > 0 {
            std::thread::yield_now();
        }
        pull.close();
        let _ = std::fs::remove_file(&file);
    });
}

#[test]
fn abandoned_endpoint_can_be_disconnected() {
    test("given_up", |context| {
        let mut server = context.socket(SocketType::Dealer).unwrap();
        set(&mut server, PLAIN_SERVER, 1);
        server.bind("tcp://127.0.0.1:*").unwrap();
        let endpoint = last_endpoint(&mut server);
        server.monitor(Some("inproc://events"), ACCEPTED.into(), 1, SocketType::Pair).unwrap();
        let mut accepted = context.socket(SocketType::Pair).unwrap();
        accepted.connect("inproc://events").unwrap();
        let mut socket = context.socket(SocketType::Dealer).unwrap();
        set(&mut socket, SNDHWM, 0);
        for _ in 0..2 {
            // The server refuses the client, which has no mechanism, and the client does not retry. A second connect starts
            // again.
            socket.connect(&endpoint).unwrap();
            assert_eq!(next_event(&mut accepted).0, ACCEPTED);
            while socket.send(b"x", Flags::DONTWAIT) == Ok(()) {}
        }
        assert_eq!(socket.disconnect(&endpoint), Ok(()));
        assert_eq!(socket.disconnect(&endpoint), Err(Error::NoEntry));
    });
}

/// Returns a PUSH socket that connects to an endpoint without a listener, and its events.
fn lonely(context: &Context, interval: i32, longest: i32, events: u16) -> (Socket, Socket) {
    let mut socket = context.socket(SocketType::Push).unwrap();
    set(&mut socket, RECONNECT_IVL, interval);
    set(&mut socket, RECONNECT_IVL_MAX, longest);
    socket.monitor(Some("inproc://events"), events.into(), 1, SocketType::Pair).unwrap();
    let mut monitor = context.socket(SocketType::Pair).unwrap();
    monitor.connect("inproc://events").unwrap();
    socket.connect("tcp://127.0.0.1:1").unwrap();
    (socket, monitor)
}

fn next_event(monitor: &mut Socket) -> (u16, u32) {
    let head = recv(monitor);
    recv(monitor);
    (u16::from_ne_bytes(head[..2].try_into().unwrap()), u32::from_ne_bytes(head[2..].try_into().unwrap()))
}

/// A successful bind takes the descriptor over. After a failed bind, the program keeps it.
#[cfg(unix)]
#[test]
fn a_listener_of_the_program_is_closed_with_its_endpoint() {
    use std::os::fd::{AsRawFd, IntoRawFd};
    use std::os::unix::net::{UnixListener, UnixStream};
    test("use_fd", |context| {
        let directory = endpoint::TempDir::new();
        for unbinds in [true, false] {
            for ipc in [true, false] {
                let mut path = directory.path().join("listener");
                path.set_extension(unbinds.to_string());
                let (fd, at, to) = if ipc {
                    let fd = UnixListener::bind(&path).unwrap().into_raw_fd();
                    (fd, None, format!("ipc://{}", path.display()))
                } else {
                    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
                    let at = listener.local_addr().unwrap();
                    (listener.into_raw_fd(), Some(at), format!("tcp://{at}"))
                };
                let mut pull = context.socket(SocketType::Pull).unwrap();
                set(&mut pull, USE_FD, fd);
                pull.bind(&to).unwrap();
                assert_eq!(last_endpoint(&mut pull), to);
                let mut push = common::connected(context, SocketType::Push, &to);
                push.send(b"hello", Flags::NONE).unwrap();
                assert_eq!(recv(&mut pull), b"hello");
                // A second endpoint must not take the descriptor, because both would close it.
                assert!(pull.bind(&to).is_err());
                if unbinds {
                    pull.unbind(&to).unwrap();
                } else {
                    drop(pull);
                }
                let refused = match at {
                    Some(at) => TcpStream::connect(at).unwrap_err(),
                    None => UnixStream::connect(&path).unwrap_err(),
                };
                assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused, "{to}");
            }
        }

        // A descriptor that is not a listener is refused, and stays open.
        let (mut near, mut far) = UnixStream::pair().unwrap();
        for to in ["ipc://anywhere", "tcp://127.0.0.1:*"] {
            let mut pull = context.socket(SocketType::Pull).unwrap();
            set(&mut pull, USE_FD, near.as_raw_fd());
            assert_eq!(pull.bind(to), Err(Error::Invalid));
        }
        near.write_all(b"open").unwrap();
        far.read_exact(&mut [0; 4]).unwrap();
    });
}

/// If a client connects from the same port that it connects to, TCP connects the socket to itself.
#[test]
fn a_socket_does_not_connect_to_itself() {
    test("itself", |context| {
        let free = TcpListener::bind((endpoint::loopback(), 0)).unwrap();
        let at = free.local_addr().unwrap();
        drop(free);
        let own = format!("{at};{at}");
        let mut ways = vec![(format!("tcp://{own}"), None), (format!("ws://{own}/"), None)];
        ways.push((format!("tcp://{at}"), Some(own.clone())));
        if cfg!(feature = "tls") {
            ways.extend([(format!("tls+tcp://{own}"), None), (format!("wss://{own}/"), None)]);
        }
        for (to, proxy) in ways {
            let mut dealer = context.socket(SocketType::Dealer).unwrap();
            set(&mut dealer, LINGER, 0);
            set(&mut dealer, RECONNECT_IVL, 1);
            if let Some(proxy) = &proxy {
                dealer.set_option(SOCKS_PROXY, proxy.as_bytes()).unwrap();
            }
            let name = format!("inproc://events of {to} by {proxy:?}");
            dealer.monitor(Some(&name), 0xFFFF, 1, SocketType::Pair).unwrap();
            let mut monitor = common::connected(context, SocketType::Pair, &name);
            dealer.connect(&to).unwrap();
            let mut retries = 0;
            while retries < 3 {
                let (event, _) = next_event(&mut monitor);
                assert!([CONNECT_DELAYED, CLOSED, CONNECT_RETRIED].contains(&event), "{to}: {event:#x}");
                retries += u32::from(event == CONNECT_RETRIED);
            }
        }
    });
}

#[test]
fn intervals_double_up_to_the_longest() {
    test("intervals", |context| {
        for (interval, longest, waits) in [(5, 18, [5, 10, 18, 18]), (100, 3, [3; 4])] {
            let (_socket, mut monitor) = lonely(context, interval, longest, CONNECT_RETRIED);
            assert_eq!(waits.map(|_| next_event(&mut monitor)), waits.map(|wait| (CONNECT_RETRIED, wait)));
        }
    });
}

#[test]
fn no_interval_is_no_second_try() {
    test("no_interval", |context| {
        for interval in [0, -1] {
            let (socket, mut monitor) =
                lonely(context, interval, 0, CONNECT_RETRIED | CLOSED | MONITOR_STOPPED);
            assert_eq!(next_event(&mut monitor).0, CLOSED);
            socket.close();
            assert_eq!(next_event(&mut monitor).0, MONITOR_STOPPED);
        }
    });
}

/// libzmq sends an event when it stops reconnecting. A program may wait for this event.
#[test]
fn stop_after_disconnect_is_reported_between_retries() {
    test("stop_after_disconnect", |context| {
        let directory = endpoint::TempDir::new();
        for to in ["tcp://127.0.0.1:1", "ws://127.0.0.1:1", &directory.ipc("nobody")] {
            let mut socket = context.socket(SocketType::Sub).unwrap();
            // There is no second attempt within this test.
            set(&mut socket, RECONNECT_IVL, 1_000_000);
            set(&mut socket, RECONNECT_STOP, STOP_AFTER_DISCONNECT);
            let name = format!("inproc://events of {to}");
            socket.monitor(Some(&name), 0xFFFF, 1, SocketType::Pair).unwrap();
            let mut monitor = common::connected(context, SocketType::Pair, &name);
            socket.connect(to).unwrap();
            while next_event(&mut monitor).0 != CONNECT_RETRIED {}
            socket.disconnect(to).unwrap();
            assert_eq!(next_event(&mut monitor), (CLOSED, u32::MAX));
            socket.close();
            assert_eq!(next_event(&mut monitor).0, MONITOR_STOPPED);
        }
    });
}

#[test]
fn lingering_socket_still_sends_monitor_events() {
    test("lingering", |context| {
        let (mut socket, mut monitor) = lonely(context, 1, 0, CONNECT_RETRIED | MONITOR_STOPPED);
        socket.send(b"never", Flags::NONE).unwrap();
        socket.close();
        for _ in 0..100 {
            assert_eq!(next_event(&mut monitor).0, CONNECT_RETRIED);
        }
        // The monitor's name is free again. Its socket's lingering data is dropped although the socket has a monitor.
        let mut other = context.socket(SocketType::Pair).unwrap();
        other.bind("inproc://events").unwrap();
        drop((other, monitor));
        assert_eq!(context.terminate_within(Some(Duration::ZERO)), Err(Error::Again), "dropped");
    });
}

#[test]
fn a_peer_that_is_lost_for_good_can_be_connected_again() {
    test("again", |context| {
        let (mut first, endpoint) = bound(context, SocketType::Dealer, &endpoint::tcp());
        let mut socket = context.socket(SocketType::Dealer).unwrap();
        set(&mut socket, RECONNECT_IVL, -1);
        set(&mut socket, SNDHWM, 0);
        for _ in 0..2 {
            socket.connect(&endpoint).unwrap();
            socket.send(b"hello", Flags::NONE).unwrap();
            assert_eq!(recv(&mut first), b"hello");
            first.close();
            while socket.send(b"x", Flags::DONTWAIT) == Ok(()) {}
            first = context.socket(SocketType::Dealer).unwrap();
            first.bind(&endpoint).unwrap();
        }
        assert_eq!(socket.disconnect(&endpoint), Err(Error::NoEntry));
    });
}

#[test]
fn lost_peer_reconnects_after_any_disconnect() {
    test("reconnect stop", |context| {
        let mut push = context.socket(SocketType::Push).unwrap();
        // The option applies only after a disconnect by the program.
        push.set_option(RECONNECT_STOP, &4_i32.to_ne_bytes()).unwrap();
        push.set_option(RECONNECT_IVL, &10_i32.to_ne_bytes()).unwrap();
        push.set_option(LINGER, &0_i32.to_ne_bytes()).unwrap();
        let mut pull = context.socket(SocketType::Pull).unwrap();
        let endpoint = endpoint::tcp();
        pull.bind(&endpoint).unwrap();
        push.connect(&endpoint).unwrap();
        push.send(b"first", Flags::NONE).unwrap();
        assert_eq!(pull.recv(&mut [0; 8], Flags::NONE), Ok(5));
        drop(pull);
        let mut again = context.socket(SocketType::Pull).unwrap();
        while again.bind(&endpoint) == Err(Error::AddressInUse) {
            std::thread::yield_now();
        }
        // Messages sent before the loss is noticed are lost with the old peer.
        while again.recv(&mut [0; 8], Flags::DONTWAIT).is_err() {
            let _ = push.send(b"second", Flags::DONTWAIT);
            std::thread::yield_now();
        }
    });
}
