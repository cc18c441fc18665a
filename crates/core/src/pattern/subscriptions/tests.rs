use super::*;

const A: PipeId = PipeId(0);
const B: PipeId = PipeId(9);

fn subscribers(subscriptions: &PeerSubscriptions, subject: &[u8]) -> Vec<PipeId> {
    let mut found = Vec::new();
    subscriptions.for_each_match(subject, |subscribers| found.extend_from_slice(subscribers.single()));
    found.sort_unstable();
    found
}

#[test]
fn peers_hold_a_topic_once() {
    let mut peers = PeerSubscriptions::default();
    assert!(peers.add(b"t", B));
    assert!(!peers.add(b"t", B));
    assert!(!peers.add(b"t", A));
    assert_eq!(subscribers(&peers, b"topic"), [A, B]);
    assert_eq!(peers.len(), 1);
    assert_eq!(peers.remove(b"t", A), Removal::StillSubscribed);
    assert_eq!(peers.remove(b"t", A), Removal::Unknown);
    assert_eq!(peers.remove(b"u", A), Removal::Unknown);
    assert_eq!(peers.remove(b"t", PipeId(77)), Removal::Unknown);
    assert_eq!(peers.remove(b"t", B), Removal::Last);
    assert_eq!(peers.remove(b"t", B), Removal::Unknown);
    assert_eq!(peers.len(), 0);
    assert!(subscribers(&peers, b"topic").is_empty());
}

#[test]
fn a_peer_that_subscribes_again_stays_in_its_group() {
    let mut peers = PeerSubscriptions::default();
    let mut joined = 0;
    for pipe in [A, B] {
        peers.ungroup(pipe, |_| ());
        peers.add(b"t", pipe);
    }
    peers.regroup(|_| true, |_| joined += 1);
    assert_eq!(joined, 2);
    assert!(!peers.add(b"t", A));
    peers.for_each_match(b"t", |subscribers| {
        assert_eq!((subscribers.single().len(), subscribers.groups().len()), (0, 1))
    });
}

#[test]
fn a_pipe_leaves_with_all_its_topics() {
    let mut peers = PeerSubscriptions::default();
    for topic in [&b"z"[..], b"b", b"", b"ab"] {
        peers.add(topic, A);
    }
    peers.add(b"b", B);
    peers.leave(A, true);
    assert!(peers.is_leaving(A) && !peers.is_clean());
    let gone = take_some_out(&mut peers);
    let gone: Vec<(&[u8], bool)> = gone.iter().map(|(topic, last)| (&**topic, *last)).collect();
    assert_eq!(gone, [(&b""[..], true), (b"ab", true), (b"b", false), (b"z", true)]);
    assert!(peers.is_clean());
    peers.leave(A, true);
    peers.leave(PipeId(500), false);
    assert!(peers.is_clean() && !peers.is_leaving(A));
    assert_eq!(subscribers(&peers, b"bc"), [B]);
    assert_eq!(peers.len(), 1);
}

fn take_some_out(peers: &mut PeerSubscriptions) -> Vec<(Vec<u8>, bool)> {
    let mut gone = Vec::new();
    peers.remove_some_leaving(None, |_, topic, last| gone.push((topic.to_vec(), last)));
    gone
}

/// The number, scattered over all bytes.
fn scattered(number: u32) -> [u8; 4] {
    number.wrapping_mul(2_654_435_761).to_be_bytes()
}

#[test]
fn many_topics_are_removed_in_ordered_steps() {
    let mut peers = PeerSubscriptions::default();
    let many = 5 * STEP as u32 / 2;
    let mut expected: Vec<Vec<u8>> = (0..many).map(|number| scattered(number).to_vec()).collect();
    expected.iter().for_each(|topic| assert!(peers.add(topic, A)));
    expected.sort_unstable();
    peers.leave(A, true);
    // Another pipe subscribes to one of the topics, which is settled for it first.
    assert_eq!(take_some_out(&mut peers), []);
    let taken = expected.remove(7);
    let mut settled = Vec::new();
    peers.remove_leaving_from(&taken, |pipe, topic, last| settled.push((pipe, topic.to_vec(), last)));
    peers.remove_leaving_from(b"nobody's", |_, _, _| unreachable!());
    assert_eq!(settled, [(A, taken.clone(), true)]);
    assert!(peers.add(&taken, B));
    let mut gone = Vec::new();
    while peers.is_leaving(A) {
        let step = take_some_out(&mut peers);
        assert!(step.len() <= STEP);
        gone.extend(step);
    }
    assert_eq!(gone, expected.into_iter().map(|topic| (topic, true)).collect::<Vec<_>>());
    assert_eq!(peers.len(), 1);
    assert_eq!(subscribers(&peers, &taken), [B]);
}

#[test]
fn leaving_pipes_are_removed_in_parallel() {
    let mut peers = PeerSubscriptions::default();
    let many = 3 * STEP as u32;
    for number in 0..many {
        peers.add(&scattered(number), A);
        peers.add(&scattered(number + 1), B);
    }
    let common = peers.len();
    peers.leave(A, false);
    peers.leave(B, false);
    let (mut steps, mut last) = (0, 0);
    while !peers.is_clean() {
        let gone = take_some_out(&mut peers);
        assert!(gone.len() <= 2 * STEP);
        last += gone.iter().filter(|(_, last)| *last).count();
        steps += 1;
    }
    assert_eq!((steps, last, peers.len()), (3, common, 0));
    assert_eq!((peers.memory_of(A), peers.memory_of(B)), (0, 0));
}

#[test]
fn peer_with_all_topics_and_many_more_joins_no_group() {
    let mut peers = PeerSubscriptions::default();
    for pipe in [A, B] {
        peers.add(b"", pipe);
        for number in 0..=GROUPED_TOPICS as u32 {
            peers.add(&scattered(number), pipe);
        }
        peers.ungroup(pipe, |_| ());
    }
    peers.regroup(|_| true, |_| panic!("it would take as long as there are topics"));
}

#[test]
fn exact_topics_are_no_prefixes() {
    let mut peers = PeerSubscriptions::exact();
    for length in 0..20 {
        peers.add(&[b'g'; 20][..length], A);
    }
    peers.add(b"gg", B);
    assert!(peers.is_clean());
    assert_eq!(
        (peers.exact_subscribers(b"gg"), peers.exact_subscribers(b"ggg"), peers.exact_subscribers(b"h")),
        (&[A, B][..], &[A][..], &[][..])
    );
}

#[test]
fn own_subscriptions_count() {
    let mut own = OwnSubscriptions::default();
    own.add(b"a");
    own.add(b"a");
    assert_eq!(own.len(), 1);
    assert!(!own.remove(b"a"));
    assert!(own.matches(b"abc", b""));
    assert!(own.remove(b"a"));
    assert!(!own.remove(b"a"));
    assert!(!own.matches(b"abc", b""));
    assert_eq!(own.iter().count(), 0);
}

#[test]
fn split_subject_matches_like_a_whole_one() {
    let mut own = OwnSubscriptions::default();
    own.add(b"topic");
    for cut in 0..=8 {
        let (head, tail) = b"topic.ab".split_at(cut);
        assert!(own.matches(head, tail), "{cut}");
        let (head, tail) = b"topiX.ab".split_at(cut);
        assert!(!own.matches(head, tail), "{cut}");
    }
    assert!(!own.matches(b"top", b"i"));
    assert!(!own.match_all());
    own.add(b"");
    assert!(own.match_all() && own.matches(b"", b""));
}
