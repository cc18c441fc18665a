//! *As it comes*, from core NATS to PUB or PUSH.
//!
//! A PUB subscribes in NATS to what its subscribers want, while they want it. A PUSH subscribes to
//! all of the route. What comes waits in a queue of a fixed length; what finds it full is dropped
//! and counted.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
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

/// What is subscribed to in NATS, for what is subscribed to here.
///
/// Of subjects that overlap, NATS delivers a message for each. The oldest subscription that brings
/// it counts, and the copies of the others are passed over.
struct Subscriptions {
    course: Arc<Course>,
    queue: mpsc::Sender<Brought>,
    /// Prefixes that ZeroMQ's subscribers want.
    prefixes: HashSet<Vec<u8>>,
    /// The length of the longest.
    longest: usize,
    /// By subject: its number, how many prefixes need it, and what reads it.
    active: HashMap<String, (u64, usize, Reading)>,
    next: u64,
    /// The most prefixes.
    most: usize,
}

impl Subscriptions {
    fn new(course: Arc<Course>, queue: mpsc::Sender<Brought>, most: usize) -> Self {
        let (prefixes, active) = (HashSet::new(), HashMap::new());
        Subscriptions { course, queue, prefixes, longest: 0, active, next: 0, most }
    }

    /// A message of subscribers: 1 or 0, and a prefix.
    async fn wish(&mut self, message: &Multipart) {
        let bytes = message.first().map_or(&[][..], |part| part.as_bytes());
        match bytes {
            [1, prefix @ ..] => self.subscribe(prefix).await,
            [0, prefix @ ..] => self.unsubscribe(prefix),
            _ => {}
        }
    }

    async fn subscribe(&mut self, prefix: &[u8]) {
        if self.prefixes.len() == self.most && !self.prefixes.contains(prefix) {
            self.course.counters.refused.add();
            let most = self.most;
            return self.course.complain(format_args!(
                "subscriptions beyond `max_subscriptions` ({most}) are refused: their subscribers get nothing"
            ));
        }
        if !self.prefixes.insert(prefix.to_vec()) {
            return;
        }
        self.longest = self.longest.max(prefix.len());
        for subject in self.course.route.mapping.wanted(prefix) {
            let number = self.next;
            match self.active.entry(subject) {
                Entry::Occupied(mut entry) => entry.get_mut().1 += 1,
                Entry::Vacant(entry) => match self.course.nats.client.subscribe(entry.key().clone()).await {
                    Ok(subscriber) => {
                        let reading =
                            Reading::start(self.course.clone(), number, subscriber, self.queue.clone());
                        entry.insert((number, 1, reading));
                        self.next += 1;
                    }
                    Err(error) => self.course.complain(error),
                },
            }
        }
    }

    fn unsubscribe(&mut self, prefix: &[u8]) {
        if !self.prefixes.remove(prefix) {
            return;
        }
        self.longest = self.prefixes.iter().map(Vec::len).max().unwrap_or(0);
        for subject in self.course.route.mapping.wanted(prefix) {
            if let Entry::Occupied(mut entry) = self.active.entry(subject) {
                entry.get_mut().1 -= 1;
                if entry.get().1 == 0 {
                    entry.remove();
                }
            }
        }
    }

    /// Whether no older subscription brings the same message.
    fn is_first(&self, number: u64, subject: &str) -> bool {
        let bringing = filters(subject).filter_map(|filter| self.active.get(&filter));
        bringing.map(|(number, ..)| *number).min() == Some(number)
    }

    /// Whether a subscriber wants this first part.
    fn is_wanted(&self, first: &[u8]) -> bool {
        (0..=first.len().min(self.longest)).any(|end| self.prefixes.contains(&first[..end]))
    }
}
