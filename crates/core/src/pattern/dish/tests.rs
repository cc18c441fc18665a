use crate::error::Error;
use crate::pattern::testbed::{TestBed, parts};
use crate::pipe::Target;
use tautline_proto::{SocketType, command, frame};
use tautline_queue::message::Message;

fn join(bed: &mut TestBed, group: &[u8]) -> Result<(), Error> {
    bed.pattern.pattern_mut().join(&mut bed.pipes, group, true)
}

fn leave(bed: &mut TestBed, group: &[u8]) -> Result<(), Error> {
    bed.pattern.pattern_mut().join(&mut bed.pipes, group, false)
}

fn recv(bed: &mut TestBed) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut message = Message::new();
    bed.pattern.recv(&mut bed.pipes, &mut Target::Message(&mut message)).ok()?;
    assert!(!message.more());
    Some((message.group().to_bytes().to_vec(), message.as_slice().to_vec()))
}

#[test]
fn groups_are_joined_once_and_left_once() {
    let mut bed = TestBed::new(SocketType::Dish);
    assert_eq!(leave(&mut bed, b"g"), Err(Error::Invalid));
    assert_eq!(join(&mut bed, b"g"), Ok(()));
    assert_eq!(join(&mut bed, b"g"), Err(Error::Invalid));
    assert_eq!(leave(&mut bed, b"g"), Ok(()));
    assert_eq!(join(&mut bed, &[b'g'; 255]), Ok(()));
    assert_eq!(join(&mut bed, &[b'g'; 256]), Err(Error::Invalid));
    assert_eq!(
        TestBed::new(SocketType::Pair).pattern.pattern_mut().join(&mut bed.pipes, b"g", true),
        Err(Error::NotSupported)
    );
}

#[test]
fn messages_carry_their_group_and_others_are_dropped() {
    let mut bed = TestBed::new(SocketType::Dish);
    let id = bed.join();
    join(&mut bed, b"TV").unwrap();
    bed.peer_sends(id, [b"Movies", b"no"]);
    bed.peer_sends(id, [b"TV", b"yes"]);
    bed.peer_sends(id, [b"TV"]);
    bed.peer_sends(id, [b"TV", b"a", b"b"]);
    bed.peer_sends(id, [b"TV", b"again"]);
    assert_eq!(recv(&mut bed), Some((b"TV".to_vec(), b"yes".to_vec())));
    assert!(bed.can_recv());
    assert_eq!(recv(&mut bed), Some((b"TV".to_vec(), b"again".to_vec())));
    assert!(!bed.can_recv());
    bed.peer_sends(id, [b"TV", b"late"]);
    assert!(bed.can_recv());
    leave(&mut bed, b"TV").unwrap();
    assert_eq!(bed.recv(), Err(Error::Again));
    join(&mut bed, b"TV").unwrap();
    bed.peer_sends(id, [b"TV", b"cut off"]);
    assert_eq!(bed.recv_cut(), [(7, false)]);
    assert_eq!(bed.recv(), Err(Error::Again));
    bed.peer_sends(id, [b"TV", b"x"]);
    assert_eq!(bed.recv(), Ok(parts([b"x"])));
}

#[test]
fn publishers_get_all_joined_groups() {
    let mut bed = TestBed::new(SocketType::Dish);
    join(&mut bed, b"a").unwrap();
    let id = bed.join();
    join(&mut bed, b"b").unwrap();
    leave(&mut bed, b"a").unwrap();
    bed.pattern.pattern_mut().ready(&mut bed.pipes, id, true);
    let mut told = Vec::new();
    let mut frame = Message::new();
    while let Some(head) = bed.peer(id).recv_any(&mut frame).unwrap() {
        assert_ne!(head.flags & frame::COMMAND, 0);
        told.push(frame.as_slice().to_vec());
    }
    let line = |prefix: &[u8], group: &[u8]| [prefix, group].concat();
    let (join, leave) = (command::join_prefix(), command::leave_prefix());
    assert_eq!(told, [line(join, b"a"), line(join, b"b"), line(leave, b"a"), line(join, b"b")]);
}
