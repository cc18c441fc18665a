//! RADIO and DISH over multicast: network groups that share a port, on several interfaces, each
//! with ZeroMQ groups. A received message was sent whole, to a group that the receiver has joined,
//! over the network group and interface that it has bound. Once losses stop, all expected messages
//! arrive.

use std::collections::BTreeSet;
use std::time::Duration;

use tautline_core::{Context, Message, Socket, SocketType};

use super::datagrams::{LONGEST, calm_later, check, open, receive, send};
use super::traffic::MessageProfile;
use super::{Countdown, Scenario, fork, join, spawn};
use crate::rng::Rng;
use crate::world;

const IPV6: i32 = 42;
const MULTICAST_HOPS: i32 = 25;
const MULTICAST_LOOP: i32 = 96;

/// Destinations of datagrams. The first two are the same channel. All others are isolated from each
/// other.
const CHANNELS: [&str; 8] = [
    "udp://239.0.0.1:7000",
    "udp://eth0;239.0.0.1:7000",
    "udp://239.0.0.2:7000",
    "udp://eth1;239.0.0.1:7000",
    "udp://10.0.1.1;239.0.0.2:7000",
    "udp://lo;239.0.0.1:7000",
    "udp://[ff12::5%eth0]:7000",
    "udp://eth1;[ff12::5]:7000",
];
/// Most RADIOs of a channel.
const MOST: u32 = 8;

/// Several RADIO and DISH in one to four channels.
pub(super) fn multicast(stage: &mut Scenario, rng: &mut Rng) {
    let kind = stage.kind.of_one_part();
    let mut channels: Vec<usize> = (1..CHANNELS.len()).collect();
    while channels.len() as u64 > rng.between(1, 4) {
        channels.swap_remove(rng.below(channels.len() as u64) as usize);
    }
    let mut handles = Vec::new();
    let dishes: Vec<(usize, u64)> =
        channels.iter().flat_map(|at| (0..rng.between(1, 2)).map(|number| (*at, number))).collect();
    let missing = Countdown::new(dishes.len());
    let senders = rng.between(1, 2) as u32;
    let wanted = rng.between(1, 15);
    for (channel, _) in dishes {
        let (context, mut rng, missing) = (stage.context(rng), fork(rng), missing.clone());
        handles.push(spawn("dish", move || {
            let mut dish = on_channel(&context, SocketType::Dish, channel);
            dish.bind(endpoint(channel, &mut rng)).unwrap();
            let joined: Vec<u32> = (0..senders).filter(|sender| *sender == 0 || rng.chance(2)).collect();
            joined.iter().for_each(|sender| dish.join(group(*sender)).unwrap());
            listen(&mut dish, kind, channel, &joined, wanted);
            missing.count_down();
        }));
    }
    for channel in channels {
        for sender in 0..senders {
            let (context, mut rng, missing) = (stage.context(rng), fork(rng), missing.clone());
            handles.push(spawn("radio", move || {
                let mut radio = on_channel(&context, SocketType::Radio, channel);
                // Without loopback to this host, the messages are not received.
                let mut unheard = on_channel(&context, SocketType::Radio, channel);
                unheard.set_option(MULTICAST_LOOP, &0_i32.to_ne_bytes()).unwrap();
                for radio in [&mut radio, &mut unheard] {
                    radio.set_option(MULTICAST_HOPS, &(rng.between(1, 3) as i32).to_ne_bytes()).unwrap();
                    radio.connect(endpoint(channel, &mut rng)).unwrap();
                }
                let mut number = 0;
                while missing.remaining() > 0 {
                    let body = kind.message(name_of(channel, sender), number).remove(0);
                    number += 1;
                    if body.len() <= LONGEST {
                        say(&mut radio, body, group(sender));
                    }
                    if rng.chance(8) {
                        say(&mut unheard, b"nobody hears this".to_vec(), group(sender));
                        say(&mut radio, b"not for this one".to_vec(), b"other");
                    }
                    std::thread::sleep(Duration::from_micros(rng.spread(10, 20_000)));
                }
            }));
        }
    }
    let mut calm_rng = fork(rng);
    handles.push(spawn("calm", move || calm_later(&mut calm_rng)));
    join(handles);
}

/// Receives until the wanted number of messages has arrived from each sender. No message arrives
/// twice unless the network has duplicated it.
fn listen(dish: &mut Socket, kind: MessageProfile, channel: usize, joined: &[u32], wanted: u64) {
    let doubles = world::with(|world| world.kernel.faults.doubled > 0).unwrap_or(false);
    let mut heard = vec![BTreeSet::new(); joined.len()];
    while heard.iter().any(|heard| (heard.len() as u64) < wanted) {
        let message = receive(dish);
        let body = message.as_slice();
        let sender = check(kind, body);
        let at = joined.iter().position(|sender_there| name_of(channel, *sender_there) == sender);
        let at = at.unwrap_or_else(|| panic!("{sender:x} is heard on {}", CHANNELS[channel]));
        assert_eq!(message.group().to_bytes(), group(joined[at]), "the group of {sender:x}");
        let is_new = heard[at].insert(body[4..8].to_vec());
        assert!(is_new || doubles, "a message of {sender:x} comes twice");
    }
}

fn on_channel(context: &Context, socket_type: SocketType, channel: usize) -> Socket {
    let mut socket = open(context, socket_type);
    let is_v6 = CHANNELS[channel].contains('[');
    socket.set_option(IPV6, &i32::from(is_v6).to_ne_bytes()).unwrap();
    socket
}

/// Returns one of the names of a channel.
fn endpoint(channel: usize, rng: &mut Rng) -> &'static str {
    if channel == 1 && rng.chance(2) { CHANNELS[0] } else { CHANNELS[channel] }
}

fn name_of(channel: usize, sender: u32) -> u32 {
    channel as u32 * MOST + sender
}

fn group(sender: u32) -> &'static [u8] {
    [&b"first"[..], b"second"][sender as usize]
}

fn say(radio: &mut Socket, body: Vec<u8>, group: &[u8]) {
    let mut message = Message::from_vec(body);
    message.set_group(group);
    send(radio, &mut message);
}
