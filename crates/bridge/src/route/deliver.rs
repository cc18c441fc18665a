//! *As it comes*, from core NATS to PUB or PUSH.
//!
//! A PUB subscribes in NATS to the subjects that its subscribers want, as long as they want them. A
//! PUSH subscribes to the whole route. Messages wait in a queue of a fixed length. If the queue is
//! full, a message is dropped and counted.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_nats::Subscriber;
use futures_util::StreamExt;
use tautline::Multipart;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::{AT_ONCE, RouteContext, as_parts, incoming};
use crate::config::Job;
use crate::stop::Stop;
use crate::topic::filters;
use crate::zmq::Socket;

/// Number of the subscription to the whole route, for the prefixes beyond the limit. It counts as
/// the newest subscription, so its end takes no messages from other subscriptions.
const WIDE: u64 = u64::MAX;

/// A message, and the number of the subscription that delivered it.
type Brought = (u64, async_nats::Message);

pub async fn run(socket: Socket, course: &Arc<RouteContext>, stop: Stop) {
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
    course: &Arc<RouteContext>,
    mut subscriptions: Subscriptions,
    mut messages: mpsc::Receiver<Brought>,
    mut stop: Stop,
) {
    loop {
        tokio::select! {
            biased;
            () = stop.wait_requested() => return,
            wish = socket.recv() => match wish {
                Ok(wish) => subscriptions.handle_request(&wish).await,
                Err(error) if course.handle_recv_error(&error) => {}
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
    course: &RouteContext,
    subscriptions: &Subscriptions,
    number: u64,
    message: &async_nats::Message,
) {
    if !subscriptions.is_first(number, &message.subject) {
        return;
    }
    course.counters.received.add();
    let Some(parts) = incoming(&course.route.mapping, message) else {
        return course.refuse("its part lengths do not match its payload");
    };
    if !subscriptions.is_wanted(&parts[0]) {
        return course.counters.unwanted.add();
    }
    // Subscribers at their high-water mark miss the message. The socket counts that.
    match socket.try_send(as_parts(&parts)) {
        Ok(()) => course.counters.done.add(),
        Err(_) => course.counters.dropped.add(),
    }
}

async fn push(
    mut socket: Socket,
    course: &Arc<RouteContext>,
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
        Err(error) => return course.report_problem(error),
    };
    let mut reading = Some(ReadTask::start(course.clone(), 0, subscriber, sender));
    loop {
        let message = tokio::select! {
            biased;
            () = stop.wait_requested(), if reading.is_some() => {
                // The workers still get the messages that are queued.
                reading = None;
                continue;
            }
            message = messages.recv() => message,
        };
        let Some((_, message)) = message else { return };
        course.counters.received.add();
        let Some(parts) = incoming(&course.route.mapping, &message) else {
            course.refuse("its part lengths do not match its payload");
            continue;
        };
        match socket.send(as_parts(&parts)).await {
            Ok(()) => course.counters.done.add(),
            Err(error) if course.handle_recv_error(&error) => course.counters.dropped.add(),
            Err(_) => return,
        }
    }
}

/// Task that reads a subscription into the queue. Dropping it unsubscribes.
struct ReadTask(JoinHandle<()>);

impl ReadTask {
    fn start(
        course: Arc<RouteContext>,
        number: u64,
        mut from: Subscriber,
        queue: mpsc::Sender<Brought>,
    ) -> Self {
        ReadTask(tokio::spawn(async move {
            while let Some(message) = from.next().await {
                if queue.try_send((number, message)).is_err() {
                    course.counters.dropped.add();
                    course.report_problem("the queue is full: messages are dropped");
                }
            }
        }))
    }
}

impl Drop for ReadTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Subscriptions in NATS for the subjects that subscribers want here.
///
/// If subjects overlap, NATS delivers a message once for each subscription. Only the copy of the
/// oldest subscription counts; the other copies are skipped.
///
/// An XPUB reports a prefix when the first peer subscribes and when the last peer unsubscribes, so
/// the prefixes of one peer cannot be counted. Prefixes beyond `most` are not refused, because one
/// peer could then shut out the others. Instead, one subscription to the whole route delivers them
/// all. Any peer could cause the same with an empty prefix.
struct Subscriptions {
    course: Arc<RouteContext>,
    queue: mpsc::Sender<Brought>,
    /// Prefixes that the subscribers want. True if the subjects of the prefix are subscribed to.
    prefixes: HashMap<Vec<u8>, bool>,
    /// Number of prefixes of each length.
    lengths: BTreeMap<usize, usize>,
    /// Number of prefixes whose subjects are subscribed to.
    narrow: usize,
    /// True if the whole route is subscribed to, for the prefixes beyond `most`.
    wide: bool,
    /// By subject: number of the subscription, number of prefixes that need it, and its reading
    /// task.
    active: HashMap<String, (u64, usize, ReadTask)>,
    next: u64,
    /// Limit of prefixes whose subjects are subscribed to.
    most: usize,
}

impl Subscriptions {
    fn new(course: Arc<RouteContext>, queue: mpsc::Sender<Brought>, most: usize) -> Self {
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

    /// Handles a subscription message: 1 or 0, then a prefix.
    async fn handle_request(&mut self, message: &Multipart) {
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
            self.subscribe_subjects(prefix, self.next).await;
        } else if !self.wide {
            self.wide = true;
            let most = self.most;
            self.course.report_problem(format_args!(
                "subscribers use more than `max_subscriptions` ({most}) topics, so \
                 NATS sends all messages of the route"
            ));
            self.subscribe_subjects(&[], WIDE).await;
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
        // Switch back at half the limit, so that one prefix that comes and goes does not switch
        // each time. Messages in transit for the prefixes beyond `most` are lost at this moment.
        if self.wide && self.prefixes.len() <= self.most / 2 {
            let beyond = self.prefixes.iter().filter(|(_, narrow)| !**narrow);
            let beyond: Vec<_> = beyond.map(|(prefix, _)| prefix.clone()).collect();
            for prefix in beyond {
                self.subscribe_subjects(&prefix, self.next).await;
                self.prefixes.insert(prefix, true);
            }
            self.narrow = self.prefixes.len();
            self.wide = false;
            self.give_up(&[]);
        }
    }

    /// Subscribes to the subjects of a prefix, which do not overlap, under this number.
    async fn subscribe_subjects(&mut self, prefix: &[u8], number: u64) {
        self.next += 1;
        for subject in self.course.route.mapping.subscription_subjects(prefix) {
            match self.active.entry(subject) {
                Entry::Occupied(mut entry) => entry.get_mut().1 += 1,
                Entry::Vacant(entry) => match self.course.nats.client.subscribe(entry.key().clone()).await {
                    Ok(subscriber) => {
                        let reading =
                            ReadTask::start(self.course.clone(), number, subscriber, self.queue.clone());
                        entry.insert((number, 1, reading));
                    }
                    Err(error) => self.course.report_problem(error),
                },
            }
        }
    }

    /// Ends the subscriptions that only this prefix needed.
    fn give_up(&mut self, prefix: &[u8]) {
        for subject in self.course.route.mapping.subscription_subjects(prefix) {
            if let Entry::Occupied(mut entry) = self.active.entry(subject) {
                entry.get_mut().1 -= 1;
                if entry.get().1 == 0 {
                    entry.remove();
                }
            }
        }
    }

    /// True if no older subscription delivers the same message.
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
