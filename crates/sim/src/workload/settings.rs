//! Options: reading returns the set value; unknown options and options of other socket types are
//! refused; changes while messages flow lose no message.

use std::collections::BTreeSet;

use tautline_core::{
    Context, Error, Flags, Message, SharedSocket, Socket, SocketType, option_fault, option_name,
    option_read_fault, public_key, z85,
};

use super::peer::{LINGER, Peer, RCVHWM, RCVTIMEO, SNDHWM, SNDTIMEO};
use super::{Scenario, fork, join, spawn};
use crate::rng::Rng;

/// Options that are numbers, are read as they were set, and belong to all sockets.
const NUMBERS: [(i32, &[i32]); 42] = [
    (8, &[1, 100]),
    (9, &[10_000, 1]),
    (11, &[-1, 4096]),
    (12, &[-1, 4096]),
    (17, &[-1, 0, 30]),
    (18, &[-1, 1, 100]),
    (19, &[1, 200]),
    (21, &[0, 500]),
    (23, &[0, 1, 1000]),
    (24, &[0, 1, 1000]),
    (25, &[1, 3]),
    (27, &[-1, 0, 9]),
    (28, &[-1, 0, 9]),
    (31, &[0, 1]),
    (34, &[-1, 0, 1]),
    (35, &[-1, 3]),
    (36, &[-1, 30]),
    (37, &[-1, 5]),
    (39, &[0, 1]),
    (42, &[0, 1]),
    (44, &[1, 0]),
    (47, &[1, 0]),
    (54, &[0, 1]),
    (57, &[0, 8]),
    (65, &[0, 1]),
    (66, &[0, 20_000]),
    (74, &[0, 1]),
    (75, &[0, 70]),
    (76, &[0, 300]),
    (77, &[0, 700]),
    (79, &[0, 2000]),
    (80, &[0, 500]),
    (84, &[1, 1500]),
    (89, &[-1, 5]),
    (90, &[0, 1, 2]),
    (91, &[0, 1, 2]),
    (93, &[0, 1]),
    (94, &[0, 1]),
    (96, &[0, 1]),
    (101, &[1, 8192]),
    (102, &[1, 8192]),
    (112, &[0, 3]),
];

/// Options that are numbers and belong to some sockets, or can only be set.
const OTHER_NUMBERS: [i32; 23] =
    [33, 40, 41, 51, 52, 53, 56, 58, 59, 60, 62, 69, 71, 73, 78, 97, 98, 107, 108, 109, 113, 115, 43];

/// Options that are texts or bytes, each with a value, and the form in which it is read: the same
/// bytes, the text with a final NUL, or not at all.
const TEXTS: [(i32, &[u8], Read); 19] = [
    (5, b"a name", Read::Bytes),
    (38, b"127.0.0.0/8", Read::Never),
    (45, b"user", Read::Text),
    (46, b"secret", Read::Text),
    (55, b"domain", Read::Text),
    (63, b"principal", Read::Text),
    (64, b"service", Read::Text),
    (68, b"127.0.0.1:1080", Read::Text),
    (92, b"lo", Read::Text),
    (95, b"X-name:value", Read::Never),
    (99, b"user", Read::Text),
    (100, b"secret", Read::Text),
    (103, b"key", Read::Never),
    (104, b"certificate", Read::Never),
    (105, b"certificate", Read::Never),
    (106, b"host", Read::Never),
    (110, b"hello", Read::Never),
    (111, b"gone", Read::Never),
    (114, b"hiccup", Read::Never),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Read {
    Bytes,
    Text,
    Never,
}

const TYPES: [SocketType; 20] = [
    SocketType::Pair,
    SocketType::Pub,
    SocketType::Sub,
    SocketType::Req,
    SocketType::Rep,
    SocketType::Dealer,
    SocketType::Router,
    SocketType::Pull,
    SocketType::Push,
    SocketType::XPub,
    SocketType::XSub,
    SocketType::Stream,
    SocketType::Server,
    SocketType::Client,
    SocketType::Radio,
    SocketType::Dish,
    SocketType::Gather,
    SocketType::Scatter,
    SocketType::Peer,
    SocketType::Channel,
];

/// Options of a context and of sockets of all kinds; then a pipeline whose ends change theirs.
pub(super) fn settings(stage: &mut Scenario, rng: &mut Rng) {
    let context = Context::new();
    of_context(&context, rng);
    for _ in 0..3 {
        let socket_type = *rng.pick(&TYPES);
        let mut socket = context.socket(socket_type).unwrap();
        of_socket(&mut socket, socket_type, rng);
    }
    change_options_of_running_sockets(stage, rng);
    stage.contexts.push(context);
}

fn of_context(context: &Context, rng: &mut Rng) {
    // ZMQ_IO_THREADS, ZMQ_MAX_SOCKETS, ZMQ_THREAD_SCHED_POLICY, ZMQ_MAX_MSGSZ,
    // ZMQ_ZERO_COPY_RECV, ZMQ_IPV6, ZMQ_BLOCKY.
    for (option, value) in [(1, 2), (2, 20), (4, 0), (5, 1000), (10, 0), (42, 0), (70, 1)] {
        context.set(option, value).unwrap();
        assert_eq!(context.get(option), Ok(value), "option {option} of a context");
    }
    for (option, value) in [(1, -1), (2, 0), (5, -1), (10, -1), (42, -1), (70, -1), (77, 1), (8, 12)] {
        assert_eq!(context.set(option, value), Err(Error::Invalid), "option {option} of a context");
    }
    // ZMQ_SOCKET_LIMIT and ZMQ_THREAD_PRIORITY have one number; ZMQ_MSG_T_SIZE.
    assert!(context.get(3).unwrap() > 1000);
    assert_eq!((context.get(6), context.get(99)), (Ok(64), Err(Error::Invalid)));
    if rng.chance(2) {
        context.set(3, 1).unwrap();
    }
    // ZMQ_THREAD_AFFINITY_CPU_ADD and _REMOVE.
    context.set(7, 0).unwrap();
    context.set(7, 1).unwrap();
    context.set(8, 1).unwrap();
    let mut room = [0; 16];
    // ZMQ_THREAD_NAME_PREFIX, as a number and as a text.
    context.set(9, 17).unwrap();
    assert_eq!(context.get(9), Ok(17));
    context.set_bytes(9, b"worker\0").unwrap();
    let n = context.get_bytes(9, &mut room).unwrap();
    assert_eq!((&room[..n], context.get(9)), (&b"worker\0"[..], Ok(0)));
    assert_eq!(context.set_bytes(9, &[b'x'; 17]), Err(Error::Invalid));
    assert_eq!(context.get_bytes(9, &mut room[..3]), Err(Error::Invalid));
    context.set_bytes(2, &20_i32.to_ne_bytes()).unwrap();
    assert_eq!(context.get_bytes(2, &mut room), Ok(4));
    // ZMQ_TAUTLINE_VERSION.
    assert!(context.get(0x5441_0002).unwrap() > 0 && context.get_bytes(0x5441_0002, &mut room).is_ok());
}

fn of_socket(socket: &mut Socket, socket_type: SocketType, rng: &mut Rng) {
    // A random order that contains each option.
    let mut left: BTreeSet<usize> = (0..NUMBERS.len()).collect();
    while !left.is_empty() {
        let at = rng.below(NUMBERS.len() as u64) as usize;
        let Some(at) = left.range(at..).next().or_else(|| left.first()).copied() else { break };
        left.remove(&at);
        let (code, values) = NUMBERS[at];
        let value = *rng.pick(values);
        let name = option_name(code).expect("an option that exists");
        assert_eq!(socket.set_option(code, &value.to_ne_bytes()), Ok(()), "{name}, {value}");
        let mut read = [0; 4];
        assert_eq!(socket.option(code, &mut read), Ok(4), "{name}");
        assert_eq!(i32::from_ne_bytes(read), value, "{name}");
        assert_eq!(socket.set_option(code, &[1]), Err(Error::Invalid), "{name} of one byte");
        assert!(option_fault(socket_type, code, &[1]).contains(name));
        assert_eq!(socket.option(code, &mut read[..2]), Err(Error::Invalid), "{name} into two bytes");
        assert!(option_read_fault(code, 2).contains(name));
        // Most of these options accept only some numbers.
        let takes_all = matches!(code, 74 | 93 | 94 | 96);
        let outcome = socket.set_option(code, &i32::MIN.to_ne_bytes());
        assert_eq!(outcome, if takes_all { Ok(()) } else { Err(Error::Invalid) }, "{name}, the least number");
        assert!(option_fault(socket_type, code, &i32::MIN.to_ne_bytes()).contains(name));
        socket.set_option(code, &values[0].to_ne_bytes()).unwrap();
    }
    for code in OTHER_NUMBERS {
        let name = option_name(code).expect("an option that exists");
        let value = 1_i32.to_ne_bytes();
        match socket.set_option(code, &value) {
            Ok(()) => {}
            Err(Error::Invalid) => {
                let fault = option_fault(socket_type, code, &value);
                assert!(fault.contains(name) || fault.contains("sockets have no"), "{fault}");
            }
            Err(error) => panic!("{name}: {error}"),
        }
        let mut read = [0; 4];
        if socket.option(code, &mut read).is_err() {
            assert!(option_read_fault(code, 4).contains(name));
        }
        let _ = socket.set_option(code, &0_i32.to_ne_bytes());
    }
    for (code, value, read) in TEXTS {
        let name = option_name(code).expect("an option that exists");
        assert_eq!(socket.set_option(code, value), Ok(()), "{name}");
        let mut room = [0; 64];
        let n = socket.option(code, &mut room);
        let wanted = match read {
            Read::Bytes => Ok(value.to_vec()),
            Read::Text => Ok([value, b"\0"].concat()),
            Read::Never => Err(Error::Invalid),
        };
        assert_eq!(n.map(|n| room[..n].to_vec()), wanted, "{name}");
        // If the option permits an empty value, it resets the option.
        let outcome = socket.set_option_null(code);
        assert!(matches!(outcome, Ok(()) | Err(Error::Invalid)), "{name} of nothing: {outcome:?}");
        let fault = option_fault(socket_type, code, value);
        assert!(fault.contains(name) && !fault.contains("secret"), "{fault}");
    }
    keys(socket, socket_type);
    wide(socket, socket_type);
    for code in [0, 99_999, -1] {
        assert_eq!(socket.set_option(code, &[0; 4]), Err(Error::Invalid));
        assert_eq!((option_name(code), socket.option(code, &mut [0; 4])), (None, Err(Error::Invalid)));
        assert!(option_fault(socket_type, code, &[]).contains("no option"));
        assert!(option_read_fault(code, 4).contains("no option"));
    }
    check_read_only_options(socket, socket_type);
    for code in [45, 68] {
        let _ = socket.set_option_null(code);
    }
}

/// Keys are 32 bytes, or text of 40 letters, with the NUL or without it.
fn keys(socket: &mut Socket, socket_type: SocketType) {
    let secret = [7; 32];
    let public = public_key(&secret);
    let text = z85::encode_key(&public);
    for code in [48, 49, 50] {
        socket.set_option(code, if code == 49 { &secret } else { &public }).unwrap();
        socket.set_option(code, &text[..]).unwrap();
        let (mut bytes, mut room) = ([0; 32], [0; 41]);
        assert_eq!((socket.option(code, &mut bytes), socket.option(code, &mut room)), (Ok(32), Ok(41)));
        assert_eq!((&bytes, &room[..40]), (&public, &text[..]));
        assert_eq!(socket.set_option(code, &[1; 9]), Err(Error::Invalid));
        assert!(option_fault(socket_type, code, &[1; 9]).contains("32 bytes"));
    }
    socket.set_option(47, &0_i32.to_ne_bytes()).unwrap();
}

/// Options of eight bytes: ZMQ_AFFINITY, ZMQ_MAXMSGSIZE, and two of our own.
fn wide(socket: &mut Socket, socket_type: SocketType) {
    for (code, value) in [(4, 1), (22, 5000), (0x5441_0003, 9000), (0x5441_0010, 70_000)] {
        let mut read = [0; 8];
        match socket.set_option(code, &i64::to_ne_bytes(value)) {
            Ok(()) => {
                assert_eq!(socket.option(code, &mut read), Ok(8));
                assert_eq!(i64::from_ne_bytes(read), value);
                assert_eq!(socket.option(code, &mut read[..4]), Err(Error::Invalid));
            }
            Err(error) => assert_eq!((error, code), (Error::Invalid, 0x5441_0010)),
        }
        assert_eq!(socket.set_option(code, &[0; 3]), Err(Error::Invalid));
        assert!(!option_fault(socket_type, code, &[0; 3]).is_empty());
        let reset = if code == 4 { 0_i64 } else { -1 };
        let _ = socket.set_option(code, &reset.to_ne_bytes());
    }
}

/// Options that can only be read.
fn check_read_only_options(socket: &mut Socket, socket_type: SocketType) {
    let mut number = [0; 4];
    // ZMQ_RCVMORE, ZMQ_EVENTS, ZMQ_TYPE, ZMQ_THREAD_SAFE.
    for code in [13, 15, 16, 81] {
        assert_eq!(socket.option(code, &mut number), Ok(4));
        let value = i32::from_ne_bytes(number);
        match code {
            13 => assert_eq!(value, 0),
            16 => assert_eq!(value, i32::from(socket_type.code())),
            81 => assert_eq!(value, i32::from(socket.is_thread_safe())),
            _ => {}
        }
        assert_eq!(socket.set_option(code, &number), Err(Error::Invalid));
        assert!(option_fault(socket_type, code, &number).contains("only be read"));
    }
    // ZMQ_FD, ZMQ_LAST_ENDPOINT, ZMQ_TOPICS_COUNT.
    assert_eq!(socket.option(14, &mut number).is_ok(), !socket.is_thread_safe());
    assert_eq!((socket.option(32, &mut number), number[0]), (Ok(1), 0));
    let counts =
        matches!(socket_type, SocketType::Pub | SocketType::XPub | SocketType::Sub | SocketType::XSub);
    assert_eq!(socket.option(116, &mut number).is_ok(), counts);
    // ZMQ_SUBSCRIBE can only be set, of a SUB.
    assert!(option_read_fault(6, 4).contains("only be set"));
    if !matches!(socket_type, SocketType::Sub | SocketType::XPub) {
        assert_eq!(socket.set_option(6, b"topic"), Err(Error::Invalid));
        assert!(option_fault(socket_type, 6, b"topic").contains("ZMQ_SUBSCRIBE"));
    }
    // Statistics, one by one: as numbers of 64 bits, and in two halves.
    let mut all = [0; 13 * 8];
    assert_eq!(socket.option(0x5441_0001, &mut all), Ok(all.len()));
    for place in 0..13 {
        let mut whole = [0; 8];
        assert_eq!(socket.option(0x5441_1000 + place, &mut whole), Ok(8));
        assert_eq!(socket.option(0x5441_2000 + place, &mut number), Ok(4));
    }
    assert_eq!(socket.peers(), Ok(Vec::new()));
    assert_eq!(socket.socket_type(), socket_type);
}

/// A pipeline with options of the system's set, whose ends change theirs all the time.
fn change_options_of_running_sockets(stage: &mut Scenario, rng: &mut Rng) {
    let endpoint = stage.endpoint();
    let (kind, lossy, ledger) = (stage.kind, stage.lossy, stage.ledger());
    let count = kind.count(rng, 300);
    let mut push = Peer::new(&stage.context(rng), SocketType::Push, fork(rng));
    let mut pull = Peer::new(&stage.context(rng), SocketType::Pull, fork(rng));
    for peer in [&mut push, &mut pull] {
        // ZMQ_TCP_KEEPALIVE and its times, ZMQ_TOS, ZMQ_TCP_MAXRT, ZMQ_PRIORITY, ZMQ_BUSY_POLL,
        // ZMQ_BACKLOG, ZMQ_IPV6.
        for (option, value) in
            [(34, 1), (35, 3), (36, 10), (37, 2), (57, 8), (80, 60_000), (112, 2), (113, 1), (19, 5)]
        {
            if peer.rng.chance(2) {
                peer.set(option, value);
            }
        }
        if peer.rng.chance(4) {
            peer.set_bytes(92, b"lo");
        }
    }
    pull.bind_or_connect(&endpoint, true);
    push.bind_or_connect(&endpoint, false);
    if lossy {
        pull.set_receive_timeout(super::patterns::QUIET);
    }
    let sender = spawn("push", move || {
        for number in 0..count {
            push.send(&kind.message(0, number)).unwrap_or_else(|error| panic!("{error}"));
            change(&mut push, SNDHWM);
        }
        push.set(LINGER, if lossy { 20_000 } else { -1 });
    });
    let mut heard = 0;
    while heard < count {
        match pull.recv() {
            Ok(parts) => {
                ledger.record(0, &parts);
                heard += 1;
                change(&mut pull, RCVHWM);
            }
            Err(Error::Again) if lossy => break,
            Err(error) => panic!("{error}"),
        }
    }
    join(vec![sender]);
    ledger.check_complete(&[(0, count)]);
    pull.set(LINGER, 0);
    with_threads(stage, rng);
}

/// Changes an option now and then.
fn change(peer: &mut Peer, mark: i32) {
    if !peer.rng.chance(4) {
        return;
    }
    let (option, least, most) =
        *peer.rng.pick(&[(mark, 0, 100), (18, 1, 100), (101, 1, 8192), (102, 1, 8192)]);
    let value = if peer.rng.chance(2) { peer.rng.spread(least, most) as i32 } else { least as i32 };
    peer.set(option, value);
}

/// A thread-safe socket changes its options and endpoints, and is closed while another thread waits
/// on it.
fn with_threads(stage: &mut Scenario, rng: &mut Rng) {
    let endpoint = stage.endpoint();
    let context = stage.context(rng);
    let gather = SharedSocket::new(context.socket(SocketType::Gather).unwrap()).unwrap();
    gather.bind(&endpoint).unwrap();
    let scatter = SharedSocket::new(context.socket(SocketType::Scatter).unwrap()).unwrap();
    scatter.with(|socket| socket.set_option(LINGER, &0_i32.to_ne_bytes())).unwrap();
    scatter.with(|socket| socket.connect(&endpoint)).unwrap();
    let timeout = rng.spread(1, 200) as i32;
    gather.with(|socket| socket.set_option(RCVTIMEO, &timeout.to_ne_bytes())).unwrap();
    scatter.with(|socket| socket.set_option(SNDTIMEO, &timeout.to_ne_bytes())).unwrap();
    let mut buffer = [0; 16];
    assert_eq!(gather.recv(&mut buffer, Flags::DONTWAIT), Err(Error::Again));
    let mut sent = 0;
    for _ in 0..rng.between(1, 5) {
        match scatter.send_message(&mut Message::from_slice(b"a letter"), Flags::NONE) {
            Ok(()) => sent += 1,
            Err(Error::Again | Error::Interrupted) => {}
            Err(error) => panic!("{error}"),
        }
    }
    let mut heard = 0;
    while heard < sent {
        match gather.recv(&mut buffer, Flags::NONE) {
            Ok(n) => {
                assert_eq!(&buffer[..n], b"a letter");
                heard += 1;
            }
            Err(Error::Again) if stage.lossy => break,
            Err(Error::Again | Error::Interrupted) => {}
            Err(error) => panic!("{error}"),
        }
    }
    gather.with(|socket| socket.set_option(RCVTIMEO, &(-1_i32).to_ne_bytes())).unwrap();
    let waiting = gather.clone();
    let waits = spawn("waits", move || {
        let mut message = Message::new();
        loop {
            match waiting.recv_message(&mut message, Flags::NONE) {
                Ok(_) | Err(Error::Interrupted) => {}
                Err(error) => return assert_eq!(error, Error::NotSocket),
            }
        }
    });
    std::thread::sleep(std::time::Duration::from_micros(rng.spread(1, 50_000)));
    if rng.chance(2) {
        assert_eq!(gather.unbind(&endpoint), Ok(()));
        assert_eq!(gather.unbind(&endpoint), Err(Error::NoEntry));
    }
    gather.close().unwrap();
    assert_eq!(gather.close(), Err(Error::NotSocket));
    assert_eq!(gather.send(b"", Flags::DONTWAIT), Err(Error::NotSocket));
    join(vec![waits]);
    scatter.close().unwrap();
}
