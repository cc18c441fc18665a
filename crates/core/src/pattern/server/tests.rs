use crate::error::Error;
use crate::pattern::testbed::{TestBed, parts};
use crate::pipe::{Body, Part, Target};
use tautline_proto::SocketType;
use tautline_queue::message::Message;

fn send_to(bed: &mut TestBed, routing_id: u32, body: &[u8]) -> Result<(), Error> {
    let mut message = Message::from_slice(body);
    message.set_routing_id(routing_id);
    let mut part = Part { body: Body::Owned(&mut message), more: false, patient: false };
    bed.pattern.send(&mut bed.pipes, &mut part).map(|_| ())
}

fn recv_from(bed: &mut TestBed) -> (u32, Vec<u8>) {
    let mut message = Message::new();
    bed.pattern.recv(&mut bed.pipes, &mut Target::Message(&mut message)).unwrap();
    (message.routing_id(), message.as_slice().to_vec())
}

#[test]
fn messages_carry_the_number_of_their_peer_both_ways() {
    let mut bed = TestBed::new(SocketType::Server);
    let ids = [bed.join(), bed.join()];
    let numbers = ids.map(|id| bed.pattern.peer_number(id).unwrap());
    assert!(numbers[0] != numbers[1] && !numbers.contains(&0));
    for (id, number) in ids.into_iter().zip(numbers) {
        bed.peer_sends(id, [b"question"]);
        assert_eq!(recv_from(&mut bed), (number, b"question".to_vec()));
        assert_eq!(bed.pattern.pipe_by_number(number), Some(id));
    }
    for (id, number) in ids.into_iter().zip(numbers) {
        send_to(&mut bed, number, b"answer").unwrap();
        assert_eq!(bed.peer_receives(id), Some(parts([b"answer"])));
    }
}

#[test]
fn only_known_peers_are_sent_to() {
    let mut bed = TestBed::new(SocketType::Peer);
    let id = bed.join();
    let number = bed.pattern.peer_number(id).unwrap();
    for unknown in [0, number.wrapping_add(1)] {
        assert_eq!(send_to(&mut bed, unknown, b"x"), Err(Error::HostUnreachable));
    }
    bed.end_peer(id);
    assert_eq!(send_to(&mut bed, number, b"x"), Err(Error::HostUnreachable));
    bed.detach(id);
    assert_eq!(send_to(&mut bed, number, b"x"), Err(Error::HostUnreachable));
    // The id of the pipe is reused, the number is not.
    let next = bed.join();
    assert_ne!(bed.pattern.peer_number(next), Some(number));
    assert_eq!(bed.pattern.pipe_by_number(number), None);
}

#[test]
fn send_waits_only_for_its_full_peer() {
    let mut bed =
        TestBed::with(SocketType::Server, |options| (options.send_hwm, options.receive_hwm) = (1, 1));
    let (full, fine) = (bed.join(), bed.join());
    bed.fill(full);
    let number = bed.pattern.peer_number(full).unwrap();
    assert_eq!(send_to(&mut bed, number, b"x"), Err(Error::Again));
    assert!(!bed.pattern.can_send_refused(&mut bed.pipes));
    let other = bed.pattern.peer_number(fine).unwrap();
    send_to(&mut bed, other, b"x").unwrap();
    bed.empty(full);
    assert!(bed.pattern.can_send_refused(&mut bed.pipes));
    send_to(&mut bed, number, b"x").unwrap();
}

#[test]
fn there_are_no_multi_part_messages() {
    let mut bed = TestBed::new(SocketType::Server);
    let id = bed.join();
    assert_eq!(bed.send_part(b"x", true), Err(Error::Invalid));
    bed.peer_sends(id, [b"one", b"two"]);
    assert!(!bed.can_recv());
    bed.peer_sends(id, [b"one", b"two"]);
    bed.peer_sends(id, [b"whole"]);
    assert_eq!(bed.recv(), Ok(parts([b"whole"])));
}
