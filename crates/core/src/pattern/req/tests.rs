use crate::error::Error;
use crate::pattern::testbed::{TestBed, parts};
use tautline_proto::SocketType;

#[test]
fn requests_and_replies_alternate() {
    let mut bed = TestBed::new(SocketType::Req);
    assert!(!bed.can_send() && !bed.can_recv());
    assert_eq!(bed.recv(), Err(Error::State));
    assert_eq!(bed.send([b"x"]), Err(Error::Again));
    let id = bed.join();
    for _ in 0..2 {
        assert!(bed.can_send());
        bed.send_part(b"a", true).unwrap();
        assert!(bed.can_send());
        assert_eq!(bed.recv(), Err(Error::State));
        bed.send_owned(b"b", false).unwrap();
        assert!(!bed.can_send());
        assert_eq!(bed.send([b"again"]), Err(Error::State));
        assert_eq!(bed.recv(), Err(Error::Again));
        assert_eq!(bed.peer_receives(id), Some(parts([b"", b"a", b"b"])));
        bed.peer_sends(id, [b"", b"c", b"d"]);
        assert_eq!(bed.recv_part(), Ok((b"c".to_vec(), true)));
        assert_eq!(bed.send([b"early"]), Err(Error::State));
        assert!(!bed.can_send());
        assert_eq!(bed.recv_part(), Ok((b"d".to_vec(), false)));
        assert_eq!(bed.recv(), Err(Error::State));
    }
}

#[test]
fn asks_its_peers_in_turn() {
    let mut bed = TestBed::new(SocketType::Req);
    let ids = [bed.join(), bed.join()];
    for id in [ids[0], ids[1], ids[0]] {
        bed.send([b"q"]).unwrap();
        assert_eq!(bed.peer_receives(id), Some(parts([b"", b"q"])));
        bed.peer_sends(id, [b"", b"r"]);
        assert_eq!(bed.recv(), Ok(parts([b"r"])));
    }
}

#[test]
fn malformed_and_foreign_replies_are_dropped() {
    let mut bed = TestBed::new(SocketType::Req);
    let (asked, other) = (bed.join(), bed.join());
    bed.send([b"q"]).unwrap();
    bed.peer_sends(other, [b"", b"not asked"]);
    bed.peer_sends(asked, [b""]);
    bed.peer_sends(asked, [b"no delimiter", b"x"]);
    bed.peer_sends(asked, [b"single"]);
    assert!(!bed.can_recv());
    assert_eq!(bed.recv(), Err(Error::Again));
    bed.peer_sends(asked, [b"x", b"", b"y"]);
    bed.peer_sends(asked, [b"", b"", b"good"]);
    assert_eq!(bed.recv(), Ok(parts([b"", b"good"])));
}

#[test]
fn stale_messages_are_dropped_before_a_request() {
    let mut bed = TestBed::new(SocketType::Req);
    let id = bed.join();
    bed.peer_sends(id, [b"", b"stale"]);
    bed.send([b"q"]).unwrap();
    assert!(!bed.can_recv());
    bed.peer_sends(id, [b"", b"fresh"]);
    assert_eq!(bed.recv(), Ok(parts([b"fresh"])));
}

#[test]
fn unexpected_messages_are_dropped_on_arrival() {
    let mut bed = TestBed::new(SocketType::Req);
    let (id, other) = (bed.join(), bed.join());
    bed.peer_sends(id, [b"", b"early"]);
    assert!(!bed.pipes.get(id).unwrap().can_recv());
    bed.send_part(b"q", true).unwrap();
    bed.peer_sends(other, [b"", b"early"]);
    assert!(!bed.pipes.get(other).unwrap().can_recv());
    bed.send_part(b"r", false).unwrap();
    bed.peer_sends(other, [b"", b"foreign"]);
    bed.peer_sends(id, [b"", b"reply", b"end"]);
    assert_eq!(bed.recv_part(), Ok((b"reply".to_vec(), true)));
    bed.peer_sends(other, [b"", b"late"]);
    assert_eq!(bed.recv_part(), Ok((b"end".to_vec(), false)));
    bed.peer_sends(id, [b"", b"late"]);
    assert!(!bed.pipes.get(id).unwrap().can_recv());
}

#[test]
fn correlated_replies_must_carry_the_request_id() {
    let mut bed = TestBed::with(SocketType::Req, |options| options.req_correlate = true);
    let id = bed.join();
    bed.send([b"q"]).unwrap();
    let request = bed.peer_receives(id).unwrap();
    assert_eq!((request.len(), request[0].len()), (3, 4));
    assert_eq!(request[1..], parts([b"", b"q"]));
    let mut wrong = request[0].clone();
    wrong[0] ^= 1;
    bed.peer_sends(id, [&wrong, b"", b"wrong"]);
    bed.peer_sends(id, [b"", b"without"]);
    bed.peer_sends(id, [&request[0]]);
    bed.peer_sends(id, [&request[0], b"no delimiter"]);
    bed.peer_sends(id, [&request[0], b""]);
    assert!(!bed.can_recv());
    bed.peer_sends(id, [&request[0], b"", b"right"]);
    assert_eq!(bed.recv(), Ok(parts([b"right"])));
    bed.send([b"q"]).unwrap();
    assert_ne!(bed.peer_receives(id).unwrap()[0], request[0]);
}

#[test]
fn relaxed_requests_may_be_repeated() {
    let mut bed = TestBed::with(SocketType::Req, |options| {
        options.req_relaxed = true;
        options.req_correlate = true;
    });
    let (first, second) = (bed.join(), bed.join());
    bed.send([b"1"]).unwrap();
    let old = bed.peer_receives(first).unwrap();
    assert!(bed.can_send());
    bed.send([b"2"]).unwrap();
    let new = bed.peer_receives(second).unwrap();
    bed.peer_sends(first, [&old[0], b"", b"late"]);
    assert!(!bed.can_recv());
    bed.peer_sends(second, [&new[0], b"", b"reply", b"end"]);
    assert_eq!(bed.recv_part(), Ok((b"reply".to_vec(), true)));
    // Even a half-read reply is dropped.
    bed.send([b"3"]).unwrap();
    let again = bed.peer_receives(first).unwrap();
    assert_eq!(bed.recv(), Err(Error::Again));
    bed.peer_sends(first, [&again[0], b"", b"done"]);
    assert_eq!(bed.recv(), Ok(parts([b"done"])));
}

#[test]
fn reply_to_abandoned_request_is_dropped() {
    let mut bed = TestBed::with(SocketType::Req, |options| options.req_relaxed = true);
    let id = bed.join();
    bed.send([b"1"]).unwrap();
    bed.peer_sends(id, [b"", b"r1"]);
    bed.send([b"2"]).unwrap();
    assert!(!bed.can_recv());
    bed.peer_sends(id, [b"", b"r2"]);
    assert_eq!(bed.recv(), Ok(parts([b"r2"])));
}

#[test]
fn a_lost_peer_leaves_the_request_open() {
    let mut bed = TestBed::new(SocketType::Req);
    let (asked, other) = (bed.join(), bed.join());
    bed.send([b"q"]).unwrap();
    bed.leave(asked);
    assert!(!bed.can_send());
    assert_eq!(bed.send([b"q"]), Err(Error::State));
    assert_eq!(bed.recv(), Err(Error::Again));
    // The request no longer waits for a particular peer.
    bed.peer_sends(other, [b"", b"somebody"]);
    assert_eq!(bed.recv(), Ok(parts([b"somebody"])));
}

#[test]
fn a_reply_is_readable_after_its_peer_has_gone() {
    let mut bed = TestBed::new(SocketType::Req);
    let id = bed.join();
    bed.send([b"q"]).unwrap();
    bed.peer_sends(id, [b"", b"a", b"b"]);
    bed.end_peer(id);
    assert_eq!(bed.recv_part(), Ok((b"a".to_vec(), true)));
    bed.detach(id);
    assert_eq!(bed.recv_part(), Ok((b"b".to_vec(), false)));
}

#[test]
fn unfinished_request_is_dropped_with_its_peer() {
    let mut bed = TestBed::new(SocketType::Req);
    let (first, second) = (bed.join(), bed.join());
    bed.send_part(b"1", true).unwrap();
    bed.leave(first);
    bed.send_part(b"2", false).unwrap();
    assert_eq!(bed.peer_receives(second), None);
    assert!(!bed.can_send());
}

#[test]
fn blocked_request_leaves_state_unchanged() {
    let mut bed = TestBed::with(SocketType::Req, |options| (options.send_hwm, options.receive_hwm) = (1, 1));
    let id = bed.join();
    bed.fill(id);
    assert_eq!(bed.send([b"q"]), Err(Error::Again));
    assert_eq!(bed.recv(), Err(Error::State));
    bed.empty(id);
    bed.send([b"q"]).unwrap();
    assert_eq!(bed.peer_receives(id), Some(parts([b"", b"q"])));
}

#[test]
fn probes_new_peers() {
    let mut bed = TestBed::with(SocketType::Req, |options| options.probe_router = true);
    let id = bed.join();
    assert_eq!(bed.peer_receives(id), Some(parts([b""])));
}
