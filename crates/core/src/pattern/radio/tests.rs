use crate::error::Error;
use crate::pattern::testbed::{TestBed, parts};
use crate::pipe::{Body, Part, PipeId};
use tautline_proto::{SocketType, command};
use tautline_queue::message::Message;

fn send(bed: &mut TestBed, group: &[u8], body: &[u8]) -> Result<(), Error> {
    let mut message = Message::from_slice(body);
    assert!(message.set_group(group));
    let mut part = Part { body: Body::Owned(&mut message), more: false, patient: false };
    bed.pattern.send(&mut bed.pipes, &mut part).map(|_| ())
}

fn peer_joins(bed: &mut TestBed, id: PipeId, group: &[u8], joins: bool) {
    let prefix = if joins { command::join_prefix() } else { command::leave_prefix() };
    bed.peer(id).send_command(&[prefix, group].concat());
    bed.pattern.pattern_mut().handle_readable(&mut bed.pipes, id);
}

#[test]
fn messages_go_to_the_members_of_their_group() {
    let mut bed = TestBed::new(SocketType::Radio);
    let (movies, both, none) = (bed.join(), bed.join(), bed.join());
    peer_joins(&mut bed, movies, b"Movies", true);
    peer_joins(&mut bed, both, b"Movies", true);
    peer_joins(&mut bed, both, b"Movies", true);
    peer_joins(&mut bed, both, b"TV", true);
    send(&mut bed, b"Movies", b"1").unwrap();
    send(&mut bed, b"TV", &[7; 9000]).unwrap();
    send(&mut bed, b"Movie", b"3").unwrap();
    bed.send([b"4"]).unwrap();
    assert_eq!(bed.peer_receives(movies), Some(parts([b"Movies", b"1"])));
    assert_eq!(bed.peer_receives(movies), None);
    assert_eq!(bed.peer_receives(both), Some(parts([b"Movies", b"1"])));
    assert_eq!(bed.peer_receives(both), Some(parts([b"TV", &[7; 9000]])));
    assert_eq!(bed.peer_receives(both), None);
    assert_eq!(bed.peer_receives(none), None);
    peer_joins(&mut bed, both, b"Movies", false);
    send(&mut bed, b"Movies", b"5").unwrap();
    assert_eq!(bed.peer_receives(both), None);
    assert_eq!(bed.peer_receives(movies), Some(parts([b"Movies", b"5"])));
    bed.leave(movies);
    let next = bed.join();
    send(&mut bed, b"Movies", b"6").unwrap();
    assert_eq!(bed.peer_receives(next), None);
}

#[test]
fn full_peer_misses_messages_or_blocks_with_nodrop() {
    let full = |nodrop: bool| {
        let mut bed = TestBed::with(SocketType::Radio, |options| {
            (options.send_hwm, options.receive_hwm) = (1, 1);
            options.xpub_nodrop = nodrop;
        });
        let id = bed.join();
        peer_joins(&mut bed, id, b"g", true);
        bed.fill(id);
        (bed, id)
    };
    let (mut bed, id) = full(false);
    send(&mut bed, b"g", b"lost").unwrap();
    assert_eq!(bed.empty(id), 2);
    send(&mut bed, b"g", b"x").unwrap();
    assert_eq!(bed.peer_receives(id), Some(parts([b"g", b"x"])));
    let (mut bed, id) = full(true);
    assert_eq!(send(&mut bed, b"g", b"x"), Err(Error::Again));
    assert!(!bed.pattern.can_send_refused(&mut bed.pipes));
    assert_eq!(bed.empty(id), 2);
    assert!(bed.pattern.can_send_refused(&mut bed.pipes));
}

#[test]
fn only_single_parts_are_sent_and_nothing_is_received() {
    let mut bed = TestBed::new(SocketType::Radio);
    let id = bed.join();
    assert_eq!(bed.send_part(b"x", true), Err(Error::Invalid));
    bed.peer_sends(id, [b"noise", b"more"]);
    assert!(!bed.can_recv());
    assert_eq!(bed.recv(), Err(Error::NotSupported));
    // Names that a DISH may not have are ignored.
    peer_joins(&mut bed, id, &[b'g'; 256], true);
}

#[test]
fn peer_over_group_limit_is_evicted() {
    let mut bed = TestBed::with(SocketType::Radio, |options| options.max_subscriptions = Some(1 << 20));
    let (greedy, modest) = (bed.join(), bed.join());
    peer_joins(&mut bed, modest, b"g", true);
    for number in 0..30_000_u32 {
        peer_joins(&mut bed, greedy, &number.to_be_bytes(), true);
        peer_joins(&mut bed, greedy, &number.to_be_bytes(), false);
    }
    assert_eq!(bed.closed(), []);
    for number in 0..20_000_u32 {
        bed.peer(greedy).send_command(&[command::join_prefix(), &number.to_be_bytes()].concat());
    }
    for _ in 0..20 {
        bed.pattern.pattern_mut().handle_readable(&mut bed.pipes, greedy);
        if bed.pipes.has_closing() {
            break;
        }
    }
    assert_eq!(bed.closed(), [greedy]);
    send(&mut bed, b"g", b"x").unwrap();
    assert_eq!(bed.peer_receives(modest), Some(parts([b"g", b"x"])));
}

#[test]
fn peer_removed_during_a_round_does_not_disturb_others() {
    let mut bed = TestBed::with(SocketType::Radio, |options| options.max_subscriptions = Some(1 << 20));
    let ids = [bed.join(), bed.join()];
    peer_joins(&mut bed, ids[1], b"z", true);
    for number in 0..20_000_u32 {
        let body = [command::join_prefix(), &number.to_be_bytes()].concat();
        bed.peer(ids[0]).send_command(&body);
    }
    bed.pattern.pattern_mut().handle_readable(&mut bed.pipes, ids[0]);
    while !bed.pipes.has_closing() {
        bed.can_recv();
    }
    assert_eq!(bed.closed(), [ids[0]]);
    send(&mut bed, b"z", b"1").unwrap();
    assert_eq!(bed.peer_receives(ids[1]), Some(parts([b"z", b"1"])));
}
