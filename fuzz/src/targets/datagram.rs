//! Datagrams from any sender to DISH and DGRAM, and the datagrams that RADIO and DGRAM create from their
//! messages, compared with a model.

use crate::abi::*;
use crate::input::Reader;
use crate::live::*;
use crate::meter::{CONNECTION, Meter};
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};

const DISH: u8 = 15;
const RADIO: u8 = 14;
const DGRAM: u8 = 18;
/// The group that DISH has joined, and the last datagram of an input.
const GROUP: &[u8] = b"group";
const LAST: &[u8] = b"\x05groupthe last one";
/// Numbers of datagrams and of their bytes that always fit in the system's buffer.
const MOST: usize = 24;
const MOST_BYTES: usize = 8 << 10;

struct Ports {
    dish: (Socket, u16),
    dgram: (Socket, u16),
    radio: Socket,
    /// Our own socket, to which RADIO sends.
    ours: UdpSocket,
}

static PORTS: Mutex<Option<Ports>> = Mutex::new(None);

impl Ports {
    fn open() -> Ports {
        let ours = UdpSocket::bind("127.0.0.1:0").unwrap();
        ours.set_nonblocking(true).unwrap();
        let bind = |kind| {
            let socket = Socket::datagrams(kind);
            let Address::Tcp(port) = socket.bind("udp", "") else { unreachable!("udp has ports") };
            (socket, port)
        };
        let dish = bind(DISH);
        let group = text(GROUP);
        // SAFETY: a socket and a C string.
        assert_eq!(unsafe { zmq_join(dish.0.0, group.as_ptr()) }, 0);
        let radio = Socket::datagrams(RADIO);
        assert!(radio.connect(&format!("udp://{}", ours.local_addr().unwrap())), "{}", failed());
        Ports { dish, dgram: bind(DGRAM), radio, ours }
    }
}

/// The input selects the receiver, then datagrams with an octet of length each, or messages to send, with a
/// group each.
pub fn run(input: &[u8]) {
    let mut reader = Reader::new(input);
    let mut ports = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    let ports = ports.get_or_insert_with(Ports::open);
    let how = reader.byte() % 4;
    let mut list = Vec::new();
    let mut all = 0;
    while !reader.is_empty() && list.len() < MOST && all < MOST_BYTES {
        let len = usize::from(reader.byte()) * if how & 1 == 0 { 1 } else { 8 };
        list.push(reader.bytes(len));
        all += len;
    }
    let meter = Meter::begin();
    match how {
        0 => received_by_dish(ports, &list),
        1 => received_by_dgram(ports, &list),
        2 => sent_by_radio(ports, &list),
        _ => sent_by_dgram(ports, &list),
    }
    meter.check(2 * CONNECTION, all);
}

fn received_by_dish(ports: &Ports, list: &[&[u8]]) {
    let mut wanted = Vec::new();
    for datagram in list.iter().copied().chain([LAST]) {
        ports.ours.send_to(datagram, ("127.0.0.1", ports.dish.1)).unwrap();
        let split = datagram.split_first().and_then(|(&len, rest)| rest.split_at_checked(len.into()));
        wanted.extend(split.filter(|(group, _)| *group == GROUP).map(|(_, body)| body.to_vec()));
    }
    assert_eq!(receive(ports, &ports.dish.0, wanted.len()), wanted);
}

fn received_by_dgram(ports: &Ports, list: &[&[u8]]) {
    let from = ports.ours.local_addr().unwrap().to_string().into_bytes();
    let mut wanted = Vec::new();
    for datagram in list.iter().copied().chain([LAST]) {
        ports.ours.send_to(datagram, ("127.0.0.1", ports.dgram.1)).unwrap();
        wanted.extend([from.clone(), datagram.to_vec()]);
    }
    assert_eq!(receive(ports, &ports.dgram.0, wanted.len()), wanted);
}

/// Receives `count` parts, and checks that no further part follows.
fn receive(ports: &Ports, socket: &Socket, count: usize) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    let mut look = 0;
    while parts.len() < count {
        match socket.receive(1 << 16) {
            Some((part, _)) => parts.push(part[..].into()),
            None => {
                look += 1;
                assert!(look < MAX_POLLS, "{} of {count} parts have come", parts.len());
                // DISH has no descriptor to wait for, and no datagram arrives here.
                wait(ports.ours.as_fd(), libc::POLLIN, 1);
            }
        }
    }
    assert!(socket.receive(1).is_none(), "more than was sent");
    parts
}

fn sent_by_radio(ports: &Ports, list: &[&[u8]]) {
    let mut wanted = Vec::new();
    for body in list.iter().copied().chain([LAST]) {
        let (name, body) =
            body.split_at(body.len().min(usize::from(body.first().copied().unwrap_or(0) % 16)));
        let group = text(name);
        let mut msg = Msg([0; 64]);
        // SAFETY: a message of this function, bytes of the given length, a C string.
        unsafe {
            zmq_msg_init_buffer(&mut msg, body.as_ptr().cast(), body.len());
            assert_eq!(zmq_msg_set_group(&mut msg, group.as_ptr()), 0);
            assert!(zmq_msg_send(&mut msg, ports.radio.0, DONTWAIT) >= 0, "{}", failed());
        }
        let group = group.as_bytes();
        wanted.push([&[group.len() as u8][..], group, body].concat());
    }
    assert_eq!(hear(&ports.ours, wanted.len()), wanted);
}

fn sent_by_dgram(ports: &Ports, list: &[&[u8]]) {
    let to = ports.ours.local_addr().unwrap().to_string().into_bytes();
    let mut wanted = Vec::new();
    for body in list.iter().copied().chain([LAST]) {
        // Some addresses are invalid. All valid ones are our own socket.
        let nowhere = body.first() == Some(&0xFF);
        let address = if nowhere { b"nowhere".to_vec() } else { to.clone() };
        assert!(ports.dgram.0.send(&address, SNDMORE) && ports.dgram.0.send(body, 0), "{}", failed());
        wanted.extend((!nowhere).then(|| body.to_vec()));
    }
    assert_eq!(hear(&ports.ours, wanted.len()), wanted);
}

/// Receives the given number of datagrams.
fn hear(ours: &UdpSocket, count: usize) -> Vec<Vec<u8>> {
    let mut heard = Vec::new();
    let mut look = 0;
    let mut bytes = vec![0; 1 << 16];
    while heard.len() < count {
        match ours.recv(&mut bytes) {
            Ok(len) => {
                heard.push(bytes[..len].to_vec());
            }
            Err(_) => {
                look += 1;
                assert!(look < MAX_POLLS, "{} of {count} datagrams have come", heard.len());
                wait(ours.as_fd(), libc::POLLIN, 1);
            }
        }
    }
    heard
}

/// Correct datagrams and truncated ones, in each direction.
pub fn seeds() -> Vec<Vec<u8>> {
    vec![
        b"\0\x0b\x05groupHello\x06\x05group\x04\x05gro\0\x01\x09\x09\x05other123".to_vec(),
        b"\x01\x02Hello, world....\0".to_vec(),
        b"\x02\x09\x05groupabc\x01\0\x03\x03ab".to_vec(),
        b"\x03\x01Hello...\x01\xff.......\0".to_vec(),
    ]
}
