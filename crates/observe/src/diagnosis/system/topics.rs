//! Subscriptions that no published topic matches.

use super::finding;
use crate::diagnosis::graph::{Graph, SocketKey};
use crate::diagnosis::text::{distance, format_count, topic_name};
use crate::diagnosis::{Finding, Level};
use crate::{PeerState, Topic};

/// Most changed bytes between a subscription and a topic that it was probably meant for.
const SIMILAR: usize = 2;
/// Most topics that a finding names.
const NAMED: usize = 3;
/// Microseconds that a publisher may need before its first message.
const PATIENCE: u64 = 3_000_000;

/// Subscribers without messages, because their publishers publish other topics only.
pub(super) fn unmatched(graph: &Graph<'_>) -> Vec<Finding> {
    let subscribers = graph.sockets().filter(|(_, socket)| {
        matches!(&*socket.type_name, "SUB" | "XSUB") && socket.messages_in == 0 && socket.peers > 0
    });
    subscribers.filter_map(|(key, _)| of_subscriber(graph, key)).collect()
}

fn of_subscriber(graph: &Graph<'_>, key: SocketKey) -> Option<Finding> {
    let socket = graph.socket(key)?;
    let reading = graph.processes[key.process].reading;
    let wanted: Vec<&Topic> = reading.topics_of(key.socket).filter(|topic| !topic.published).collect();
    // Others may match, if only some are known.
    if wanted.is_empty() || (wanted.len() as u64) < socket.subscriptions {
        return None;
    }
    let now = graph.now(key.process);
    let connected = graph
        .peers_of(key)
        .iter()
        .filter(|peer| peer.state == PeerState::Connected && now.saturating_sub(peer.since) >= PATIENCE);
    let publishers: Vec<SocketKey> = connected.flat_map(|peer| graph.others(key, peer)).collect();
    let published = publishers.iter().flat_map(|publisher| {
        let topics = graph.processes[publisher.process].reading.topics_of(publisher.socket);
        topics.filter(|topic| topic.published).map(move |topic| (*publisher, topic))
    });
    let published: Vec<(SocketKey, &Topic)> = published.collect();
    if published.is_empty() {
        return None;
    }
    let matches = |wanted: &Topic, topic: &Topic| topic.prefix.starts_with(&wanted.prefix);
    if published.iter().any(|(_, topic)| wanted.iter().any(|wanted| matches(wanted, topic))) {
        return None;
    }
    let similar = wanted.iter().flat_map(|wanted| published.iter().map(move |there| (*wanted, *there)));
    let similar = similar.map(|(wanted, there)| (difference(&wanted.prefix, &there.1.prefix), wanted, there));
    let (changes, closest, (publisher, topic)) = similar.min_by_key(|(changes, ..)| *changes)?;
    let at = graph.program(publisher.process);
    let type_name = &graph.socket(publisher)?.type_name;
    let names: Vec<String> =
        published.iter().take(NAMED).map(|(_, topic)| topic_name(&topic.prefix)).collect();
    let seconds = now.saturating_sub(socket.since) / 1_000_000;
    let is_typo = changes <= SIMILAR && changes < closest.prefix.len();
    let (level, advice) = if is_typo {
        (
            Level::Trouble,
            format!("Correct the subscription or the topic: {} is similar.", topic_name(&topic.prefix)),
        )
    } else {
        (Level::Note, "If messages should arrive, compare the subscription with the topics.".to_owned())
    };
    Some(Finding {
        what: format!(
            "{} subscribes to {}, which no publisher sends: {type_name} of {at} publishes {}",
            socket.type_name,
            topic_name(&closest.prefix),
            if is_typo { topic_name(&topic.prefix) } else { names.join(", ") }
        ),
        evidence: format!(
            "no message received in {seconds} s; seen topics of its publishers: {}",
            names.join(", ")
        ),
        advice,
        next: format!("taut tap {}/{}", graph.processes[publisher.process].reading.name(), publisher.socket),
        ..finding(key, level, "topic-unmatched", seconds)
    })
}

/// Subscribers that came after the messages of their publishers.
pub(super) fn joined_late(graph: &Graph<'_>) -> Vec<Finding> {
    let subscribers = graph.sockets().filter(|(_, socket)| {
        matches!(&*socket.type_name, "SUB" | "XSUB") && socket.messages_in == 0 && socket.peers > 0
    });
    let found = subscribers.filter_map(|(key, socket)| {
        let publishers = graph.linked(key);
        let missed = publishers.iter().find(|publisher| {
            let now = graph.socket(**publisher);
            let before = graph.processes[publisher.process].before;
            let before = before.and_then(|before| before.socket(publisher.socket));
            now.zip(before).is_some_and(|(now, before)| {
                now.unmatched > 0 && now.unmatched == before.unmatched && now.messages_out == 0
            })
        })?;
        let publisher = graph.socket(*missed)?;
        let seconds = graph.now(key.process).saturating_sub(socket.since) / 1_000_000;
        Some(Finding {
            what: format!(
                "{} has received no message: {} of {} sent its messages before a peer had subscribed to them",
                socket.type_name,
                publisher.type_name,
                graph.program(missed.process)
            ),
            evidence: format!(
                "{} without a subscriber, and none since; the {} waits for {seconds} s",
                format_count(publisher.unmatched, "message"),
                socket.type_name
            ),
            advice: "A PUB keeps no messages for later subscribers: send them again from time to time, answer requests \
                     for them by ROUTER, or wait for the subscribers (ZMQ_TAUTLINE_WAIT_SUBSCRIPTIONS)."
                .to_owned(),
            ..finding(key, Level::Note, "joined-late", publisher.unmatched)
        })
    });
    found.collect()
}

/// Forwarders that do not pass the subscriptions of their subscribers on, told at their XPUB.
pub(super) fn not_forwarded(graph: &Graph<'_>) -> Vec<Finding> {
    let sides = graph.sockets().filter(|(key, socket)| {
        let subscribes =
            |other: &SocketKey| graph.socket(*other).is_some_and(|other| other.subscriptions > 0);
        socket.type_name == "XPUB" && socket.messages_out == 0 && graph.linked(*key).iter().any(subscribes)
    });
    let found = sides.filter_map(|(key, _)| {
        let of_process = graph.sockets().filter(|(other, _)| other.process == key.process);
        let upstream = of_process.filter(|(_, socket)| matches!(&*socket.type_name, "XSUB" | "SUB"));
        let unheard = upstream.flat_map(|(other, _)| graph.linked(other)).find(|publisher| {
            let before = graph.processes[publisher.process].before;
            let before = before.and_then(|before| before.socket(publisher.socket));
            let now = graph.socket(*publisher);
            now.zip(before).is_some_and(|(now, before)| {
                now.subscribed == 0 && now.messages_out == 0 && now.unmatched > before.unmatched
            })
        })?;
        let publisher = graph.socket(unheard)?;
        Some(Finding {
            what: format!(
                "The program does not pass subscriptions from its XPUB on, so {} of {} sends it no message",
                publisher.type_name,
                graph.program(unheard.process)
            ),
            evidence: format!(
                "{} without a subscriber there, while {} at this XPUB",
                format_count(publisher.unmatched, "message"),
                match graph.linked(key).len() {
                    1 => "1 subscriber waits".to_owned(),
                    more => format!("{more} subscribers wait"),
                }
            ),
            advice: "Receive from the XPUB, and send each message to the XSUB: it is a subscription. `zmq_proxy` does so."
                .to_owned(),
            ..finding(key, Level::Trouble, "not-forwarded", publisher.unmatched)
        })
    });
    found.collect()
}

/// Returns the number of changed bytes that make the subscription match the topic. A subscription
/// is a prefix, so the end of the topic does not count.
fn difference(prefix: &[u8], topic: &[u8]) -> usize {
    let lengths = prefix.len().saturating_sub(SIMILAR)..=prefix.len() + SIMILAR;
    let cut = lengths.map(|length| &topic[..length.min(topic.len())]);
    let same_case =
        distance(prefix.to_ascii_lowercase(), topic[..prefix.len().min(topic.len())].to_ascii_lowercase());
    cut.map(|cut| distance(prefix, cut)).min().unwrap_or(usize::MAX).min(same_case + 1)
}
