//! Sockets under a policy, in programs that are unaware of it.

// A loom model has no sockets.
#![cfg(all(unix, not(loom)))]

mod common;

use common::policy::{Folder, context_with_policy, monitor, refused, socket, text, wait_for_event};
use common::{bind, connected, last_endpoint, recv, set, test};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use tautline_core::{Error, Flags, Message, SocketType, public_key};

const LINGER: i32 = 17;
const MAXMSGSIZE: i32 = 22;
const SUBSCRIBE: i32 = 6;
const RCVTIMEO: i32 = 27;
const IPV6: i32 = 42;
const USE_FD: i32 = 89;
const PLAIN_SERVER: i32 = 44;
const PLAIN_USERNAME: i32 = 45;
const CURVE_SERVER: i32 = 47;
const CURVE_PUBLICKEY: i32 = 48;
const CURVE_SECRETKEY: i32 = 49;
const CURVE_SERVERKEY: i32 = 50;
const HANDSHAKE_FAILED_AUTH: u16 = 0x4000;
const ACCEPT_FAILED: u16 = 0x40;
const HANDSHAKE_FAILED_NO_DETAIL: u16 = 0x800;
const DISCONNECTED: u16 = 0x200;
const LAST_OF_KEYS: [u8; 32] = [7; 32];

#[test]
fn loopback_refuses_reachable_endpoints() {
    test("loopback_refuses_reachable_endpoints", |context| {
        context.set_policy("loopback").unwrap();
        assert_eq!(context.set_policy("audit"), Err(Error::Invalid), "it has one");
        let mut open = socket(context, SocketType::Pub);
        refused(open.bind("tcp://*:*"));
        refused(open.bind("tcp://0.0.0.0:*"));
        refused(open.bind("ws://*:*"));
        open.bind("tcp://127.0.0.1:*").unwrap();
        open.bind("inproc://here").unwrap();
        let mut dish = socket(context, SocketType::Dish);
        refused(dish.bind("udp://*:5555"));
        // A server with a key may bind to all interfaces.
        let mut secure = socket(context, SocketType::Pub);
        set(&mut secure, CURVE_SERVER, 1);
        secure.set_option(CURVE_SECRETKEY, &LAST_OF_KEYS).unwrap();
        secure.bind("tcp://*:*").unwrap();
        // A socket bound by a path is closed to other users.
        let folder = Folder::new("loopback");
        let path = folder.0.join("socket");
        open.bind(&format!("ipc://{}", path.display())).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    });
}

#[test]
fn loopback_judges_the_socket_that_is_bound() {
    test("loopback_judges_the_socket_that_is_bound", |context| {
        context.set_policy("loopback").unwrap();
        let mut server = socket(context, SocketType::Pull);
        refused(server.bind("vsock://*:5556"));
        // The program's own descriptor listens on another address than the endpoint names.
        let open = TcpListener::bind("0.0.0.0:0").unwrap();
        set(&mut server, USE_FD, open.as_raw_fd());
        refused(server.bind(&format!("tcp://127.0.0.1:{}", open.local_addr().unwrap().port())));
        let near = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = near.local_addr().unwrap();
        // The bind takes the descriptor over.
        set(&mut server, USE_FD, near.into_raw_fd());
        server.bind(&format!("tcp://{at}")).unwrap();
        // A socket file that other users can connect to is refused.
        let folder = Folder::new("descriptor");
        let path = folder.0.join("socket");
        let listener = UnixListener::bind(&path).unwrap().into_raw_fd();
        for (mode, is_closed) in [(0o777, false), (0o660, false), (0o600, true)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            set(&mut server, USE_FD, listener);
            let bound = server.bind(&format!("ipc://{}", path.display()));
            if is_closed { bound.unwrap() } else { refused(bound) }
        }
        let mut server = socket(context, SocketType::Pull);
        let name = format!("ipc://@tautline-loopback-{}", std::process::id());
        server.bind(&name).unwrap();
        let mut client = socket(context, SocketType::Push);
        client.connect(&name).unwrap();
        client.send(b"own", Flags::NONE).unwrap();
        assert_eq!(recv(&mut server), b"own");
    });
}

#[test]
fn strict_wants_keys_everywhere() {
    test("strict_wants_keys_everywhere", |context| {
        context.set_policy("strict").unwrap();
        let mut plain = socket(context, SocketType::Dealer);
        refused(plain.bind("tcp://127.0.0.1:*"));
        refused(plain.connect("tcp://127.0.0.1:9"));
        refused(plain.connect("tcp://example.invalid:9"));
        plain.bind("inproc://here").unwrap();
        plain.connect("inproc://here").unwrap();
        let folder = Folder::new("strict");
        let endpoint = format!("ipc://{}/socket", folder.0.display());
        plain.bind(&endpoint).unwrap();
        // The path belongs to us, and is closed to others.
        let mut near = socket(context, SocketType::Dealer);
        near.connect(&endpoint).unwrap();
        near.send(b"hello", Flags::NONE).unwrap();
        assert_eq!(recv(&mut plain), b"hello");
        set(&mut plain, CURVE_SERVER, 1);
        plain.set_option(CURVE_SECRETKEY, &LAST_OF_KEYS).unwrap();
        plain.bind("tcp://127.0.0.1:*").unwrap();
    });
}

#[test]
fn a_policy_with_a_fault_is_none() {
    test("a_policy_with_a_fault_is_none", |context| {
        let folder = Folder::new("fault");
        assert_eq!(context.set_policy("/nowhere/policy.toml"), Err(Error::Invalid));
        let path = folder.file("policy.toml", "[[rules]]\naction = \"drop\"\n");
        assert_eq!(context.set_policy(&path), Err(Error::Invalid));
        socket(context, SocketType::Pub).bind("tcp://*:*").unwrap();
    });
}

#[test]
fn a_policy_that_changes_is_read_again() {
    test("a_policy_that_changes_is_read_again", |context| {
        let folder = Folder::new("change");
        let path = folder.file("policy.toml", "extends = \"audit\"\n");
        context.set_policy(&path).unwrap();
        let mut server = socket(context, SocketType::Router);
        bind(&mut server, "tcp://127.0.0.1:*");
        folder.file("policy.toml", "[[rules]]\nscope = \"loopback\"\naction = \"refuse\"\n");
        while server.bind("tcp://127.0.0.1:*").is_ok() {}
        refused(server.bind("tcp://127.0.0.1:*"));
        folder.file("policy.toml", "");
        while server.bind("tcp://127.0.0.1:*").is_err() {}
    });
}

#[test]
fn peers_are_refused_by_their_address_and_user() {
    test("peers_are_refused_by_their_address_and_user", |context| {
        let folder = Folder::new("peers");
        let own = std::os::unix::fs::MetadataExt::uid(&fs::metadata(&folder.0).unwrap());
        let rules = |user| {
            format!(
                "[[rules]]\ncall = \"accept\"\naddress = \"127.0.0.0/8\"\naction = \"refuse\"\n\
                 [[rules]]\ncall = \"accept\"\nuser = {user}\naction = \"allow\"\n\
                 [[rules]]\ncall = \"accept\"\naction = \"refuse\"\n"
            )
        };
        let path = folder.file("policy.toml", &rules(own));
        context.set_policy(&path).unwrap();
        let mut server = socket(context, SocketType::Router);
        let mut events = monitor(context, &mut server);
        let tcp = bind(&mut server, "tcp://127.0.0.1:*");
        let far = connected(context, SocketType::Dealer, &tcp);
        wait_for_event(&mut events, ACCEPT_FAILED);
        drop(far);
        let ipc = bind(&mut server, &format!("ipc://{}/socket", folder.0.display()));
        let mut near = connected(context, SocketType::Dealer, &ipc);
        near.send(b"hello", Flags::NONE).unwrap();
        recv(&mut server);
        assert_eq!(recv(&mut server), b"hello");
        // Connected peers must disconnect when the policy changes.
        folder.file("policy.toml", &rules(own + 1));
        wait_for_event(&mut events, DISCONNECTED);
        set(&mut near, LINGER, 0);
    });
}

#[test]
fn programs_that_know_nothing_of_it_are_wrapped() {
    test("programs_that_know_nothing_of_it_are_wrapped", |context| {
        let folder = Folder::new("wrap");
        let (at, to) = folder.wraps();
        let (ours, theirs) = (context_with_policy(&at), context_with_policy(&to));
        let mut server = socket(&ours, SocketType::Rep);
        let endpoint = bind(&mut server, "tcp://127.0.0.1:*");
        let (between, seen) = relay(endpoint.strip_prefix("tcp://").unwrap());
        let mut client = socket(&theirs, SocketType::Req);
        client.connect(&format!("tcp://{between}")).unwrap();
        client.send(b"an open secret", Flags::NONE).unwrap();
        assert_eq!(recv(&mut server), b"an open secret");
        server.send(b"and an answer", Flags::NONE).unwrap();
        assert_eq!(recv(&mut client), b"and an answer");
        let bytes = seen.lock().unwrap().clone();
        assert!(find(&bytes, b"CURVE") && find(&bytes, b"HELLO"), "it is CURVE");
        assert!(
            !find(&bytes, b"open secret") && !find(&bytes, b"and an answer") && !find(&bytes, b"Socket-Type")
        );
        // A peer that has the keys may use any library: the wrapper is plain CURVE.
        let mut own = socket(context, SocketType::Req);
        own.set_option(CURVE_SERVERKEY, &public_key(&[1; 32])).unwrap();
        own.set_option(CURVE_PUBLICKEY, &public_key(&[2; 32])).unwrap();
        own.set_option(CURVE_SECRETKEY, &[2; 32]).unwrap();
        own.connect(&endpoint).unwrap();
        own.send(b"third", Flags::NONE).unwrap();
        assert_eq!(recv(&mut server), b"third");
        drop((server, client));
        ours.terminate().unwrap();
        theirs.terminate().unwrap();
    });
}

#[test]
fn a_key_that_is_taken_away_ends_its_connection() {
    test("a_key_that_is_taken_away_ends_its_connection", |context| {
        let folder = Folder::new("trust");
        let (at, to) = folder.wraps();
        let (ours, theirs) = (context_with_policy(&at), context_with_policy(&to));
        let mut server = socket(&ours, SocketType::Pull);
        let mut events = monitor(&ours, &mut server);
        let endpoint = bind(&mut server, "tcp://127.0.0.1:*");
        // A stranger knows the server's key, but has no trusted key.
        let stranger = || {
            let mut stranger = socket(context, SocketType::Push);
            stranger.set_option(CURVE_SERVERKEY, &public_key(&[1; 32])).unwrap();
            stranger.set_option(CURVE_PUBLICKEY, &public_key(&[3; 32])).unwrap();
            stranger.set_option(CURVE_SECRETKEY, &[3; 32]).unwrap();
            stranger.connect(&endpoint).unwrap();
            stranger
        };
        let _refused = stranger();
        wait_for_event(&mut events, HANDSHAKE_FAILED_AUTH);
        wait_for_event(&mut events, DISCONNECTED);
        let mut client = socket(&theirs, SocketType::Push);
        client.connect(&endpoint).unwrap();
        client.send(b"trusted", Flags::NONE).unwrap();
        assert_eq!(recv(&mut server), b"trusted");
        // Add the stranger's key to the trusted keys, and remove the client's key.
        folder.file("clients/two.pub", &text(&public_key(&[3; 32])));
        fs::remove_file(folder.0.join("clients/one.pub")).unwrap();
        wait_for_event(&mut events, DISCONNECTED);
        let mut friend = stranger();
        friend.send(b"by now", Flags::NONE).unwrap();
        assert_eq!(recv(&mut server), b"by now");
        drop((server, events, client));
        ours.terminate().unwrap();
        theirs.terminate().unwrap();
    });
}

#[test]
fn limits_keep_peers_away() {
    test("limits_keep_peers_away", |context| {
        let folder = Folder::new("limits");
        let path = folder.file(
            "policy.toml",
            "[limits]\nconnections_per_address = 1\nmessage_bytes = 1000\nhandshakes_per_second = 1000\n",
        );
        context.set_policy(&path).unwrap();
        let mut server = socket(context, SocketType::Pull);
        let mut events = monitor(context, &mut server);
        let endpoint = bind(&mut server, "tcp://127.0.0.1:*");
        let mut first = connected(context, SocketType::Push, &endpoint);
        first.send(b"first", Flags::NONE).unwrap();
        assert_eq!(recv(&mut server), b"first");
        let mut second = connected(context, SocketType::Push, &endpoint);
        wait_for_event(&mut events, ACCEPT_FAILED);
        drop(first);
        second.send(b"second", Flags::NONE).unwrap();
        assert_eq!(recv(&mut server), b"second");
        second.send(&[0; 1001], Flags::NONE).unwrap();
        wait_for_event(&mut events, DISCONNECTED);
        let mut own = [0; 8];
        server.option(MAXMSGSIZE, &mut own).unwrap();
        assert_eq!(i64::from_ne_bytes(own), -1, "the program sees its own options");
        set(&mut second, LINGER, 0);
    });
}

/// The greeting of a PUSH without security. The second constant is its READY and a message.
const GREETING: [u8; 64] = {
    let mut greeting = [0; 64];
    [greeting[0], greeting[9], greeting[10]] = [0xFF, 0x7F, 3];
    [greeting[12], greeting[13], greeting[14], greeting[15]] = *b"NULL";
    greeting
};
const READY_AND_HELLO: &[u8] = b"\x04\x1a\x05READY\x0bSocket-Type\0\0\0\x04PUSH\0\x05hello";

/// Returns a connection that the server has accepted: it has sent the first bytes of its greeting.
fn accepted(at: &str) -> TcpStream {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.read_exact(&mut [0; 10]).unwrap();
    stream
}

#[test]
fn silent_newcomers_are_closed_first() {
    test("silent_newcomers_are_closed_first", |context| {
        let folder = Folder::new("silent");
        context.set_policy(&folder.file("policy.toml", "[limits]\nhandshakes = 2\n")).unwrap();
        let mut server = socket(context, SocketType::Pull);
        let endpoint = bind(&mut server, "tcp://127.0.0.1:*");
        let at = endpoint.strip_prefix("tcp://").unwrap();
        let mut good = accepted(at);
        good.write_all(&GREETING).unwrap();
        // Read the rest of the server's greeting and a part of its READY, which it sends after it has
        // read our greeting.
        good.read_exact(&mut [0; 64]).unwrap();
        let _silent: Vec<_> = (0..10).map(|_| accepted(at)).collect();
        good.write_all(READY_AND_HELLO).unwrap();
        assert_eq!(recv(&mut server), b"hello");
    });
}

#[test]
fn newcomers_from_one_address_do_not_crowd_out_others() {
    test("newcomers_from_one_address_do_not_crowd_out_others", |context| {
        let folder = Folder::new("address");
        context.set_policy(&folder.file("policy.toml", "[limits]\nhandshakes = 2\n")).unwrap();
        let mut server = socket(context, SocketType::Pull);
        set(&mut server, IPV6, 1);
        server.bind("tcp://*:*").unwrap();
        let port = last_endpoint(&mut server).rsplit_once(':').unwrap().1.to_owned();
        if TcpStream::connect(format!("[::1]:{port}")).is_err() {
            return eprintln!("there is no IPv6, so this was not tried");
        }
        let mut good = accepted(&format!("[::1]:{port}"));
        let _silent: Vec<_> = (0..10).map(|_| accepted(&format!("127.0.0.1:{port}"))).collect();
        good.write_all(&GREETING).unwrap();
        good.write_all(READY_AND_HELLO).unwrap();
        assert_eq!(recv(&mut server), b"hello");
    });
}

#[test]
fn a_peer_may_subscribe_to_so_much() {
    test("a_peer_may_subscribe_to_so_much", |context| {
        let folder = Folder::new("subscriptions");
        let path = folder.file("policy.toml", "[limits]\nsubscription_bytes_per_peer = 4096\n");
        context.set_policy(&path).unwrap();
        for (ours, theirs) in [(SocketType::XPub, SocketType::Sub), (SocketType::Radio, SocketType::Dish)] {
            let mut server = socket(context, ours);
            let mut events = monitor(context, &mut server);
            let endpoint = bind(&mut server, "tcp://127.0.0.1:*");
            let mut peer = connected(context, theirs, &endpoint);
            for number in 0..100 {
                let topic = format!("topic {number}");
                match theirs {
                    SocketType::Dish => peer.join(topic.as_bytes()).unwrap(),
                    _ => peer.set_option(SUBSCRIBE, topic.as_bytes()).unwrap(),
                }
            }
            let mut event = Message::new();
            loop {
                // The socket processes the subscriptions during its calls.
                let mut message = Message::from_slice(b"for nobody");
                if theirs == SocketType::Dish {
                    assert!(message.set_group(b"none"));
                }
                server.send_message(&mut message, Flags::DONTWAIT).unwrap();
                if events.recv_message(&mut event, Flags::DONTWAIT).is_ok() {
                    let number = [event.as_slice()[0], event.as_slice()[1]];
                    let _ = recv(&mut events);
                    if u16::from_ne_bytes(number) == DISCONNECTED {
                        break;
                    }
                }
                thread::yield_now();
            }
        }
    });
}

#[test]
fn a_wrap_without_its_keys_is_refused() {
    test("a_wrap_without_its_keys_is_refused", |context| {
        let folder = Folder::new("nokeys");
        let path = folder.file(
            "policy.toml",
            "[wraps.x]\nkey = \"/nowhere/host.key\"\n[[rules]]\ncall = [\"bind\", \"connect\"]\naction = \"wrap\"\n\
             wrap = \"x\"\n",
        );
        context.set_policy(&path).unwrap();
        let mut server = socket(context, SocketType::Pull);
        refused(server.bind("tcp://127.0.0.1:*"));
        refused(server.connect("tcp://127.0.0.1:9"));
        // No mechanism protects a datagram.
        let mut dish = socket(context, SocketType::Dish);
        refused(dish.bind("udp://127.0.0.1:5555"));
        // inproc has no handshake.
        server.bind("inproc://here").unwrap();
        assert_eq!(last_endpoint(&mut server), "inproc://here");
        set(&mut server, RCVTIMEO, 0);
        assert_eq!(server.recv_message(&mut Message::new(), Flags::NONE).err(), Some(Error::Again));
    });
}

#[test]
fn name_and_password_do_not_go_out_where_curve_is_wanted() {
    test("name_and_password_do_not_go_out_where_curve_is_wanted", |_| {
        let folder = Folder::new("password");
        let (at, to) = folder.wraps();
        let (ours, theirs) = (context_with_policy(&at), context_with_policy(&to));
        let mut server = socket(&ours, SocketType::Pull);
        set(&mut server, PLAIN_SERVER, 1);
        refused(server.bind("tcp://127.0.0.1:*"));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = socket(&theirs, SocketType::Push);
        client.set_option(PLAIN_USERNAME, b"joe").unwrap();
        refused(client.connect(&format!("tcp://{}", listener.local_addr().unwrap())));
        listener.set_nonblocking(true).unwrap();
        assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
        drop((server, client));
        ours.terminate().unwrap();
        theirs.terminate().unwrap();
    });
}

/// Another user that listens at the path in `TAUTLINE_TEST_LISTEN`. The test below starts it. It
/// fails if it receives a byte.
#[test]
#[ignore = "not a test by itself"]
fn listens_as_another_user() {
    let listener = UnixListener::bind(std::env::var("TAUTLINE_TEST_LISTEN").unwrap()).unwrap();
    println!("\nlistens");
    let mut received = Vec::new();
    let _ = listener.accept().unwrap().0.read_to_end(&mut received);
    assert_eq!(received, b"");
}

#[test]
fn strict_never_sends_to_another_user() {
    test("strict_never_sends_to_another_user", |context| {
        context.set_policy("strict").unwrap();
        let folder = Folder::new("swap");
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o777)).unwrap();
        let path = folder.0.join("socket");
        let endpoint = format!("ipc://{}", path.display());
        // The peer may come later.
        let mut client = socket(context, SocketType::Push);
        let mut events = monitor(context, &mut client);
        client.connect(&endpoint).unwrap();
        let mut server = socket(context, SocketType::Pull);
        server.bind(&endpoint).unwrap();
        client.send(b"one", Flags::NONE).unwrap();
        assert_eq!(recv(&mut server), b"one");
        server.unbind(&endpoint).unwrap();
        wait_for_event(&mut events, DISCONNECTED);
        fs::remove_file(&path).unwrap();
        // When the client reconnects, another user listens. Only root can test this.
        let mut other = Command::new(std::env::current_exe().unwrap());
        other.args(["--ignored", "--exact", "listens_as_another_user", "--nocapture"]);
        other.env("TAUTLINE_TEST_LISTEN", &path).stdout(Stdio::piped()).uid(65534).gid(65534);
        let Ok(mut other) = other.spawn() else { return eprintln!("not root, so this was not tried") };
        let said = BufReader::new(other.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut said = said.skip_while(|line| line != "listens");
        assert!(said.next().is_some());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        wait_for_event(&mut events, HANDSHAKE_FAILED_NO_DETAIL);
        assert!(other.wait().unwrap().success(), "it has received something");
        // The unsent message waits for the right peer.
        client.send(b"secret", Flags::NONE).unwrap();
        fs::remove_file(&path).unwrap();
        server.bind(&endpoint).unwrap();
        assert_eq!(recv(&mut server), b"secret");
    });
}

/// Relays bytes to `to`, and keeps a copy of them. Returns the address on which it listens.
fn relay(to: &str) -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let (seen, to) = (Arc::new(Mutex::new(Vec::new())), to.to_owned());
    let copies = seen.clone();
    thread::spawn(move || {
        let (near, _) = listener.accept().unwrap();
        let far = TcpStream::connect(to).unwrap();
        for (mut from, mut into) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)] {
            let copies = copies.clone();
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(n @ 1..) = from.read(&mut buffer) {
                    copies.lock().unwrap().extend_from_slice(&buffer[..n]);
                    if into.write_all(&buffer[..n]).is_err() {
                        break;
                    }
                }
                let _ = into.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    (at, seen)
}

fn find(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}
