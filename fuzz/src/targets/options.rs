//! Options of sockets and contexts: any number, value and length, on every type. A message must pass through
//! the socket afterwards.

use crate::abi::*;
use crate::input::Reader;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// The input selects a socket type, then calls.
pub fn run(input: &[u8]) {
    let mut reader = Reader::new(input);
    let kind = reader.byte();
    if kind == u8::MAX {
        return contexts(reader);
    }
    let kind = kind % TYPES;
    // SAFETY: a context, and sockets used by this thread alone until they are closed.
    unsafe {
        let socket = zmq_socket(context(), c_int::from(kind));
        assert!(!socket.is_null(), "{}", failed());
        let mut calls = 0;
        while !reader.is_empty() && calls < 64 {
            calls += 1;
            call(socket, &mut reader);
        }
        for option in 0..128 {
            get(socket, option, usize::from(option as u8));
        }
        exchange(socket, kind);
        assert_eq!(zmq_close(socket), 0);
    }
}

/// Makes one call that the reader selects.
unsafe fn call(socket: *mut c_void, reader: &mut Reader<'_>) {
    let how = reader.byte();
    let option = number(reader);
    // SAFETY: values of the given lengths.
    unsafe {
        let result = match how % 6 {
            0 | 1 => {
                let value = i32::from(reader.word() as i16);
                // 89 takes over a descriptor for the next bind.
                if option == 89 { 0 } else { zmq_setsockopt(socket, option, (&raw const value).cast(), 4) }
            }
            2 => {
                let len = usize::from(reader.byte());
                let value = reader.bytes(len);
                if option == 89 {
                    0
                } else {
                    zmq_setsockopt(socket, option, value.as_ptr().cast(), value.len())
                }
            }
            3 => {
                let room = usize::from(reader.byte());
                get(socket, option, room);
                0
            }
            4 => {
                let len = usize::from(reader.byte());
                let group = text(reader.bytes(len));
                if option & 1 == 0 {
                    zmq_join(socket, group.as_ptr())
                } else {
                    zmq_leave(socket, group.as_ptr())
                }
            }
            _ => zmq_setsockopt(socket, option, null_mut(), usize::from(reader.byte())),
        };
        if result != 0 {
            assert_eq!(result, -1);
            failed();
        }
    }
}

/// In most cases an existing option.
fn number(reader: &mut Reader<'_>) -> c_int {
    match reader.byte() {
        known @ 0..=0x7F => c_int::from(known),
        0x80 => 0x5441_0001,
        _ => i32::from_be_bytes([reader.byte(), reader.byte(), reader.byte(), reader.byte()]),
    }
}

/// Connects a peer of a matching type, and sends one message in each direction.
unsafe fn exchange(socket: *mut c_void, kind: u8) {
    // In the order of the type numbers: PAIR to itself, PUB to SUB, REQ to REP and so on.
    let peers = [0, 2, 1, 4, 3, 6, 5, 8, 7, 10, 9, 11, 13, 12, 15, 14, 17, 16, 18, 19, 20];
    // SAFETY: as in `run`.
    unsafe {
        let peer = zmq_socket(context(), c_int::from(peers[usize::from(kind)]));
        assert!(!peer.is_null(), "{}", failed());
        if zmq_bind(socket, c"inproc://options".as_ptr()) == 0 {
            if zmq_connect(peer, c"inproc://options".as_ptr()) == 0 {
                let mut bytes = [0_u8; 600];
                for (from, to) in [(peer, socket), (socket, peer)] {
                    zmq_send(from, bytes.as_ptr().cast(), bytes.len(), DONTWAIT);
                    // Messages that the socket sends at once, such as a hello message or a subscription, and
                    // then the test message.
                    for _ in 0..4 {
                        zmq_recv(to, bytes.as_mut_ptr().cast(), bytes.len(), DONTWAIT);
                    }
                }
            }
            assert_eq!(zmq_unbind(socket, c"inproc://options".as_ptr()), 0);
        }
        assert_eq!(zmq_close(peer), 0);
    }
}

/// Tests the options of contexts. The context has no socket, so it starts no threads.
fn contexts(mut reader: Reader<'_>) {
    // SAFETY: a separate context, and values of the given lengths.
    unsafe {
        let context = zmq_ctx_new();
        let mut calls = 0;
        while !reader.is_empty() && calls < 64 {
            calls += 1;
            let (how, option) = (reader.byte(), number(&mut reader));
            let len = usize::from(reader.byte() % 64);
            let result = match how % 4 {
                0 => zmq_ctx_set(context, option, i32::from(reader.word() as i16)),
                1 => zmq_ctx_get(context, option).min(0),
                2 => {
                    let value = reader.bytes(len);
                    zmq_ctx_set_ext(context, option, value.as_ptr().cast(), value.len())
                }
                _ => {
                    let (mut value, mut room) = ([0xA7_u8; 128], len);
                    let result = zmq_ctx_get_ext(context, option, value.as_mut_ptr().cast(), &mut room);
                    assert!(room <= len || result != 0);
                    assert!(value[len..].iter().all(|byte| *byte == 0xA7));
                    result
                }
            };
            if result == -1 {
                // -1 is also the value of a priority that was never set.
                assert!(how % 4 == 1 || failed() > 0);
            }
        }
        assert_eq!(zmq_ctx_term(context), 0);
    }
}

/// For each type, one option set and read, and one option with a text.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = (0..TYPES)
        .map(|kind| {
            let mut seed = vec![kind, 0, 23, 0, 1, 0, 24, 0, 1, 3, 23, 4, 3, 15, 4];
            seed.extend([2, 5, 3, b'm', b'e', 0, 2, 6, 1, b'a', 2, 7, 1, b'a', 4, 0, 1, b'g', 4, 1, 1, b'g']);
            seed
        })
        .collect();
    for option in [54, 33, 97, 71, 72, 40, 69, 98, 78, 110, 111, 114, 74, 41, 73, 51, 52, 53] {
        seeds.extend(
            [0, 1, 3, 5, 6, 9, 11]
                .map(|kind| vec![kind, 0, option, 0, 1, 2, option, 3, b'a', b'b', b'c', 2, 6, 0]),
        );
    }
    let key = *b"JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6";
    seeds.push(
        [&[5, 2, 50, 40][..], &key, &[2, 48, 40], &key, &[2, 49, 40], &key, &[3, 48, 41, 3, 50, 32]].concat(),
    );
    seeds.push([&[6, 0, 47, 0, 1, 2, 49, 40][..], &key, &[2, 55, 4], b"test", &[3, 43, 4]].concat());
    seeds.push(
        [&[7, 2, 38, 11][..], b"127.0.0.1/8", &[2, 68, 14], b"127.0.0.1:1080", &[2, 95, 5], b"X-a:b"]
            .concat(),
    );
    seeds.push(vec![
        u8::MAX,
        0,
        1,
        0,
        0,
        2,
        1,
        1,
        0,
        0,
        2,
        0,
        10,
        2,
        9,
        3,
        b'a',
        b'b',
        b'c',
        3,
        9,
        8,
        3,
        1,
        4,
    ]);
    seeds
}
