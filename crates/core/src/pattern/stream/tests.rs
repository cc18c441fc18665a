use crate::error::Error;
use crate::pattern::testbed::{TestBed, parts};
use tautline_proto::SocketType;

#[test]
fn bytes_come_with_the_id_of_the_peer() {
    let mut bed = TestBed::new(SocketType::Stream);
    assert!(bed.can_send() && !bed.can_recv());
    let (a, b) = (bed.join(), bed.join());
    let (come_a, come_b) = (bed.recv().unwrap(), bed.recv().unwrap());
    assert_eq!(come_a[1..], parts([b""]));
    assert_eq!((come_a[0].len(), come_a[0][0]), (5, 0));
    assert_ne!(come_a[0], come_b[0]);
    bed.peer_sends(b, [b"GET /"]);
    assert_eq!(bed.recv(), Ok(parts([&come_b[0], b"GET /"])));
    bed.send([&come_b[0], b"HTTP"]).unwrap();
    bed.send([&come_a[0], b"other"]).unwrap();
    assert_eq!(bed.peer_receives(b), Some(parts([b"HTTP"])));
    assert_eq!(bed.peer_receives(a), Some(parts([b"other"])));
    bed.peer_sends(a, [b"last words"]);
    bed.end_peer(a);
    assert_eq!(bed.recv(), Ok(parts([&come_a[0], b"last words"])));
    bed.detach(a);
    assert_eq!(bed.recv(), Ok(parts([&come_a[0], b""])));
    assert!(!bed.can_recv());
}

#[test]
fn an_empty_message_closes_the_peer() {
    let mut bed = TestBed::new(SocketType::Stream);
    let id = bed.join();
    let name = bed.recv().unwrap().remove(0);
    bed.send([&name, b""]).unwrap();
    assert_eq!(bed.closed(), [id]);
    assert!(!bed.can_recv());
    assert_eq!(bed.send([&name, b"x"]), Err(Error::HostUnreachable));
}

#[test]
fn notifications_can_be_turned_off() {
    let mut bed = TestBed::with(SocketType::Stream, |options| options.stream_notify = false);
    let id = bed.join();
    assert!(!bed.can_recv());
    bed.leave(id);
    assert!(!bed.can_recv());
}

#[test]
fn closing_a_peer_locally_is_not_notified() {
    let mut bed = TestBed::new(SocketType::Stream);
    let id = bed.join();
    bed.recv().unwrap();
    bed.detach(id);
    assert!(!bed.can_recv());
}

#[test]
fn reconnect_notifies_disconnect_and_connect() {
    let mut bed = TestBed::new(SocketType::Stream);
    let id = bed.connect(b"");
    assert!(!bed.can_recv());
    bed.pattern.pattern_mut().ready(&mut bed.pipes, id, false);
    let name = bed.recv().unwrap().remove(0);
    bed.pattern.pattern_mut().ready(&mut bed.pipes, id, true);
    assert_eq!(bed.recv(), Ok(parts([&name, b""])));
    assert_eq!(bed.recv(), Ok(parts([&name, b""])));
    assert!(!bed.can_recv());
}

#[test]
fn the_connecting_side_learns_or_chooses_the_id() {
    let mut bed = TestBed::new(SocketType::Stream);
    let made = bed.connect(b"");
    let name = bed.pipes.options.routing_id.clone();
    assert_eq!(name.len(), 5);
    let chosen = bed.connect(b"peer");
    assert_eq!(bed.pipes.options.routing_id, name);
    let taken = bed.connect(b"peer");
    assert_ne!(bed.pipes.options.routing_id, name);
    bed.send([&name, b"1"]).unwrap();
    bed.send([b"peer", b"2"]).unwrap();
    assert_eq!(bed.peer_receives(made), Some(parts([b"1"])));
    assert_eq!(bed.peer_receives(chosen), Some(parts([b"2"])));
    assert_eq!(bed.peer_receives(taken), None);
}

#[test]
fn sending_has_two_steps() {
    let mut bed =
        TestBed::with(SocketType::Stream, |options| (options.send_hwm, options.receive_hwm) = (1, 1));
    assert_eq!(bed.send_part(b"nobody", true), Err(Error::HostUnreachable));
    // A routing id without the MORE flag still takes the next part with it.
    assert_eq!(bed.send_part(b"nobody", false), Ok(()));
    assert_eq!(bed.send_part(b"dropped", false), Ok(()));
    let id = bed.join();
    let name = bed.recv().unwrap().remove(0);
    bed.fill(id);
    assert_eq!(bed.send_part(&name, true), Err(Error::Again));
    assert!(bed.can_send());
    assert!(!bed.pattern.can_send_refused(&mut bed.pipes));
    bed.empty(id);
    assert!(bed.pattern.can_send_refused(&mut bed.pipes));
    bed.send_part(&name, true).unwrap();
    // The MORE flag of the bytes is ignored.
    bed.send_part(b"x", true).unwrap();
    assert_eq!(bed.peer_receives(id), Some(parts([b"x"])));
    bed.send_part(&name, true).unwrap();
    bed.leave(id);
    bed.send_part(b"to nobody", false).unwrap();
    assert_eq!(bed.send_part(&name, true), Err(Error::HostUnreachable));
}

#[test]
fn ended_peer_with_unread_data_is_unreachable() {
    let mut bed = TestBed::new(SocketType::Stream);
    let id = bed.join();
    let name = bed.recv().unwrap().remove(0);
    bed.peer_sends(id, [b"unread"]);
    bed.end_peer(id);
    assert_eq!(bed.send_part(&name, true), Err(Error::HostUnreachable));
}
