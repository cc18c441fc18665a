//! Workers with REP sockets, which a DEALER asks in turn.
//!
//! A DEALER does not know which worker it asks. But a REP returns the envelope before the empty
//! part: the message's ticket, a random number. So a worker can answer only for messages that it
//! was given. The route sends out as many messages as there are workers. If a worker disconnects,
//! its messages stay out until their time is over.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::{self, AckKind};
use tautline::{Error, Multipart};
use tokio::time::Instant;

use super::tickets::{Ticket, Tickets};
use super::{Queue, RouteContext, addressed, answer};
use crate::zmq::{Socket, SocketInput};

/// The workers, and their messages.
pub struct DealerWorkers {
    course: Arc<RouteContext>,
    answer_within: Duration,
    tickets: Tickets<jetstream::Message>,
}

impl DealerWorkers {
    /// Creates a crew without workers.
    pub fn new(course: Arc<RouteContext>, answer_within: Duration) -> Self {
        DealerWorkers { course, answer_within, tickets: Tickets::default() }
    }

    /// Returns the number of messages that are out.
    pub fn holds(&self) -> usize {
        self.tickets.len()
    }

    /// True if there are no workers.
    pub fn is_empty(&self) -> bool {
        self.tickets.has_no_workers()
    }

    /// Handles an answer, or a worker that has connected or disconnected.
    pub async fn handle_input(&mut self, heard: SocketInput) {
        match heard {
            SocketInput::Message(message) => self.handle_answer(&message).await,
            SocketInput::Connected => self.tickets.add_worker(),
            SocketInput::Disconnected => self.tickets.remove_worker(Instant::now() + self.answer_within),
        }
    }

    async fn handle_answer(&mut self, message: &Multipart) {
        let Some(ticket) = message.first() else { return };
        if let Some(message) = self.tickets.take(ticket.as_bytes()) {
            answer(&self.course, &message, AckKind::Ack).await;
            self.course.counters.done.add();
        }
    }

    /// Gives messages to the workers, one for each.
    pub async fn hand_out(&mut self, socket: &mut Socket, queue: &mut Queue) {
        let redelivered = self.tickets.expire(Instant::now());
        (0..redelivered).for_each(|_| self.course.counters.again.add());
        while self.tickets.has_room() {
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
                    self.tickets.give(ticket, message, Instant::now() + self.answer_within);
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
}
