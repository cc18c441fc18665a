use super::*;
use crate::pattern::testbed::{TestBed, parts};
use tautline_proto::SocketType;
use tautline_queue::message::Message;

fn bed() -> TestBed {
    TestBed::new(SocketType::Router)
}

#[test]
fn messages_carry_and_follow_routing_ids() {
    let mut bed = bed();
    let (a, b) = (bed.join_as(b"A"), bed.join_as(b"B"));
    assert!(bed.can_send() && !bed.can_recv());
    bed.peer_sends(a, [b"1", b"2"]);
    bed.peer_sends(b, [b"3"]);
    assert_eq!(bed.recv(), Ok(parts([b"A", b"1", b"2"])));
    assert_eq!(bed.recv(), Ok(parts([b"B", b"3"])));
    bed.send([b"B", b"x"]).unwrap();
    bed.send([b"A", b"", b"y"]).unwrap();
    bed.send([b"A", b"z"]).unwrap();
    assert_eq!(bed.peer_receives(b), Some(parts([b"x"])));
    assert_eq!(bed.peer_receives(a), Some(parts([b"", b"y"])));
    assert_eq!(bed.peer_receives(a), Some(parts([b"z"])));
}

#[test]
fn peers_without_routing_id_get_a_generated_one() {
    let mut bed = bed();
    let (a, b) = (bed.join(), bed.join());
    bed.peer_sends(a, [b"1"]);
    bed.peer_sends(b, [b"2"]);
    let (from_a, from_b) = (bed.recv().unwrap(), bed.recv().unwrap());
    for from in [&from_a, &from_b] {
        assert_eq!((from[0].len(), from[0][0]), (5, 0));
    }
    assert_ne!(from_a[0], from_b[0]);
    bed.send([&from_b[0], b"r"]).unwrap();
    assert_eq!(bed.peer_receives(b), Some(parts([b"r"])));
    assert_eq!(bed.peer_receives(a), None);
}

#[test]
fn unroutable_messages_are_dropped() {
    let mut bed = bed();
    bed.send([b"nobody", b"1", b"2"]).unwrap();
    let a = bed.join_as(b"A");
    // A routing id alone is not a message.
    bed.send([b"A"]).unwrap();
    bed.send_owned(b"A", true).unwrap();
    bed.send_owned(b"x", false).unwrap();
    assert_eq!(bed.peer_receives(a), Some(parts([b"x"])));
    bed.end_peer(a);
    bed.send([b"A", b"y"]).unwrap();
}

#[test]
fn mandatory_rejects_unroutable_messages() {
    let mut bed = TestBed::with(SocketType::Router, |options| {
        options.router_mandatory = true;
        (options.send_hwm, options.receive_hwm) = (1, 1);
    });
    assert!(!bed.can_send());
    assert_eq!(bed.send_part(b"A", true), Err(Error::HostUnreachable));
    assert_eq!(bed.send_part(b"A", false), Ok(()));
    let a = bed.join_as(b"A");
    assert!(bed.can_send());
    let filled = bed.fill(a);
    assert!(!bed.can_send());
    assert_eq!(bed.send_part(b"A", true), Err(Error::Again));
    let other = bed.join_as(b"B");
    assert!(bed.can_send());
    assert!(!bed.pattern.can_send_refused(&mut bed.pipes));
    assert_eq!(bed.empty(a), filled);
    assert!(bed.pattern.can_send_refused(&mut bed.pipes));
    bed.fill(a);
    assert_eq!(bed.send_part(b"A", true), Err(Error::Again));
    bed.end_peer(a);
    assert!(bed.pattern.can_send_refused(&mut bed.pipes));
    bed.detach(a);
    assert!(bed.pattern.can_send_refused(&mut bed.pipes));
    bed.leave(other);
    let a = bed.join_as(b"A");
    bed.send([b"A", b"x"]).unwrap();
    assert_eq!(bed.peer_receives(a), Some(parts([b"x"])));
    bed.end_peer(a);
    assert_eq!(bed.send_part(b"A", true), Err(Error::HostUnreachable));
    assert!(!bed.can_send());
}

#[test]
fn without_mandatory_a_full_peer_misses_the_message() {
    let mut bed =
        TestBed::with(SocketType::Router, |options| (options.send_hwm, options.receive_hwm) = (1, 1));
    let a = bed.join_as(b"A");
    let filled = bed.fill(a);
    assert!(bed.can_send());
    bed.send([b"A", b"x", b"y"]).unwrap();
    assert_eq!(bed.empty(a), filled);
}

#[test]
fn remaining_parts_are_dropped_when_the_peer_ends() {
    let mut bed = bed();
    let a = bed.join_as(b"A");
    bed.send_part(b"A", true).unwrap();
    bed.send_part(b"1", true).unwrap();
    bed.leave(a);
    let again = bed.join_as(b"A");
    bed.send_part(b"2", false).unwrap();
    assert_eq!(bed.peer_receives(again), None);
    bed.send([b"A", b"3"]).unwrap();
    assert_eq!(bed.peer_receives(again), Some(parts([b"3"])));
}

#[test]
fn half_received_message_outlives_its_peer() {
    let mut bed = bed();
    let a = bed.join_as(b"A");
    bed.peer_sends(a, [b"1", b"2"]);
    assert_eq!(bed.recv_part(), Ok((b"A".to_vec(), true)));
    bed.detach(a);
    assert_eq!(bed.recv(), Ok(parts([b"1", b"2"])));
    assert_eq!(bed.recv(), Err(Error::Again));
}

#[test]
fn duplicate_routing_id_is_ignored_until_free() {
    let mut bed = bed();
    let first = bed.join_as(b"A");
    let second = bed.join_as(b"A");
    bed.peer_sends(second, [b"lost"]);
    assert_eq!(bed.recv(), Err(Error::Again));
    bed.send([b"A", b"x"]).unwrap();
    assert_eq!(bed.peer_receives(first), Some(parts([b"x"])));
    assert_eq!(bed.peer_receives(second), None);
    bed.leave(first);
    bed.peer_sends(second, [b"heard"]);
    assert_eq!(bed.recv(), Ok(parts([b"A", b"heard"])));
    bed.send([b"A", b"y"]).unwrap();
    assert_eq!(bed.peer_receives(second), Some(parts([b"y"])));
    let third = bed.join_as(b"A");
    bed.leave(third);
    bed.send([b"A", b"z"]).unwrap();
    assert_eq!(bed.peer_receives(second), Some(parts([b"z"])));
}

#[test]
fn handover_moves_the_id_to_the_new_peer() {
    let mut bed = TestBed::with(SocketType::Router, |options| options.router_handover = true);
    let first = bed.join_as(b"A");
    bed.peer_sends(first, [b"1", b"2"]);
    bed.peer_sends(first, [b"3"]);
    assert_eq!(bed.recv_part(), Ok((b"A".to_vec(), true)));
    let second = bed.join_as(b"A");
    assert_eq!(bed.closed(), []);
    bed.peer_sends(second, [b"5"]);
    bed.peer_sends(first, [b"too late"]);
    // The begun message is finished, and earlier messages are received first.
    assert_eq!(bed.recv(), Ok(parts([b"1", b"2"])));
    assert_eq!(bed.recv(), Ok(parts([b"A", b"3"])));
    assert_eq!(bed.recv(), Ok(parts([b"A", b"5"])));
    assert_eq!(bed.recv(), Err(Error::Again));
    bed.send([b"A", b"x"]).unwrap();
    assert_eq!(bed.peer_receives(second), Some(parts([b"x"])));
    assert_eq!(bed.peer_receives(first), None);
}

#[test]
fn freed_id_returns_to_the_last_peer_that_lost_it() {
    let mut bed = TestBed::with(SocketType::Router, |options| options.router_handover = true);
    let [first, second, third] = [(); 3].map(|()| bed.join_as(b"A"));
    bed.leave(third);
    bed.peer_sends(first, [b"unheard"]);
    bed.peer_sends(second, [b"1"]);
    assert_eq!(bed.recv(), Ok(parts([b"A", b"1"])));
    bed.send([b"A", b"x"]).unwrap();
    assert_eq!(bed.peer_receives(second), Some(parts([b"x"])));
    bed.leave(first);
    bed.leave(second);
    assert_eq!(bed.pattern.pipe_by_routing_id(b"A"), Ok(None));
}

#[test]
fn unfinished_message_does_not_move_to_the_new_peer() {
    let mut bed = TestBed::with(SocketType::Router, |options| options.router_handover = true);
    let first = bed.join_as(b"A");
    bed.send_part(b"A", true).unwrap();
    bed.send_part(b"1", true).unwrap();
    let second = bed.join_as(b"A");
    bed.send_part(b"2", false).unwrap();
    bed.send([b"A", b"3"]).unwrap();
    assert_eq!(bed.peer_receives(first), None);
    assert_eq!(bed.peer_receives(second), Some(parts([b"3"])));
}

#[test]
fn ended_peer_does_not_block_its_routing_id() {
    for handover in [false, true] {
        let mut bed = TestBed::with(SocketType::Router, |options| options.router_handover = handover);
        let mut expected = Vec::new();
        for number in [b"1", b"2", b"3"] {
            let id = bed.join_as(b"A");
            bed.peer_sends(id, [number, b"part"]);
            bed.peer_sends(id, [number]);
            bed.end_peer(id);
            expected.extend([parts([b"A", number, b"part"]), parts([b"A", number])]);
        }
        let last = bed.join_as(b"A");
        assert_eq!(bed.closed().len(), 3, "nothing holds them");
        bed.peer_sends(last, [b"4"]);
        expected.push(parts([b"A", b"4"]));
        bed.send([b"A", b"x"]).unwrap();
        assert_eq!(bed.peer_receives(last), Some(parts([b"x"])));
        for message in expected {
            assert_eq!(bed.recv(), Ok(message));
        }
        assert_eq!(bed.recv(), Err(Error::Again));
    }
}

#[test]
fn routing_id_is_free_before_messages_are_received() {
    let mut bed = bed();
    let [first, second] = [(); 2].map(|()| bed.join_as(b"A"));
    bed.peer_sends(first, [b"1"]);
    bed.peer_sends(second, [b"unheard"]);
    bed.end_peer(first);
    // The socket reports that the peer has left.
    bed.pattern.pattern_mut().handle_readable(&mut bed.pipes, first);
    assert_eq!(bed.closed(), [first]);
    bed.peer_sends(second, [b"2"]);
    assert_eq!(bed.recv(), Ok(parts([b"A", b"1"])));
    assert_eq!(bed.recv(), Ok(parts([b"A", b"2"])));
}

#[test]
fn disconnect_message_precedes_the_next_peer() {
    let mut bed = TestBed::with(SocketType::Router, |options| options.set(111, b"gone").unwrap());
    for _ in 0..2 {
        let id = bed.join_as(b"A");
        bed.peer_sends(id, [b"1"]);
        bed.end_peer(id);
    }
    let last = bed.join_as(b"A");
    bed.peer_sends(last, [b"2"]);
    for body in [b"1", &b"gone"[..], b"1", b"gone", b"2"] {
        assert_eq!(bed.recv(), Ok(parts([b"A", body])));
    }
}

#[test]
fn the_connecting_side_may_name_its_peer() {
    let mut bed = bed();
    let id = bed.connect(b"server");
    bed.send([b"server", b"before the handshake"]).unwrap();
    assert_eq!(bed.peer_receives(id), Some(parts([b"before the handshake"])));
    bed.pattern.pattern_mut().ready(&mut bed.pipes, id, false);
    bed.pattern.pattern_mut().ready(&mut bed.pipes, id, true);
    bed.peer_sends(id, [b"x"]);
    assert_eq!(bed.recv(), Ok(parts([b"server", b"x"])));
    let mut bed = TestBed::with(SocketType::Router, |options| options.router_mandatory = true);
    let id = bed.connect(b"");
    assert_eq!(bed.send_part(b"A", true), Err(Error::HostUnreachable));
    assert!(bed.pipes.get(id).unwrap().peer.routing_id.is_empty());
    bed.pattern.pattern_mut().ready(&mut bed.pipes, id, false);
    assert!(bed.can_send());
}

#[test]
fn raw_peers_are_closed_by_an_empty_message() {
    let mut bed = TestBed::with(SocketType::Router, |options| options.router_raw = true);
    let id = bed.join_as(b"not asked");
    bed.peer_sends(id, [b"bytes"]);
    let got = bed.recv().unwrap();
    assert_eq!((got[0].len(), got[0][0], &got[1][..]), (5, 0, &b"bytes"[..]));
    bed.send_part(&got[0], true).unwrap();
    // The MORE flag is ignored: each part is a message.
    bed.send_part(b"answer", true).unwrap();
    assert_eq!(bed.peer_receives(id), Some(parts([b"answer"])));
    bed.send([&got[0], b""]).unwrap();
    assert_eq!(bed.closed(), [id]);
    bed.send([&got[0], b"gone"]).unwrap();
}

#[test]
fn probes_new_peers() {
    let mut bed = TestBed::with(SocketType::Router, |options| options.probe_router = true);
    let id = bed.connect(b"");
    assert_eq!(bed.peer_receives(id), Some(parts([b""])));
}

#[test]
fn routing_id_parts_carry_the_properties_of_the_peer() {
    let mut bed = bed();
    let id = bed.join_as(b"A");
    bed.peer_sends(id, [b"x"]);
    let mut part = Message::new();
    bed.pattern.recv(&mut bed.pipes, &mut Target::Message(&mut part)).unwrap();
    assert!(part.metadata().is_some());
}

#[test]
fn inproc_peers_are_not_notified_about() {
    let mut bed = TestBed::with(SocketType::Router, |options| {
        options.router_notify = NOTIFY_CONNECT | NOTIFY_DISCONNECT
    });
    let id = bed.join_as(b"A");
    assert!(!bed.can_recv());
    bed.leave(id);
    assert!(!bed.can_recv());
}
