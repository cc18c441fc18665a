//! Sockets that wait for each other in different ways: blocking, polling, with timeouts, and as tasks of several executors. Some
//! tasks abandon a wait and start it again. In all combinations of ways, transport and high-water marks, every message arrives in
//! order.
//!
//! `WAITING_ROUNDS` (200) is the number of tested combinations, `WAITING_SEED` the first one.

use std::future::Future;
use std::thread;
use std::time::Duration;

use futures_util::future::poll_immediate;
use tautline::kind::{self, Kind, Receives, Sends};
use tautline::{Context, Error, Message, Socket, aio};
use tautline_testkit::with_watchdog;

#[derive(Debug, Clone, Copy)]
enum WaitMethod {
    Blocking,
    Retry,
    Timeout,
    Readiness,
    Smol,
    Current,
    Several,
    /// Abandons a receive if no message is queued, and starts another one a moment later.
    GivingUp,
}

const WAYS: [WaitMethod; 8] = [
    WaitMethod::Blocking,
    WaitMethod::Retry,
    WaitMethod::Timeout,
    WaitMethod::Readiness,
    WaitMethod::Smol,
    WaitMethod::Current,
    WaitMethod::Several,
    WaitMethod::GivingUp,
];

impl WaitMethod {
    fn is_task(self) -> bool {
        matches!(self, WaitMethod::Smol | WaitMethod::Current | WaitMethod::Several | WaitMethod::GivingUp)
    }
}

const MOMENT: Duration = Duration::from_millis(1);

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % limit
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

fn body(number: u32) -> Vec<u8> {
    let len = [4, 64, 300, 4, 3000, 70, 9, 100][(number.wrapping_mul(2_654_435_761) >> 29) as usize];
    let mut body = vec![number as u8; len];
    body[..4].copy_from_slice(&number.to_le_bytes());
    body
}

/// Runs a task in this way.
fn run<F: Future<Output = ()> + Send + 'static>(way: WaitMethod, task: F) {
    match way {
        WaitMethod::Smol => smol::block_on(task),
        WaitMethod::Several => {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async { tokio::spawn(task).await.unwrap() });
        }
        _ => tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(task),
    }
}

fn send<K: Sends>(socket: &mut Socket<K>, way: WaitMethod, body: &[u8]) {
    loop {
        let sent = match way {
            WaitMethod::Retry | WaitMethod::Readiness => socket.try_send(body),
            _ => socket.send(body),
        };
        match (sent, way) {
            (Err(Error::WouldBlock), WaitMethod::Readiness) => drop(socket.wait_writable(None).unwrap()),
            (Err(Error::WouldBlock | Error::TimedOut), _) => thread::yield_now(),
            (sent, _) => return sent.unwrap(),
        }
    }
}

fn recv<K: Receives>(socket: &mut Socket<K>, way: WaitMethod) -> Message {
    loop {
        let received = match way {
            WaitMethod::Retry | WaitMethod::Readiness => socket.try_recv(),
            _ => socket.recv(),
        };
        match (received, way) {
            (Err(Error::WouldBlock), WaitMethod::Readiness) => drop(socket.wait_readable(None).unwrap()),
            (Err(Error::WouldBlock | Error::TimedOut), _) => thread::yield_now(),
            (received, _) => return received.unwrap(),
        }
    }
}

async fn task_recv<K: Receives>(socket: &mut aio::Socket<K>, way: WaitMethod) -> Message {
    while let WaitMethod::GivingUp = way {
        match poll_immediate(socket.recv()).await {
            Some(message) => return message.unwrap(),
            None => tokio::task::yield_now().await,
        }
        if let Ok(message) = tokio::time::timeout(MOMENT, socket.recv()).await {
            return message.unwrap();
        }
    }
    socket.recv().await.unwrap()
}

fn sends<K: Sends>(mut socket: Socket<K>, way: WaitMethod, count: u32) {
    if way.is_task() {
        return run(way, async move {
            let mut socket = socket.into_async();
            for number in 0..count {
                socket.send(&body(number)).await.unwrap();
            }
        });
    }
    (0..count).for_each(|number| send(&mut socket, way, &body(number)));
}

fn receives<K: Receives>(mut socket: Socket<K>, way: WaitMethod, count: u32) {
    if way.is_task() {
        return run(way, async move {
            let mut socket = socket.into_async();
            for number in 0..count {
                assert_eq!(task_recv(&mut socket, way).await, body(number));
            }
        });
    }
    (0..count).for_each(|number| assert_eq!(recv(&mut socket, way), body(number)));
}

fn asks<K: Sends + Receives>(mut socket: Socket<K>, way: WaitMethod, count: u32) {
    if way.is_task() {
        return run(way, async move {
            let mut socket = socket.into_async();
            for number in 0..count {
                socket.send(&body(number)).await.unwrap();
                assert_eq!(task_recv(&mut socket, way).await, body(number));
            }
        });
    }
    for number in 0..count {
        send(&mut socket, way, &body(number));
        assert_eq!(recv(&mut socket, way), body(number));
    }
}

fn answers<K: Sends + Receives>(mut socket: Socket<K>, way: WaitMethod, count: u32) {
    if way.is_task() {
        return run(way, async move {
            let mut socket = socket.into_async();
            for number in 0..count {
                assert_eq!(task_recv(&mut socket, way).await, body(number));
                socket.send(&body(number)).await.unwrap();
            }
        });
    }
    for number in 0..count {
        assert_eq!(recv(&mut socket, way), body(number));
        send(&mut socket, way, &body(number));
    }
}

fn socket<K: Kind>(context: &Context, mark: i32, way: WaitMethod) -> Socket<K> {
    const MARKS: [i32; 2] = [23, 24];
    let mut socket = Socket::new(context).unwrap();
    for option in MARKS {
        socket.set_raw_option(option, &mark.to_ne_bytes()).unwrap();
    }
    if let WaitMethod::Timeout = way {
        socket.set_send_timeout(Some(MOMENT)).unwrap();
        socket.set_receive_timeout(Some(MOMENT)).unwrap();
    }
    socket
}

/// Parameters that both ends of a round share.
struct Round {
    context: Context,
    endpoint: &'static str,
    marks: [i32; 2],
    ways: [WaitMethod; 2],
    count: u32,
}

impl Round {
    /// Runs both ends at once, each on its own thread. The first end binds.
    fn play<A: Kind, B: Kind>(
        &self,
        one: impl FnOnce(Socket<A>, WaitMethod, u32) + Send,
        other: impl FnOnce(Socket<B>, WaitMethod, u32) + Send,
    ) {
        let [way, other_way] = self.ways;
        let mut bound = socket(&self.context, self.marks[0], way);
        let mut connected = socket(&self.context, self.marks[1], other_way);
        connected.connect(&bound.bind(self.endpoint).unwrap()).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| one(bound, way, self.count));
            scope.spawn(|| other(connected, other_way, self.count));
        });
    }
}

fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn each_way_to_wait_is_woken() {
    let rounds = number("WAITING_ROUNDS", 200);
    let mut random = Random((number("WAITING_SEED", 1) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    for round in 0..rounds {
        let endpoint = random.of(&["tcp://127.0.0.1:*", "ipc://*", "inproc://waiting"]);
        let marks = [0; 2].map(|_| random.of(&[1, 2, 5, 100, 1000, 0]));
        let ways = [0; 2].map(|_| random.of(&WAYS));
        let count = 1 + random.below(800) as u32;
        let pattern = random.below(4);
        let name = format!(
            "round {round}: pattern {pattern}, {endpoint}, {ways:?}, marks {marks:?}, {count} messages"
        );
        with_watchdog(Duration::from_secs(90), &name, move || {
            let round = Round { context: Context::new(), endpoint, marks, ways, count };
            match pattern {
                0 => round.play::<kind::Pull, kind::Push>(receives, sends),
                1 => round.play::<kind::Push, kind::Pull>(sends, receives),
                2 => round.play::<kind::Rep, kind::Req>(answers, asks),
                _ => round.play::<kind::Pair, kind::Pair>(answers, asks),
            }
            round.context.terminate().unwrap();
        });
    }
}
