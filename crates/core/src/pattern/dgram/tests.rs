use crate::error::Error;
use crate::pattern::testbed::{TestBed, parts};
use tautline_proto::SocketType;

#[test]
fn a_message_is_an_address_and_a_body() {
    let mut bed = TestBed::new(SocketType::Dgram);
    let id = bed.join();
    assert_eq!(bed.send_part(b"alone", false), Err(Error::Invalid));
    bed.send_part(b"host:1", true).unwrap();
    assert_eq!(bed.send_part(b"more", true), Err(Error::Invalid));
    bed.send_part(b"body", false).unwrap();
    assert_eq!(bed.peer_receives(id), Some(parts([b"host:1", b"body"])));
    bed.peer_sends(id, [b"host:2", b"answer"]);
    assert_eq!(bed.recv(), Ok(parts([b"host:2", b"answer"])));
}

#[test]
fn second_endpoint_is_refused_and_no_endpoint_drops() {
    let mut bed = TestBed::new(SocketType::Dgram);
    bed.send([b"host:1", b"dropped"]).unwrap();
    let id = bed.join();
    let second = bed.join();
    assert_eq!(bed.closed(), [second]);
    bed.send_part(b"host:1", true).unwrap();
    bed.leave(id);
    bed.send_part(b"dropped", false).unwrap();
    let next = bed.join();
    bed.send([b"host:1", b"sent"]).unwrap();
    assert_eq!(bed.peer_receives(next), Some(parts([b"host:1", b"sent"])));
}
