use super::*;
use crate::pattern::testbed::{TestBed, parts};
use tautline_proto::SocketType;

fn bed() -> TestBed {
    TestBed::with(SocketType::XPub, |options| {
        options.send_hwm = 1;
        options.receive_hwm = 1;
    })
}

fn send(fan_out: &mut FanOut, bed: &mut TestBed, body: &[u8], more: bool) {
    let mut message = Message::from_slice(body);
    fan_out.send(&mut bed.pipes, &mut Part { body: Body::Owned(&mut message), more, patient: false });
    assert!(message.is_empty());
}

#[test]
fn marked_pipes_get_one_copy_each() {
    let mut bed = bed();
    let mut fan_out = FanOut::default();
    let ids = [0; 4].map(|_| bed.insert(b"", b""));
    ids.into_iter().for_each(|id| fan_out.attach(id));
    for body in [&b"short"[..], &[1; SHARE_FROM]] {
        fan_out.begin();
        for id in [ids[1], ids[3], ids[1]] {
            fan_out.mark(id);
        }
        send(&mut fan_out, &mut bed, body, false);
        for (id, count) in ids.into_iter().zip([0, 1, 0, 1]) {
            assert_eq!(bed.peer_receives(id), (count > 0).then(|| parts([body])));
            assert_eq!(bed.peer_receives(id), None);
        }
        fan_out.begin();
        fan_out.mark(ids[1]);
        fan_out.invert();
        send(&mut fan_out, &mut bed, body, false);
        for (id, count) in ids.into_iter().zip([1, 0, 1, 1]) {
            assert_eq!(bed.empty(id), count);
        }
        fan_out.begin();
        fan_out.mark_all();
        fan_out.send(&mut bed.pipes, &mut Part::copied(body, false));
        assert!(ids.into_iter().all(|id| bed.empty(id) == 1));
        fan_out.begin();
        send(&mut fan_out, &mut bed, body, false);
        assert!(ids.into_iter().all(|id| bed.empty(id) == 0));
    }
}

#[test]
fn only_the_full_pipe_misses_the_message() {
    let mut bed = bed();
    let mut fan_out = FanOut::default();
    let ids = [0; 3].map(|_| bed.insert(b"", b""));
    ids.into_iter().for_each(|id| fan_out.attach(id));
    let filled = bed.fill(ids[0]);
    fan_out.begin();
    fan_out.mark_all();
    assert!(!fan_out.has_room(&mut bed.pipes, true));
    send(&mut fan_out, &mut bed, b"1", true);
    assert!(fan_out.in_message());
    // Room that appears within the message comes too late for it, and so does a new pipe.
    assert_eq!(bed.empty(ids[0]), filled);
    let late = bed.insert(b"", b"");
    fan_out.attach(late);
    fan_out.detach(ids[1]);
    send(&mut fan_out, &mut bed, b"2", true);
    send(&mut fan_out, &mut bed, &[3; SHARE_FROM], false);
    assert!(!fan_out.in_message());
    assert_eq!(bed.peer_receives(ids[0]), None);
    assert_eq!(bed.peer_receives(ids[2]), Some(parts([b"1", b"2", &[3; SHARE_FROM]])));
    assert_eq!(bed.peer_receives(late), None);
    assert!(fan_out.has_room(&mut bed.pipes, true));
    fan_out.begin();
    fan_out.mark_all();
    send(&mut fan_out, &mut bed, b"4", false);
    assert_eq!(bed.peer_receives(ids[0]), Some(parts([b"4"])));
    assert_eq!(bed.peer_receives(late), Some(parts([b"4"])));
}

#[test]
fn marks_survive_the_wrap_of_the_message_number() {
    let mut bed = bed();
    let id = bed.insert(b"", b"");
    let mut fan_out = FanOut { message: u32::MAX - 2, ..FanOut::default() };
    fan_out.attach(id);
    for _ in 0..5 {
        fan_out.begin();
        fan_out.mark(id);
        fan_out.mark(id);
        send(&mut fan_out, &mut bed, b"x", false);
        assert_eq!(bed.empty(id), 1);
        fan_out.begin();
        fan_out.mark(PipeId(99));
        send(&mut fan_out, &mut bed, b"x", false);
        assert_eq!(bed.empty(id), 0);
    }
}
