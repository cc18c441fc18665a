use super::options::{FD, LINGER, RCVHWM, SNDHWM};
use super::*;
use crate::Context;

mod panics;
mod pending_subscriptions;
mod routes;
mod sharing;
mod short_lived_peers;
mod signals;

const MARKS: [i32; 2] = [SNDHWM, RCVHWM];

#[test]
fn room_freed_between_two_checks_is_noticed() {
    let context = Context::new();
    let [mut push, mut pull] = [SocketType::Push, SocketType::Pull].map(|kind| context.socket(kind).unwrap());
    for socket in [&mut push, &mut pull] {
        for code in MARKS {
            socket.set_option(code, &4_i32.to_ne_bytes()).unwrap();
        }
    }
    pull.bind("inproc://room").unwrap();
    push.connect("inproc://room").unwrap();
    push.option(FD, &mut [0; 4]).unwrap();
    while push.send(b"x", Flags::DONTWAIT).is_ok() {}
    assert!(!push.pattern.can_send(&mut push.pipes));
    assert!(!push.request_room(), "nothing was read");

    // The receiver reads everything after the sender's check and before the sender asks for room.
    // No signal will come.
    assert!(!push.pattern.can_send(&mut push.pipes));
    while pull.recv(&mut [0; 1], Flags::DONTWAIT).is_ok() {}
    assert!(push.request_room());
}

#[test]
fn sockets_with_equal_options_share_them() {
    const ROUTING_ID: i32 = 5;
    const CURVE_SECRETKEY: i32 = 49;
    let context = Context::new();
    let socket = |settings: &[(i32, &[u8])]| {
        let mut socket = context.socket(SocketType::Dealer).unwrap();
        for (code, value) in settings.iter().chain(&[(LINGER, &[0; 4][..])]) {
            socket.set_option(*code, value).unwrap();
        }
        // The peer need not exist.
        socket.connect("tcp://127.0.0.1:9").unwrap();
        socket
    };
    let [first, mut second] = [socket(&[]), socket(&[])];
    assert!(Arc::ptr_eq(&first.pipes.options, &second.pipes.options));

    let named = socket(&[(ROUTING_ID, b"me")]);
    assert!(Arc::ptr_eq(&first.pipes.options.common, &named.pipes.options.common));
    assert_eq!(
        (&first.pipes.options.routing_id[..], &named.pipes.options.routing_id[..]),
        (&b""[..], &b"me"[..])
    );

    second.set_option(LINGER, &(-1_i32).to_ne_bytes()).unwrap();
    assert_eq!(second.pipes.options.linger, None);
    assert_eq!(first.pipes.options.linger, Some(Duration::ZERO), "what one sets is its own");

    let [one, other] = [(); 2].map(|()| socket(&[(CURVE_SECRETKEY, &[7; 32])]));
    assert!(
        Arc::ptr_eq(&one.pipes.options.common, &other.pipes.options.common),
        "one copy of a secret key in memory"
    );
}
