//! Asking a publisher's ring for what is missing.

use std::time::{Duration, Instant};

use super::super::{END, Epoch, NOTHING, decode, encode, epoch_of};
use super::Update;
use crate::error::{Error, Result};
use crate::{Builder, Dealer, Message, kind};

/// What has come from the ring.
pub(super) enum Answer {
    /// Nothing yet.
    Nothing,
    /// A message, and the epoch that its connection shows.
    Update(Update, Option<Epoch>),
    /// All was sent; with the publisher's epoch, where it tells one.
    End(Option<Epoch>),
    /// Nothing has come for too long. What comes from now on is not of this request.
    Late,
}

/// The way to a ring.
#[derive(Debug)]
pub(super) struct Repair {
    /// What makes the socket.
    dealer: Builder<kind::Dealer>,
    ring: String,
    patience: Duration,
    /// Made with the first request, and anew after one that was not answered.
    socket: Option<Dealer>,
    /// By when the next part of the answer comes, while one is awaited.
    deadline: Option<Instant>,
}

impl Repair {
    pub(super) fn new(dealer: Builder<kind::Dealer>, ring: &str, patience: Duration) -> Result<Self> {
        let mut repair = Repair { dealer, ring: ring.to_owned(), patience, socket: None, deadline: None };
        // An endpoint that is none is told at once.
        repair.socket = Some(repair.connect()?);
        Ok(repair)
    }

    fn connect(&self) -> Result<Dealer> {
        let mut socket = self.dealer.make()?;
        socket.connect(&self.ring)?;
        Ok(socket)
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.deadline.is_some()
    }

    /// Asks for what is kept from number `from` on.
    ///
    /// # Errors
    /// Those of a socket.
    pub(super) fn ask(&mut self, from: u64) -> Result<()> {
        self.be_patient();
        if self.socket.is_none() {
            self.socket = Some(self.connect()?);
        }
        let Some(socket) = &mut self.socket else { return Ok(()) };
        match socket.try_send_multipart([&[][..], &encode(from)]) {
            // Then no answer will come.
            Err(Error::WouldBlock) => Ok(()),
            outcome => outcome,
        }
    }

    /// Takes no more of the answer that is under way.
    pub(super) fn give_up(&mut self) {
        self.socket = None;
        self.deadline = None;
    }

    fn be_patient(&mut self) {
        self.deadline = Some(Instant::now() + self.patience);
    }

    /// Takes what has come within `left`.
    ///
    /// # Errors
    /// Those of a socket.
    pub(super) fn take(&mut self, left: Option<Duration>) -> Result<Answer> {
        let (Some(deadline), Some(socket)) = (self.deadline, &mut self.socket) else {
            return Ok(Answer::Nothing);
        };
        let patience = deadline.saturating_duration_since(Instant::now());
        let wait = left.map_or(patience, |left| left.min(patience));
        if !socket.wait_readable(wait)? {
            if wait < patience {
                return Ok(Answer::Nothing);
            }
            self.give_up();
            return Ok(Answer::Late);
        }
        let message = match socket.try_recv_multipart() {
            Err(Error::WouldBlock) => return Ok(Answer::Nothing),
            outcome => outcome?,
        };
        let mut parts = message.into_parts();
        if parts.first().is_some_and(|first| first.is_empty()) {
            parts.remove(0);
        }
        // An older publisher does not repeat the topic.
        if parts.len() == 2 {
            parts.insert(0, Message::default());
        }
        let Ok([topic, number, body]) = <[Message; 3]>::try_from(parts) else { return Ok(Answer::Nothing) };
        let shown = epoch_of(&number);
        match decode(&number) {
            Some(END) => {
                self.deadline = None;
                Ok(Answer::End(topic.as_bytes().try_into().ok().or(shown)))
            }
            Some(number) if number < NOTHING => {
                self.be_patient();
                Ok(Answer::Update(Update { topic, number, body, replayed: true }, shown))
            }
            _ => Ok(Answer::Nothing),
        }
    }
}
