//! The subscriber's side.

mod repair;

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::{NOTHING, decode};
use crate::error::{Error, Result};
use crate::{Builder, Context, Message, Multipart, Sub, kind};
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
}

/// How a [`ReliableSub`] is made.
#[must_use = "a builder makes no subscriber until `connect` is called"]
#[derive(Debug)]
pub struct ReliableSubBuilder {
    context: Context,
    socket: Builder<kind::Sub>,
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
    /// answers.
    pub fn with(mut self, options: impl FnOnce(Builder<kind::Sub>) -> Builder<kind::Sub>) -> Self {
        self.socket = options(self.socket);
        self
    }

    /// The subscriber, connected to a publisher and to its ring.
    ///
    /// # Errors
    /// Those of [`Builder::connect`](crate::Builder::connect).
    pub fn connect(self, publisher: &str, ring: &str) -> Result<ReliableSub> {
        let mut socket = self.socket.build()?;
        socket.subscribe("")?;
        socket.connect(publisher)?;
        let from = match self.start {
            Start::Live => NOTHING,
            Start::Oldest | Start::LastOfEachTopic => 0,
            Start::Number(number) => number.min(NOTHING),
        };
        let mut subscriber = ReliableSub {
            socket,
            repair: Repair::new(&self.context, ring, self.patience)?,
            prefixes: self.prefixes,
            next: matches!(self.start, Start::Number(_)).then_some(from),
            last_live: None,
            last_kept: None,
            epoch: None,
            then: None,
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
    /// The publisher's, where it tells one.
    epoch: Option<Message>,
    /// The ring was asked for the epoch alone. If that is still the same it is asked for the
    /// messages from this number on.
    then: Option<u64>,
    /// What the ring was asked for at the beginning, until it has answered or a live message has
    /// come: it may be that the publisher is not there yet.
    starting: Option<u64>,
    /// A live message that waits until what is missing before it has come.
    held: Option<Update>,
    ready: VecDeque<Delivery>,
    /// The newest message of each topic so far, while only those are wanted.
    newest: Option<HashMap<Vec<u8>, Update>>,
    statistics: Statistics,
}

impl ReliableSub {
    /// A subscriber to be.
    pub fn builder(context: &Context) -> ReliableSubBuilder {
        ReliableSubBuilder {
            context: context.clone(),
            socket: Sub::builder(context),
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
        match update(message) {
            Some(update) => {
                self.statistics.live += 1;
                self.meet(update)?;
            }
            None => self.statistics.malformed += 1,
        }
        Ok(true)
    }

    /// A live message, and nothing is being asked for.
    fn meet(&mut self, update: Update) -> Result<()> {
        let number = update.number;
        let before = self.last_live.replace(number);
        match self.next {
            Some(next) if number > next => {
                self.held = Some(update);
                self.then = self.epoch.is_some().then_some(next);
                self.ask(if self.then.is_some() { NOTHING } else { next })
            }
            Some(next) if number < next => {
                let is_later = before.is_none_or(|before| number > before);
                if is_later && self.last_kept.is_some_and(|kept| number <= kept) {
                    // The ring has sent it, too.
                    return Ok(());
                }
                self.restart();
                self.last_live = Some(number);
                self.held = Some(update);
                self.ask(0)
            }
            _ => {
                self.deliver(update);
                Ok(())
            }
        }
    }

    fn restart(&mut self) {
        self.statistics.restarts += 1;
        self.ready.push_back(Delivery::Restarted);
        (self.next, self.last_live, self.last_kept) = (Some(0), None, None);
        (self.epoch, self.then) = (None, None);
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
            Answer::Update(update) => self.meet_kept(update),
            Answer::End(epoch) => self.end(epoch)?,
            Answer::Late => {
                self.statistics.unanswered += 1;
                match self.starting {
                    Some(from) if !self.socket.wait_readable(Duration::ZERO)? => self.ask(from)?,
                    _ => self.go_on(),
                }
            }
        }
        Ok(true)
    }

    /// A message of the ring.
    fn meet_kept(&mut self, update: Update) {
        self.last_kept = self.last_kept.max(Some(update.number));
        let comes_live = self.held.as_ref().is_some_and(|held| update.number >= held.number);
        if comes_live || self.next.is_some_and(|next| update.number < next) {
            return;
        }
        self.lose(update.number);
        self.statistics.repaired += 1;
        self.deliver(update);
    }

    /// The ring has sent all that it has.
    fn end(&mut self, epoch: Option<Message>) -> Result<()> {
        if self.epoch.is_some() && epoch.is_some() && epoch != self.epoch {
            let last_live = self.last_live;
            self.restart();
            (self.epoch, self.last_live) = (epoch, last_live);
            return self.ask(0);
        }
        self.epoch = epoch;
        match self.then.take() {
            Some(from) => self.ask(from),
            None => {
                self.go_on();
                Ok(())
            }
        }
    }

    /// What has not come by now is lost. The live messages follow.
    fn go_on(&mut self) {
        (self.then, self.starting) = (None, None);
        self.hand_out();
        if let Some(held) = self.held.take() {
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

/// A message of the publisher, if it is one.
fn update(message: Multipart) -> Option<Update> {
    let [topic, number, body] = <[Message; 3]>::try_from(message).ok()?;
    let number = decode(&number).filter(|&number| number < NOTHING)?;
    Some(Update { topic, number, body, replayed: false })
}
