//! STREAM, and peers without ZMTP: all bytes arrive in order, in both directions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use tautline_core::{Context, Error, Flags, Message, Socket, SocketType};

use super::peer::{LINGER, RCVTIMEO, receive};
use super::{Scenario, fork, join, spawn};
use crate::rng::Rng;
use crate::world;

const CONNECT_ROUTING_ID: i32 = 61;
const STREAM_NOTIFY: i32 = 73;
/// Longest wait of a call for a message.
const PATIENCE: Duration = Duration::from_secs(5);

/// A STREAM that echoes all bytes, and its peers: plain sockets, and other STREAM.
pub(super) fn streams(stage: &mut Scenario, rng: &mut Rng) {
    stage.over_tcp();
    let endpoint = stage.endpoint();
    world::with(|world| world.kernel.faults.stop_losses());
    let mut server = open(&stage.context(rng));
    let notify = rng.chance(2);
    set(&mut server, STREAM_NOTIFY, notify.into());
    server.bind(&endpoint).unwrap();
    let peers = rng.between(1, 5) as usize;
    let left = Arc::new(AtomicUsize::new(peers));
    let mut handles = Vec::new();
    for number in 0..peers as u8 {
        let (context, mut rng) = (stage.context(rng), fork(rng));
        let (left, endpoint) = (left.clone(), endpoint.clone());
        handles.push(spawn("peer", move || {
            let words: Vec<u8> =
                (0..rng.spread(1, 60_000)).map(|at| (at as u8).wrapping_mul(7) ^ number).collect();
            if rng.chance(2) {
                talk_plainly(&words, &mut rng);
            } else {
                talk(&context, &endpoint, &words, &mut rng);
            }
            left.fetch_sub(1, SeqCst);
        }));
    }
    // By routing id: bytes, and the notices of a beginning and an end.
    let mut heard: BTreeMap<Vec<u8>, (usize, usize)> = BTreeMap::new();
    loop {
        match hear(&mut server) {
            Ok((peer, bytes)) => {
                let one = heard.entry(peer.clone()).or_default();
                if bytes.is_empty() {
                    assert!(notify, "an empty message without ZMQ_STREAM_NOTIFY");
                    one.1 += 1;
                    continue;
                }
                assert!(!notify || one.1 == 1, "bytes before the beginning, or behind the end");
                one.0 += bytes.len();
                send_to(&mut server, &peer, &bytes);
            }
            Err(Error::Again) if left.load(SeqCst) == 0 => break,
            Err(error) => assert_eq!(error, Error::Again),
        }
    }
    join(handles);
    assert_eq!(heard.len(), peers);
    assert!(!notify || heard.values().all(|one| one.1 == 2), "a beginning and an end of each: {heard:?}");
    let mut name = Message::from_slice(b"nobody");
    assert_eq!(server.send_message(&mut name, Flags::MORE), Err(Error::HostUnreachable));
}

/// Sends `words` over a plain socket, and receives the echo.
fn talk_plainly(words: &[u8], rng: &mut Rng) {
    let name = [&[2, 0][..], &5001_u16.to_be_bytes(), &[127, 0, 0, 1], &[0; 8]].concat();
    // SAFETY: integers.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) };
    // SAFETY: pointer and length are the name's.
    unsafe { libc::connect(fd, name.as_ptr().cast(), name.len() as libc::socklen_t) };
    let (mut said, mut heard) = (0, Vec::new());
    while heard.len() < words.len() {
        world::progress();
        let events = if said < words.len() { libc::POLLIN | libc::POLLOUT } else { libc::POLLIN };
        let mut fds = [libc::pollfd { fd, events, revents: 0 }];
        // SAFETY: an array of one.
        unsafe { libc::poll(fds.as_mut_ptr(), 1, 1000) };
        if fds[0].revents & libc::POLLOUT != 0 && said < words.len() {
            let n = rng.spread(1, (words.len() - said) as u64) as usize;
            // SAFETY: pointer and length are of a part of the slice.
            let sent = unsafe { libc::send(fd, words[said..].as_ptr().cast(), n, libc::MSG_NOSIGNAL) };
            said += sent.max(0) as usize;
        }
        if fds[0].revents & libc::POLLIN != 0 {
            let mut bytes = [0_u8; 4096];
            // SAFETY: pointer and length are the array's.
            let n = unsafe { libc::recv(fd, bytes.as_mut_ptr().cast(), bytes.len(), 0) };
            assert_ne!(n, 0, "the end after {} of {} bytes", heard.len(), words.len());
            heard.extend_from_slice(&bytes[..n.max(0) as usize]);
        }
    }
    assert!(heard == words, "other bytes come back");
    // SAFETY: it is this function's.
    unsafe { libc::close(fd) };
}

/// Sends `words` over a STREAM, and receives the echo.
fn talk(context: &Context, endpoint: &str, words: &[u8], rng: &mut Rng) {
    let mut socket = open(context);
    let chosen = rng.chance(2);
    if chosen {
        socket.set_option(CONNECT_ROUTING_ID, b"the server").unwrap();
    }
    socket.connect(endpoint).unwrap();
    let (peer, bytes) = loop {
        match hear(&mut socket) {
            Ok(first) => break first,
            Err(error) => assert_eq!(error, Error::Again),
        }
    };
    assert!(bytes.is_empty() && (!chosen || peer == b"the server"), "the beginning");
    for part in words.chunks(rng.spread(1, 30_000) as usize + words.len() / 50) {
        send_to(&mut socket, &peer, part);
    }
    let mut heard = Vec::new();
    while heard.len() < words.len() {
        match hear(&mut socket) {
            Ok((from, bytes)) => {
                assert!(from == peer && !bytes.is_empty(), "the end after {} bytes", heard.len());
                heard.extend(bytes);
            }
            Err(error) => assert_eq!(error, Error::Again),
        }
    }
    assert!(heard == words, "other bytes come back");
    // An empty message ends the connection.
    if rng.chance(2) {
        send_to(&mut socket, &peer, b"");
    }
}

fn open(context: &Context) -> Socket {
    let mut socket = context.socket(SocketType::Stream).unwrap();
    set(&mut socket, LINGER, 60_000);
    set(&mut socket, RCVTIMEO, PATIENCE.as_millis() as i32);
    socket
}

fn set(socket: &mut Socket, option: i32, value: i32) {
    socket.set_option(option, &value.to_ne_bytes()).unwrap();
}

fn send_to(socket: &mut Socket, peer: &[u8], bytes: &[u8]) {
    for (part, flags) in [(peer, Flags::MORE), (bytes, Flags::NONE)] {
        while let Err(error) = socket.send(part, flags) {
            // The peer closes after it has received all bytes.
            if error == Error::HostUnreachable {
                return;
            }
            assert_eq!(error, Error::Interrupted);
        }
    }
    world::progress();
}

/// Returns the next message: its peer and its bytes.
fn hear(socket: &mut Socket) -> Result<(Vec<u8>, Vec<u8>), Error> {
    let mut parts = Vec::new();
    let mut message = Message::new();
    while parts.len() < 2 {
        receive(socket, &mut message, PATIENCE)?;
        parts.push(message.as_slice().to_vec());
    }
    assert!(!message.more());
    let bytes = parts.pop().unwrap_or_default();
    Ok((parts.pop().unwrap_or_default(), bytes))
}
