use super::*;
use std::time::Duration;
use tautline_proto::SocketType;
use tautline_proto::command::put_subscribe;
use tautline_queue::FrameReader;
use tautline_testkit::with_watchdog;

/// Returns an intake that reads from a peer, the owner's end of its queue, and the peer's stream.
fn open_intake(socket_type: SocketType, takes_subscriptions: bool) -> (Intake, FrameReader, Stream) {
    let (filler, reader) = tautline_queue::inbound();
    let kind = ConnectionKind {
        socket_type,
        takes_subscriptions,
        takes_replies: false,
        raw: false,
        forgets_on_reconnect: false,
        receives: true,
    };
    let options = Options::new(kind.socket_type, &crate::options::ContextDefaults::default());
    let mut intake = Intake::new(Sink { filler, newest: None }, 1000, &options, kind);
    let (stream, peer) = Stream::pair().unwrap();
    intake.open(0, Arc::new(stream), None);
    (intake, reader, peer)
}

/// The test takes less than a second. If each part caused a new scan of the parts behind it, it
/// would take hours.
#[test]
fn a_message_of_millions_of_parts_is_scanned_once() {
    with_watchdog(Duration::from_secs(300), "parts", || {
        let (mut intake, mut reader, _peer) = open_intake(SocketType::Pull, false);
        let mut asked = PeerRequests::default();
        let parts = [frame::MORE, 0].repeat(8 << 20);
        assert!(matches!(intake.feed(&parts, &[], &mut asked), ReadOutcome::Bytes { published: false }));
        assert!(matches!(intake.feed(&[0, 0], &[], &mut asked), ReadOutcome::Bytes { published: true }));
        assert_eq!(std::iter::from_fn(|| reader.skip()).count(), (8 << 20) + 1);
    });
}

/// The limit holds for any number of messages and any high-water mark.
#[test]
fn unread_bytes_stay_within_counter_range() {
    let (mut intake, mut reader, peer) = open_intake(SocketType::Pull, false);
    intake.set_limit(0);
    intake.most_unread = 100_000;
    let mut asked = PeerRequests::default();
    let message = [&[frame::LONG][..], &20_000_u64.to_be_bytes(), &[7; 20_000]].concat();
    let mut sent = 0;
    let full = loop {
        while let Ok(n) = peer.write(&message[sent % message.len()..]) {
            sent += n;
        }
        match intake.read(&mut asked) {
            ReadOutcome::Full { .. } => break intake.filler().unread(),
            ReadOutcome::Bytes { .. } => {}
            other => panic!("{other:?}"),
        }
    };
    assert!((100_000..100_000 + 2 * READ_BYTES as u64).contains(&full), "{full} bytes");
    while reader.skip().is_some() {}
    reader.credit();
    assert!(matches!(intake.read(&mut asked), ReadOutcome::Bytes { .. }), "reading continues");
}

/// Subscriptions do not count as messages, but they are limited while the owner is elsewhere.
#[test]
fn subscriptions_wait_for_an_owner_that_is_elsewhere() {
    let (mut intake, mut reader, peer) = open_intake(SocketType::Pub, true);
    let mut commands = Vec::new();
    (0..1000_u32).for_each(|number| put_subscribe(&mut commands, &number.to_be_bytes().repeat(50)));
    let (mut sent, mut asked) = (0, PeerRequests::default());
    let mut fill = |intake: &mut Intake| {
        loop {
            // Split at any byte, wherever the kernel stops.
            while let Ok(n) = peer.write(&commands[sent % commands.len()..]) {
                sent += n;
            }
            match intake.read(&mut asked) {
                ReadOutcome::Full { .. } => return sent as u64,
                ReadOutcome::Bytes { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    };
    let most = SUBSCRIPTION_BYTES + 2 * READ_BYTES as u64 + (8 << 20);
    let first = fill(&mut intake);
    assert!(first < most, "{first} bytes");
    assert!(intake.is_full());
    while reader.skip().is_some() {}
    reader.credit();
    assert!(!intake.is_full());
    assert!(fill(&mut intake) > first, "reading continues");
}
