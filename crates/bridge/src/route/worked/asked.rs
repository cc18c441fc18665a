//! Workers that are asked: REP sockets, in turn, through a DEALER.
//!
//! A DEALER does not know which worker it asks. But a REP gives back what stands before the empty
//! part: the message's ticket, a random number. So a worker can answer only for what it was given.
//! As many messages are out as there are workers. If a worker disconnects, its messages stay out
//! until their time is over.

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

/// Identifies a message. It cannot be guessed.
type Ticket = [u8; 16];

/// The workers, and what they have.
pub struct Crew {
    course: Arc<Course>,
    answer_within: Duration,
    /// How many are connected.
    workers: usize,
    /// Until when messages may be with workers that have gone.
    gone: VecDeque<Instant>,
    /// What is out, and until when.
    out: HashMap<Ticket, (jetstream::Message, Instant)>,
}

impl Crew {
    /// Without workers yet.
    pub fn new(course: Arc<Course>, answer_within: Duration) -> Self {
        Crew { course, answer_within, workers: 0, gone: VecDeque::new(), out: HashMap::new() }
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
        let ticket = message.first().and_then(|part| Ticket::try_from(part.as_bytes()).ok());
        // Without one it answers what another run, or this one too long ago, has asked.
        if let Some((message, _)) = ticket.and_then(|ticket| self.out.remove(&ticket)) {
            answer(&self.course, &message, AckKind::Ack).await;
            self.course.counters.done.add();
        }
    }

    /// Asks the workers, as many as there are.
    pub async fn hand_out(&mut self, socket: &mut Socket, queue: &mut Queue) {
        self.expire();
        while self.out.len() < self.workers + self.gone.len() {
            let Some(waiting) = queue.pop_front() else { return };
            let mut ticket = Ticket::default();
            if let Err(error) = getrandom::fill(&mut ticket) {
                queue.push_front(waiting);
                return self.course.complain(format_args!("there are no random numbers: {error}"));
            }
            let Some(parts) = addressed(&self.course, &waiting.message, ticket.to_vec()).await else {
                continue;
            };
            match socket.try_send(parts) {
                Ok(()) => {
                    self.course.counters.received.add();
                    let message = waiting.begin(&self.course, self.answer_within).await;
                    self.out.insert(ticket, (message, Instant::now() + self.answer_within));
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
