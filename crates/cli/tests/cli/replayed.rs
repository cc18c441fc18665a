//! `--replay`: a publisher that keeps its last messages, and late subscribers.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;

use rustix::process::Signal;

use crate::libzmq::python;
use crate::support::{Running, TempDir, run, start, start_with_stdin, test};

/// Starts a publisher with a ring of `keep` messages. Its input lines contain the topic, a space,
/// and the body.
fn publisher(at: &str, ring: &str, keep: &str) -> Running {
    start_with_stdin(&["pub", at, "--replay", ring, "--keep", keep, "-D", " "])
}

/// Returns when the ring contains this message and all earlier ones. Asks again if no message comes
/// in a second, as on a busy machine.
fn until_kept(at: &str, ring: &str, number: &str, line: &str) {
    let asking = ["sub", at, "--replay", ring, "--from", number, "-n", "1", "--timeout", "1"];
    while start(&asking).end().text().trim_end() != line {}
}

#[test]
fn late_subscriber_gets_kept_messages() {
    test("late_subscriber_gets_kept_messages", || {
        let folder = TempDir::new();
        let (at, ring) = (folder.ipc("a"), folder.ipc("ring"));
        let mut publisher = publisher(&at, &ring, "3");
        publisher.write(b"a 0\nb 1\na 2\na 3\nb 4\n");
        let sub = |args: &[&str]| start(&[&["sub", &at, "--replay", &ring], args].concat());
        until_kept(&at, &ring, "4", "b\t4\t4");
        let mut first = sub(&["--from", "oldest"]);
        while first.line() != "b\t4\t4" {}
        assert_eq!(sub(&["--from", "oldest", "-n", "3"]).end().lines(), ["a\t2\t2", "a\t3\t3", "b\t4\t4"]);
        assert_eq!(sub(&["--from", "last", "-n", "2"]).end().lines(), ["a\t3\t3", "b\t4\t4"]);
        assert_eq!(sub(&["--from", "2", "-s", "a", "-n", "2"]).end().lines(), ["a\t2\t2", "a\t3\t3"]);
        let all = sub(&["--from", "0", "-n", "3"]).end();
        assert!(all.err.contains("messages 0 to 1 are lost"), "{all:?}");
        assert_eq!(all.lines(), ["a\t2\t2", "a\t3\t3", "b\t4\t4"]);
        publisher.write(b"a 5\n");
        assert_eq!(first.line(), "a\t5\t5");
        // The publisher keeps running after its last message.
        assert_eq!(sub(&["--from", "5", "-n", "1"]).end().lines(), ["a\t5\t5"]);
        publisher.signal(Signal::INT);
        assert_eq!(publisher.end().code, Some(0));
    });
}

#[test]
fn restarted_publisher_is_reported_and_nothing_is_lost() {
    test("restarted_publisher_is_reported_and_nothing_is_lost", || {
        let folder = TempDir::new();
        let (at, ring) = (folder.ipc("a"), folder.ipc("ring"));
        let mut first = publisher(&at, &ring, "1000");
        first.write(b"t old0\nt old1\nt old2\n");
        until_kept(&at, &ring, "2", "t\t2\told2");
        let mut late = start(&["sub", &at, "--replay", &ring, "--from", "oldest"]);
        while late.line() != "t\t2\told2" {}
        first.signal(Signal::KILL);
        first.end();
        let mut second = publisher(&at, &ring, "1000");
        let done = AtomicBool::new(false);
        let came: Vec<String> = std::thread::scope(|scope| {
            // Publish until the subscriber has reconnected and received a message.
            scope.spawn(|| {
                for number in 0.. {
                    second.write(format!("t new{number}\n").as_bytes());
                    // One at a time: the ring would overflow before the subscriber is back.
                    until_kept(&at, &ring, &number.to_string(), &format!("t\t{number}\tnew{number}"));
                    if done.load(SeqCst) {
                        break;
                    }
                }
            });
            let came = (0..15).map(|_| late.line()).collect();
            done.store(true, SeqCst);
            came
        });
        // The earlier, missed messages come from the ring.
        assert_eq!(came, (0..15).map(|i| format!("t\t{i}\tnew{i}")).collect::<Vec<_>>());
        late.signal(Signal::INT);
        let all = late.end();
        assert!(all.err.contains("the publisher has restarted"), "{all:?}");
    });
}

#[test]
fn options_that_conflict_with_replay_are_refused() {
    test("options_that_conflict_with_replay_are_refused", || {
        let folder = TempDir::new();
        let (at, ring) = (folder.ipc("a"), folder.ipc("ring"));
        run(&["pub", &at, "--replay", &ring, "one part"]).failed(1, &["two parts, the topic and the body"]);
        run(&["pub", &at, "--keep", "3", "x"]).failed(2, &["--replay"]);
        run(&["sub", &at, "--replay", &ring, "--from", "never"])
            .failed(2, &["live, oldest, last or a number"]);
        run(&["sub", &at, &at, "--replay", &ring]).failed(2, &["one publisher"]);
    });
}

#[test]
#[ignore = "needs libzmq: tests/tools/cli/run.sh"]
fn a_ring_answers_libzmq() {
    test("a_ring_answers_libzmq", || {
        let folder = TempDir::new();
        let (at, ring) = (folder.ipc("a"), folder.ipc("ring"));
        let mut publisher = publisher(&at, &ring, "10");
        publisher.write(b"a 0\nb 1\n");
        let mut first = start(&["sub", &at, "--replay", &ring, "--from", "oldest"]);
        while first.line() != "b\t1\t1" {}
        let mut peer = python(&format!(
            "s = context.socket(zmq.DEALER)\ns.connect({ring:?})\ns.send_multipart([b'', (0).to_bytes(8, 'big')])\n\
             for n in range(3): print(s.recv_multipart()[1:][::2], flush=True)\ncontext.destroy(0)"
        ));
        assert_eq!([peer.line(), peer.line()], ["[b'a', b'0']", "[b'b', b'1']"]);
        assert!(peer.line().ends_with(", b'']"));
    });
}
