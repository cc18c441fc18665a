//! Workers with REP sockets, which a DEALER asks in turn.
//!
//! A DEALER does not know which worker it asks. But a REP returns the envelope before the empty
//! part: the message's ticket, a random number. So a worker can answer only for messages that it
//! was given. The route sends out as many messages as there are workers. If a worker disconnects,
//! its messages stay out until their time is over.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::{self, AckKind};
use tautline::{Error, Multipart};
use tokio::time::Instant;

use super::{Queue, RouteContext, addressed, answer};
use crate::zmq::{Socket, SocketInput};

/// Limit of remembered workers that have disconnected.
const GONE: usize = 1024;

/// Identifies a message. It cannot be guessed.
type Ticket = [u8; 16];

/// The workers, and their messages.
pub struct DealerWorkers {
    course: Arc<RouteContext>,
    answer_within: Duration,
    /// Number of connected workers.
    workers: usize,
    /// Deadlines of the messages that disconnected workers may have.
    gone: VecDeque<Instant>,
    /// Messages that are out, and their deadlines.
    out: HashMap<Ticket, (jetstream::Message, Instant)>,
}

impl DealerWorkers {
    /// Creates a crew without workers.
    pub fn new(course: Arc<RouteContext>, answer_within: Duration) -> Self {
        DealerWorkers { course, answer_within, workers: 0, gone: VecDeque::new(), out: HashMap::new() }
    }

    /// Returns the number of messages that are out.
    pub fn holds(&self) -> usize {
        self.out.len()
    }

    /// True if there are no workers.
    pub fn is_empty(&self) -> bool {
        self.workers == 0
    }

    /// Handles an answer, or a worker that has connected or disconnected.
    pub async fn handle_input(&mut self, heard: SocketInput) {
        match heard {
            SocketInput::Message(message) => self.handle_answer(&message).await,
            SocketInput::Connected => self.workers += 1,
            SocketInput::Disconnected => {
                self.workers = self.workers.saturating_sub(1);
                if self.gone.len() < GONE {
                    self.gone.push_back(Instant::now() + self.answer_within);
                }
            }
        }
    }

    async fn handle_answer(&mut self, message: &Multipart) {
        let ticket = message.first().and_then(|part| Ticket::try_from(part.as_bytes()).ok());
        // Without a known ticket, it answers a message of another run, or a message whose time is
        // over.
        if let Some((message, _)) = ticket.and_then(|ticket| self.out.remove(&ticket)) {
            answer(&self.course, &message, AckKind::Ack).await;
            self.course.counters.done.add();
        }
    }

    /// Gives messages to the workers, one for each.
    pub async fn hand_out(&mut self, socket: &mut Socket, queue: &mut Queue) {
        self.expire();
        while self.out.len() < self.workers + self.gone.len() {
            let Some(waiting) = queue.pop_front() else { return };
            let mut ticket = Ticket::default();
            if let Err(error) = getrandom::fill(&mut ticket) {
                queue.push_front(waiting);
                return self.course.report_problem(format_args!("the system has no random numbers: {error}"));
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
                        self.course.report_problem(error);
                    }
                    return;
                }
            }
        }
    }

    /// Forgets the messages that JetStream redelivers.
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
