//! Workers that are asked: REP sockets, in turn, through a DEALER.
//!
//! A DEALER does not know which worker it asks. But a REP gives back what stands before the empty
//! part: the number of the message. As many messages are out as there are workers. What a worker
//! has taken with it when it went stays out until its time is over.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::{self, AckKind};
use tautline::{Error, Multipart};
use tokio::time::Instant;

use super::{Course, Queue, addressed, answer};
use crate::zmq::{Heard, Socket};

/// Of how many workers that have gone it is remembered.
const GONE: usize = 1024;

/// The workers, and what they have.
pub struct Crew {
    course: Arc<Course>,
    answer_within: Duration,
    /// How many are connected.
    workers: usize,
    /// Until when messages may be with workers that have gone.
    gone: VecDeque<Instant>,
    /// What is out, by number, and until when.
    out: HashMap<u64, (jetstream::Message, Instant)>,
    next: u64,
}

impl Crew {
    /// Without workers yet.
    pub fn new(course: Arc<Course>, answer_within: Duration) -> Self {
        // Not those of the run before, to which a worker may still answer.
        let next = std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos() as u64);
        Crew { course, answer_within, workers: 0, gone: VecDeque::new(), out: HashMap::new(), next }
    }

    /// How many messages are out.
    pub fn holds(&self) -> usize {
        self.out.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.workers == 0
    }

    /// An answer, or a worker that has come or gone.
    pub async fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Message(message) => self.answered(&message).await,
            Heard::Came => self.workers += 1,
            Heard::Gone => {
                self.workers = self.workers.saturating_sub(1);
                if self.gone.len() < GONE {
                    self.gone.push_back(Instant::now() + self.answer_within);
                }
            }
        }
    }

    async fn answered(&mut self, message: &Multipart) {
        let number = message.first().and_then(|part| part.as_bytes().try_into().ok()).map(u64::from_be_bytes);
        // Without one it answers what another run, or this one too long ago, has asked.
        if let Some((message, _)) = number.and_then(|number| self.out.remove(&number)) {
            answer(&self.course, &message, AckKind::Ack).await;
            self.course.counters.done.add();
        }
    }

    /// Asks the workers, as many as there are.
    pub async fn hand_out(&mut self, socket: &mut Socket, queue: &mut Queue) {
        self.expire();
        while self.out.len() < self.workers + self.gone.len() {
            let Some(waiting) = queue.pop_front() else { return };
            let number = self.next.to_be_bytes().to_vec();
            let Some(parts) = addressed(&self.course, &waiting.message, number).await else {
                continue;
            };
            match socket.try_send(parts) {
                Ok(()) => {
                    self.course.counters.received.add();
                    let message = waiting.begin(&self.course, self.answer_within).await;
                    self.out.insert(self.next, (message, Instant::now() + self.answer_within));
                    self.next += 1;
                }
                Err(error) => {
                    queue.push_front(waiting);
                    if error != Error::WouldBlock {
                        self.course.complain(error);
                    }
                    return;
                }
            }
        }
    }

    /// Forgets what JetStream gives out again.
    fn expire(&mut self) {
        let now = Instant::now();
        while self.gone.front().is_some_and(|until| *until <= now) {
            self.gone.pop_front();
        }
        let before = self.out.len();
        self.out.retain(|_, (_, until)| *until > now);
        (self.out.len()..before).for_each(|_| self.course.counters.again.add());
    }
}
