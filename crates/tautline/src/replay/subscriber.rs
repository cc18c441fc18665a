//! The subscriber.

mod repair;
mod task;

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::{EPOCH_ONLY, Epoch, decode, epoch_of, protection};
use crate::error::{Error, Result};
use crate::{Builder, Context, Dealer, Message, Multipart, Sub, aio, kind};
use repair::{AnswerPart, Repair};

/// Default time limit for an answer of the ring.
const PATIENCE: Duration = Duration::from_secs(1);
/// Maximum number of topics for [`Start::LastOfEachTopic`].
const MOST_TOPICS: usize = 65_536;

/// A message.
#[derive(Debug, PartialEq, Eq)]
pub struct Update {
    /// Topic of the message.
    pub topic: Message,
    /// Number of the message.
    pub number: u64,
    /// Body of the message.
    pub body: Message,
    /// True if the message came from the ring.
    pub replayed: bool,
}

/// Item that a [`ReliableSub`] receives.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delivery {
    /// A message.
    Message(Update),
    /// The messages from number `first` up to `last`, inclusive, are no longer available. Their
    /// topics are unknown.
    Lost {
        /// Number of the first lost message.
        first: u64,
        /// Number of the last lost message.
        last: u64,
    },
    /// The publisher has restarted, and its numbers start from 0. The last messages before the
    /// restart may be lost.
    Restarted,
}

/// First message of a [`ReliableSub`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Start {
    /// The first live message that arrives.
    #[default]
    Live,
    /// The oldest message in the ring.
    Oldest,
    /// The newest message of each topic in the ring, in the order of their numbers.
    LastOfEachTopic,
    /// The message with this number, where a previous subscriber ended. If this message or later
    /// ones are no longer kept, they are reported as lost.
    Number(u64),
}

/// Counters of a [`ReliableSub`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// Live messages of all topics.
    pub live: u64,
    /// Missing messages that the ring supplied.
    pub repaired: u64,
    /// Lost messages.
    pub lost: u64,
    /// Restarts of the publisher.
    pub restarts: u64,
    /// Requests to the ring.
    pub requests: u64,
    /// Requests without an answer in time.
    pub unanswered: u64,
    /// Skipped messages that did not have three parts, the second one of 8 bytes.
    pub malformed: u64,
    /// Skipped live messages of an epoch that had ended before they were read.
    pub outdated: u64,
}

/// Options of a future [`ReliableSub`].
#[must_use = "a builder makes no subscriber until `connect` is called"]
#[derive(Debug)]
pub struct ReliableSubBuilder {
    socket: Builder<kind::Sub>,
    ring: Builder<kind::Dealer>,
    prefixes: Vec<Vec<u8>>,
    start: Start,
    patience: Duration,
}

impl ReliableSubBuilder {
    /// Delivers messages whose topic begins with `prefix`; can be called several times. Without any
    /// prefix, no message is delivered.
    ///
    /// All messages of the publisher use the network, whatever the prefix. The numbers count all
    /// topics, so a filtered message could not be distinguished from a lost one.
    pub fn subscribe(mut self, prefix: impl AsRef<[u8]>) -> Self {
        self.prefixes.push(prefix.as_ref().to_vec());
        self
    }

    /// Sets the first message; [`Start::Live`] by default.
    pub fn start(mut self, start: Start) -> Self {
        self.start = start;
        self
    }

    /// Sets the time limit for the next part of the ring's answer, one second by default. Messages
    /// that have not arrived by then are lost.
    pub fn answer_timeout(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets options of the SUB, for example a higher high-water mark, so that more messages can
    /// queue while the ring answers. Connection options, such as keys, also apply to the DEALER
    /// that talks to the ring: see [Security](super#security).
    pub fn with_socket(mut self, options: impl FnOnce(Builder<kind::Sub>) -> Builder<kind::Sub>) -> Self {
        self.socket = options(self.socket);
        self
    }

    /// Sets more options of the ring's DEALER, in addition to those of
    /// [`with_socket`](Self::with_socket).
    pub fn with_ring(mut self, options: impl FnOnce(Builder<kind::Dealer>) -> Builder<kind::Dealer>) -> Self {
        self.ring = options(self.ring);
        self
    }

    /// Creates the subscriber and connects it to a publisher and its ring.
    ///
    /// # Errors
    /// Returns the errors of [`Builder::connect`](crate::Builder::connect); [`Error::Invalid`] if
    /// the connection to the ring would be less protected than the one to the publisher.
    pub fn connect(self, publisher: &str, ring: &str) -> Result<ReliableSub> {
        let dealer = self.ring.inherit(&self.socket).linger(Duration::ZERO);
        let mut socket = self.socket.build()?;
        let is_tls = ["tls+tcp://", "wss://"].iter().any(|scheme| publisher.starts_with(scheme));
        protection::compare(&mut socket, is_tls, &mut dealer.make()?, ring)?;
        socket.subscribe("")?;
        socket.connect(publisher)?;
        let from = match self.start {
            Start::Live => EPOCH_ONLY,
            Start::Oldest | Start::LastOfEachTopic => 0,
            Start::Number(number) => number.min(EPOCH_ONLY),
        };
        let mut subscriber = ReliableSub {
            socket,
            repair: Repair::new(dealer, ring, self.patience)?,
            prefixes: self.prefixes,
            next: matches!(self.start, Start::Number(_)).then_some(from),
            last_live: None,
            last_kept: None,
            repeated: None,
            epoch: None,
            request: RingRequest::Messages,
            starting: Some(from),
            held: None,
            ready: VecDeque::new(),
            newest: (self.start == Start::LastOfEachTopic).then(HashMap::new),
            statistics: Statistics::default(),
        };
        subscriber.ask(from)?;
        Ok(subscriber)
    }
}

/// A SUB that checks the numbers of a [`ReliablePub`](super::ReliablePub), or of any publisher with
/// the same protocol, and requests missing messages; see [`replay`](super). With an [`aio::Sub`] it
/// serves async programs.
#[derive(Debug)]
pub struct ReliableSub<S = Sub> {
    socket: S,
    repair: Repair,
    prefixes: Vec<Vec<u8>>,
    /// Expected number of the next message.
    next: Option<u64>,
    /// Number of the last live message, and the highest number from the ring, both since the
    /// publisher's last start.
    last_live: Option<u64>,
    last_kept: Option<u64>,
    /// Number of the last live message that the ring had sent before.
    repeated: Option<u64>,
    /// Epoch of the publisher, if it is known.
    epoch: Option<Epoch>,
    /// Kind of the current request to the ring.
    request: RingRequest,
    /// Number of the first request, until the ring answers or a live message arrives. Until then
    /// the publisher may not have started.
    starting: Option<u64>,
    /// A live message that waits for the ring's answer, and the epoch of its connection.
    held: Option<(Update, Option<Epoch>)>,
    ready: VecDeque<Delivery>,
    /// Newest message of each topic so far, for [`Start::LastOfEachTopic`].
    newest: Option<HashMap<Vec<u8>, Update>>,
    statistics: Statistics,
}

/// Kind of a request to the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RingRequest {
    /// Requests messages.
    Messages,
    /// Requests the epoch. If it is unchanged, the messages from this number on are requested.
    EpochBeforeMessages(u64),
    /// Requests the epoch, or from a publisher without one, a message that the ring had before. If
    /// the publisher is unchanged, the held message was delivered before, or is of an epoch that
    /// has ended. Otherwise the message is of the new epoch.
    RestartCheck,
}

/// For threads.
impl ReliableSub {
    /// Returns a builder, to set options first.
    pub fn builder(context: &Context) -> ReliableSubBuilder {
        ReliableSubBuilder {
            socket: Sub::builder(context),
            ring: Dealer::builder(context),
            prefixes: Vec::new(),
            start: Start::default(),
            patience: PATIENCE,
        }
    }

    /// Waits for the next delivery.
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`] or [`Error::Terminated`].
    pub fn recv(&mut self) -> Result<Delivery> {
        loop {
            if let Some(delivery) = self.recv_within(Duration::MAX)? {
                return Ok(delivery);
            }
        }
    }

    /// Waits for the next delivery, for at most `timeout`. Returns `None` after the timeout.
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`] or [`Error::Terminated`].
    pub fn recv_within(&mut self, timeout: Duration) -> Result<Option<Delivery>> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            if let Some(delivery) = self.ready.pop_front() {
                return Ok(Some(delivery));
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let came = self.step(left)?;
            if !came && left == Some(Duration::ZERO) && self.ready.is_empty() {
                return Ok(None);
            }
        }
    }

    /// Returns the next delivery, without waiting. `None` if there is no delivery yet.
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`] or [`Error::Terminated`].
    pub fn try_recv(&mut self) -> Result<Option<Delivery>> {
        self.recv_within(Duration::ZERO)
    }

    /// Converts the subscriber for an async program.
    #[must_use]
    pub fn into_async(self) -> ReliableSub<aio::Sub> {
        self.with_other(Sub::into_async)
    }
}

impl<S: AsMut<Sub>> ReliableSub<S> {
    /// Replaces the socket by its other form.
    fn with_other<T>(self, convert: impl FnOnce(S) -> T) -> ReliableSub<T> {
        ReliableSub {
            socket: convert(self.socket),
            repair: self.repair,
            prefixes: self.prefixes,
            next: self.next,
            last_live: self.last_live,
            last_kept: self.last_kept,
            repeated: self.repeated,
            epoch: self.epoch,
            request: self.request,
            starting: self.starting,
            held: self.held,
            ready: self.ready,
            newest: self.newest,
            statistics: self.statistics,
        }
    }

    /// Returns the counters.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Returns the SUB, for its options and monitor. Messages that you receive from it directly
    /// count as lost.
    pub fn socket(&mut self) -> &mut S {
        &mut self.socket
    }

    /// Takes a live message or a part of the ring's answer within `left`. True if one arrived.
    fn step(&mut self, left: Option<Duration>) -> Result<bool> {
        match self.repair.is_pending() {
            true => self.take_answer(left),
            false => self.take_live(left),
        }
    }

    fn ask(&mut self, from: u64) -> Result<()> {
        self.statistics.requests += 1;
        self.repair.ask(from)
    }

    fn is_subscribed(&self, topic: &[u8]) -> bool {
        self.prefixes.iter().any(|prefix| topic.starts_with(prefix))
    }

    /// Takes a live message within `left`. True if one arrived.
    fn take_live(&mut self, left: Option<Duration>) -> Result<bool> {
        let socket = self.socket.as_mut();
        if !socket.wait_readable(left)? {
            return Ok(false);
        }
        let message = match socket.try_recv_multipart() {
            Err(Error::WouldBlock) => return Ok(false),
            outcome => outcome?,
        };
        let shown = message.first().and_then(epoch_of);
        match update(message) {
            Some(update) => {
                self.statistics.live += 1;
                self.handle_live(update, shown)?;
            }
            None => self.statistics.malformed += 1,
        }
        Ok(true)
    }

    /// Handles a live message with this epoch, while no request is pending.
    fn handle_live(&mut self, update: Update, shown: Option<Epoch>) -> Result<()> {
        let number = update.number;
        if differ(self.epoch, shown) {
            return self.check_for_restart(update, shown);
        }
        let is_of_epoch = shown.is_some() && self.epoch.is_some();
        self.epoch = self.epoch.or(shown);
        let before = self.last_live.replace(number);
        match self.next {
            Some(next) if number > next => {
                self.held = Some((update, shown));
                self.request =
                    self.epoch.map_or(RingRequest::Messages, |_| RingRequest::EpochBeforeMessages(next));
                self.ask(if self.epoch.is_some() { EPOCH_ONLY } else { next })
            }
            Some(next) if number < next => {
                let is_known = Some(number) <= before.max(self.last_kept);
                // If the previous message was a repetition, this one is as well.
                let follows = self.repeated.is_some_and(|repeated| repeated + 1 == number);
                if is_known && (is_of_epoch || follows) {
                    self.repeated = Some(number);
                    return Ok(());
                }
                let is_later = before.is_none_or(|before| number > before);
                if is_known && is_later {
                    return self.check_for_restart(update, shown);
                }
                self.held = Some((update, shown));
                self.handle_restart(shown)
            }
            _ => {
                self.deliver(update);
                Ok(())
            }
        }
    }

    /// Asks the ring if a live message is of a new epoch.
    fn check_for_restart(&mut self, update: Update, shown: Option<Epoch>) -> Result<()> {
        self.held = Some((update, shown));
        self.request = RingRequest::RestartCheck;
        self.ask(match (self.epoch, self.last_kept) {
            (None, Some(kept)) => kept,
            _ => EPOCH_ONLY,
        })
    }

    /// Handles a restart of the publisher, with this epoch.
    fn handle_restart(&mut self, epoch: Option<Epoch>) -> Result<()> {
        if let Some((_, Some(shown))) = self.held
            && self.epoch == Some(shown)
            && epoch != Some(shown)
        {
            // The held message is of the epoch that has ended.
            self.deliver_held();
        }
        self.deliver_newest();
        self.statistics.restarts += 1;
        self.ready.push_back(Delivery::Restarted);
        self.last_live = self.held.as_ref().map(|(held, _)| held.number);
        (self.next, self.last_kept, self.repeated, self.epoch) = (Some(0), None, None, epoch);
        (self.request, self.starting) = (RingRequest::Messages, None);
        self.repair.give_up();
        self.ask(0)
    }

    /// Delivers the message that is next in order.
    fn deliver(&mut self, update: Update) {
        self.next = Some(update.number + 1);
        if !self.is_subscribed(&update.topic) {
            return;
        }
        match &mut self.newest {
            Some(newest) => {
                newest.insert(update.topic.to_vec(), update);
                if newest.len() > MOST_TOPICS {
                    self.deliver_newest();
                }
            }
            None => self.ready.push_back(Delivery::Message(update)),
        }
    }

    /// Reports the messages before `before` as lost.
    fn report_lost(&mut self, before: u64) {
        let Some(first) = self.next.filter(|&next| next < before) else { return };
        self.statistics.lost += before - first;
        self.ready.push_back(Delivery::Lost { first, last: before - 1 });
        self.next = Some(before);
    }

    /// Takes a part of the ring's answer within `left`. True if one arrived.
    fn take_answer(&mut self, left: Option<Duration>) -> Result<bool> {
        match self.repair.recv_part(left)? {
            AnswerPart::Nothing => return Ok(false),
            AnswerPart::Update(update, shown) => self.handle_kept(update, shown)?,
            AnswerPart::End(epoch) => self.handle_end(epoch)?,
            AnswerPart::TimedOut => {
                self.statistics.unanswered += 1;
                match self.starting {
                    _ if self.request == RingRequest::RestartCheck => {
                        self.handle_restart(self.held_epoch())?
                    }
                    Some(from) if !self.socket.as_mut().wait_readable(Duration::ZERO)? => self.ask(from)?,
                    _ => self.continue_live(),
                }
            }
        }
        Ok(true)
    }

    /// Handles a message of the ring, with the epoch of its connection.
    fn handle_kept(&mut self, update: Update, shown: Option<Epoch>) -> Result<()> {
        if differ(self.epoch, shown) {
            return self.handle_restart(shown);
        }
        if self.request == RingRequest::RestartCheck {
            if self.epoch.is_none() && Some(update.number) >= self.last_kept {
                // The ring still has its highest message, so this is the same publisher.
                self.repair.give_up();
                self.drop_held();
            }
            return Ok(());
        }
        self.epoch = self.epoch.or(shown);
        self.last_kept = self.last_kept.max(Some(update.number));
        let comes_live = self.held.as_ref().is_some_and(|(held, _)| update.number >= held.number);
        if comes_live || self.next.is_some_and(|next| update.number < next) {
            return Ok(());
        }
        self.report_lost(update.number);
        self.statistics.repaired += 1;
        self.deliver(update);
        Ok(())
    }

    /// Handles the end of the ring's answer.
    fn handle_end(&mut self, epoch: Option<Epoch>) -> Result<()> {
        if differ(self.epoch, epoch) {
            return self.handle_restart(epoch);
        }
        let is_known = self.epoch.is_some();
        self.epoch = self.epoch.or(epoch);
        match self.request {
            RingRequest::EpochBeforeMessages(from) => {
                self.request = RingRequest::Messages;
                self.ask(from)
            }
            RingRequest::RestartCheck if is_known && epoch.is_some() => {
                self.drop_held();
                Ok(())
            }
            // No evidence that it is still the same publisher.
            RingRequest::RestartCheck => self.handle_restart(epoch.or(self.held_epoch())),
            RingRequest::Messages => {
                if self.starting == Some(0) {
                    // The ring is empty: the publisher has not sent a message yet.
                    self.next = self.next.or(Some(0));
                }
                self.continue_live();
                Ok(())
            }
        }
    }

    /// Drops the held message. It was delivered before, or is of an epoch that has ended.
    fn drop_held(&mut self) {
        self.request = RingRequest::Messages;
        match self.held.take() {
            Some((_, shown)) if differ(self.epoch, shown) => self.statistics.outdated += 1,
            held => self.repeated = held.map(|(held, _)| held.number),
        }
    }

    /// Returns the epoch of the held message.
    fn held_epoch(&self) -> Option<Epoch> {
        self.held.as_ref().and_then(|(_, shown)| *shown)
    }

    /// Reports missing messages as lost, and continues with the live messages.
    fn continue_live(&mut self) {
        (self.request, self.starting) = (RingRequest::Messages, None);
        self.deliver_newest();
        self.deliver_held();
    }

    /// Delivers the held message. Missing messages before it are lost.
    fn deliver_held(&mut self) {
        if let Some((held, _)) = self.held.take() {
            self.report_lost(held.number);
            self.deliver(held);
        }
    }

    /// Delivers the collected newest messages for [`Start::LastOfEachTopic`], if any.
    fn deliver_newest(&mut self) {
        let Some(newest) = self.newest.take() else { return };
        let mut newest: Vec<Update> = newest.into_values().collect();
        newest.sort_unstable_by_key(|update| update.number);
        self.ready.extend(newest.into_iter().map(Delivery::Message));
    }
}

/// True if both are known and differ.
fn differ(one: Option<Epoch>, other: Option<Epoch>) -> bool {
    one.zip(other).is_some_and(|(one, other)| one != other)
}

/// Decodes a message of the publisher; `None` if it is malformed.
fn update(message: Multipart) -> Option<Update> {
    let [topic, number, body] = <[Message; 3]>::try_from(message).ok()?;
    let number = decode(&number).filter(|&number| number < EPOCH_ONLY)?;
    Some(Update { topic, number, body, replayed: false })
}
