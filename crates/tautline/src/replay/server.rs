//! The thread that answers requests for messages of the ring.

use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::ring::Ring;
use super::{END_NUMBER, decode, encode};
use crate::error::{Error, Result};
use crate::{Context, Message, Multipart, Pair, PollItem, Router, poll};

/// Maximum number of concurrent requests. A further request replaces the one of the peer that has
/// not read for the longest time. If all peers read, the further request stays unanswered, and its
/// sender asks again.
const MAX_REQUESTS: usize = if cfg!(any(test, simulated)) { 4 } else { 1024 };
/// Number of messages for one peer before the next peer has its turn.
const MESSAGES_PER_TURN: usize = 64;
/// Time between two attempts to send to a peer with a full queue, because a ROUTER gets no
/// notification of room. It doubles with each failed attempt.
const RETRY: Duration = Duration::from_millis(1);
const LONGEST_RETRY: Duration = Duration::from_millis(100);

/// Number of servers so far, for a unique name of each.
// Relaxed: number: each one only has to be unique.
static SERVERS: AtomicU64 = AtomicU64::new(0);

/// Handle of the thread. Dropping it ends the thread.
#[derive(Debug)]
pub(super) struct Server {
    stop: Pair,
    thread: Option<JoinHandle<()>>,
}

/// A request of a peer, and the number of its next message.
struct Request {
    peer: Message,
    next: u64,
    /// Time until the next attempt, while the peer's queue is full.
    wait: Option<Duration>,
    /// Time of the next attempt.
    due: Instant,
    /// Time when the peer last took a message or sent a request.
    since: Instant,
}

impl Request {
    fn new(peer: Message, next: u64) -> Self {
        let now = Instant::now();
        Request { peer, next, wait: None, due: now, since: now }
    }

    fn back_off(&mut self, now: Instant) {
        let wait = self.wait.map_or(RETRY, |wait| (wait * 2).min(LONGEST_RETRY));
        (self.wait, self.due) = (Some(wait), now + wait);
    }
}

/// Result of sending.
#[derive(PartialEq, Eq)]
enum SendOutcome {
    Accepted,
    /// The peer's queue is full.
    Full,
    /// The peer is disconnected, or has received all messages.
    Finished,
}

impl Server {
    pub(super) fn start(
        context: &Context,
        router: Router,
        ring: Arc<Mutex<Ring>>,
        epoch: [u8; 8],
    ) -> Result<Self> {
        let mut ends = [Pair::new(context)?, Pair::new(context)?];
        let name = format!("inproc://tautline-replay-{}", SERVERS.fetch_add(1, Relaxed));
        ends[0].bind(&name)?;
        ends[1].connect(&name)?;
        let [stop, stopped] = ends;
        let worker = Worker { router, stopped, ring, epoch, requests: VecDeque::new() };
        let thread =
            std::thread::Builder::new()
                .name("taut-replay".to_owned())
                .spawn(move || worker.run())
                .map_err(|error| Error::Os(error.raw_os_error().unwrap_or_default(), Default::default()))?;
        Ok(Server { stop, thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An error means that the context has ended, and so has the thread.
        let _ = self.stop.try_send("");
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Worker {
    router: Router,
    stopped: Pair,
    ring: Arc<Mutex<Ring>>,
    epoch: [u8; 8],
    requests: VecDeque<Request>,
}

impl Worker {
    fn run(mut self) {
        loop {
            match self.round() {
                Ok(true) | Err(Error::Interrupted) => {}
                Ok(false) | Err(_) => return,
            }
        }
    }

    /// Takes new requests and answers all requests in turn. Returns false to end the thread.
    fn round(&mut self) -> Result<bool> {
        let now = Instant::now();
        for _ in 0..self.requests.len() {
            let Some(mut request) = self.requests.pop_front() else { break };
            if request.due <= now {
                let before = request.next;
                let sent = self.answer(&mut request)?;
                if request.next != before {
                    (request.wait, request.since) = (None, now);
                }
                match sent {
                    SendOutcome::Finished => continue,
                    SendOutcome::Accepted => {}
                    SendOutcome::Full => request.back_off(now),
                }
            }
            self.requests.push_back(request);
        }
        let due = self.requests.iter().map(|request| request.due).min();
        let timeout = due.map(|due| due.saturating_duration_since(Instant::now()));
        let mut items = [PollItem::readable(&mut self.router), PollItem::readable(&mut self.stopped)];
        poll(&mut items, timeout)?;
        if items[1].is_readable() {
            return Ok(false);
        }
        for _ in 0..MAX_REQUESTS {
            match self.router.try_recv_multipart() {
                Ok(message) => self.add_request(message)?,
                Err(Error::WouldBlock) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Takes a request. Ignores malformed messages.
    fn add_request(&mut self, message: Multipart) -> Result<()> {
        let Ok([peer, delimiter, from]) = <[Message; 3]>::try_from(message) else { return Ok(()) };
        let Some(next) = decode(&from).filter(|_| delimiter.is_empty()) else { return Ok(()) };
        if let Some(request) = self.requests.iter_mut().find(|request| request.peer == peer) {
            // A new request replaces the peer's previous request.
            request.next = next;
        } else if self.requests.len() < MAX_REQUESTS {
            self.requests.push_back(Request::new(peer, next));
        } else if let Some(stalled) = self.stalled() {
            *stalled = Request::new(peer, next);
        }
        Ok(())
    }

    /// Returns the peer that has not read for the longest time, if a peer's queue is full.
    fn stalled(&mut self) -> Option<&mut Request> {
        let stalled = self.requests.iter_mut().filter(|request| request.wait.is_some());
        stalled.min_by_key(|request| request.since)
    }

    /// Sends some messages to a peer, until its queue is full. [`SendOutcome::Accepted`]: more
    /// messages follow.
    fn answer(&mut self, request: &mut Request) -> Result<SendOutcome> {
        for _ in 0..MESSAGES_PER_TURN {
            let kept = {
                let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
                ring.first_from(request.next)
            };
            let Some(kept) = kept else {
                let sent = self.send(&request.peer, self.end())?;
                return Ok(if sent == SendOutcome::Full { sent } else { SendOutcome::Finished });
            };
            let sent =
                self.send(&request.peer, [kept.topic, Message::from(&encode(kept.number)), kept.body])?;
            if sent != SendOutcome::Accepted {
                return Ok(sent);
            }
            request.next = kept.number + 1;
        }
        Ok(SendOutcome::Accepted)
    }

    fn end(&self) -> [Message; 3] {
        [Message::from(&self.epoch), Message::from(&encode(END_NUMBER)), Message::default()]
    }

    fn send(&mut self, peer: &Message, [topic, number, body]: [Message; 3]) -> Result<SendOutcome> {
        match self.router.try_send_multipart([peer.clone(), Message::default(), topic, number, body]) {
            Ok(()) => Ok(SendOutcome::Accepted),
            Err(Error::WouldBlock) => Ok(SendOutcome::Full),
            Err(Error::Unroutable) => Ok(SendOutcome::Finished),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use tautline_testkit::with_watchdog;

    use super::super::ring::KeptMessage;
    use super::*;
    use crate::Dealer;

    #[test]
    fn stalled_peer_does_not_block_others() {
        with_watchdog(Duration::from_secs(60), "peers_that_do_not_read_do_not_shut_others_out", || {
            let context = Context::new();
            let mut ring = Ring::new(1000, usize::MAX);
            for number in 0..100 {
                ring.push(KeptMessage { number, topic: Message::from("t"), body: Message::from("kept") });
            }
            let at = "inproc://ring";
            let router = Router::builder(&context).router_mandatory(true).send_hwm(1).bind(at).unwrap();
            let _server = Server::start(&context, router, Arc::new(Mutex::new(ring)), [1; 8]).unwrap();
            let ask = || {
                let mut peer = Dealer::builder(&context).receive_hwm(1).connect(at).unwrap();
                peer.send_multipart([&[][..], &encode(0)]).unwrap();
                peer
            };
            let _silent: Vec<Dealer> = (0..2 * MAX_REQUESTS)
                .map(|_| {
                    let mut silent = ask();
                    assert!(silent.wait_readable(None).unwrap());
                    silent
                })
                .collect();
            let mut good = ask();
            for number in (0..100).chain([END_NUMBER]) {
                let message = good.recv_multipart().unwrap();
                assert_eq!(decode(message[2].as_bytes()), Some(number));
            }
        });
    }
}
