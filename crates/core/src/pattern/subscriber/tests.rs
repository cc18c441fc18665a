use crate::error::Error;
use crate::pattern::testbed::{TestBed, parts};
use tautline_proto::SocketType;

fn subscribe(bed: &mut TestBed, topic: &[u8]) {
    bed.pattern.pattern_mut().subscribe(&mut bed.pipes, topic, true).unwrap();
}

fn cancel(bed: &mut TestBed, topic: &[u8]) {
    bed.pattern.pattern_mut().subscribe(&mut bed.pipes, topic, false).unwrap();
}

fn on(topic: &[u8]) -> (bool, Vec<u8>) {
    (true, topic.to_vec())
}

fn off(topic: &[u8]) -> (bool, Vec<u8>) {
    (false, topic.to_vec())
}

#[test]
fn subscriptions_go_to_every_publisher() {
    let mut bed = TestBed::new(SocketType::Sub);
    subscribe(&mut bed, b"a");
    subscribe(&mut bed, b"a");
    subscribe(&mut bed, b"");
    assert_eq!(bed.pattern.topics_count(), Some(2));
    let first = bed.connect(b"");
    let mut sent = bed.peer_commands(first);
    sent.sort();
    assert_eq!(sent, [on(b""), on(b"a")]);
    bed.pattern.pattern_mut().ready(&mut bed.pipes, first, false);
    assert!(bed.peer_commands(first).is_empty());
    let second = bed.join();
    assert_eq!(bed.peer_commands(second).len(), 2);
    subscribe(&mut bed, b"b");
    for id in [first, second] {
        assert_eq!(bed.peer_commands(id), [on(b"b")]);
    }
    bed.pattern.pattern_mut().ready(&mut bed.pipes, first, true);
    assert_eq!(bed.peer_commands(first).len(), 3);
    assert!(bed.peer_commands(second).is_empty());
}

#[test]
fn only_the_last_equal_cancellation_is_sent() {
    let mut bed = TestBed::new(SocketType::Sub);
    let id = bed.join();
    subscribe(&mut bed, b"a");
    subscribe(&mut bed, b"a");
    assert_eq!(bed.peer_commands(id), [on(b"a"), on(b"a")]);
    cancel(&mut bed, b"a");
    assert!(bed.peer_commands(id).is_empty());
    cancel(&mut bed, b"a");
    assert_eq!(bed.peer_commands(id), [off(b"a")]);
    cancel(&mut bed, b"a");
    cancel(&mut bed, b"never");
    assert!(bed.peer_commands(id).is_empty());
    assert_eq!(bed.pattern.topics_count(), Some(0));
}

#[test]
fn verbose_sends_every_cancellation() {
    let mut bed = TestBed::with(SocketType::XSub, |options| options.xsub_verbose_unsubscribe = true);
    let id = bed.join();
    for body in [b"\x01a", b"\x01a", b"\x00a", b"\x00a", b"\x00a"] {
        bed.send([body]).unwrap();
    }
    assert_eq!(bed.peer_commands(id), [on(b"a"), on(b"a"), off(b"a"), off(b"a"), off(b"a")]);
}

#[test]
fn sub_filters_what_it_receives() {
    let mut bed = TestBed::new(SocketType::Sub);
    let id = bed.join();
    assert!(!bed.can_send());
    assert_eq!(bed.send([b"\x01a"]), Err(Error::NotSupported));
    bed.peer_sends(id, [b"a"]);
    assert!(!bed.can_recv());
    subscribe(&mut bed, b"ab");
    bed.peer_sends(id, [b"a", b"abc"]);
    bed.peer_sends(id, [b"abc", b"a"]);
    bed.peer_sends(id, [b"b"]);
    assert_eq!(bed.recv(), Ok(parts([b"abc", b"a"])));
    assert_eq!(bed.recv(), Err(Error::Again));
    bed.peer_sends(id, [b"x"]);
    bed.peer_sends(id, [b"ab"]);
    assert_eq!(bed.recv_cut(), [(2, false)]);
    subscribe(&mut bed, b"");
    bed.peer_sends(id, [b""]);
    assert_eq!(bed.recv(), Ok(parts([b""])));
}

#[test]
fn inverted_matching_lets_the_others_through() {
    let mut bed = TestBed::with(SocketType::Sub, |options| options.invert_matching = true);
    let id = bed.join();
    subscribe(&mut bed, b"a");
    bed.peer_sends(id, [b"a"]);
    bed.peer_sends(id, [b"b"]);
    assert_eq!(bed.recv(), Ok(parts([b"b"])));
    subscribe(&mut bed, b"");
    bed.peer_sends(id, [b"b"]);
    assert_eq!(bed.recv(), Err(Error::Again));
}

#[test]
fn begun_message_survives_unsubscribe_and_detach() {
    let mut bed = TestBed::new(SocketType::Sub);
    let id = bed.join();
    subscribe(&mut bed, b"a");
    bed.peer_sends(id, [b"a", b"not a topic"]);
    assert_eq!(bed.recv_part(), Ok((b"a".to_vec(), true)));
    cancel(&mut bed, b"a");
    bed.detach(id);
    assert_eq!(bed.recv_part(), Ok((b"not a topic".to_vec(), false)));
}

#[test]
fn xsub_subscribes_by_messages_and_does_not_filter() {
    let mut bed = TestBed::new(SocketType::XSub);
    let id = bed.join();
    assert!(bed.can_send());
    bed.send_owned(b"\x01a", false).unwrap();
    bed.send([b"\x01"]).unwrap();
    bed.send([b"\x00a"]).unwrap();
    bed.send([b"\x00a"]).unwrap();
    assert_eq!(bed.peer_commands(id), [on(b"a"), on(b""), off(b"a")]);
    assert_eq!(bed.pattern.topics_count(), Some(1));
    bed.send([b"\x00"]).unwrap();
    bed.peer_sends(id, [b"anything"]);
    assert_eq!(bed.recv(), Ok(parts([b"anything"])));
    assert_eq!(bed.pattern.pattern_mut().subscribe(&mut bed.pipes, b"a", true), Err(Error::Invalid));
}

#[test]
fn xsub_sends_other_messages_to_all_publishers() {
    let mut bed = TestBed::with(SocketType::XSub, |options| (options.send_hwm, options.receive_hwm) = (1, 1));
    let ids = [bed.join(), bed.join()];
    bed.send([b"hello", b"\x01a", b"x"]).unwrap();
    bed.send([b""]).unwrap();
    for id in ids {
        assert_eq!(bed.peer_receives(id), Some(parts([b"hello", b"\x01a", b"x"])));
        assert_eq!(bed.peer_receives(id), Some(parts([b""])));
        assert_eq!(bed.peer_receives(id), None);
    }
    // A subscription within a message takes effect.
    let late = bed.join();
    assert_eq!(bed.peer_commands(late), [on(b"a")]);
    let filled = bed.fill(ids[0]);
    bed.send([b"more"]).unwrap();
    assert_eq!(bed.peer_receives(ids[1]), Some(parts([b"more"])));
    assert_eq!(bed.empty(ids[0]), filled);
}

#[test]
fn only_first_part_subscribes_if_option_is_set() {
    let mut bed = TestBed::with(SocketType::XSub, |options| options.only_first_subscribe = true);
    let id = bed.join();
    bed.send([b"hello", b"\x01a"]).unwrap();
    assert_eq!(bed.pattern.topics_count(), Some(0));
    bed.send([b"\x01b", b"\x01c"]).unwrap();
    assert_eq!(bed.pattern.topics_count(), Some(2));
    assert_eq!(bed.peer_receives(id), Some(parts([b"hello", b"\x01a"])));
    assert_eq!(bed.peer_receives(id), Some(parts([b"\x01b", b"\x01c"])));
}

#[test]
fn conflated_messages_are_filtered_too() {
    let mut bed = TestBed::with(SocketType::Sub, |options| options.conflate = true);
    let id = bed.join();
    subscribe(&mut bed, b"a");
    bed.peer_sends(id, [b"b"]);
    assert!(!bed.can_recv());
    bed.peer_sends(id, [b"a1"]);
    bed.peer_sends(id, [b"a2"]);
    assert!(bed.can_recv());
    assert_eq!(bed.recv(), Ok(parts([b"a2"])));
    assert_eq!(bed.recv(), Err(Error::Again));
}
