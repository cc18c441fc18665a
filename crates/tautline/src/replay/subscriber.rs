//! The subscriber's side.

mod repair;

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::{Epoch, NOTHING, decode, epoch_of, protection};
use crate::error::{Error, Result};
use crate::{Builder, Context, Dealer, Message, Multipart, Sub, kind};
use repair::{Answer, Repair};

/// How long an answer of the ring may take to come.
const PATIENCE: Duration = Duration::from_secs(1);
/// Topics of which the newest message is looked for.
const MOST_TOPICS: usize = 65_536;

/// A message.
#[derive(Debug, PartialEq, Eq)]
pub struct Update {
    /// What it is about.
    pub topic: Message,
    /// Its number.
    pub number: u64,
    /// What it says.
    pub body: Message,
    /// It came from the ring.
    pub replayed: bool,
}

/// What a [`ReliableSub`] receives.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delivery {
    /// A message.
    Message(Update),
    /// The messages from number `first` up to `last`, inclusive, cannot be had any more. Of which
    /// topics they were is not known.
    Lost {
        /// The number of the first one.
        first: u64,
        /// The number of the last one.
        last: u64,
    },
    /// The publisher has begun anew: numbers start from 0. What its former life had published last
    /// may be lost.
    Restarted,
}

/// With which message a [`ReliableSub`] begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Start {
    /// The first one that comes.
    #[default]
    Live,
    /// The oldest one that the ring has.
    Oldest,
    /// The newest one of each topic that the ring has, in the order of their numbers.
    LastOfEachTopic,
    /// The one with this number, where a former subscriber has ended. What is not kept of it and
    /// after it is told as lost.
    Number(u64),
}

/// What a [`ReliableSub`] has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// Messages that came live, of all topics.
    pub live: u64,
    /// Messages that came from the ring, and were missing.
    pub repaired: u64,
    /// Messages that could not be had.
    pub lost: u64,
    /// Times that the publisher began anew.
    pub restarts: u64,
    /// Requests to the ring.
    pub requests: u64,
    /// Requests that were not answered in time.
    pub unanswered: u64,
    /// Messages that were not of three parts, the second one of 8 bytes. They were skipped.
    pub malformed: u64,
    /// Live messages of an epoch of the publisher that had ended before they were read. They were
    /// skipped.
    pub outdated: u64,
}

/// How a [`ReliableSub`] is made.
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
    /// Delivers messages whose topic begins with `prefix`; may be called more than once. Without
    /// any, nothing is delivered.
    ///
    /// All messages of the publisher come over the network, whatever the prefix: their numbers
    /// count all topics, so the others cannot be told from lost ones.
    pub fn subscribe(mut self, prefix: impl AsRef<[u8]>) -> Self {
        self.prefixes.push(prefix.as_ref().to_vec());
        self
    }

    /// With which message it begins; [`Start::Live`] by default.
    pub fn start(mut self, start: Start) -> Self {
        self.start = start;
        self
    }

    /// How long the ring may take for the next part of an answer, one second by default. What has
    /// not come by then is lost.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Options of the SUB, for example a high-water mark that lets more wait while the ring
    /// answers. Those about connections, such as keys, are also options of the DEALER that asks the
    /// ring: see [Security](super#security).
    pub fn with(mut self, options: impl FnOnce(Builder<kind::Sub>) -> Builder<kind::Sub>) -> Self {
        self.socket = options(self.socket);
        self
    }

    /// Options of the DEALER that asks the ring, besides those of [`with`](Self::with).
    pub fn with_ring(mut self, options: impl FnOnce(Builder<kind::Dealer>) -> Builder<kind::Dealer>) -> Self {
        self.ring = options(self.ring);
        self
    }

    /// The subscriber, connected to a publisher and to its ring.
    ///
    /// # Errors
    /// Those of [`Builder::connect`](crate::Builder::connect);
    /// [`Error::Invalid`] if the connection to the ring would be less
    /// protected than that to the publisher.
    pub fn connect(self, publisher: &str, ring: &str) -> Result<ReliableSub> {
        let dealer = self.ring.inherit(&self.socket).linger(Duration::ZERO);
        let mut socket = self.socket.build()?;
        let is_tls = ["tls+tcp://", "wss://"].iter().any(|scheme| publisher.starts_with(scheme));
        protection::compare(&mut socket, is_tls, &mut dealer.make()?, ring)?;
        socket.subscribe("")?;
        socket.connect(publisher)?;
        let from = match self.start {
            Start::Live => NOTHING,
            Start::Oldest | Start::LastOfEachTopic => 0,
            Start::Number(number) => number.min(NOTHING),
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
            question: Question::Messages,
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

/// A SUB that looks at the numbers of a [`ReliablePub`](super::ReliablePub), or of any publisher
/// with its wire, and asks for what is missing; see [`replay`](super).
#[derive(Debug)]
pub struct ReliableSub {
    socket: Sub,
    repair: Repair,
    prefixes: Vec<Vec<u8>>,
    /// The number that comes next.
    next: Option<u64>,
    /// The number of the last live message, and the highest that the ring has sent, of this life of
    /// the publisher.
    last_live: Option<u64>,
    last_kept: Option<u64>,
    /// The number of the last live message that the ring had sent before.
    repeated: Option<u64>,
    /// The publisher's, where it tells one.
    epoch: Option<Epoch>,
    /// What the ring was asked for.
    question: Question,
    /// What the ring was asked for at the beginning, until it has answered or a live message has
    /// come: it may be that the publisher is not there yet.
    starting: Option<u64>,
    /// A live message that waits for the answer of the ring, and the epoch that its connection
    /// shows.
    held: Option<(Update, Option<Epoch>)>,
    ready: VecDeque<Delivery>,
    /// The newest message of each topic so far, while only those are wanted.
    newest: Option<HashMap<Vec<u8>, Update>>,
    statistics: Statistics,
}

/// What the ring was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    /// Messages.
    Messages,
    /// Its epoch. If that is still the same, the messages from this number on are asked for.
    Gap(u64),
    /// Its epoch, or without one a message that it had before. If it is still the same publisher,
    /// the held message was delivered before, or is of an epoch that has ended. Otherwise it is one
    /// of the new epoch.
    Doubt,
}

impl ReliableSub {
    /// A subscriber to be.
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
    /// [`Error::Interrupted`], [`Error::Terminated`].
    pub fn recv(&mut self) -> Result<Delivery> {
        loop {
            if let Some(delivery) = self.recv_within(Duration::MAX)? {
                return Ok(delivery);
            }
        }
    }

    /// Waits for the next delivery for at most `timeout`. `None`: nothing has come.
    ///
    /// # Errors
    /// [`Error::Interrupted`], [`Error::Terminated`].
    pub fn recv_within(&mut self, timeout: Duration) -> Result<Option<Delivery>> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            if let Some(delivery) = self.ready.pop_front() {
                return Ok(Some(delivery));
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let came = match self.repair.is_under_way() {
                true => self.take_answer(left)?,
                false => self.take_live(left)?,
            };
            if !came && left == Some(Duration::ZERO) && self.ready.is_empty() {
                return Ok(None);
            }
        }
    }

    /// The next delivery, if there is one already.
    ///
    /// # Errors
    /// [`Error::Interrupted`], [`Error::Terminated`].
    pub fn try_recv(&mut self) -> Result<Option<Delivery>> {
        self.recv_within(Duration::ZERO)
    }

    /// What was counted.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// The SUB itself, for its options and monitor. What is received from it directly counts as
    /// lost.
    pub fn socket(&mut self) -> &mut Sub {
        &mut self.socket
    }

    fn ask(&mut self, from: u64) -> Result<()> {
        self.statistics.requests += 1;
        self.repair.ask(from)
    }

    fn wants(&self, topic: &[u8]) -> bool {
        self.prefixes.iter().any(|prefix| topic.starts_with(prefix))
    }

    /// Takes a live message within `left`. Whether one was there.
    fn take_live(&mut self, left: Option<Duration>) -> Result<bool> {
        if !self.socket.wait_readable(left)? {
            return Ok(false);
        }
        let message = match self.socket.try_recv_multipart() {
            Err(Error::WouldBlock) => return Ok(false),
            outcome => outcome?,
        };
        let shown = message.first().and_then(epoch_of);
        match update(message) {
            Some(update) => {
                self.statistics.live += 1;
                self.meet(update, shown)?;
            }
            None => self.statistics.malformed += 1,
        }
        Ok(true)
    }

    /// A live message whose connection shows this epoch, and nothing is being asked for.
    fn meet(&mut self, update: Update, shown: Option<Epoch>) -> Result<()> {
        let number = update.number;
        if differ(self.epoch, shown) {
            return self.doubt(update, shown);
        }
        let is_of_epoch = shown.is_some() && self.epoch.is_some();
        self.epoch = self.epoch.or(shown);
        let before = self.last_live.replace(number);
        match self.next {
            Some(next) if number > next => {
                self.held = Some((update, shown));
                self.question = self.epoch.map_or(Question::Messages, |_| Question::Gap(next));
                self.ask(if self.epoch.is_some() { NOTHING } else { next })
            }
            Some(next) if number < next => {
                let is_known = Some(number) <= before.max(self.last_kept);
                // If the message before it repeats one, so does this one.
                let follows = self.repeated.is_some_and(|repeated| repeated + 1 == number);
                if is_known && (is_of_epoch || follows) {
                    self.repeated = Some(number);
                    return Ok(());
                }
                let is_later = before.is_none_or(|before| number > before);
                if is_known && is_later {
                    return self.doubt(update, shown);
                }
                self.held = Some((update, shown));
                self.restart(shown)
            }
            _ => {
                self.deliver(update);
                Ok(())
            }
        }
    }

    /// Asks the ring whether a live message is of a new epoch.
    fn doubt(&mut self, update: Update, shown: Option<Epoch>) -> Result<()> {
        self.held = Some((update, shown));
        self.question = Question::Doubt;
        self.ask(match (self.epoch, self.last_kept) {
            (None, Some(kept)) => kept,
            _ => NOTHING,
        })
    }

    /// The publisher has begun anew, and tells this epoch.
    fn restart(&mut self, epoch: Option<Epoch>) -> Result<()> {
        if let Some((_, Some(shown))) = self.held
            && self.epoch == Some(shown)
            && epoch != Some(shown)
        {
            // It is of the epoch that has ended.
            self.release();
        }
        self.hand_out();
        self.statistics.restarts += 1;
        self.ready.push_back(Delivery::Restarted);
        self.last_live = self.held.as_ref().map(|(held, _)| held.number);
        (self.next, self.last_kept, self.repeated, self.epoch) = (Some(0), None, None, epoch);
        (self.question, self.starting) = (Question::Messages, None);
        self.repair.give_up();
        self.ask(0)
    }

    /// The message that comes next.
    fn deliver(&mut self, update: Update) {
        self.next = Some(update.number + 1);
        if !self.wants(&update.topic) {
            return;
        }
        match &mut self.newest {
            Some(newest) => {
                newest.insert(update.topic.to_vec(), update);
                if newest.len() > MOST_TOPICS {
                    self.hand_out();
                }
            }
            None => self.ready.push_back(Delivery::Message(update)),
        }
    }

    /// Messages up to `before` do not come any more.
    fn lose(&mut self, before: u64) {
        let Some(first) = self.next.filter(|&next| next < before) else { return };
        self.statistics.lost += before - first;
        self.ready.push_back(Delivery::Lost { first, last: before - 1 });
        self.next = Some(before);
    }

    /// Takes a part of the ring's answer within `left`. Whether one was there.
    fn take_answer(&mut self, left: Option<Duration>) -> Result<bool> {
        match self.repair.take(left)? {
            Answer::Nothing => return Ok(false),
            Answer::Update(update, shown) => self.meet_kept(update, shown)?,
            Answer::End(epoch) => self.end(epoch)?,
            Answer::Late => {
                self.statistics.unanswered += 1;
                match self.starting {
                    _ if self.question == Question::Doubt => self.restart(self.held_epoch())?,
                    Some(from) if !self.socket.wait_readable(Duration::ZERO)? => self.ask(from)?,
                    _ => self.go_on(),
                }
            }
        }
        Ok(true)
    }

    /// A message of the ring, whose connection shows this epoch.
    fn meet_kept(&mut self, update: Update, shown: Option<Epoch>) -> Result<()> {
        if differ(self.epoch, shown) {
            return self.restart(shown);
        }
        if self.question == Question::Doubt {
            if self.epoch.is_none() && Some(update.number) >= self.last_kept {
                // It still has what it had.
                self.repair.give_up();
                self.dismiss();
            }
            return Ok(());
        }
        self.epoch = self.epoch.or(shown);
        self.last_kept = self.last_kept.max(Some(update.number));
        let comes_live = self.held.as_ref().is_some_and(|(held, _)| update.number >= held.number);
        if comes_live || self.next.is_some_and(|next| update.number < next) {
            return Ok(());
        }
        self.lose(update.number);
        self.statistics.repaired += 1;
        self.deliver(update);
        Ok(())
    }

    /// The ring has sent all that it has.
    fn end(&mut self, epoch: Option<Epoch>) -> Result<()> {
        if differ(self.epoch, epoch) {
            return self.restart(epoch);
        }
        let is_known = self.epoch.is_some();
        self.epoch = self.epoch.or(epoch);
        match self.question {
            Question::Gap(from) => {
                self.question = Question::Messages;
                self.ask(from)
            }
            Question::Doubt if is_known && epoch.is_some() => {
                self.dismiss();
                Ok(())
            }
            // Nothing shows that it is still the same publisher.
            Question::Doubt => self.restart(epoch.or(self.held_epoch())),
            Question::Messages => {
                if self.starting == Some(0) {
                    // An empty ring: nothing was published so far.
                    self.next = self.next.or(Some(0));
                }
                self.go_on();
                Ok(())
            }
        }
    }

    /// The held message was delivered before, or is of an epoch that has ended.
    fn dismiss(&mut self) {
        self.question = Question::Messages;
        match self.held.take() {
            Some((_, shown)) if differ(self.epoch, shown) => self.statistics.outdated += 1,
            held => self.repeated = held.map(|(held, _)| held.number),
        }
    }

    /// The epoch of the held message.
    fn held_epoch(&self) -> Option<Epoch> {
        self.held.as_ref().and_then(|(_, shown)| *shown)
    }

    /// What has not come by now is lost. The live messages follow.
    fn go_on(&mut self) {
        (self.question, self.starting) = (Question::Messages, None);
        self.hand_out();
        self.release();
    }

    /// Delivers the held message. What has not come before it is lost.
    fn release(&mut self) {
        if let Some((held, _)) = self.held.take() {
            self.lose(held.number);
            self.deliver(held);
        }
    }

    /// Delivers the newest message of each topic, if only those were wanted so far.
    fn hand_out(&mut self) {
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

/// A message of the publisher, if it is one.
fn update(message: Multipart) -> Option<Update> {
    let [topic, number, body] = <[Message; 3]>::try_from(message).ok()?;
    let number = decode(&number).filter(|&number| number < NOTHING)?;
    Some(Update { topic, number, body, replayed: false })
}
