//! Large bodies over ipc, which are lent: the receiver reads them in the memory of the sender.

use std::time::Duration;

use tautline_core::{Context, Error, Flags, Message, Socket, SocketType, message};

use super::peer::{LINGER, Peer};
use super::{Scenario, fork, join, spawn};
use crate::rng::Rng;

const CURVE_SERVER: i32 = 47;
const LOANS: i32 = 0x5441_0011;
/// More bodies than a connection may lend at once.
const MOST_KEPT: u64 = 90;

/// Returns the bytes of a body: its number, and bytes that depend on it.
fn bytes(number: u32, length: usize) -> Vec<u8> {
    let mut rng = Rng::new(number.into(), 5);
    let mut all: Vec<u8> = number.to_le_bytes().to_vec();
    while all.len() < length {
        all.extend_from_slice(&rng.next().to_le_bytes());
    }
    all.truncate(length);
    all
}

/// Checks all bytes of a body, and returns its number.
#[track_caller]
fn check(message: &Message) -> u32 {
    let body = message.as_slice();
    let number = u32::from_le_bytes(*body.first_chunk().expect("a number"));
    assert!(body == bytes(number, body.len()), "body {number} of {} bytes is damaged", body.len());
    number
}

/// Returns a body in memory of a kind that `rng` selects.
fn body(rng: &mut Rng, number: u32) -> Message {
    let length = match rng.below(4) {
        0 => rng.spread(4, 2100),
        1 => rng.spread(32_000, 150_000),
        _ => rng.spread(2000, 40_000),
    };
    let bytes = bytes(number, length as usize);
    match rng.below(3) {
        0 => Message::from_slice(&bytes),
        1 => Message::from_vec(bytes),
        _ => {
            let mut message = message::loan(bytes.len()).unwrap();
            message.as_mut_slice().copy_from_slice(&bytes);
            message
        }
    }
}

/// Sends a message, which may be interrupted.
fn send(socket: &mut Socket, message: &mut Message) {
    while let Err(error) = socket.send_message(message, Flags::NONE) {
        assert_eq!(error, Error::Interrupted, "send");
    }
}

fn receive(socket: &mut Socket) -> Message {
    let mut message = Message::new();
    while let Err(error) = socket.recv_message(&mut message, Flags::NONE) {
        assert_eq!(error, Error::Interrupted, "receive");
    }
    message
}

/// A socket that takes loans, or copies.
fn borrower(context: &Context, kind: SocketType, rng: &mut Rng) -> Peer {
    let mut peer = Peer::new(context, kind, fork(rng));
    if rng.chance(4) {
        peer.set(LOANS, 0);
    }
    peer
}

/// A sender of large bodies, receivers that keep some of them, write to their own, and forward
/// others, and a last receiver. The sender ends before the receivers. No body is lost or damaged.
/// In some seeds, loans end in the middle.
pub(super) fn lenders(stage: &mut Scenario, rng: &mut Rng) {
    stage.stop_losses();
    stage.over_ipc();
    let back = stage.endpoint();
    let (total, receivers) = (rng.between(30, 300) as u32, rng.between(1, 3) as u32);
    let fronts: Vec<String> = (0..receivers).map(|_| stage.endpoint()).collect();
    let mut handles = Vec::new();
    for front in fronts.clone() {
        let (context, onward, mut rng) = (stage.context(rng), stage.context(rng), fork(rng));
        let back = back.clone();
        handles.push(spawn("keeps", move || {
            let mut pull = borrower(&context, SocketType::Pull, &mut rng);
            pull.bind_or_connect(&front, false);
            let mut push = Peer::new(&onward, SocketType::Push, fork(&mut rng));
            push.bind_or_connect(&back, false);
            let (mut kept, most, mut forwarded) = (Vec::new(), rng.below(MOST_KEPT) as usize, 0_u32);
            loop {
                let mut message = receive(&mut pull.socket);
                if message.len() < 4 {
                    break;
                }
                check(&message);
                match rng.below(4) {
                    0 => {
                        send(&mut push.socket, &mut message);
                        forwarded += 1;
                    }
                    1 => message.as_mut_slice().fill(7),
                    _ => kept.push(message),
                }
                while kept.len() > most {
                    check(&kept.swap_remove(rng.below(kept.len() as u64) as usize));
                }
                if rng.chance(20) {
                    std::thread::sleep(Duration::from_micros(rng.spread(1, 3_000_000)));
                }
            }
            if rng.chance(2) {
                drop(pull);
            }
            kept.iter().for_each(|message| _ = check(message));
            send(&mut push.socket, &mut Message::from_slice(&forwarded.to_le_bytes()[..3]));
            kept.iter().for_each(|message| _ = check(message));
        }));
    }
    let (context, mut own) = (stage.context(rng), fork(rng));
    handles.push(spawn("lends", move || {
        let open = |front: &String| {
            let mut push = Peer::new(&context, SocketType::Push, fork(&mut own));
            push.bind_or_connect(front, true);
            push
        };
        let mut pushes: Vec<Peer> = fronts.iter().map(open).collect();
        let end = if own.chance(6) { own.below(total.into()) as u32 } else { total };
        for number in 0..total {
            if number == end {
                // A socket that encrypts ends the loans of the process.
                Peer::new(&context, SocketType::Pull, fork(&mut own)).set(CURVE_SERVER, 1);
            }
            let to = own.below(receivers.into()) as usize;
            send(&mut pushes[to].socket, &mut body(&mut own, number));
            if own.chance(20) {
                std::thread::sleep(Duration::from_micros(own.spread(1, 3_000_000)));
            }
        }
        for push in &mut pushes {
            send(&mut push.socket, &mut Message::from_slice(b"end"));
        }
    }));
    let mut sink = borrower(&stage.context(rng), SocketType::Pull, rng);
    sink.bind_or_connect(&back, true);
    let (mut ended, mut announced, mut taken) = (0, 0, 0_u32);
    while ended < receivers {
        let message = receive(&mut sink.socket);
        match message.as_slice() {
            &[low, middle, high] => {
                ended += 1;
                announced += u32::from_le_bytes([low, middle, high, 0]);
            }
            _ => {
                check(&message);
                taken += 1;
            }
        }
    }
    assert_eq!(taken, announced, "forwarded bodies");
    join(handles);
    sink.set(LINGER, 0);
}
