use crate::conn::testbed::MockIoSide;
use crate::error::Error;
use crate::pattern::testbed::{Parts, TestBed, parts};
use crate::pipe::{OnFull, Part, PipeId, Target};
use tautline_proto::{SocketType, command};
use tautline_queue::message::Message;
use tautline_queue::sync::Arc;

/// All messages that can be received, each one part long.
fn notified(bed: &mut TestBed) -> Parts {
    let mut all = Parts::new();
    while let Ok(mut message) = bed.recv() {
        assert_eq!(message.len(), 1);
        all.append(&mut message);
    }
    all
}

/// Sends this message and returns true for each pipe that gets it.
fn receivers<const N: usize>(bed: &mut TestBed, ids: [PipeId; N], body: &[u8]) -> [bool; N] {
    bed.send([body]).unwrap();
    ids.map(|id| {
        let received = bed.peer_receives(id);
        assert_eq!(bed.peer_receives(id), None);
        received.is_some_and(|message| message == parts([body]))
    })
}

#[test]
fn messages_go_to_the_peers_with_a_matching_prefix() {
    for socket_type in [SocketType::Pub, SocketType::XPub] {
        let mut bed = TestBed::new(socket_type);
        assert!(bed.can_send());
        let ids = [bed.join(), bed.join(), bed.join()];
        bed.peer_subscribes(ids[0], b"", true);
        bed.peer_subscribes(ids[1], b"a", true);
        bed.peer_subscribes(ids[1], b"ab", true);
        bed.peer_sends(ids[2], [b"\x01b"]);
        assert_eq!(receivers(&mut bed, ids, b"abc"), [true, true, false]);
        assert_eq!(receivers(&mut bed, ids, b"b"), [true, false, true]);
        assert_eq!(receivers(&mut bed, ids, b""), [true, false, false]);
        assert_eq!(bed.pattern.topics_count(), Some(4));
        bed.peer_subscribes(ids[1], b"a", false);
        bed.peer_sends(ids[2], [b"\x00b"]);
        assert_eq!(receivers(&mut bed, ids, b"abc"), [true, true, false]);
        assert_eq!(receivers(&mut bed, ids, b"ax"), [true, false, false]);
        assert_eq!(receivers(&mut bed, ids, b"b"), [true, false, false]);
        bed.leave(ids[0]);
        assert_eq!(bed.pattern.topics_count(), Some(1));
    }
}

#[test]
fn later_parts_follow_the_first_one() {
    let mut bed = TestBed::new(SocketType::Pub);
    let ids = [bed.join(), bed.join()];
    bed.peer_subscribes(ids[0], b"a", true);
    bed.peer_subscribes(ids[1], b"b", true);
    bed.send_part(b"a", true).unwrap();
    bed.peer_subscribes(ids[0], b"a", false);
    bed.send_part(b"b", true).unwrap();
    bed.send_part(&[1; 10_000], false).unwrap();
    assert_eq!(bed.peer_receives(ids[0]), Some(parts([b"a", b"b", &[1; 10_000]])));
    assert_eq!(bed.peer_receives(ids[1]), None);
    assert_eq!(receivers(&mut bed, ids, b"a"), [false, false]);
}

#[test]
fn pub_hides_subscriptions_and_messages() {
    let mut bed = TestBed::new(SocketType::Pub);
    let id = bed.join();
    bed.peer_subscribes(id, b"a", true);
    bed.peer_sends(id, [b"message", b"of two parts"]);
    assert!(!bed.can_recv());
    assert_eq!(bed.recv(), Err(Error::NotSupported));
    assert!(!bed.pipes.get(id).unwrap().can_recv());
    assert_eq!(bed.pattern.pattern_mut().subscribe(&mut bed.pipes, b"a", true), Err(Error::Invalid));
}

#[test]
fn xpub_shows_the_first_and_the_last_of_equal_subscriptions() {
    let mut bed = TestBed::new(SocketType::XPub);
    let ids = [bed.join(), bed.join()];
    assert_eq!(bed.recv(), Err(Error::Again));
    bed.peer_subscribes(ids[0], b"a", true);
    bed.peer_subscribes(ids[0], b"a", true);
    bed.peer_subscribes(ids[1], b"a", true);
    assert_eq!(notified(&mut bed), parts([b"\x01a"]));
    bed.peer_subscribes(ids[0], b"a", false);
    assert_eq!(notified(&mut bed), Parts::new());
    bed.peer_subscribes(ids[1], b"a", false);
    bed.peer_subscribes(ids[1], b"never", false);
    assert_eq!(notified(&mut bed), parts([b"\x00a", b"\x00never"]));
}

#[test]
fn a_peer_that_leaves_ends_its_subscriptions() {
    let mut bed = TestBed::new(SocketType::XPub);
    let ids = [bed.join(), bed.join()];
    for topic in [&b"b"[..], b"a", b""] {
        bed.peer_subscribes(ids[0], topic, true);
    }
    bed.peer_subscribes(ids[1], b"a", true);
    notified(&mut bed);
    bed.leave(ids[0]);
    assert_eq!(notified(&mut bed), parts([b"\x00", b"\x00b"]));
    bed.leave(ids[1]);
    assert_eq!(notified(&mut bed), parts([b"\x00a"]));
}

#[test]
fn verbose_shows_every_subscription() {
    let mut bed = TestBed::with(SocketType::XPub, |options| options.xpub_verbose = true);
    let ids = [bed.join(), bed.join()];
    for id in [ids[0], ids[0], ids[1]] {
        bed.peer_subscribes(id, b"a", true);
    }
    bed.peer_subscribes(ids[0], b"a", false);
    assert_eq!(notified(&mut bed), parts([b"\x01a", b"\x01a", b"\x01a"]));
    bed.leave(ids[1]);
    assert_eq!(notified(&mut bed), parts([b"\x00a"]));
}

#[test]
fn verboser_shows_every_cancellation_too() {
    let mut bed = TestBed::with(SocketType::XPub, |options| {
        (options.xpub_verbose, options.xpub_verboser) = (true, true)
    });
    let ids = [bed.join(), bed.join(), bed.join()];
    ids.into_iter().for_each(|id| bed.peer_subscribes(id, b"a", true));
    notified(&mut bed);
    bed.peer_subscribes(ids[0], b"a", false);
    assert_eq!(notified(&mut bed), parts([b"\x00a"]));
    bed.leave(ids[1]);
    assert_eq!(notified(&mut bed), parts([b"\x00a"]));
}

#[test]
fn all_topics_of_a_removed_peer_are_reported() {
    let mut bed = TestBed::new(SocketType::XPub);
    let ids = [bed.join(), bed.join()];
    let topics: Vec<[u8; 4]> = (0..2_500_u32).map(u32::to_be_bytes).collect();
    for (id, topic) in ids.into_iter().flat_map(|id| topics.iter().map(move |topic| (id, topic))) {
        bed.peer_subscribes(id, topic, true);
    }
    notified(&mut bed);
    let mut shown = |id| {
        bed.leave(id);
        let (mut shown, mut part) = (Parts::new(), Message::new());
        loop {
            match bed.pattern.recv(&mut bed.pipes, &mut Target::Message(&mut part)) {
                Ok(_) => shown.push(part.as_slice().to_vec()),
                Err(_) if bed.pattern.has_more_to_do() => {}
                Err(_) => return shown,
            }
        }
    };
    assert_eq!(shown(ids[0]), Parts::new(), "the other one wants them all");
    let all: Parts = topics.iter().map(|topic| [b"\0", &topic[..]].concat()).collect();
    assert!(shown(ids[1]) == all);
}

#[test]
fn xpub_delivers_peer_messages() {
    let mut bed = TestBed::new(SocketType::XPub);
    let id = bed.join();
    bed.peer_sends(id, [b"hello", b"\x01a", b""]);
    bed.peer_sends(id, [b""]);
    assert_eq!(bed.recv_part(), Ok((b"hello".to_vec(), true)));
    assert_eq!(bed.recv_part(), Ok((b"\x01a".to_vec(), false)));
    assert_eq!(bed.recv_part(), Ok((Vec::new(), false)));
    assert_eq!(bed.recv_part(), Ok((Vec::new(), false)));
    assert_eq!(receivers(&mut bed, [id], b"a"), [true]);
}

#[test]
fn only_first_part_subscribes_if_option_is_set() {
    let mut bed = TestBed::with(SocketType::XPub, |options| options.only_first_subscribe = true);
    let id = bed.join();
    bed.peer_sends(id, [b"hello", b"\x01a"]);
    assert_eq!(bed.recv(), Ok(parts([b"hello", b"\x01a"])));
    bed.peer_sends(id, [b"\x01b", b"\x01c"]);
    assert_eq!(notified(&mut bed), parts([b"\x01b", b"\x01c"]));
    assert_eq!(receivers(&mut bed, [id], b"a"), [false]);
    assert_eq!(receivers(&mut bed, [id], b"c"), [true]);
}

#[test]
fn a_full_peer_misses_messages_alone() {
    let mut bed = TestBed::with(SocketType::Pub, |options| (options.send_hwm, options.receive_hwm) = (1, 1));
    let ids = [bed.join(), bed.join()];
    ids.into_iter().for_each(|id| bed.peer_subscribes(id, b"", true));
    let filled = bed.fill(ids[0]);
    bed.send([b"x", b"y"]).unwrap();
    assert_eq!(bed.peer_receives(ids[1]), Some(parts([b"x", b"y"])));
    assert_eq!(bed.empty(ids[0]), filled);
    assert_eq!(receivers(&mut bed, ids, b"z"), [true, true]);
}

#[test]
fn nodrop_blocks_while_a_matching_peer_is_full() {
    let mut bed = TestBed::with(SocketType::XPub, |options| {
        options.xpub_nodrop = true;
        (options.send_hwm, options.receive_hwm) = (1, 1);
    });
    let ids = [bed.join(), bed.join()];
    ids.into_iter().for_each(|id| bed.peer_subscribes(id, b"a", true));
    bed.peer_subscribes(ids[1], b"b", true);
    bed.fill(ids[0]);
    assert_eq!(bed.send([b"a"]), Err(Error::Again));
    assert!(bed.can_send());
    assert!(!bed.pattern.can_send_refused(&mut bed.pipes));
    assert_eq!(bed.peer_receives(ids[1]), None);
    bed.send([b"b"]).unwrap();
    assert_eq!(bed.empty(ids[1]), 1);
    assert_eq!(bed.send([b"a"]), Err(Error::Again));
    bed.empty(ids[0]);
    assert!(bed.pattern.can_send_refused(&mut bed.pipes));
    assert_eq!(receivers(&mut bed, ids, b"a"), [true, true]);
}

#[test]
fn inverted_matching_sends_to_the_others() {
    let mut bed = TestBed::with(SocketType::Pub, |options| options.invert_matching = true);
    let ids = [bed.join(), bed.join()];
    bed.peer_subscribes(ids[0], b"a", true);
    assert_eq!(receivers(&mut bed, ids, b"a"), [false, true]);
    assert_eq!(receivers(&mut bed, ids, b"b"), [true, true]);
}

#[test]
fn new_peers_are_welcomed() {
    let mut bed = TestBed::with(SocketType::XPub, |options| options.xpub_welcome_msg = b"W".to_vec());
    let (accepted, connected) = (bed.join(), bed.connect(b""));
    for id in [accepted, connected] {
        assert_eq!(bed.peer_receives(id), Some(parts([b"W"])));
        assert_eq!(bed.peer_receives(id), None);
    }
    assert_eq!(bed.pipes.options.xpub_welcome_msg, b"W");
}

#[test]
fn in_manual_mode_the_program_subscribes_for_its_peers() {
    let mut bed = TestBed::with(SocketType::XPub, |options| options.xpub_manual = true);
    let ids = [bed.join(), bed.join()];
    // No subscription was received yet, so there is no peer to subscribe for.
    bed.pattern.pattern_mut().subscribe(&mut bed.pipes, b"X", true).unwrap();
    assert_eq!(bed.pattern.topics_count(), Some(0));
    bed.peer_subscribes(ids[0], b"A", true);
    bed.peer_subscribes(ids[1], b"A", true);
    assert_eq!(bed.recv(), Ok(parts([b"\x01A"])));
    bed.pattern.pattern_mut().subscribe(&mut bed.pipes, b"XA", true).unwrap();
    assert_eq!(bed.recv(), Ok(parts([b"\x01A"])));
    bed.pattern.pattern_mut().subscribe(&mut bed.pipes, b"XB", true).unwrap();
    assert_eq!(receivers(&mut bed, ids, b"A"), [false, false]);
    assert_eq!(receivers(&mut bed, ids, b"XA"), [true, false]);
    assert_eq!(receivers(&mut bed, ids, b"XB"), [false, true]);
    bed.peer_subscribes(ids[0], b"A", false);
    assert_eq!(receivers(&mut bed, ids, b"XA"), [true, false]);
    assert_eq!(bed.recv(), Ok(parts([b"\x00A"])));
    bed.pattern.pattern_mut().subscribe(&mut bed.pipes, b"XA", false).unwrap();
    assert_eq!(receivers(&mut bed, ids, b"XA"), [false, false]);
}

#[test]
fn manual_mode_reports_end_of_requested_topics() {
    let mut bed = TestBed::with(SocketType::XPub, |options| options.xpub_manual = true);
    let ids = [bed.join(), bed.join()];
    bed.peer_subscribes(ids[0], b"A", true);
    bed.peer_subscribes(ids[1], b"A", true);
    assert_eq!(bed.recv(), Ok(parts([b"\x01A"])));
    bed.pattern.pattern_mut().subscribe(&mut bed.pipes, b"XA", true).unwrap();
    bed.leave(ids[0]);
    assert_eq!(bed.pattern.topics_count(), Some(0));
    bed.pattern.pattern_mut().subscribe(&mut bed.pipes, b"late", true).unwrap();
    assert_eq!(bed.pattern.topics_count(), Some(0));
    bed.leave(ids[1]);
    // The subscription is from a peer that has left since: subscribing for it has no effect.
    assert_eq!(bed.recv(), Ok(parts([b"\x01A"])));
    bed.pattern.pattern_mut().subscribe(&mut bed.pipes, b"late", true).unwrap();
    assert_eq!(bed.pattern.topics_count(), Some(0));
    assert_eq!(notified(&mut bed), parts([b"\x00A", b"\x00A"]));
}

#[test]
fn the_last_value_goes_to_the_new_subscriber_only() {
    let mut bed = TestBed::with(SocketType::XPub, |options| {
        (options.xpub_manual, options.xpub_manual_last_value) = (true, true);
    });
    let ids = [bed.join(), bed.join()];
    for id in ids {
        bed.peer_subscribes(id, b"A", true);
        bed.recv().unwrap();
        bed.pattern.pattern_mut().subscribe(&mut bed.pipes, b"A", true).unwrap();
    }
    assert_eq!(receivers(&mut bed, ids, b"A last"), [false, true]);
    assert_eq!(receivers(&mut bed, ids, b"A next"), [true, true]);
}

#[test]
fn notifications_carry_the_properties_of_the_peer() {
    let mut bed = TestBed::new(SocketType::XPub);
    let id = bed.join();
    bed.peer_subscribes(id, b"a", true);
    bed.peer_sends(id, [b"message"]);
    for _ in 0..2 {
        let mut part = Message::new();
        bed.pattern.recv(&mut bed.pipes, &mut Target::Message(&mut part)).unwrap();
        assert!(part.metadata().is_some());
    }
}

#[test]
fn subscription_flood_is_read_completely_in_batches() {
    let mut bed = TestBed::new(SocketType::XPub);
    let id = bed.join();
    for number in 0..3500_u32 {
        let prefix = tautline_proto::command::subscribe_prefix();
        bed.peer(id).send_command(&[prefix, b"same", &(number / 3000).to_be_bytes()].concat());
    }
    bed.pattern.pattern_mut().handle_readable(&mut bed.pipes, id);
    assert_eq!(notified(&mut bed), parts([b"\x01same\0\0\0\0", b"\x01same\0\0\0\x01"]));
    assert!(!bed.pipes.get(id).unwrap().can_recv());
}

#[test]
fn peer_over_subscription_limit_is_evicted() {
    for manual in [false, true] {
        let mut bed = TestBed::with(SocketType::XPub, |options| {
            options.xpub_manual = manual;
            options.max_subscriptions = Some(1 << 20);
        });
        let ids = [bed.join(), bed.join()];
        bed.peer_subscribes(ids[1], b"z", true);
        // Each cancellation makes room again.
        for number in 0..60_000_u32 {
            bed.peer_subscribes(ids[0], &number.to_be_bytes(), true);
            bed.peer_subscribes(ids[0], &number.to_be_bytes(), false);
        }
        bed.can_recv();
        assert_eq!(bed.closed(), []);
        for number in 0..20_000_u32 {
            let body = [command::subscribe_prefix(), &number.to_be_bytes()].concat();
            bed.peer(ids[0]).send_command(&body);
        }
        bed.pattern.pattern_mut().handle_readable(&mut bed.pipes, ids[0]);
        while !bed.pipes.has_closing() {
            bed.can_recv();
            bed.pattern.pattern_mut().handle_readable(&mut bed.pipes, ids[0]);
        }
        assert_eq!(bed.closed(), [ids[0]]);
        if !manual {
            while bed.pattern.has_more_to_do() {
                bed.can_recv();
            }
            assert_eq!(bed.pattern.topics_count(), Some(1));
            assert!(receivers(&mut bed, [ids[1]], b"z")[0]);
        }
    }
}

/// Exactly a batch, and then silence: the peer still learns that there is room.
#[test]
fn pub_drains_unwanted_messages_while_sending() {
    let hwm = |options: &mut crate::options::Options| (options.send_hwm, options.receive_hwm) = (500, 500);
    let mut bed = TestBed::with(SocketType::Pub, hwm);
    let id = bed.join();
    for _ in 0..3 {
        // The mark of a pipe is the sum of both sides' marks: a batch.
        for _ in 0..super::BATCH {
            assert!(bed.peer(id).outgoing.has_room(OnFull::Wait));
            bed.peer(id).send(&mut Part::copied(b"unwanted", false)).unwrap();
        }
        assert!(!bed.peer(id).outgoing.has_room(OnFull::Wait));
        bed.peer(id).wait_for_room();
        bed.pattern.pattern_mut().handle_readable(&mut bed.pipes, id);
        bed.send([b"x"]).unwrap();
        assert!(
            bed.peer(id).inproc_end().unwrap().requested_room().is_none()
                && bed.peer(id).outgoing.has_room(OnFull::Wait)
        );
    }
}

#[test]
fn unreceived_messages_stay_in_their_pipe() {
    let mut bed = TestBed::with(SocketType::XPub, |options| options.receive_hwm = 3);
    let ids = [bed.join(), bed.join()];
    for number in 0..10_u8 {
        bed.peer_sends(ids[0], [b"part", &[2 + number]]);
    }
    bed.peer_subscribes(ids[0], b"a", true);
    bed.peer_subscribes(ids[1], b"a", true);
    // The subscription waits behind these messages; subscriptions of other peers do not.
    assert_eq!(receivers(&mut bed, ids, b"a"), [false, true]);
    for number in 0..10_u8 {
        assert_eq!(bed.recv(), Ok(parts([b"part", &[2 + number]])));
        if number == 2 {
            assert_eq!(bed.recv(), Ok(parts([b"\x01a"])));
        }
    }
    assert_eq!(bed.recv(), Err(Error::Again));
    assert_eq!(receivers(&mut bed, ids, b"a"), [true, true]);
}

#[test]
fn subscriptions_apply_without_receiving() {
    let mut bed = TestBed::new(SocketType::XPub);
    let ids = [bed.join(), bed.join()];
    bed.peer_subscribes(ids[1], b"kept", true);
    for number in 0..5_000_u32 {
        bed.peer_subscribes(ids[0], &number.to_be_bytes(), true);
        bed.peer_subscribes(ids[0], &number.to_be_bytes(), false);
    }
    bed.peer_subscribes(ids[0], b"late", true);
    bed.peer_subscribes(ids[1], b"kept", false);
    assert_eq!(receivers(&mut bed, ids, b"late"), [true, false]);
    assert_eq!(receivers(&mut bed, ids, b"kept"), [false, false]);
    let told = notified(&mut bed);
    assert!(told.len() < 2_000);
    assert_eq!(told[0], b"\x01kept");
    assert_eq!(told[told.len() - 2..], [b"\0kept".to_vec(), b"\x01late".to_vec()]);
}

#[test]
fn sole_subscriber_gets_all_until_something_changes() {
    let mut bed = TestBed::new(SocketType::XPub);
    let ids = [bed.join(), bed.join()];
    bed.peer_subscribes(ids[0], b"", true);
    for _ in 0..3 {
        assert_eq!(receivers(&mut bed, ids, b"a"), [true, false]);
    }
    bed.send([&b"a"[..], b"b"]).unwrap();
    assert_eq!(bed.peer_receives(ids[0]), Some(parts([&b"a"[..], b"b"])));
    bed.peer_subscribes(ids[1], b"a", true);
    for _ in 0..2 {
        assert_eq!(receivers(&mut bed, ids, b"a"), [true, true]);
        assert_eq!(receivers(&mut bed, ids, b"b"), [true, false]);
    }
    bed.peer_subscribes(ids[1], b"a", false);
    assert_eq!(receivers(&mut bed, ids, b"a"), [true, false]);
    assert_eq!(receivers(&mut bed, ids, b"a"), [true, false]);
    bed.peer_subscribes(ids[0], b"", false);
    assert_eq!(receivers(&mut bed, ids, b"a"), [false, false]);
    bed.peer_subscribes(ids[1], b"", true);
    assert_eq!(receivers(&mut bed, ids, b"a"), [false, true]);
    assert_eq!(receivers(&mut bed, ids, b"a"), [false, true]);
    bed.pipes.options_mut().invert_matching = true;
    bed.pattern.pattern_mut().option_changed(&mut bed.pipes, 74);
    assert_eq!(receivers(&mut bed, ids, b"a"), [true, false]);
    bed.pipes.options_mut().invert_matching = false;
    bed.pattern.pattern_mut().option_changed(&mut bed.pipes, 74);
    assert_eq!(receivers(&mut bed, ids, b"a"), [false, true]);
    assert_eq!(receivers(&mut bed, ids, b"a"), [false, true]);

    // The peer that takes its place gets no message before it subscribes.
    bed.leave(ids[1]);
    let ids = [ids[0], bed.join()];
    assert_eq!(receivers(&mut bed, ids, b"a"), [false, false]);
    bed.peer_subscribes(ids[1], b"", true);
    assert_eq!(receivers(&mut bed, ids, b"a"), [false, true]);
    // Two peers with the same subscription are a group.
    bed.peer_subscribes(ids[0], b"", true);
    assert_eq!(receivers(&mut bed, ids, b"a"), [true, true]);
    assert_eq!(receivers(&mut bed, ids, b"a"), [true, true]);
}

#[test]
fn several_inproc_subscribers_are_woken_by_rule() {
    let mut bed = TestBed::new(SocketType::Pub);
    let rung = |bed: &mut TestBed, id| bed.peer(id).inproc_end().unwrap().peer_uses_ring();
    let ids = [bed.join(), bed.join()];
    assert!(ids.iter().all(|&id| !rung(&mut bed, id)), "nothing wakes them here but their own look");
    bed.pipes.io = Some(Arc::new(MockIoSide::default()));
    let third = bed.join();
    assert!([ids[0], ids[1], third].iter().all(|&id| rung(&mut bed, id)));
    assert!(bed.pipes.peers_check_sleep(), "subscribers wake a publisher by a look");
    for id in [ids[0], ids[1], third] {
        bed.leave(id);
    }
    assert!(!bed.pipes.peers_check_sleep(), "nobody is left who could");
}
