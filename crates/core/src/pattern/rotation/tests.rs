use super::*;
use crate::pattern::testbed::{TestBed, parts};
use tautline_proto::SocketType;

/// Pipes with peers; the pattern is not used.
fn bed() -> TestBed {
    TestBed::with(SocketType::Dealer, |options| {
        options.send_hwm = 1;
        options.receive_hwm = 1;
    })
}

fn send(rotation: &mut Rotation, bed: &mut TestBed, body: &[u8], more: bool) -> Result<(), Error> {
    rotation.send(&mut bed.pipes, &mut Part::copied(body, more)).map(|_| ())
}

fn recv(queue: &mut FairQueue, bed: &mut TestBed) -> Result<(Vec<u8>, bool), Error> {
    let mut part = Message::new();
    let received = queue.recv(&mut bed.pipes, &mut Target::Message(&mut part))?;
    Ok((part.as_slice().to_vec(), received.more))
}

#[test]
fn messages_go_to_each_pipe_in_turn() {
    let mut bed = bed();
    let mut rotation = Rotation::default();
    let ids = [0; 3].map(|_| bed.insert(b"", b""));
    ids.into_iter().for_each(|id| rotation.attach(id));
    for round in 0..2_u8 {
        for number in 0..3_u8 {
            send(&mut rotation, &mut bed, &[round, number], false).unwrap();
        }
    }
    for (number, id) in ids.into_iter().enumerate() {
        assert_eq!(bed.peer_receives(id), Some(parts([&[0, number as u8]])));
        assert_eq!(bed.peer_receives(id), Some(parts([&[1, number as u8]])));
        assert_eq!(bed.peer_receives(id), None);
    }
}

#[test]
fn a_full_pipe_is_passed_over() {
    let mut bed = bed();
    let mut rotation = Rotation::default();
    let ids = [0; 2].map(|_| bed.insert(b"", b""));
    ids.into_iter().for_each(|id| rotation.attach(id));
    bed.fill(ids[0]);
    send(&mut rotation, &mut bed, b"a", false).unwrap();
    send(&mut rotation, &mut bed, b"b", false).unwrap();
    assert_eq!(bed.peer_receives(ids[1]), Some(parts([b"a"])));
    assert_eq!(bed.peer_receives(ids[1]), Some(parts([b"b"])));
    bed.fill(ids[1]);
    assert!(!rotation.can_send(&mut bed.pipes));
    assert_eq!(send(&mut rotation, &mut bed, b"c", false), Err(Error::Again));
    assert!(rotation.start(&mut bed.pipes).is_none());
    bed.empty(ids[0]);
    assert!(rotation.can_send(&mut bed.pipes));
    send(&mut rotation, &mut bed, b"d", false).unwrap();
    assert_eq!(bed.peer_receives(ids[0]), Some(parts([b"d"])));
}

#[test]
fn a_multipart_message_stays_on_its_pipe() {
    let mut bed = bed();
    let mut rotation = Rotation::default();
    let ids = [0; 2].map(|_| bed.insert(b"", b""));
    ids.into_iter().for_each(|id| rotation.attach(id));
    send(&mut rotation, &mut bed, b"1", true).unwrap();
    assert_eq!(bed.peer_receives(ids[0]), None);
    // A pipe that is added or removed within the message has no effect on it.
    let late = bed.insert(b"", b"");
    rotation.attach(late);
    rotation.detach(ids[1]);
    send(&mut rotation, &mut bed, b"2", true).unwrap();
    send(&mut rotation, &mut bed, b"3", false).unwrap();
    assert_eq!(bed.peer_receives(ids[0]), Some(parts([b"1", b"2", b"3"])));
    send(&mut rotation, &mut bed, b"next", false).unwrap();
    assert_eq!(bed.peer_receives(late), Some(parts([b"next"])));
}

#[test]
fn remaining_parts_to_send_are_dropped_with_the_pipe() {
    let mut bed = bed();
    let mut rotation = Rotation::default();
    let ids = [0; 2].map(|_| bed.insert(b"", b""));
    ids.into_iter().for_each(|id| rotation.attach(id));
    send(&mut rotation, &mut bed, b"1", true).unwrap();
    rotation.detach(ids[0]);
    assert!(rotation.can_send(&mut bed.pipes));
    send(&mut rotation, &mut bed, b"2", true).unwrap();
    send(&mut rotation, &mut bed, b"3", false).unwrap();
    assert_eq!(bed.peer_receives(ids[1]), None);
    send(&mut rotation, &mut bed, b"whole", false).unwrap();
    assert_eq!(bed.peer_receives(ids[1]), Some(parts([b"whole"])));
    // This also works without any pipe.
    send(&mut rotation, &mut bed, b"1", true).unwrap();
    rotation.detach(ids[1]);
    send(&mut rotation, &mut bed, b"2", false).unwrap();
    assert_eq!(send(&mut rotation, &mut bed, b"3", false), Err(Error::Again));
}

#[test]
fn the_caller_may_put_parts_in_front() {
    let mut bed = bed();
    let mut rotation = Rotation::default();
    let id = bed.insert(b"", b"");
    rotation.attach(id);
    assert_eq!(rotation.start(&mut bed.pipes), Some(id));
    bed.pipes.get(id).unwrap().send(&mut Part::copied(b"1", true)).unwrap();
    send(&mut rotation, &mut bed, b"2", false).unwrap();
    assert_eq!(bed.peer_receives(id), Some(parts([b"1", b"2"])));
}

#[test]
fn detaching_keeps_the_turn() {
    let mut bed = bed();
    let mut rotation = Rotation::default();
    let ids = [0; 4].map(|_| bed.insert(b"", b""));
    ids.into_iter().for_each(|id| rotation.attach(id));
    send(&mut rotation, &mut bed, b"0", false).unwrap();
    send(&mut rotation, &mut bed, b"1", false).unwrap();
    rotation.detach(ids[0]);
    rotation.detach(ids[0]);
    send(&mut rotation, &mut bed, b"2", false).unwrap();
    assert_eq!(bed.peer_receives(ids[2]), Some(parts([b"2"])));
    rotation.detach(ids[3]);
    send(&mut rotation, &mut bed, b"3", false).unwrap();
    bed.peer_receives(ids[1]);
    assert_eq!(bed.peer_receives(ids[1]), Some(parts([b"3"])));
}

#[test]
fn a_fair_queue_takes_one_message_from_each() {
    let mut bed = bed();
    let mut queue = FairQueue::default();
    let ids = [0; 3].map(|_| bed.insert(b"", b""));
    ids.into_iter().for_each(|id| queue.attach(id));
    for id in ids {
        bed.peer_sends(id, [&[id.0 as u8, 0], b"end"]);
        bed.peer_sends(id, [&[id.0 as u8, 1]]);
    }
    for id in ids {
        assert!(queue.can_recv(&mut bed.pipes));
        assert_eq!(recv(&mut queue, &mut bed), Ok((vec![id.0 as u8, 0], true)));
        assert!(bed.pipes.receiving);
        assert_eq!(recv(&mut queue, &mut bed), Ok((b"end".to_vec(), false)));
    }
    for id in ids {
        assert_eq!(queue.select(&mut bed.pipes), Some(id));
        assert_eq!(recv(&mut queue, &mut bed), Ok((vec![id.0 as u8, 1], false)));
    }
    assert!(!queue.can_recv(&mut bed.pipes));
    assert_eq!(recv(&mut queue, &mut bed), Err(Error::Again));
}

#[test]
fn remaining_parts_to_receive_outlive_the_pipe() {
    let mut bed = bed();
    let mut queue = FairQueue::default();
    let ids = [0; 2].map(|_| bed.insert(b"", b""));
    ids.into_iter().for_each(|id| queue.attach(id));
    bed.peer_sends(ids[0], [b"1", b"2", b"3"]);
    bed.peer_sends(ids[0], [b"lost"]);
    bed.peer_sends(ids[1], [b"other"]);
    assert_eq!(recv(&mut queue, &mut bed), Ok((b"1".to_vec(), true)));
    queue.detach(&mut bed.pipes, ids[0]);
    bed.pipes.remove(ids[0]);
    assert_eq!(recv(&mut queue, &mut bed), Ok((b"2".to_vec(), true)));
    assert!(queue.can_recv(&mut bed.pipes));
    assert_eq!(recv(&mut queue, &mut bed), Ok((b"3".to_vec(), false)));
    assert!(!bed.pipes.receiving);
    assert_eq!(recv(&mut queue, &mut bed), Ok((b"other".to_vec(), false)));
}

#[test]
fn messages_are_skipped_whole() {
    let mut bed = bed();
    let mut queue = FairQueue::default();
    let id = bed.insert(b"", b"");
    queue.attach(id);
    bed.peer_sends(id, [b"1", b"2", b"3"]);
    bed.peer_sends(id, [b"4", b"5"]);
    assert_eq!(queue.select(&mut bed.pipes), Some(id));
    queue.skip_message(&mut bed.pipes);
    assert_eq!(recv(&mut queue, &mut bed), Ok((b"4".to_vec(), true)));
    queue.skip_message(&mut bed.pipes);
    bed.peer_sends(id, [b"6", b"7"]);
    recv(&mut queue, &mut bed).unwrap();
    queue.detach(&mut bed.pipes, id);
    queue.skip_message(&mut bed.pipes);
    assert!(!queue.can_recv(&mut bed.pipes));
}

#[test]
fn message_without_saved_parts_still_ends() {
    let mut bed = bed();
    let mut queue = FairQueue::default();
    let id = bed.insert(b"", b"");
    queue.attach(id);
    bed.peer_sends(id, [b"1"]);
    assert_eq!(queue.select(&mut bed.pipes), Some(id));
    bed.pipes.receiving = true;
    discard(&mut bed.pipes, id, DiscardReason::None);
    queue.detach(&mut bed.pipes, id);
    assert_eq!(recv(&mut queue, &mut bed), Ok((Vec::new(), false)));
}

#[test]
fn unknown_pipes_are_ignored() {
    let mut bed = bed();
    let mut queue = FairQueue::default();
    let id = bed.insert(b"", b"");
    queue.mark_readable(id);
    bed.peer_sends(id, [b"1"]);
    queue.detach(&mut bed.pipes, id);
    assert!(!queue.can_recv(&mut bed.pipes));
    queue.attach(id);
    queue.attach(id);
    assert_eq!(recv(&mut queue, &mut bed), Ok((b"1".to_vec(), false)));
    // The pipe is removed without notice.
    bed.pipes.remove(id);
    assert!(queue.select(&mut bed.pipes).is_none());
    assert_eq!(recv(&mut queue, &mut bed), Err(Error::Again));
}

#[test]
fn multipart_is_rejected_where_messages_have_one_part() {
    let mut bed = bed();
    let mut rotation = Rotation::single();
    let mut queue = FairQueue::single();
    let ids = [0; 2].map(|_| bed.insert(b"", b""));
    for id in ids {
        rotation.attach(id);
        queue.attach(id);
    }
    assert_eq!(send(&mut rotation, &mut bed, b"x", true), Err(Error::Invalid));
    send(&mut rotation, &mut bed, b"x", false).unwrap();
    assert_eq!(bed.peer_receives(ids[0]), Some(parts([b"x"])));

    bed.peer_sends(ids[0], [b"1", b"2"]);
    assert!(!queue.can_recv(&mut bed.pipes));
    bed.peer_sends(ids[0], [b"1", b"2"]);
    assert_eq!(recv(&mut queue, &mut bed), Err(Error::Again));
    // Here there are more multipart messages than pipes.
    for _ in 0..2 {
        for id in ids {
            queue.mark_readable(id);
        }
        bed.peer_sends(ids[1], [b"1", b"2"]);
        bed.peer_sends(ids[1], [b"whole"]);
        assert_eq!(recv(&mut queue, &mut bed), Ok((b"whole".to_vec(), false)));
        assert!(!bed.pipes.receiving);
    }
}
