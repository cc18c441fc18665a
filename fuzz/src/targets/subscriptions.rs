//! Subscriptions compared with a model: the topics of a subscriber, which counts them, and the topics
//! of a publisher's peers, which are grouped and can leave. Short lists, tables by length and tries
//! are created and removed.

use crate::input::Reader;
use std::collections::{BTreeMap, BTreeSet};
use tautline_core::fuzzing::{Publisher, Subscriber};

/// The input selects the kind of subscriptions, then actions: an octet each, and a topic or the
/// subject of a message.
pub fn run(input: &[u8]) {
    let mut reader = Reader::new(input);
    match reader.byte() & 1 {
        0 => subscriber(reader),
        _ => publisher(reader),
    }
}

/// Action, and its topic.
fn step(reader: &mut Reader<'_>) -> (u8, Vec<u8>) {
    let (what, len) = (reader.byte(), usize::from(reader.byte()));
    let mut topic = reader.bytes(len % 48).to_vec();
    if what & 0x80 != 0 {
        // Long topics share prefixes.
        topic.splice(0..0, [b'a'; 40]);
    }
    (what, topic)
}

fn subscriber(mut reader: Reader<'_>) {
    let (mut topics, mut model) = (Subscriber::default(), BTreeMap::<Vec<u8>, usize>::new());
    while !reader.is_empty() {
        let (what, topic) = step(&mut reader);
        match what % 8 {
            0..=3 => {
                topics.add(&topic);
                *model.entry(topic).or_default() += 1;
            }
            4 | 5 => {
                let last = model.get(&topic).copied() == Some(1);
                assert_eq!(topics.remove(&topic), last);
                if let Some(count) = model.get_mut(&topic) {
                    *count -= 1;
                }
                model.retain(|_, count| *count > 0);
            }
            6 => {
                let mut all = topics.topics();
                all.sort_unstable();
                assert_eq!(all, model.keys().cloned().collect::<Vec<_>>());
            }
            _ => {
                let wanted = model.keys().any(|known| topic.starts_with(known));
                for cut in [0, topic.len() / 2, topic.len()] {
                    let (head, tail) = topic.split_at(cut);
                    assert_eq!(topics.matches(head, tail), wanted, "{}", topic.escape_ascii());
                }
            }
        }
    }
    for known in model.keys() {
        assert!(topics.matches(known, b""));
        assert!(topics.matches(&[known, &b"further"[..]].concat(), b""));
    }
    for (known, count) in &model {
        for _ in 0..*count {
            topics.remove(known);
        }
    }
    assert!(topics.topics().is_empty() && !topics.matches(b"anything", b""));
}

/// Topics of each peer.
type Model = BTreeMap<Vec<u8>, BTreeSet<u32>>;

fn publisher(mut reader: Reader<'_>) {
    let (mut publisher, mut model) = (Publisher::default(), Model::new());
    while !reader.is_empty() {
        let (what, topic) = step(&mut reader);
        let peer = u32::from(what >> 3 & 7);
        match what % 8 {
            0..=2 => {
                assert_eq!(publisher.add(&topic, peer), !model.contains_key(&topic));
                model.entry(topic).or_default().insert(peer);
            }
            3 | 4 => {
                let removed = publisher.remove(&topic, peer);
                let had = model.get_mut(&topic).is_some_and(|peers| peers.remove(&peer));
                model.retain(|_, peers| !peers.is_empty());
                assert_eq!(removed, had.then(|| !model.contains_key(&topic)));
            }
            5 => end(&mut publisher, &mut model, peer),
            6 => {
                publisher.regroup();
                if let Some(peers) = publisher.sole() {
                    assert_eq!(model, Model::from([(Vec::new(), peers.into_iter().collect())]));
                }
            }
            _ => see_which_get(&publisher, &model, &topic),
        }
        assert_eq!(publisher.topics(), model.len());
    }
    for topic in model.keys() {
        see_which_get(&publisher, &model, topic);
    }
    for peer in 0..8 {
        end(&mut publisher, &mut model, peer);
    }
    assert!(publisher.topics() == 0 && publisher.matching(b"anything").is_empty());
}

fn end(publisher: &mut Publisher, model: &mut Model, peer: u32) {
    let mut gone = Vec::new();
    model.retain(|topic, peers| {
        if peers.remove(&peer) && peers.is_empty() {
            gone.push(topic.clone());
        }
        !peers.is_empty()
    });
    assert_eq!(publisher.end(peer), gone);
}

fn see_which_get(publisher: &Publisher, model: &Model, subject: &[u8]) {
    let wanted: BTreeSet<u32> = model
        .iter()
        .filter(|(topic, _)| subject.starts_with(topic))
        .flat_map(|(_, peers)| peers.iter().copied())
        .collect();
    let wanted: Vec<u32> = wanted.into_iter().collect();
    assert_eq!(publisher.matching(subject), wanted, "{}", subject.escape_ascii());
}

/// Few topics, many of one length, many of several lengths, with shared prefixes. Some topics come
/// and go, and so do peers with equal topics.
pub fn seeds() -> Vec<Vec<u8>> {
    let op = |what: u8, topic: &[u8]| [&[what, topic.len() as u8][..], topic].concat();
    let words =
        [&b"a"[..], b"ab", b"abc", b"abd", b"b", b"abcdefghijk", b"abcdefghijx", b"abcdefghijkl", b"", b"z"];
    let each = |what: u8| words.iter().flat_map(|word| op(what, word)).collect::<Vec<u8>>();
    let mut few: Vec<u8> = words[..3].iter().flat_map(|word| op(0, word)).collect();
    few.extend([op(7, b"abx"), op(4, b"ab"), op(7, b"abx"), op(6, b""), op(4, b"nothing")].concat());
    let mut many = each(0x80);
    many.extend(
        words.iter().flat_map(|word| [op(0, word), op(7, b"abcdefghijklm"), op(0x87, word)].concat()),
    );
    many.extend(
        words.iter().flat_map(|word| [op(4, word), op(7, b"abcdefghijklm"), op(0x84, word)].concat()),
    );
    let mut equal: Vec<u8> = (0..60).flat_map(|byte| op(0, &[byte, byte ^ 7, 3])).collect();
    equal.extend([op(7, &[9, 14, 3, 1]), op(6, b"")].concat());
    equal.extend((0..60).flat_map(|byte| op(4, &[byte, byte ^ 7, 3])));
    // Three peers with equal topics: one of them adds a topic for a moment, and one leaves.
    let mut peers: Vec<u8> = (0..3).flat_map(|peer| each(peer << 3)).collect();
    peers.extend([op(6, b""), op(7, b"abcdefghijkl"), op(0, b"more"), op(6, b""), op(7, b"more")].concat());
    peers.extend([op(3, b"more"), op(6, b""), op(7, b"abd"), op(5, b""), op(7, b"abd")].concat());
    peers.extend([op(8 | 5, b""), op(6, b""), op(7, b"abd"), op(0x10 | 5, b"")].concat());
    let everything = [op(0, b""), op(8, b""), op(6, b""), op(7, b"x"), op(5, b""), op(6, b""), op(7, b"")];
    let half = many.len() / 2;
    let halves = [&many[..half], &op(6, b""), &many[half..]].concat();
    let mut seeds: Vec<Vec<u8>> =
        [&few, &many, &equal].iter().map(|seed| [&[0][..], seed].concat()).collect();
    seeds.extend([few, halves, equal, peers, everything.concat()].map(|seed| [&[1][..], &seed].concat()));
    seeds
}
