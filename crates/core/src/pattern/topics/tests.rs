use super::*;
use std::collections::BTreeMap;

fn matching(topics: &Topics<u32>, subject: &[u8]) -> Vec<u32> {
    let mut found = Vec::new();
    topics.for_each_match(subject, |&value| {
        found.push(value);
        true
    });
    found.sort_unstable();
    assert_eq!(topics.matches(subject), !found.is_empty());
    found
}

fn put(topics: &mut Topics<u32>, topic: &[u8], value: u32) {
    let slot = topics.insert(topic);
    *topics.entry(slot).unwrap().1 = value;
}

#[test]
fn prefixes_of_the_subject_match() {
    let mut topics = Topics::default();
    for (value, topic) in [&b"a"[..], b"ab", b"abc", b"b", b"abd", b"xyz"].into_iter().enumerate() {
        put(&mut topics, topic, value as u32);
    }
    assert_eq!(matching(&topics, b"abcd"), [0, 1, 2]);
    assert_eq!(matching(&topics, b"ab"), [0, 1]);
    assert_eq!(matching(&topics, b""), [0_u32; 0]);
    assert_eq!(matching(&topics, b"xy"), [0_u32; 0]);
    assert_eq!(topics.longest(), 3);
}

#[test]
fn the_empty_topic_matches_everything() {
    let mut topics = Topics::default();
    assert!(!topics.has_empty());
    put(&mut topics, b"", 7);
    assert!(topics.has_empty());
    assert_eq!(matching(&topics, b""), [7]);
    assert_eq!(matching(&topics, b"anything"), [7]);
    let slot = topics.slot(b"").unwrap();
    assert_eq!(topics.remove(slot).unwrap().1, 7);
    assert!(!topics.has_empty());
    assert_eq!(topics.len(), 0);
    assert!(topics.remove(slot).is_none());
}

#[test]
fn search_stops_when_callback_returns_false() {
    let mut topics = Topics::default();
    for length in 0..10 {
        put(&mut topics, &[b'q'; 10][..length], length as u32);
    }
    let mut calls = 0;
    topics.for_each_match(b"qqqqqqqqqqqq", |_| {
        calls += 1;
        calls < 3
    });
    assert_eq!(calls, 3);
}

#[test]
fn removed_chains_of_the_trie_collapse() {
    let mut trie = Trie::new();
    trie.insert(&[b'a'; 64], 0);
    for length in 1..64 {
        trie.insert(&[b'a'; 64][..length], length as u32);
    }
    assert_eq!(trie.size(), 65);
    for length in 1..64 {
        trie.remove(&[b'a'; 64][..length]);
    }
    assert_eq!(trie.size(), 2);
    trie.insert(b"aab", 1);
    trie.remove(b"aab");
    assert_eq!(trie.size(), 2);
    trie.remove(b"never there");
    trie.remove(&[b'a'; 64]);
    assert_eq!(trie.size(), 1);
}

/// Random insertions and removals against a plain list of topics, with few and with many lengths.
#[test]
fn agrees_with_a_simple_model() {
    let mut seed = 0x1234_5678_9abc_def1_u64;
    let mut random = move |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below as u64) as usize
    };
    const BYTES: [u8; 6] = [b'a', b'b', 0, 255, 130, 63];
    for (longest, kinds) in [(1, 2), (3, 2), (5, 2), (9, 2), (14, 2), (5, 6), (14, 4), (30, 2)] {
        let mut topics: Topics<u32> = Topics::default();
        let mut model: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
        for step in 0..4000_u32 {
            // A growing and a shrinking phase, so that the trie is built and dissolved.
            let grow = step % 1000 < 600;
            let length = random(longest + 1);
            // Bytes from the whole range, but few different ones, so that topics have common
            // prefixes.
            let topic: Vec<u8> = (0..length).map(|_| BYTES[random(kinds)]).collect();
            if grow || random(3) == 0 {
                put(&mut topics, &topic, step);
                model.insert(topic, step);
            } else if let Some(key) = model.keys().nth(random(model.len().max(1))).cloned() {
                let slot = topics.slot(&key).unwrap();
                let (removed, value) = topics.remove(slot).unwrap();
                assert_eq!((&*removed, Some(value)), (&key[..], model.remove(&key)));
            }
            let subject: Vec<u8> = (0..random(longest + 3)).map(|_| BYTES[random(kinds)]).collect();
            let mut expected: Vec<u32> = model
                .iter()
                .filter(|(topic, _)| subject.starts_with(topic))
                .map(|(_, &value)| value)
                .collect();
            expected.sort_unstable();
            assert_eq!(matching(&topics, &subject), expected);
            assert_eq!(topics.len(), model.len());
            assert_eq!(topics.longest(), model.keys().map(Vec::len).max().unwrap_or(0));
        }
        assert_eq!(topics.iter().count(), model.len());
    }
}

#[test]
fn a_trie_node_has_up_to_256_children() {
    let mut trie = Trie::new();
    let label = [7; 20];
    for byte in (0..=255_u8).rev() {
        trie.insert(&[&label, &[byte, 1][..]].concat(), byte.into());
    }
    for round in 0..2 {
        for byte in 0..=255_u8 {
            let mut found = Vec::new();
            trie.prefixes(&[&label, &[byte, 1, 2][..]].concat(), |slot| {
                found.push(slot);
                true
            });
            assert_eq!(found, if round == 0 || byte % 2 == 1 { vec![u32::from(byte)] } else { vec![] });
            if round == 0 && byte % 2 == 0 {
                trie.remove(&[&label, &[byte, 1][..]].concat());
            }
        }
    }
    (0..=255_u8).for_each(|byte| trie.remove(&[&label, &[byte, 1][..]].concat()));
    assert_eq!(trie.size(), 1);
}

/// Different topics, of `lengths` lengths from `shortest` on.
fn many(count: u32, shortest: usize, lengths: usize) -> impl Iterator<Item = Vec<u8>> {
    (0..count).map(move |number| {
        let mut topic = number.wrapping_mul(2_654_435_761).to_be_bytes().to_vec();
        topic.resize(shortest + number as usize % lengths, b'x');
        topic
    })
}

/// Number of bytes that the allocator uses for a request of `bytes`.
fn allocated(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { (bytes + 8).next_multiple_of(16).max(32) }
}

#[test]
fn topic_cost_matches_allocated_memory() {
    for (shortest, lengths) in [(4, 1), (4, 8), (64, 1), (57, 8), (1000, 1), (1000, 8)] {
        let mut topics: Topics<[u64; 5]> = Topics::default();
        let (mut bytes, mut taken) = (0, 0);
        for count in [1000, 10_000, 47_000] {
            let known = topics.len();
            for topic in many(count, shortest, lengths).skip(known) {
                bytes += topic.len() as u64;
                taken += allocated(topic.len());
                topics.insert(&topic);
            }
            let (_, memory) = topics.slots.measure();
            let trie = topics.trie.as_ref().map_or(0, |trie| trie.memory(allocated));
            // 12 bytes of each topic are in the list of the peer's topics.
            let memory = (memory + taken + trie + 12 * topics.len()) as f64;
            let cost = topics.cost(topics.len(), bytes) as f64;
            let label = format!("{count} of {shortest}..{}: {memory} taken, cost {cost}", shortest + lengths);
            // The estimates are for 64 bits. With shorter pointers the memory is smaller.
            let most = if cfg!(target_pointer_width = "64") { 1.25 } else { f64::INFINITY };
            assert!((0.8..=most).contains(&(cost / memory)), "{label}");
            assert_eq!(topics.trie.is_some(), lengths > MANY_LENGTHS);
        }
    }
}

#[test]
fn removed_topics_free_their_memory() {
    let mut topics: Topics<[u64; 5]> = Topics::default();
    // A few topics of another peer, of many lengths: the trie stays.
    let others: Vec<Vec<u8>> = (1..20).map(|length| vec![b'o'; length]).collect();
    for topic in &others {
        topics.insert(topic);
    }
    let before = topics.slots.measure().1 + topics.trie.as_ref().unwrap().memory(allocated);
    let slots: Vec<u32> = many(40_000, 57, 8).map(|topic| topics.insert(&topic)).collect();
    topics.clean_up(usize::MAX);
    let full = topics.slots.measure().1 + topics.trie.as_ref().unwrap().memory(allocated);
    for slot in slots {
        topics.remove(slot);
    }
    topics.clean_up(usize::MAX);
    let after = topics.slots.measure().1 + topics.trie.as_ref().unwrap().memory(allocated);
    // A trie of a thousand nodes is too small to be rebuilt.
    assert!(after <= before + (128 << 10) && full > 8 << 20, "{before} bytes before, {full}, {after} after");
    assert_eq!(matching_any(&topics, b"oooo"), 4);
}

fn matching_any<V>(topics: &Topics<V>, subject: &[u8]) -> usize {
    let mut count = 0;
    topics.for_each_match(subject, |_| {
        count += 1;
        true
    });
    count
}

#[test]
fn trie_is_built_and_dissolved_in_steps() {
    let mut topics: Topics<u32> = Topics::default();
    let all: Vec<Vec<u8>> = many(4000, 4, MANY_LENGTHS).collect();
    all.iter().enumerate().for_each(|(value, topic)| put(&mut topics, topic, value as u32));
    let found = |topics: &Topics<u32>| {
        for (value, topic) in all.iter().enumerate().step_by(37) {
            assert!(matching(topics, topic).contains(&(value as u32)));
        }
    };
    put(&mut topics, &[b'l'; 40], 0);
    assert!(topics.trie.as_ref().unwrap().size() < 200 && topics.trie_end != ALL);
    let mut steps = 0;
    while !topics.is_clean() {
        found(&topics);
        topics.clean_up(1000);
        steps += 1;
    }
    assert_eq!(steps, 5);
    found(&topics);
    // Most of the lengths disappear.
    for topic in all.iter().filter(|topic| topic.len() > 4) {
        let slot = topics.slot(topic).unwrap();
        topics.remove(slot);
    }
    let slot = topics.slot(&[b'l'; 40]).unwrap();
    topics.remove(slot);
    topics.clean_up(usize::MAX);
    assert!(topics.trie.is_none() && topics.is_clean());
    assert_eq!(topics.len(), all.iter().filter(|topic| topic.len() == 4).count());
}

#[test]
fn chains_stay_short_and_the_table_shrinks() {
    let mut topics: Topics<u32> = Topics::default();
    let slots: Vec<u32> = many(50_000, 4, 1).map(|topic| topics.insert(&topic)).collect();
    let (longest, full) = topics.slots.measure();
    assert!(longest < 20, "{longest}");
    for (index, slot) in slots.into_iter().enumerate() {
        if index % 1000 != 0 {
            assert!(topics.remove(slot).is_some());
        }
    }
    assert_eq!(topics.len(), 50);
    assert!(many(50_000, 4, 1).step_by(1000).all(|topic| topics.slot(&topic).is_some()));
    let (_, few) = topics.slots.measure();
    assert!(few < full / 3, "{full} -> {few}");
}
