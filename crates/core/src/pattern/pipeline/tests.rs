use crate::error::Error;
use crate::pattern::testbed::{TestBed, parts};
use tautline_proto::SocketType;

#[test]
fn push_spreads_over_its_peers() {
    let mut bed = TestBed::new(SocketType::Push);
    assert!(!bed.can_send());
    let ids = [bed.join(), bed.connect(b"")];
    assert!(bed.can_send());
    for body in [b"0", b"1", b"2", b"3"] {
        bed.send_owned(body, false).unwrap();
    }
    assert_eq!(bed.peer_receives(ids[0]), Some(parts([b"0"])));
    assert_eq!(bed.peer_receives(ids[1]), Some(parts([b"1"])));
    assert_eq!(bed.peer_receives(ids[0]), Some(parts([b"2"])));
    assert_eq!(bed.peer_receives(ids[1]), Some(parts([b"3"])));
    assert_eq!(bed.recv(), Err(Error::NotSupported));
}

#[test]
fn push_skips_ended_and_full_peers() {
    let mut bed = TestBed::with(SocketType::Push, |options| (options.send_hwm, options.receive_hwm) = (1, 1));
    let (gone, full, fine) = (bed.join(), bed.join(), bed.join());
    bed.end_peer(gone);
    bed.fill(full);
    bed.send([b"a"]).unwrap();
    assert_eq!(bed.peer_receives(fine), Some(parts([b"a"])));
    bed.fill(fine);
    assert!(!bed.can_send());
    assert_eq!(bed.send([b"b"]), Err(Error::Again));
}

#[test]
fn push_drops_received_messages() {
    let mut bed = TestBed::new(SocketType::Push);
    let id = bed.join();
    bed.peer_sends(id, [b"noise", b"more"]);
    assert!(!bed.can_recv());
    assert!(!bed.pipes.get(id).unwrap().can_recv());
}

#[test]
fn pull_takes_from_all_peers_fairly() {
    let mut bed = TestBed::new(SocketType::Pull);
    assert!(!bed.can_recv());
    let ids = [bed.join(), bed.join()];
    for id in ids {
        bed.peer_sends(id, [&[id.0 as u8], b"1"]);
        bed.peer_sends(id, [&[id.0 as u8], b"2"]);
    }
    for round in [b"1", b"2"] {
        for id in ids {
            assert_eq!(bed.recv(), Ok(parts([&[id.0 as u8], round])));
        }
    }
    assert!(!bed.can_recv() && !bed.can_send());
    assert_eq!(bed.send([b"x"]), Err(Error::NotSupported));
}

#[test]
fn pull_keeps_the_latest_message_with_conflate() {
    let mut bed = TestBed::with(SocketType::Pull, |options| options.conflate = true);
    let id = bed.join();
    for body in [b"1", b"2", b"3"] {
        bed.peer_sends(id, [body]);
    }
    assert_eq!(bed.recv(), Ok(parts([b"3"])));
    assert_eq!(bed.recv(), Err(Error::Again));
}

#[test]
fn pull_reads_a_message_to_its_end_after_its_peer_was_detached() {
    let mut bed = TestBed::new(SocketType::Pull);
    let id = bed.join();
    bed.peer_sends(id, [b"1", b"2"]);
    assert_eq!(bed.recv_part(), Ok((b"1".to_vec(), true)));
    bed.detach(id);
    assert_eq!(bed.recv_part(), Ok((b"2".to_vec(), false)));
    assert_eq!(bed.recv_part(), Err(Error::Again));
}

#[test]
fn short_buffer_truncates_and_reports_full_length() {
    let mut bed = TestBed::new(SocketType::Pull);
    let id = bed.join();
    bed.peer_sends(id, [b"", b"a", b"abcdef"]);
    assert_eq!(bed.recv_cut(), [(0, true), (1, true), (6, false)]);
}
