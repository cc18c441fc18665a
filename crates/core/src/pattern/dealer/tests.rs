use crate::error::Error;
use crate::pattern::testbed::{TestBed, parts};
use tautline_proto::SocketType;

#[test]
fn sends_in_turn_and_receives_fairly() {
    let mut bed = TestBed::new(SocketType::Dealer);
    let ids = [bed.join(), bed.join()];
    bed.send([b"", b"0"]).unwrap();
    bed.send([b"", b"1"]).unwrap();
    assert_eq!(bed.peer_receives(ids[0]), Some(parts([b"", b"0"])));
    assert_eq!(bed.peer_receives(ids[1]), Some(parts([b"", b"1"])));
    bed.peer_sends(ids[1], [b"", b"r1"]);
    bed.peer_sends(ids[0], [b"", b"r0"]);
    assert_eq!(bed.recv(), Ok(parts([b"", b"r0"])));
    assert_eq!(bed.recv(), Ok(parts([b"", b"r1"])));
    assert_eq!(bed.recv(), Err(Error::Again));
}

#[test]
fn probes_new_peers() {
    let mut bed = TestBed::with(SocketType::Dealer, |options| options.probe_router = true);
    let id = bed.connect(b"");
    assert_eq!(bed.peer_receives(id), Some(parts([b""])));
    assert_eq!(bed.peer_receives(id), None);
    bed.pattern.pattern_mut().ready(&mut bed.pipes, id, false);
    assert_eq!(bed.peer_receives(id), None);
    let mut silent = TestBed::new(SocketType::Dealer);
    let id = silent.join();
    assert_eq!(silent.peer_receives(id), None);
}

#[test]
fn conflates_both_ways() {
    let mut bed = TestBed::with(SocketType::Dealer, |options| options.conflate = true);
    let id = bed.join();
    for body in [b"1", b"2"] {
        bed.send([body]).unwrap();
        bed.peer_sends(id, [body]);
    }
    assert_eq!(bed.peer_receives(id), Some(parts([b"2"])));
    assert_eq!(bed.recv(), Ok(parts([b"2"])));
    assert!(!bed.can_recv());
}
