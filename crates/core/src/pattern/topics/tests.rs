use super::*;
use std::collections::BTreeMap;

fn matching(topics: &Topics<u32>, subject: &[u8]) -> Vec<u32> {
    let mut found = Vec::new();
    topics.each_match(subject, |&value| {
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
fn a_search_stops_when_told() {
    let mut topics = Topics::default();
    for length in 0..10 {
        put(&mut topics, &[b'q'; 10][..length], length as u32);
    }
    let mut calls = 0;
    topics.each_match(b"qqqqqqqqqqqq", |_| {
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
            // A growing and a shrinking phase, so that the trie comes and goes.
            let grow = step % 1000 < 600;
            let length = random(longest + 1);
            // Bytes from all over the range, but few of them, so that topics have prefixes in common.
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
