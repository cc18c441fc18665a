use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use super::*;
use crate::pipe::PipeId;
use crate::poller::{POLLIN, POLLOUT};
use crate::{Context, Flags, Message, SocketType};
use tautline_io::fd::AsRawFd;
use tautline_io::poll::{self, PollFd};
use tautline_queue::sync::Arc;
use tautline_testkit::with_watchdog;

const LIMIT: Duration = Duration::from_secs(60);
const RESTS: [WaitMode; 2] = [WaitMode::IoThread, WaitMode::Descriptors];

/// The waker of a task that has its own thread.
struct Alarm {
    rung: AtomicBool,
    thread: Thread,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.rung.store(true, SeqCst);
        self.thread.unpark();
    }
}

/// Runs one wait to its end, as an executor would.
fn await_ready(socket: &mut Socket, events: i16, rest: WaitMode) -> Result<(), Error> {
    let alarm = Arc::new(Alarm { rung: AtomicBool::new(false), thread: thread::current() });
    let waker = Waker::from(alarm.clone());
    let descriptors = socket.descriptors().unwrap();
    let mut fds: Vec<PollFd> = descriptors.iter().map(|fd| PollFd::new(fd.as_raw_fd(), PollFd::IN)).collect();
    let mut patience = WaitState::default();
    loop {
        match socket.poll_ready(events, &mut patience, rest, &waker)? {
            WaitStep::Ready => return Ok(()),
            WaitStep::CheckAgain => continue,
            WaitStep::Sleeping => {}
        }
        while !alarm.rung.swap(false, SeqCst) {
            match rest {
                WaitMode::IoThread => thread::park(),
                WaitMode::Descriptors => {
                    if poll::poll(&mut fds, None).unwrap() > 0 {
                        break;
                    }
                }
            }
        }
    }
}

fn recv(socket: &mut Socket, rest: WaitMode) -> Result<Vec<u8>, Error> {
    let mut message = Message::new();
    loop {
        match socket.recv_message(&mut message, Flags::DONTWAIT) {
            Err(Error::Again) => await_ready(socket, POLLIN, rest)?,
            other => return other.map(|_| message.as_slice().to_vec()),
        }
    }
}

fn send(socket: &mut Socket, body: &[u8], rest: WaitMode) -> Result<(), Error> {
    loop {
        match socket.send(body, Flags::DONTWAIT) {
            Err(Error::Again) => await_ready(socket, POLLOUT, rest)?,
            other => return other,
        }
    }
}

fn set(socket: &mut Socket, code: i32, value: i32) {
    socket.set_option(code, &value.to_ne_bytes()).unwrap();
}

/// Creates two sockets; the first one is bound.
fn pair(context: &Context, types: [SocketType; 2], endpoint: &str) -> [Socket; 2] {
    let [mut bound, mut connected] = types.map(|socket_type| context.socket(socket_type).unwrap());
    for socket in [&mut bound, &mut connected] {
        set(socket, 23, 1); // ZMQ_SNDHWM
        set(socket, 24, 1); // ZMQ_RCVHWM
    }
    bound.bind(endpoint).unwrap();
    let mut text = [0; 256];
    let len = bound.option(32, &mut text).unwrap();
    connected.connect(std::str::from_utf8(&text[..len - 1]).unwrap()).unwrap();
    [bound, connected]
}

#[test]
fn tasks_play_ping_pong() {
    with_watchdog(LIMIT, "tasks_play_ping_pong", || {
        for rest in RESTS {
            for endpoint in ["tcp://127.0.0.1:*", "inproc://ping-pong"] {
                let context = Context::new();
                let [mut a, mut b] = pair(&context, [SocketType::Pair; 2], endpoint);
                let answers = thread::spawn(move || {
                    for _ in 0..300 {
                        let body = recv(&mut b, rest).unwrap();
                        send(&mut b, &body, rest).unwrap();
                    }
                    b
                });
                for number in 0..300_u32 {
                    send(&mut a, &number.to_ne_bytes(), rest).unwrap();
                    assert_eq!(recv(&mut a, rest).unwrap(), number.to_ne_bytes());
                }
                drop(answers.join().unwrap());
            }
        }
    });
}

#[test]
fn a_sender_at_the_high_water_mark_is_woken_by_room() {
    with_watchdog(LIMIT, "a_sender_at_the_high_water_mark", || {
        for rest in RESTS {
            for endpoint in ["tcp://127.0.0.1:*", "inproc://room"] {
                let context = Context::new();
                let [mut pull, mut push] = pair(&context, [SocketType::Pull, SocketType::Push], endpoint);
                let sender = thread::spawn(move || {
                    for number in 0..200_u8 {
                        // Large messages, so that the kernel cannot take them all.
                        send(&mut push, &vec![number; 100_000], rest).unwrap();
                    }
                    push
                });
                for number in 0..200_u8 {
                    assert_eq!(recv(&mut pull, rest).unwrap(), vec![number; 100_000]);
                }
                drop(sender.join().unwrap());
            }
        }
    });
}

#[test]
fn the_end_of_the_context_ends_the_wait() {
    with_watchdog(LIMIT, "the_end_of_the_context", || {
        for rest in RESTS {
            let context = Context::new();
            let [mut pull, push] = pair(&context, [SocketType::Pull, SocketType::Push], "tcp://127.0.0.1:*");
            let waiting = thread::spawn(move || recv(&mut pull, rest));
            context.shutdown().unwrap();
            assert_eq!(waiting.join().unwrap(), Err(Error::Terminated));
            drop(push);
        }
    });
}

#[test]
fn an_abandoned_wait_leaves_the_socket_usable() {
    with_watchdog(LIMIT, "an_abandoned_wait", || {
        for rest in RESTS {
            let context = Context::new();
            let [mut pull, mut push] =
                pair(&context, [SocketType::Pull, SocketType::Push], "tcp://127.0.0.1:*");
            let mut patience = WaitState::default();
            while !patience.is_sleeping() {
                // The news of the connection may arrive in between.
                let _ = pull.poll_ready(POLLIN, &mut patience, rest, Waker::noop()).unwrap();
            }
            pull.stop_waiting(patience);
            push.send(b"after", Flags::NONE).unwrap();
            let mut buffer = [0; 8];
            assert_eq!(pull.recv(&mut buffer, Flags::NONE), Ok(5));
            assert_eq!(&buffer[..5], b"after");
        }
    });
}

#[test]
fn a_wait_that_has_read_a_part_of_a_message_asks_for_another_check() {
    with_watchdog(LIMIT, "a_wait_that_has_read_a_part", || {
        let context = Context::new();
        let mut pull = context.socket(SocketType::Pull).unwrap();
        pull.bind("tcp://127.0.0.1:*").unwrap();
        let mut peer = TcpStream::connect(&pull.last_endpoint["tcp://".len()..]).unwrap();
        // ZMTP 1.0: no routing id, then the length and the flags of a message.
        peer.write_all(b"\x01\0\xff\0\0\0\0\0\x01\0\x01\0").unwrap();
        let mut unsent = 0x10000;
        let mut wait = WaitState::default();
        loop {
            match pull.poll_ready(POLLIN, &mut wait, WaitMode::Descriptors, Waker::noop()).unwrap() {
                // The wait has read the byte.
                WaitStep::CheckAgain if wait.is_sleeping() => break,
                // The wait spins, or the news of the connection has arrived.
                WaitStep::CheckAgain | WaitStep::Ready => {}
                // If the I/O thread has read the byte, try with the next one.
                WaitStep::Sleeping => {
                    peer.write_all(b"x").unwrap();
                    unsent -= 1;
                }
            }
        }

        // The I/O thread reads the message, and only another check finds it.
        peer.write_all(&vec![b'x'; unsent]).unwrap();
        while !pull.inbox.has_pending() {
            thread::yield_now();
        }
        let descriptors = pull.descriptors().unwrap();
        let mut fds: Vec<PollFd> =
            descriptors.iter().map(|fd| PollFd::new(fd.as_raw_fd(), PollFd::IN)).collect();
        assert_eq!(poll::poll(&mut fds, Some(Duration::ZERO)).unwrap(), 0);
        let step = pull.poll_ready(POLLIN, &mut wait, WaitMode::Descriptors, Waker::noop());
        assert_eq!(step, Ok(WaitStep::Ready));
        let mut message = Message::new();
        pull.recv_message(&mut message, Flags::DONTWAIT).unwrap();
        assert_eq!(message.as_slice().len(), 0x10000);
    });
}

#[test]
fn a_corked_socket_writes_when_the_cork_is_gone() {
    with_watchdog(LIMIT, "a_corked_socket", || {
        let context = Context::new();
        let mut pull = context.socket(SocketType::Pull).unwrap();
        pull.bind("tcp://127.0.0.1:*").unwrap();
        let endpoint = pull.last_endpoint.clone();
        let mut push = context.socket(SocketType::Push).unwrap();
        push.connect(&endpoint).unwrap();
        let mut buffer = [0; 8];
        push.send(b"first", Flags::NONE).unwrap();
        assert_eq!(pull.recv(&mut buffer, Flags::NONE), Ok(5));
        // The I/O thread may know of this message, and would then also write the next one.
        while push.pipes.get(PipeId(0)).is_some_and(|pipe| pipe.connection().unwrap().residual_mark.is_set())
        {
            thread::yield_now();
        }

        let cork = push.cork();
        for _ in 0..3 {
            push.send(b"held", Flags::NONE).unwrap();
            assert_eq!(pull.recv(&mut buffer, Flags::DONTWAIT), Err(Error::Again));
        }
        drop(cork);
        push.flush();
        for _ in 0..3 {
            assert_eq!(pull.recv(&mut buffer, Flags::NONE), Ok(4));
        }

        // A large amount leaves at once.
        let cork = push.cork();
        push.send(b"held", Flags::NONE).unwrap();
        for _ in 0..20 {
            push.send(&[0; 5000], Flags::NONE).unwrap();
        }
        assert_eq!(pull.recv(&mut buffer, Flags::NONE), Ok(4));
        drop(cork);
        push.flush();
    });
}
