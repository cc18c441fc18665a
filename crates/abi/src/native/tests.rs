//! Handles: exclusion, closing, reuse of slots, polling.

use std::sync::mpsc;

use super::*;
use crate::entry::tests::alone;
use crate::{zmq_ctx_new, zmq_ctx_term};
use tautline_core::Flags;
use tautline_core::poller::{POLLIN, POLLOUT};

/// PULL and PUSH, connected over inproc, in a context of their own.
struct Pair {
    context: *mut c_void,
    pull: SocketHandle,
    push: SocketHandle,
    /// Other tests examine closed handles, whose slots this one would use.
    _alone: MutexGuard<'static, ()>,
}

impl Pair {
    fn new() -> Pair {
        Pair::of(SocketType::Pull, SocketType::Push)
    }

    fn of(bound: SocketType, connected: SocketType) -> Pair {
        let alone = alone();
        let context = zmq_ctx_new();
        let open = |kind: SocketType| {
            // SAFETY: a context that was just made.
            unsafe { SocketHandle::open(context, kind.code().into()) }.unwrap()
        };
        let pair = Pair { context, pull: open(bound), push: open(connected), _alone: alone };
        pair.pull.enter().unwrap().bind("inproc://pair").unwrap();
        pair.push.enter().unwrap().with(|socket| socket.connect("inproc://pair")).unwrap();
        pair
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        let _ = self.pull.close(None);
        let _ = self.push.close(Some(0));
        // SAFETY: a context, whose sockets are closed.
        unsafe { zmq_ctx_term(self.context) };
    }
}

#[test]
fn messages_pass_between_entered_sockets() {
    let pair = Pair::new();
    pair.push.enter().unwrap().send(b"one", Flags::NONE).unwrap();
    pair.push.enter().unwrap().send_message(&mut Message::from_slice(b"two"), Flags::NONE).unwrap();
    let mut buffer = [0; 2];
    assert_eq!(pair.pull.enter().unwrap().recv(&mut buffer, Flags::NONE), Ok(3));
    assert_eq!(&buffer, b"on");
    let mut message = Message::new();
    assert_eq!(pair.pull.enter().unwrap().recv_message(&mut message, Flags::NONE), Ok(3));
    assert_eq!(message.as_slice(), b"two");
    assert_eq!(pair.pull.enter().unwrap().recv(&mut [], Flags::DONTWAIT), Err(Error::Again));
}

#[test]
fn a_second_caller_is_refused_until_the_first_leaves() {
    let pair = Pair::new();
    let entered = pair.pull.enter().unwrap();
    for _ in 0..3 {
        assert_eq!(pair.pull.enter().err(), Some(Refusal::Busy));
    }
    drop(entered);
    assert!(pair.pull.enter().is_ok());
}

#[test]
fn threads_take_turns() {
    let pair = Pair::new();
    let push = pair.push;
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(move || {
                for _ in 0..1000 {
                    let mut entered = loop {
                        match push.enter() {
                            Ok(entered) => break entered,
                            Err(_) => push.wait_until_free(Duration::from_secs(1)),
                        }
                    };
                    // A full queue refuses the message; another turn then sends it.
                    let _ = entered.send(b"x", Flags::DONTWAIT);
                }
            });
        }
    });
    let mut received = 0;
    while pair.pull.enter().unwrap().recv(&mut [], Flags::DONTWAIT).is_ok() {
        received += 1;
    }
    assert!((1..=3000).contains(&received), "{received}");
}

#[test]
fn a_closed_handle_does_not_reach_the_next_socket_of_its_slot() {
    let pair = Pair::new();
    let address = pair.pull.address();
    assert_eq!(SocketHandle::at(address), Some(pair.pull));
    pair.pull.close(Some(0)).unwrap();
    assert_eq!(pair.pull.close(None), Err(Error::NotSocket));
    // SAFETY: a context.
    let open = || unsafe { SocketHandle::open(pair.context, SocketType::Pull.code().into()) }.unwrap();
    let mut others = vec![open()];
    while others.last().is_some_and(|other| other.address() != address) && others.len() < 10_000 {
        others.push(open());
    }
    assert_eq!(pair.pull.enter().err(), Some(Refusal::Closed));
    assert!(!pair.pull.is_open() && others.iter().all(|other| other.is_open() && *other != pair.pull));
    for other in others {
        other.close(None).unwrap();
    }
    assert_eq!(SocketHandle::at(address), None);
    assert_eq!(SocketHandle::at(1), None);
}

#[test]
fn a_close_ends_the_call_inside() {
    let pair = Pair::new();
    let pull = pair.pull;
    let (inside, is_inside) = mpsc::channel();
    let blocked = std::thread::spawn(move || {
        let mut entered = pull.enter().unwrap();
        inside.send(()).unwrap();
        entered.recv(&mut [], Flags::NONE)
    });
    is_inside.recv().unwrap();
    pull.close(None).unwrap();
    assert_eq!(blocked.join().unwrap(), Err(Error::NotSocket));
}

#[test]
fn poll_reports_each_entry_and_refuses_busy_sockets() {
    let pair = Pair::new();
    pair.push.enter().unwrap().send(b"x", Flags::NONE).unwrap();
    let entry = |handle, events| PollEntry { target: Target::Socket(handle), events, revents: 0 };
    let mut entries = [
        entry(pair.pull, POLLIN),
        entry(pair.push, POLLOUT),
        entry(pair.pull, POLLOUT),
        entry(pair.pull, POLLIN),
    ];
    assert_eq!(poll(&mut entries, None).unwrap(), 3);
    assert_eq!(entries.map(|entry| entry.revents), [POLLIN, POLLOUT, 0, POLLIN]);
    let entered = pair.push.enter().unwrap();
    match poll(&mut entries, None) {
        Err(PollFailure::Refused(handle, Refusal::Busy)) => assert_eq!(handle, pair.push),
        other => panic!("{other:?}"),
    }
    drop(entered);
    assert!(pair.pull.enter().is_ok());
}

/// SERVER and CLIENT, connected over inproc.
fn shared_pair() -> Pair {
    Pair::of(SocketType::Server, SocketType::Client)
}

#[test]
fn a_closed_handle_does_not_reach_the_next_shared_socket_of_its_slot() {
    let pair = shared_pair();
    let address = pair.push.address();
    pair.push.close(Some(0)).unwrap();
    // SAFETY: a context.
    let open = || unsafe { SocketHandle::open(pair.context, SocketType::Client.code().into()) }.unwrap();
    let mut others = vec![open()];
    while others.last().is_some_and(|other| other.address() != address) && others.len() < 1000 {
        others.push(open());
    }
    assert_eq!(others.last().map(|other| other.address()), Some(address));
    assert_eq!(pair.push.enter().err(), Some(Refusal::Closed));
    assert_eq!(pair.push.at_once(|_| ()), Err(Refusal::Closed));
    assert_eq!(pair.push.close(None), Err(Error::NotSocket));
    assert!(!pair.push.is_open() && others.iter().all(|other| other.is_open() && *other != pair.push));
    for other in others {
        other.close(None).unwrap();
    }
}

#[test]
fn a_shared_socket_in_use_is_busy() {
    let pair = shared_pair();
    let (client, inner) = (pair.push, pair.push);
    let inside = client.at_once(|entered| {
        entered.send(b"x", Flags::DONTWAIT).unwrap();
        assert_eq!(inner.at_once(|_| ()), Err(Refusal::Busy));
        assert_eq!(inner.enter().err(), Some(Refusal::Busy));
    });
    assert_eq!(inside, Ok(()));
    assert_eq!(pair.pull.at_once(|entered| entered.recv(&mut [], Flags::DONTWAIT)), Ok(Ok(1)));
}

#[test]
fn a_waiting_receiver_makes_way_for_other_callers() {
    let pair = shared_pair();
    let server = pair.pull;
    let receiver = std::thread::spawn(move || server.enter().unwrap().recv(&mut [], Flags::NONE));
    // Every attempt gets its turn, whether the receiver waits already or not.
    for _ in 0..100 {
        while server.at_once(|entered| entered.with(|socket| socket.option(16, &mut [0; 4]))).is_err() {
            server.wait_until_free(Duration::from_secs(1));
        }
    }
    pair.push.enter().unwrap().send(b"x", Flags::NONE).unwrap();
    assert_eq!(receiver.join().unwrap(), Ok(1));
}

#[test]
fn a_repeated_call_ends_at_its_deadline() {
    for pair in [Pair::new, shared_pair] {
        let pair = pair();
        let started = Instant::now();
        let mut entered = pair.pull.enter().unwrap();
        entered.with(|socket| socket.set_option(27, &3_600_000_i32.to_ne_bytes())).unwrap();
        let limit = entered.deadline_since(started, true).unwrap();
        assert!(limit.is_some_and(|limit| limit > started + Duration::from_secs(3000)));
        let received = entered.repeat(Some(started), |entered| entered.recv(&mut [], Flags::NONE));
        assert_eq!(received, Err(Error::Again));
        // ZMQ_SNDTIMEO is unlimited.
        let waited =
            entered.repeat(Some(started), |entered| entered.wait_by_option(WAIT_PEERS, &5_i32.to_ne_bytes()));
        assert_eq!(waited, Err(Error::Again));
        // A message that has arrived is received even after the deadline.
        pair.push.enter().unwrap().send(b"x", Flags::NONE).unwrap();
        assert_eq!(entered.repeat(Some(started), |entered| entered.recv(&mut [], Flags::NONE)), Ok(1));
        // The options apply again.
        entered.with(|socket| socket.set_option(27, &1_i32.to_ne_bytes())).unwrap();
        assert_eq!(entered.recv(&mut [], Flags::NONE), Err(Error::Again));
    }
}

#[test]
fn a_wait_for_peers_makes_way_for_a_connect() {
    let pair = shared_pair();
    let client = pair.push;
    let mut entered = client.enter().unwrap();
    let waiter = std::thread::spawn(move || {
        // The socket is busy during the connect.
        let mut entered = loop {
            match client.enter() {
                Err(Refusal::Busy) => std::thread::yield_now(),
                entered => break entered.unwrap(),
            }
        };
        entered.wait_by_option(WAIT_PEERS, &2_i32.to_ne_bytes())
    });
    // SAFETY: a context.
    let other = unsafe { SocketHandle::open(pair.context, SocketType::Server.code().into()) }.unwrap();
    other.enter().unwrap().bind("inproc://other").unwrap();
    entered.with(|socket| socket.connect("inproc://other")).unwrap();
    assert_eq!(waiter.join().unwrap(), Ok(()));
    drop(entered);
    other.close(Some(0)).unwrap();
}

#[test]
fn a_close_sets_linger_of_a_socket_in_use() {
    let pair = Pair::new();
    let push = pair.push;
    let _ = push.enter().unwrap().with(|socket| socket.connect("tcp://127.0.0.1:1"));
    let (inside, is_inside) = mpsc::channel();
    let blocked = std::thread::spawn(move || {
        let mut entered = push.enter().unwrap();
        inside.send(()).unwrap();
        // Waits for ever. The messages for the second peer stay unsent.
        loop {
            entered.send(b"x", Flags::NONE)?;
        }
    });
    is_inside.recv().unwrap();
    push.close(Some(0)).unwrap();
    let ended: Result<(), Error> = blocked.join().unwrap();
    assert_eq!(ended, Err(Error::NotSocket));
}
