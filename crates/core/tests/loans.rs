//! Loans of large bodies over `ipc`: the settings that turn them off for a process.
//!
//! Loans are off for good once they are off, so each case runs in a process of its own.

// A loom model has no sockets.
#![cfg(all(target_os = "linux", not(loom)))]

mod common;

use common::{bound, connected, recv, set, test};
use std::process::Command;

use tautline_core::{Context, Flags, Message, Socket, SocketType, message};
use tautline_io::lending;
use tautline_io::net::is_lent;

const CURVE_SERVER: i32 = 47;
const CURVE_SECRETKEY: i32 = 49;
#[cfg(feature = "tls")]
const TRUST_PEM: i32 = 105;
/// Bodies until loans have certainly begun: the ends share memory, and know the slab.
const MANY: u32 = 3000;

/// True if the system can lend: Linux since 5.14.
fn is_possible() -> bool {
    let version = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = version.split(['.', '-']).map(|number| number.parse().unwrap_or(0));
    lending::IS_POSSIBLE && (numbers.next(), numbers.next()) >= (Some(5), Some(14))
}

/// Runs a test of this file with the case's name, and these variables.
fn run(case: &str, variables: &[(&str, &str)]) {
    if !is_possible() {
        return;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--ignored", "--nocapture"]).env("LOANS_CASE", case);
    command.env_remove("TAUT_IPC_LOANS").env_remove("TAUT_IPC_MEMORY").envs(variables.iter().copied());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{case}: {output:?}");
}

#[test]
#[ignore = "a child of other tests"]
fn child() {
    let case = std::env::var("LOANS_CASE").unwrap();
    test("child", move |context| match &*case {
        "lends" => lends(context, 200_000),
        "asked" => moves_bodies_before_a_peer_exists(context),
        "second reference" => lends_a_second_reference_in_place(context),
        "not asked" => lends_nothing_that_is_asked_for(),
        "lends nothing" => lends_nothing(&mut pair(context), 200_000),
        "option" => ends(context, |socket| set(socket, CURVE_SERVER, 1)),
        "client's option" => ends(context, |socket| {
            socket.set_option(CURVE_SECRETKEY, &[7; 32]).unwrap();
        }),
        #[cfg(feature = "tls")]
        "certificates" => ends(context, |socket| socket.set_option(TRUST_PEM, b"PEM").unwrap()),
        #[cfg(feature = "tls")]
        "wss" => ends(context, |socket| socket.connect("wss://127.0.0.1:1").unwrap()),
        #[cfg(feature = "tls")]
        "tls" => ends(context, |socket| socket.connect("tls+tcp://127.0.0.1:1").unwrap()),
        other => panic!("{other}"),
    });
}

fn pair(context: &Context) -> (Socket, Socket) {
    let (near, endpoint) = bound(context, SocketType::Pull, "ipc://*");
    (connected(context, SocketType::Push, &endpoint), near)
}

/// Sends a body and receives it. Returns true if it was lent.
fn exchange((near, far): &mut (Socket, Socket), number: u32, length: usize) -> bool {
    let before = lending::lent();
    let mut body = vec![number as u8; length];
    body[..4].copy_from_slice(&number.to_le_bytes());
    near.send_message(&mut Message::from_slice(&body), Flags::NONE).unwrap();
    assert!(recv(far) == body, "body {number} of {length}");
    lending::lent() > before
}

/// Sends bodies until one is lent.
fn begin(pair: &mut (Socket, Socket), length: usize) {
    assert!((0..MANY).any(|number| exchange(pair, number, length)), "nothing is lent");
}

fn lends(context: &Context, length: usize) {
    let mut pair = pair(context);
    begin(&mut pair, length);
    lends_nothing(&mut pair, lending::least() - 1);
}

fn lends_nothing(pair: &mut (Socket, Socket), length: usize) {
    assert!((0..300).all(|number| !exchange(pair, number, length)), "a body is lent");
}

/// A body for which memory was requested before a peer takes loans is lent like the others.
fn moves_bodies_before_a_peer_exists(context: &Context) {
    let mut asked = message::loan(200_000).unwrap();
    let (before, mut moved) = (asked.as_slice().as_ptr(), Message::from_slice(&[3; 300_000]));
    assert!(asked.move_to_loan() && moved.move_to_loan());
    assert_eq!((asked.as_slice().as_ptr(), moved.as_slice()), (before, &[3; 300_000][..]));
    asked.as_mut_slice().fill(5);
    let mut short = message::loan(1000).unwrap();
    assert!(!short.move_to_loan() && short.as_slice() == [0; 1000]);
    let mut pair = pair(context);
    begin(&mut pair, 200_000);
    for (mut message, byte) in [(asked, 5), (moved, 3)] {
        let length = message.len();
        pair.0.send_message(&mut message, Flags::NONE).unwrap();
        assert!(recv(&mut pair.1) == vec![byte; length]);
    }
}

/// A body whose memory was requested is lent in place, also if the sender keeps a reference to it.
fn lends_a_second_reference_in_place(context: &Context) {
    assert!(message::loan(1000).unwrap().as_slice() == [0; 1000]);
    let mut kept = message::loan(200_000).unwrap();
    kept.as_mut_slice().fill(5);
    let mut pair = pair(context);
    let is_in_place = (0..MANY).any(|_| {
        pair.0.send_message(&mut kept.share(), Flags::NONE).unwrap();
        let mut received = Message::new();
        pair.1.recv_message(&mut received, Flags::NONE).unwrap();
        assert!(received.as_slice() == kept.as_slice());
        is_lent(kept.as_slice().as_ptr())
    });
    assert!(is_in_place, "the body is copied");
}

fn lends_nothing_that_is_asked_for() {
    let mut asked = message::loan(200_000).unwrap();
    assert!(!asked.move_to_loan() && asked.as_slice() == [0; 200_000]);
    assert!(message::loan(200_000).unwrap().as_slice() == [0; 200_000]);
}

/// `encrypt` applies to another socket. Connections that lend send bytes from then on, and new ones
/// do not begin to lend.
fn ends(context: &Context, encrypt: impl Fn(&mut Socket)) {
    let mut old = pair(context);
    begin(&mut old, 200_000);
    let made_before = Message::from_slice(&[9; 200_000]);
    let mut other = context.socket(SocketType::Dealer).unwrap();
    set(&mut other, 17, 0);
    encrypt(&mut other);
    drop(other);
    assert!(lending::is_forbidden());
    let before = lending::lent();
    let mut message = made_before;
    old.0.send_message(&mut message, Flags::NONE).unwrap();
    assert_eq!(recv(&mut old.1), [9; 200_000]);
    assert_eq!(lending::lent(), before);
    lends_nothing(&mut old, 200_000);
    lends_nothing(&mut pair(context), 200_000);
}

#[test]
fn bodies_of_the_limit_are_lent() {
    run("lends", &[]);
    run("lends", &[("TAUT_IPC_LOANS", "1")]);
}

#[test]
fn bodies_are_moved_to_memory_for_loans_on_request() {
    run("asked", &[]);
    run("second reference", &[]);
    run("not asked", &[("TAUT_IPC_LOANS", "0")]);
}

#[test]
fn environment_sets_the_limit() {
    run("lends", &[("TAUT_IPC_LOANS", "200000")]);
    run("lends nothing", &[("TAUT_IPC_LOANS", "200001")]);
}

#[test]
fn environment_turns_loans_off() {
    run("lends nothing", &[("TAUT_IPC_LOANS", "0")]);
    run("lends nothing", &[("TAUT_IPC_MEMORY", "all")]);
    run("lends nothing", &[("TAUT_IPC_MEMORY", "all"), ("TAUT_IPC_LOANS", "1")]);
    run("lends nothing", &[("TAUT_IPC_MEMORY", "0")]);
}

#[test]
fn encryption_of_a_socket_turns_loans_off() {
    run("option", &[]);
    run("client's option", &[]);
    #[cfg(feature = "tls")]
    for case in ["certificates", "wss", "tls"] {
        run(case, &[]);
    }
}
