use super::*;
use crate::Context;

/// ZMQ_SNDHWM and ZMQ_RCVHWM.
const MARKS: [i32; 2] = [23, 24];
const FD: i32 = 14;

#[test]
fn room_that_is_made_between_two_looks_is_not_overlooked() {
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
    assert!(!push.ask_for_room(), "nothing was read");

    // The receiver takes all after the sender has looked, and before it asks for room: nobody is going to tell it of that.
    assert!(!push.pattern.can_send(&mut push.pipes));
    while pull.recv(&mut [0; 1], Flags::DONTWAIT).is_ok() {}
    assert!(push.ask_for_room());
}
