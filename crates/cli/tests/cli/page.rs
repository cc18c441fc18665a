//! Loads the page of `taut web` in Chromium, if `tests/tools/cli/run.sh` sets `TAUT_CHROMIUM`.
//! `TAUT_SCREENSHOTS` names a folder for the screenshots.

use std::process::{Command, Stdio};

use tautline_observe::EndpointState;

use crate::observed::{NOW, Told, World, trouble};
use crate::support::{Running, test};
use crate::tapped::{observed, until_seen};

/// Creates producers, a queue and workers, and a publisher with a stuck subscriber.
fn system(world: &World) {
    let mut queue = Told::new("queue");
    for (socket, kind, port) in [(1, "PULL", 5001), (2, "PUSH", 5002), (3, "PUB", 5003)] {
        queue.socket(socket, kind).messages_out = 900 * socket;
        queue.endpoint(socket, &format!("tcp://127.0.0.1:{port}"), EndpointState::Listening);
    }
    queue.peer(2, 1, "tcp://127.0.0.1:40001").queued_out = 300;
    let mut all = vec![trouble(), queue];
    for (program, kind, port) in [
        ("producer", "PUSH", 5001),
        ("producer", "PUSH", 5001),
        ("worker", "PULL", 5002),
        ("display", "SUB", 5003),
    ] {
        let mut told = Told::new(program);
        told.socket(1, kind).subscriptions = 1;
        told.endpoint(1, &format!("tcp://127.0.0.1:{port}"), EndpointState::Connected);
        told.peer(1, 1, &format!("tcp://127.0.0.1:{port}")).queued_in = 20;
        all.push(told);
    }
    for told in &mut all {
        told.process.written = NOW;
        told.write(&mut world.file(None));
    }
}

/// Returns the page after some seconds of its virtual time, or a screenshot.
fn browser(options: &[&str], address: &str) -> String {
    let chromium =
        std::env::var("TAUT_CHROMIUM").expect("TAUT_CHROMIUM names Chromium: tests/tools/cli/run.sh");
    let mut command = Command::new(chromium);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=4000"]);
    command.args(options).arg(address);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running::start(command).end().text()
}

#[test]
#[ignore = "needs Chromium: tests/tools/cli/run.sh"]
fn a_browser_shows_the_page() {
    test("a_browser_shows_the_page", || {
        let world = World::new();
        system(&world);
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let mut gone = Told::new("gone");
        gone.process.pid = child.id();
        gone.socket(1, "PUSH");
        let lost = gone.endpoint(1, "tcp://127.0.0.1:5998", EndpointState::Waiting);
        (lost.failures, lost.failing_since, lost.error) = (9, NOW - 12_000_000, 111);
        lost.failed_by = tautline_observe::CONNECT_FAILED;
        gone.write(&mut world.file(Some(child.id())));
        let mut server = Running::start(world.command(&["web"]));
        let address = server.line();
        let page = browser(&["--dump-dom"], &address);
        // A program that has ended has no faults and no connections.
        assert!(!page.contains("5998: "), "{page}");
        assert!(
            page.contains("<tr class=\"pick ended\">") && page.contains(">crashed or was killed "),
            "{page}"
        );
        // No rate was measured yet, so only the queues have a scale.
        assert_eq!((page.matches(">at most ").count(), page.matches(">0/s<").count()), (1, 3), "{page}");
        for part in [
            "<b class=\"\">6</b> processes",
            "<b class=\"\">1</b> ended",
            ">PULL cannot connect to tcp://127.0.0.1:5999: Connection refused<",
            ">No program listens there: start the other program, or correct host and port. ",
            // The readings of this test are years old.
            ">no news for ",
            "<span class=\"dot some\"></span>1 PUSH<",
            "counters at most ",
            // Both ends of a link, and an endpoint without the other end.
            ">bound to tcp://127.0.0.1:5003<",
            ">to tcp://127.0.0.1:5003<",
            "<div class=\"endpoint bad\" title=\"to tcp://127.0.0.1:5999: Connection refused\">",
            // A full queue says what it means.
            "the reader slow\\x1b is slower, for 7 s: queue 100 % of 1,000<",
            ">100 % of 1,000<",
            "−3 min<",
        ] {
            assert!(page.contains(part), "{part} is not in {page}");
        }
        // Two producers, a worker and a display have links to the queue.
        assert_eq!(page.matches("class=\"link\"").count(), 4, "{page}");
        pictures(&address, "system");
    });
}

/// Saves screenshots if requested: wide and narrow, light and dark.
fn pictures(address: &str, name: &str) {
    let Ok(folder) = std::env::var("TAUT_SCREENSHOTS") else { return };
    for (width, height) in [(1280, 1500), (400, 2400)] {
        for (scheme, number) in [("dark", 0), ("light", 1)] {
            let file = format!("{folder}/{name}-{width}-{scheme}.png");
            let picture = format!("--screenshot={file}");
            let size = format!("--window-size={width},{height}");
            let colours = format!("--blink-settings=preferredColorScheme={number}");
            browser(&[&picture, &size, &colours], address);
            assert!(std::fs::metadata(file).unwrap().len() > 10_000);
        }
    }
}

#[test]
#[ignore = "needs Chromium: tests/tools/cli/run.sh"]
fn a_browser_shows_the_messages_of_a_socket() {
    test("a_browser_shows_the_messages_of_a_socket", || {
        let world = World::new();
        let mut rep = observed(&world, &["rep", "tcp://127.0.0.1:*", "--echo"]);
        let (at, pid) = (rep.bound(), rep.id().to_string());
        let socket = until_seen(&world, &pid)["sockets"][0]["id"].to_string();
        let questions = ["req", &at, "-q", "weather.lund {n} <b>degrees</b>", "-i", "20ms"];
        let _asked = Running::start(world.command(&questions));
        let mut server = Running::start(world.command(&["web"]));
        // Request only a few messages, because the virtual time of a waiting page stands still.
        let address = format!("{}#{pid}/{socket}/tap/12", server.line());
        let page = browser(&["--dump-dom"], &address);
        // Messages are shown as text, even if they look like HTML.
        for part in [
            ">12 messages</div>",
            "<button id=\"tap\">show</button>",
            "&lt;b&gt;degrees&lt;/b&gt;</td>",
            ">out<",
            ">peer ",
        ] {
            assert!(page.contains(part), "{part} is not in {page}");
        }
        pictures(&address, "messages");
    });
}
