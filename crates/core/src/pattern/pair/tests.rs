use crate::error::Error;
use crate::pattern::testbed::{TestBed, parts};
use tautline_proto::SocketType;

#[test]
fn talks_to_one_peer_both_ways() {
    let mut bed = TestBed::new(SocketType::Pair);
    assert!(!bed.can_send() && !bed.can_recv());
    let id = bed.join();
    assert!(bed.can_send() && !bed.can_recv());
    bed.send([b"a", b"b"]).unwrap();
    assert_eq!(bed.peer_receives(id), Some(parts([b"a", b"b"])));
    bed.peer_sends(id, [b"c", b"d"]);
    assert_eq!(bed.recv(), Ok(parts([b"c", b"d"])));
}

#[test]
fn refuses_a_second_peer() {
    let mut bed = TestBed::new(SocketType::Pair);
    let first = bed.join();
    let second = bed.insert(b"", b"");
    bed.pattern.pattern_mut().attach(&mut bed.pipes, second);
    assert_eq!(bed.closed(), [second]);
    bed.send([b"x"]).unwrap();
    assert_eq!(bed.peer_receives(first), Some(parts([b"x"])));
    bed.leave(first);
    assert!(!bed.can_send());
    let third = bed.join();
    assert!(bed.closed().is_empty());
    bed.send([b"y"]).unwrap();
    assert_eq!(bed.peer_receives(third), Some(parts([b"y"])));
}

#[test]
fn messages_of_an_ended_peer_can_be_read() {
    let mut bed = TestBed::new(SocketType::Pair);
    let id = bed.join();
    bed.peer_sends(id, [b"last"]);
    bed.end_peer(id);
    assert!(!bed.can_send());
    assert_eq!(bed.recv(), Ok(parts([b"last"])));
    bed.detach(id);
    assert_eq!(bed.recv(), Err(Error::Again));
}

#[test]
fn blocks_at_the_high_water_mark() {
    let mut bed = TestBed::with(SocketType::Pair, |options| (options.send_hwm, options.receive_hwm) = (1, 1));
    let id = bed.join();
    bed.fill(id);
    assert!(!bed.can_send());
    assert_eq!(bed.send([b"x"]), Err(Error::Again));
    bed.empty(id);
    assert_eq!(bed.send([b"x"]), Ok(()));
}

#[test]
fn a_new_peer_never_gets_half_a_message() {
    let mut bed = TestBed::new(SocketType::Pair);
    let first = bed.join();
    bed.send_part(b"1", true).unwrap();
    bed.leave(first);
    let second = bed.join();
    bed.send_part(b"2", false).unwrap();
    bed.send([b"whole"]).unwrap();
    assert_eq!(bed.peer_receives(second), Some(parts([b"whole"])));
}

#[test]
fn ended_peer_is_replaced_by_the_next() {
    for socket_type in [SocketType::Pair, SocketType::Channel] {
        let mut bed = TestBed::new(socket_type);
        for number in [b"1", b"2", b"3"] {
            let id = bed.join();
            bed.peer_sends(id, [number]);
            bed.peer_sends(id, [number]);
            bed.end_peer(id);
        }
        let last = bed.join();
        assert_eq!(bed.closed(), []);
        bed.peer_sends(last, [b"4"]);
        bed.send([b"x"]).unwrap();
        assert_eq!(bed.peer_receives(last), Some(parts([b"x"])));
        let other = bed.join();
        assert_eq!(bed.closed(), [other], "there is one");
        for number in [b"1", b"2", b"3"] {
            assert_eq!(bed.recv(), Ok(parts([number])));
            assert_eq!(bed.recv(), Ok(parts([number])));
            // The socket does so when all messages were received.
            let gone = bed.pipes.all().into_iter().find(|&id| bed.pipes.get(id).unwrap().has_ended());
            bed.detach(gone.unwrap());
        }
        assert_eq!(bed.recv(), Ok(parts([b"4"])));
    }
}
