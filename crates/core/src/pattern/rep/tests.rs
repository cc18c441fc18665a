use crate::error::Error;
use crate::pattern::testbed::{TestBed, parts};
use tautline_proto::SocketType;

#[test]
fn replies_go_back_in_the_envelope_of_the_request() {
    let mut bed = TestBed::new(SocketType::Rep);
    let (a, b) = (bed.join(), bed.join());
    let long = [9; 300];
    bed.peer_sends(a, [b"label", &long, b"", b"q", b""]);
    bed.peer_sends(b, [b"", b"p"]);
    assert!(!bed.can_send() && bed.can_recv());
    assert_eq!(bed.send([b"x"]), Err(Error::State));
    assert_eq!(bed.recv_part(), Ok((b"q".to_vec(), true)));
    assert!(!bed.can_send() && bed.can_recv());
    assert_eq!(bed.send([b"x"]), Err(Error::State));
    assert_eq!(bed.recv_part(), Ok((Vec::new(), false)));
    assert!(bed.can_send() && !bed.can_recv());
    assert_eq!(bed.recv(), Err(Error::State));
    assert_eq!(bed.peer_receives(a), None);
    bed.send_part(b"r", true).unwrap();
    assert!(bed.can_send());
    assert_eq!(bed.recv(), Err(Error::State));
    bed.send_owned(b"s", false).unwrap();
    assert_eq!(bed.peer_receives(a), Some(parts([b"label", &long, b"", b"r", b"s"])));
    assert_eq!(bed.peer_receives(b), None);
    assert_eq!(bed.recv(), Ok(parts([b"p"])));
    bed.send([b"t"]).unwrap();
    assert_eq!(bed.peer_receives(b), Some(parts([b"", b"t"])));
    assert_eq!(bed.send([b"u"]), Err(Error::State));
}

#[test]
fn messages_that_are_no_requests_are_dropped() {
    let mut bed = TestBed::new(SocketType::Rep);
    let id = bed.join();
    bed.peer_sends(id, [b""]);
    bed.peer_sends(id, [b"alone"]);
    bed.peer_sends(id, [b"no", b"delimiter", b"here"]);
    bed.peer_sends(id, [b"label", b""]);
    assert!(!bed.can_recv());
    assert_eq!(bed.recv(), Err(Error::Again));
    bed.peer_sends(id, [b"no", b"delimiter"]);
    bed.peer_sends(id, [b"", b"q"]);
    assert_eq!(bed.recv(), Ok(parts([b"q"])));
    bed.send([b"r"]).unwrap();
    assert_eq!(bed.peer_receives(id), Some(parts([b"", b"r"])));
}

#[test]
fn a_reply_without_a_peer_is_dropped() {
    let mut bed = TestBed::new(SocketType::Rep);
    let id = bed.join();
    bed.peer_sends(id, [b"", b"q"]);
    bed.recv().unwrap();
    bed.leave(id);
    assert!(bed.can_send());
    bed.send([b"r", b"s"]).unwrap();
    assert!(!bed.can_send());
    // The id of the pipe is reused: no part of the old reply goes to the new pipe.
    let id = bed.join();
    assert_eq!(bed.peer_receives(id), None);
    bed.peer_sends(id, [b"", b"q"]);
    bed.recv().unwrap();
    bed.send_part(b"1", true).unwrap();
    bed.leave(id);
    let id = bed.join();
    bed.send_part(b"2", false).unwrap();
    assert_eq!(bed.peer_receives(id), None);
}

#[test]
fn a_peer_without_room_misses_its_reply() {
    let mut bed = TestBed::with(SocketType::Rep, |options| (options.send_hwm, options.receive_hwm) = (1, 1));
    let id = bed.join();
    let filled = bed.fill(id);
    bed.peer_sends(id, [b"", b"q"]);
    assert_eq!(bed.recv(), Ok(parts([b"q"])));
    bed.send([b"lost"]).unwrap();
    assert_eq!(bed.empty(id), filled);
}

#[test]
fn a_request_is_read_to_its_end_after_its_peer_was_detached() {
    let mut bed = TestBed::new(SocketType::Rep);
    let id = bed.join();
    bed.peer_sends(id, [b"", b"1", b"2"]);
    assert!(bed.can_recv());
    bed.detach(id);
    assert_eq!(bed.recv(), Ok(parts([b"1", b"2"])));
    bed.send([b"to nobody"]).unwrap();
    assert_eq!(bed.recv(), Err(Error::Again));
}
