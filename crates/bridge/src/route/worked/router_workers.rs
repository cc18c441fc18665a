//! Workers with REQ sockets, which a ROUTER addresses one by one.
//!
//! A worker requests its first message with a message of any content, and the next message with
//! each answer. If its connection ends, the ROUTER reports it with a secret word, which no worker
//! can send. The worker's message then goes to another worker at once.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::{self, AckKind};
use tautline::Error;

use super::roster::Roster;
use super::{Queue, RouteContext, addressed, answer};
use crate::zmq::{Socket, SocketInput, is_disconnect_message};

/// Workers that have asked and are connected.
pub struct RouterWorkers {
    course: Arc<RouteContext>,
    answer_within: Duration,
    roster: Roster<jetstream::Message>,
}

impl RouterWorkers {
    /// Creates a crew without workers.
    pub fn new(course: Arc<RouteContext>, answer_within: Duration) -> Self {
        RouterWorkers { course, answer_within, roster: Roster::default() }
    }

    /// Returns the number of messages that the workers have.
    pub fn holds(&self) -> usize {
        self.roster.holds()
    }

    /// True if there are no workers.
    pub fn is_empty(&self) -> bool {
        self.roster.is_empty()
    }

    /// Handles a message from the ROUTER: from a worker, or about its disconnection. Returns the
    /// message of a disconnected worker.
    pub async fn handle_input(&mut self, heard: SocketInput) -> Option<jetstream::Message> {
        let SocketInput::Message(mut message) = heard else { return None };
        let id = message.pop_front()?;
        if is_disconnect_message(&message) {
            let returned = self.roster.remove(id.as_bytes())?;
            self.course.counters.again.add();
            return Some(returned);
        }
        if let Some(message) = self.roster.request(id.as_bytes()) {
            answer(&self.course, &message, AckKind::Ack).await;
            self.course.counters.done.add();
        }
        None
    }

    /// Gives a message to each waiting worker.
    pub async fn hand_out(&mut self, socket: &mut Socket, queue: &mut Queue) {
        while !queue.is_empty() && self.roster.has_idle() {
            let (Some(waiting), Some(id)) = (queue.pop_front(), self.roster.take_idle()) else { return };
            let Some(parts) = addressed(&self.course, &waiting.message, id.clone()).await else {
                self.roster.put_back(id);
                continue;
            };
            match socket.try_send(parts) {
                Ok(()) => {
                    self.course.counters.received.add();
                    let message = waiting.begin(&self.course, self.answer_within).await;
                    self.roster.give(id, message);
                }
                // The ROUTER will report the disconnection.
                Err(Error::Unroutable) => queue.push_front(waiting),
                Err(error) => {
                    queue.push_front(waiting);
                    self.course.report_problem(error);
                    return;
                }
            }
        }
    }
}
