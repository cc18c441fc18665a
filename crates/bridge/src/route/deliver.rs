//! *As it comes*, from core NATS to PUB or PUSH.
//!
//! A PUB subscribes in NATS to what its subscribers want, while they want it. A PUSH subscribes to
//! all of the route. What comes waits in a queue of a fixed length; what finds it full is dropped
//! and counted.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_nats::Subscriber;
use futures_util::StreamExt;
use tautline::Multipart;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::{AT_ONCE, Course, as_parts, incoming};
use crate::config::Job;
use crate::stop::Stop;
use crate::topic::filters;
use crate::zmq::Socket;

/// Number of the subscription to the whole route for the prefixes beyond the limit: it counts as
/// the newest one, so its end takes nothing from other subscriptions.
const WIDE: u64 = u64::MAX;

/// A message, and the number of the subscription that brought it.
type Brought = (u64, async_nats::Message);

pub async fn run(socket: Socket, course: &Arc<Course>, stop: Stop) {
    let Job::Deliver { queue, subscriptions, .. } = course.route.job else { return };
    let (sender, receiver) = mpsc::channel(queue);
    if matches!(socket, Socket::Pub(_)) {
        publish(socket, course, Subscriptions::new(course.clone(), sender, subscriptions), receiver, stop)
            .await;
    } else {
        push(socket, course, sender, receiver, stop).await;
    }
}

async fn publish(
    mut socket: Socket,
    course: &Arc<Course>,
    mut subscriptions: Subscriptions,
    mut messages: mpsc::Receiver<Brought>,
    mut stop: Stop,
) {
    loop {
        tokio::select! {
            biased;
            () = stop.asked() => return,
            wish = socket.recv() => match wish {
                Ok(wish) => subscriptions.wish(&wish).await,
                Err(error) if course.goes_on(&error) => {}
                Err(_) => return,
            },
            Some((number, message)) = messages.recv() => {
                hand_over(&mut socket, course, &subscriptions, number, &message);
                for _ in 1..AT_ONCE {
                    let Ok((number, message)) = messages.try_recv() else { break };
                    hand_over(&mut socket, course, &subscriptions, number, &message);
                }
            }
        }
    }
}

/// Sends a message to the subscribers that want it.
fn hand_over(
    socket: &mut Socket,
    course: &Course,
    subscriptions: &Subscriptions,
    number: u64,
    message: &async_nats::Message,
) {
    if !subscriptions.is_first(number, &message.subject) {
        return;
    }
    course.counters.received.add();
    let Some(parts) = incoming(&course.route.mapping, message) else {
        return course.refuse("its parts do not go with its length");
    };
    if !subscriptions.is_wanted(&parts[0]) {
        return course.counters.unwanted.add();
    }
    // Subscribers at their high-water mark miss it: the socket counts that.
    match socket.try_send(as_parts(&parts)) {
        Ok(()) => course.counters.done.add(),
        Err(_) => course.counters.dropped.add(),
    }
}

async fn push(
    mut socket: Socket,
    course: &Arc<Course>,
    sender: mpsc::Sender<Brought>,
    mut messages: mpsc::Receiver<Brought>,
    mut stop: Stop,
) {
    let Job::Deliver { group, .. } = &course.route.job else { return };
    let (client, filter) = (&course.nats.client, course.route.mapping.filter());
    let subscribed = match group {
        Some(group) => client.queue_subscribe(filter, group.clone()).await,
        None => client.subscribe(filter).await,
    };
    let subscriber = match subscribed {
        Ok(subscriber) => subscriber,
        Err(error) => return course.complain(error),
    };
    let mut reading = Some(Reading::start(course.clone(), 0, subscriber, sender));
    loop {
        let message = tokio::select! {
            biased;
            () = stop.asked(), if reading.is_some() => {
                // What has come already goes on to the workers.
                reading = None;
                continue;
            }
            message = messages.recv() => message,
        };
        let Some((_, message)) = message else { return };
        course.counters.received.add();
        let Some(parts) = incoming(&course.route.mapping, &message) else {
            course.refuse("its parts do not go with its length");
            continue;
        };
        match socket.send(as_parts(&parts)).await {
            Ok(()) => course.counters.done.add(),
            Err(error) if course.goes_on(&error) => course.counters.dropped.add(),
            Err(_) => return,
        }
    }
}

/// Reads a subscription into the queue. Dropped, it has unsubscribed.
struct Reading(JoinHandle<()>);

impl Reading {
    fn start(course: Arc<Course>, number: u64, mut from: Subscriber, queue: mpsc::Sender<Brought>) -> Self {
        Reading(tokio::spawn(async move {
            while let Some(message) = from.next().await {
                if queue.try_send((number, message)).is_err() {
                    course.counters.dropped.add();
                    course.complain("messages come faster than they leave, and are dropped");
                }
            }
        }))
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The subscriptions in NATS that bring what subscribers want here.
///
/// If subjects overlap, NATS delivers a message for each. The oldest subscription that brings it
/// counts, and the copies of the others are skipped.
///
/// An XPUB reports a prefix when the first peer wants it and when no peer wants it any more, so the
/// prefixes of one peer cannot be counted. Prefixes beyond `most` are not refused: that would let
/// one peer shut out the others. One subscription to the whole route brings them all. Any peer
/// could ask for that with an empty prefix.
struct Subscriptions {
    course: Arc<Course>,
    queue: mpsc::Sender<Brought>,
    /// Prefixes that the subscribers want; true if the subjects of the prefix are subscribed to.
    prefixes: HashMap<Vec<u8>, bool>,
    /// Number of prefixes of each length.
    lengths: BTreeMap<usize, usize>,
    /// Number of prefixes whose subjects are subscribed to.
    narrow: usize,
    /// True if the whole route is subscribed to, for the prefixes beyond `most`.
    wide: bool,
    /// By subject: its number, how many prefixes need it, and what reads it.
    active: HashMap<String, (u64, usize, Reading)>,
    next: u64,
    /// Largest number of prefixes whose subjects are subscribed to.
    most: usize,
}

impl Subscriptions {
    fn new(course: Arc<Course>, queue: mpsc::Sender<Brought>, most: usize) -> Self {
        Subscriptions {
            course,
            queue,
            prefixes: HashMap::new(),
            lengths: BTreeMap::new(),
            narrow: 0,
            wide: false,
            active: HashMap::new(),
            next: 0,
            most,
        }
    }

    /// A message of subscribers: 1 or 0, and a prefix.
    async fn wish(&mut self, message: &Multipart) {
        let bytes = message.first().map_or(&[][..], |part| part.as_bytes());
        match bytes {
            [1, prefix @ ..] => self.subscribe(prefix).await,
            [0, prefix @ ..] => self.unsubscribe(prefix).await,
            _ => {}
        }
    }

    async fn subscribe(&mut self, prefix: &[u8]) {
        if self.prefixes.contains_key(prefix) {
            return;
        }
        *self.lengths.entry(prefix.len()).or_default() += 1;
        let narrow = self.narrow < self.most;
        self.prefixes.insert(prefix.to_vec(), narrow);
        if narrow {
            self.narrow += 1;
            self.take(prefix, self.next).await;
        } else if !self.wide {
            self.wide = true;
            let most = self.most;
            self.course.complain(format_args!(
                "subscribers want more than `max_subscriptions` ({most}) topics: \
                 NATS sends all messages of the route"
            ));
            self.take(&[], WIDE).await;
        }
    }

    async fn unsubscribe(&mut self, prefix: &[u8]) {
        let Some(narrow) = self.prefixes.remove(prefix) else { return };
        if let Some(number) = self.lengths.get_mut(&prefix.len()) {
            *number -= 1;
            if *number == 0 {
                self.lengths.remove(&prefix.len());
            }
        }
        if narrow {
            self.narrow -= 1;
            self.give_up(prefix);
        }
        // Half, so that a prefix that comes and goes does not change this each time. Messages for
        // the prefixes beyond `most` that are on their way at this moment are lost.
        if self.wide && self.prefixes.len() <= self.most / 2 {
            let beyond = self.prefixes.iter().filter(|(_, narrow)| !**narrow);
            let beyond: Vec<_> = beyond.map(|(prefix, _)| prefix.clone()).collect();
            for prefix in beyond {
                self.take(&prefix, self.next).await;
                self.prefixes.insert(prefix, true);
            }
            self.narrow = self.prefixes.len();
            self.wide = false;
            self.give_up(&[]);
        }
    }

    /// Subscribes to the subjects of a prefix, which do not overlap, under this number.
    async fn take(&mut self, prefix: &[u8], number: u64) {
        self.next += 1;
        for subject in self.course.route.mapping.wanted(prefix) {
            match self.active.entry(subject) {
                Entry::Occupied(mut entry) => entry.get_mut().1 += 1,
                Entry::Vacant(entry) => match self.course.nats.client.subscribe(entry.key().clone()).await {
                    Ok(subscriber) => {
                        let reading =
                            Reading::start(self.course.clone(), number, subscriber, self.queue.clone());
                        entry.insert((number, 1, reading));
                    }
                    Err(error) => self.course.complain(error),
                },
            }
        }
    }

    /// Ends the subscriptions that only this prefix needed.
    fn give_up(&mut self, prefix: &[u8]) {
        for subject in self.course.route.mapping.wanted(prefix) {
            if let Entry::Occupied(mut entry) = self.active.entry(subject) {
                entry.get_mut().1 -= 1;
                if entry.get().1 == 0 {
                    entry.remove();
                }
            }
        }
    }

    /// True if no older subscription brings the same message.
    fn is_first(&self, number: u64, subject: &str) -> bool {
        let bringing = filters(subject).filter_map(|filter| self.active.get(&filter));
        bringing.map(|(number, ..)| *number).min() == Some(number)
    }

    /// True if a subscriber wants this first part.
    fn is_wanted(&self, first: &[u8]) -> bool {
        let mut ends = self.lengths.range(..=first.len());
        ends.any(|(&end, _)| self.prefixes.contains_key(&first[..end]))
    }
}
