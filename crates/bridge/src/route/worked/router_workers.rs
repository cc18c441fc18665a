//! Workers with REQ sockets, which a ROUTER addresses one by one.
//!
//! A worker requests its first message with a message of any content, and the next message with
//! each answer. If its connection ends, the ROUTER reports it with a secret word, which no worker
//! can send. The worker's message then goes to another worker at once.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::{self, AckKind};
use tautline::Error;

use super::{Queue, RouteContext, addressed, answer};
use crate::zmq::{Socket, SocketInput, is_disconnect_message};

/// Workers that have asked and are connected.
pub struct RouterWorkers {
    course: Arc<RouteContext>,
    answer_within: Duration,
    /// Message of each worker, by routing id.
    workers: HashMap<Vec<u8>, Option<jetstream::Message>>,
    /// Workers that wait for a message, the longest waiting first.
    idle: VecDeque<Vec<u8>>,
}

impl RouterWorkers {
    /// Creates a crew without workers.
    pub fn new(course: Arc<RouteContext>, answer_within: Duration) -> Self {
        RouterWorkers { course, answer_within, workers: HashMap::new(), idle: VecDeque::new() }
    }

    /// Returns the number of messages that the workers have.
    pub fn holds(&self) -> usize {
        self.workers.values().flatten().count()
    }

    /// True if there are no workers.
    pub fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    /// Handles a message from the ROUTER: from a worker, or about its disconnection.
    pub async fn handle_input(&mut self, heard: SocketInput) {
        let SocketInput::Message(mut message) = heard else { return };
        let Some(id) = message.pop_front() else { return };
        let id = id.as_bytes().to_vec();
        if is_disconnect_message(&message) {
            if let Some(held) = self.workers.remove(&id) {
                self.remove_worker(&id, held).await;
            }
            return;
        }
        if let Some(message) = self.workers.entry(id.clone()).or_default().take() {
            answer(&self.course, &message, AckKind::Ack).await;
            self.course.counters.done.add();
        }
        if !self.idle.contains(&id) {
            self.idle.push_back(id);
        }
    }

    async fn remove_worker(&mut self, id: &[u8], held: Option<jetstream::Message>) {
        self.idle.retain(|idle| idle != id);
        if let Some(message) = held {
            self.course.counters.again.add();
            answer(&self.course, &message, AckKind::Nak(None)).await;
        }
    }

    /// Gives a message to each waiting worker.
    pub async fn hand_out(&mut self, socket: &mut Socket, queue: &mut Queue) {
        while !queue.is_empty() && !self.idle.is_empty() {
            let (Some(waiting), Some(id)) = (queue.pop_front(), self.idle.pop_front()) else { return };
            let Some(parts) = addressed(&self.course, &waiting.message, id.clone()).await else {
                self.idle.push_front(id);
                continue;
            };
            match socket.try_send(parts) {
                Ok(()) => {
                    self.course.counters.received.add();
                    let message = waiting.begin(&self.course, self.answer_within).await;
                    self.workers.insert(id, Some(message));
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
