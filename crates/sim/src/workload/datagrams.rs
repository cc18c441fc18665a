//! Datagrams: RADIO and DISH, and DGRAM. Each received message was sent, but a sent message need
//! not arrive.

use std::sync::Arc;
use std::time::Duration;

use tautline_core::{Context, Error, Flags, Message, Socket, SocketType};

use super::peer::LINGER;
use super::traffic::MessageProfile;
use super::{Countdown, Scenario, fork, join, spawn};
use crate::rng::Rng;
use crate::world;

/// Longer messages do not fit into a datagram and are not sent.
pub(super) const LONGEST: usize = 60_000;

/// A DISH in some groups and RADIOs, or two DGRAM, over udp.
pub(super) fn datagrams(stage: &mut Scenario, rng: &mut Rng) {
    let kind = stage.kind.of_one_part();
    let contexts = [stage.context(rng), stage.context(rng)];
    if rng.chance(3) { letters(contexts, kind, rng) } else { groups(contexts, kind, rng) }
}

pub(super) fn open(context: &Context, socket_type: SocketType) -> Socket {
    let mut socket = context.socket(socket_type).unwrap();
    socket.set_option(LINGER, &1000_i32.to_ne_bytes()).unwrap();
    socket
}

/// After a random time, stops losing datagrams.
pub(super) fn calm_later(rng: &mut Rng) {
    std::thread::sleep(Duration::from_micros(rng.spread(10, 3_000_000)));
    world::with(|world| (world.kernel.faults.again, world.kernel.faults.lost) = (0, 0));
}

/// Checks a received message. Returns its sender.
pub(super) fn check(kind: MessageProfile, body: &[u8]) -> u32 {
    let head: [u8; 8] = *body.first_chunk().expect("a head");
    let [sender, number] = [0, 4].map(|at| u32::from_be_bytes(*head[at..].first_chunk().expect("four")));
    assert!(body == kind.message(sender, number)[0], "message {number} of {sender} is another");
    world::progress();
    sender
}

fn groups(contexts: [Context; 2], kind: MessageProfile, rng: &mut Rng) {
    const ADDRESS: &str = "udp://127.0.0.1:7000";
    let senders = rng.between(1, 3) as u32;
    let wanted = rng.between(1, 30);
    let missing = Countdown::new(senders as usize);
    let mut dish = open(&contexts[0], SocketType::Dish);
    dish.bind(ADDRESS).unwrap();
    for sender in 0..senders {
        dish.join(group(sender).as_bytes()).unwrap();
    }
    let mut handles = Vec::new();
    for sender in 0..senders {
        let (context, mut rng, missing) = (contexts[1].clone(), fork(rng), missing.clone());
        handles.push(spawn("radio", move || {
            let mut radio = open(&context, SocketType::Radio);
            radio.connect(ADDRESS).unwrap();
            let mut number = 0;
            while missing.remaining() > 0 {
                // Otherwise a message for a group that no receiver has joined.
                let is_heard = rng.chance(2);
                let body = match is_heard {
                    true => kind.message(sender, number).remove(0),
                    false => b"not for this one".to_vec(),
                };
                number += u32::from(is_heard);
                if body.len() <= LONGEST {
                    let mut message = Message::from_vec(body);
                    message.set_group(if is_heard { group(sender) } else { "other".to_owned() }.as_bytes());
                    send(&mut radio, &mut message);
                }
                std::thread::sleep(Duration::from_micros(rng.spread(10, 20_000)));
            }
        }));
    }
    let mut calm_rng = fork(rng);
    handles.push(spawn("calm", move || calm_later(&mut calm_rng)));
    let mut heard = vec![0; senders as usize];
    while missing.remaining() > 0 {
        let message = receive(&mut dish);
        let sender = check(kind, message.as_slice());
        assert_eq!(message.group().to_bytes(), group(sender).as_bytes());
        heard[sender as usize] += 1;
        if heard[sender as usize] == wanted {
            missing.count_down();
        }
    }
    join(handles);
}

fn group(sender: u32) -> String {
    format!("group {sender}")
}

/// Two DGRAM that send to each other's addresses.
fn letters(contexts: [Context; 2], kind: MessageProfile, rng: &mut Rng) {
    let wanted = rng.between(1, 20);
    let missing: Arc<Countdown> = Countdown::new(2);
    let mut handles = Vec::new();
    for (own, context) in contexts.into_iter().enumerate() {
        let (mut rng, missing) = (fork(rng), missing.clone());
        handles.push(spawn("dgram", move || {
            let mut socket = open(&context, SocketType::Dgram);
            socket.bind(&format!("udp://127.0.0.1:{}", 7100 + own)).unwrap();
            let other = format!("127.0.0.1:{}", 7101 - own);
            let (mut number, mut heard) = (0, 0);
            while missing.remaining() > 0 {
                let body = kind.message(own as u32, number).remove(0);
                number += 1;
                if body.len() <= LONGEST {
                    let mut address = Message::from_vec(other.clone().into_bytes());
                    send_part(&mut socket, &mut address, Flags::MORE);
                    send(&mut socket, &mut Message::from_vec(body));
                }
                std::thread::sleep(Duration::from_micros(rng.spread(10, 20_000)));
                let mut message = Message::new();
                while socket.recv_message(&mut message, Flags::DONTWAIT).is_ok() {
                    assert_eq!(message.as_slice(), other.as_bytes(), "where it is from");
                    assert!(message.more());
                    message = receive(&mut socket);
                    assert_eq!(check(kind, message.as_slice()), 1 - own as u32);
                    heard += 1;
                    if heard == wanted {
                        missing.count_down();
                    }
                }
            }
        }));
    }
    let mut calm_rng = fork(rng);
    handles.push(spawn("calm", move || calm_later(&mut calm_rng)));
    join(handles);
}

pub(super) fn send(socket: &mut Socket, message: &mut Message) {
    send_part(socket, message, Flags::NONE);
}

fn send_part(socket: &mut Socket, message: &mut Message, flags: Flags) {
    while let Err(error) = socket.send_message(message, flags) {
        assert_eq!(error, Error::Interrupted);
    }
}

pub(super) fn receive(socket: &mut Socket) -> Message {
    let mut message = Message::new();
    while let Err(error) = socket.recv_message(&mut message, Flags::NONE) {
        assert_eq!(error, Error::Interrupted);
    }
    message
}
