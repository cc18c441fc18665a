//! Requests missing messages from a publisher's ring.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tautline_core::poller::POLLIN;

use super::super::{END_NUMBER, EPOCH_ONLY, Epoch, decode, encode, epoch_of};
use super::Update;
use crate::aio::alarm::Alarm;
use crate::error::{Error, Result};
use crate::{Builder, Message, aio, kind};

/// State of the ring's answer.
pub(super) enum AnswerPart {
    /// No part has arrived yet.
    Nothing,
    /// A message, and the epoch of its connection.
    Update(Update, Option<Epoch>),
    /// The answer is complete; with the publisher's epoch, if it sends one.
    End(Option<Epoch>),
    /// The time limit has passed. Later parts do not belong to this request.
    TimedOut,
}

/// Connection to a ring.
#[derive(Debug)]
pub(super) struct Repair {
    /// Creates the socket.
    dealer: Builder<kind::Dealer>,
    ring: String,
    patience: Duration,
    /// Created with the first request, and again after an unanswered one.
    socket: Option<aio::Dealer>,
    /// Deadline of the next part, while an answer is pending.
    deadline: Option<Instant>,
    /// Wakes a task at the deadline. Created with the first wait of a task.
    alarm: Option<Alarm>,
}

impl Repair {
    pub(super) fn new(dealer: Builder<kind::Dealer>, ring: &str, patience: Duration) -> Result<Self> {
        let ring = ring.to_owned();
        let mut repair = Repair { dealer, ring, patience, socket: None, deadline: None, alarm: None };
        // Connect now, so that an invalid endpoint is reported at once.
        repair.socket = Some(repair.connect()?);
        Ok(repair)
    }

    fn connect(&self) -> Result<aio::Dealer> {
        let mut socket = self.dealer.make()?;
        socket.connect(&self.ring)?;
        Ok(socket.into_async())
    }

    pub(super) fn is_pending(&self) -> bool {
        self.deadline.is_some()
    }

    /// Requests the kept messages from number `from` on.
    ///
    /// # Errors
    /// Returns the errors of a socket.
    pub(super) fn ask(&mut self, from: u64) -> Result<()> {
        self.extend_deadline();
        if self.socket.is_none() {
            self.socket = Some(self.connect()?);
        }
        let Some(socket) = &mut self.socket else { return Ok(()) };
        match socket.get_mut().try_send_multipart([&[][..], &encode(from)]) {
            // If the request cannot be sent, no answer will arrive, and the deadline handles that.
            Err(Error::WouldBlock) => Ok(()),
            outcome => outcome,
        }
    }

    /// Abandons the pending answer.
    pub(super) fn give_up(&mut self) {
        self.socket = None;
        self.deadline = None;
    }

    fn extend_deadline(&mut self) {
        self.deadline = Some(Instant::now() + self.patience);
    }

    /// Polls until [`recv_part`](Self::recv_part) has a result without waiting.
    pub(super) fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let (Some(deadline), Some(socket)) = (self.deadline, &mut self.socket) else {
            return Poll::Ready(Ok(()));
        };
        if deadline <= Instant::now() {
            return Poll::Ready(Ok(()));
        }
        let alarm = match &mut self.alarm {
            Some(alarm) => alarm,
            none => none.insert(Alarm::start()?),
        };
        alarm.set(deadline, cx.waker());
        socket.poll_wait(cx, POLLIN)
    }

    /// Abandons the wait of a task.
    pub(super) fn stop_waiting(&mut self) {
        if let Some(socket) = &mut self.socket {
            socket.stop_waiting();
        }
    }

    /// Takes the next part within `left`.
    ///
    /// # Errors
    /// Returns the errors of a socket.
    pub(super) fn recv_part(&mut self, left: Option<Duration>) -> Result<AnswerPart> {
        let (Some(deadline), Some(socket)) = (self.deadline, &mut self.socket) else {
            return Ok(AnswerPart::Nothing);
        };
        let socket = socket.get_mut();
        let patience = deadline.saturating_duration_since(Instant::now());
        let wait = left.map_or(patience, |left| left.min(patience));
        if !socket.wait_readable(wait)? {
            if wait < patience {
                return Ok(AnswerPart::Nothing);
            }
            self.give_up();
            return Ok(AnswerPart::TimedOut);
        }
        let message = match socket.try_recv_multipart() {
            Err(Error::WouldBlock) => return Ok(AnswerPart::Nothing),
            outcome => outcome?,
        };
        let mut parts = message.into_parts();
        if parts.first().is_some_and(|first| first.is_empty()) {
            parts.remove(0);
        }
        // An older publisher sends no topic in its answers.
        if parts.len() == 2 {
            parts.insert(0, Message::default());
        }
        let Ok([topic, number, body]) = <[Message; 3]>::try_from(parts) else {
            return Ok(AnswerPart::Nothing);
        };
        let shown = epoch_of(&number);
        match decode(&number) {
            Some(END_NUMBER) => {
                self.deadline = None;
                Ok(AnswerPart::End(topic.as_bytes().try_into().ok().or(shown)))
            }
            Some(number) if number < EPOCH_ONLY => {
                self.extend_deadline();
                Ok(AnswerPart::Update(Update { topic, number, body, replayed: true }, shown))
            }
            _ => Ok(AnswerPart::Nothing),
        }
    }
}
