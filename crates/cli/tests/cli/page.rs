//! The page of `taut web` in Chromium: `tests/cli/run.sh` names it in `TAUT_CHROMIUM` where it is
//! installed. With `TAUT_SCREENSHOTS` the pictures are kept in that folder.

use std::process::{Command, Stdio};

use tautline_observe::EndpointState;

use crate::observed::{NOW, Told, World, trouble};
use crate::support::{Running, test};

/// Producers, a queue and workers, and one that has a stuck subscriber.
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

/// What the page is after some seconds of its own time, or a picture of it.
fn browser(options: &[&str], address: &str) -> String {
    let chromium = std::env::var("TAUT_CHROMIUM").expect("TAUT_CHROMIUM names Chromium: tests/cli/run.sh");
    let mut command = Command::new(chromium);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=4000"]);
    command.args(options).arg(address);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running::start(command).end().text()
}

#[test]
#[ignore = "needs Chromium: tests/cli/run.sh"]
fn a_browser_shows_the_page() {
    test("a_browser_shows_the_page", || {
        let world = World::new();
        system(&world);
        let mut server = Running::start(world.command(&["web"]));
        let address = server.line();
        let page = browser(&["--dump-dom"], &address);
        for part in [
            "<b class=\"\">6</b> processes",
            ">PULL cannot connect to tcp://127.0.0.1:5999: Connection refused<",
            ">Nothing listens there: start the other program, or correct host and port.<",
            "class=\"link bad\"",
            ">1 PUSH<",
        ] {
            assert!(page.contains(part), "{part} is not in {page}");
        }
        // Two producers, a worker and a display lead to the queue.
        assert_eq!(page.matches("class=\"link\"").count(), 4, "{page}");
        let Ok(folder) = std::env::var("TAUT_SCREENSHOTS") else { return };
        for (name, size, scheme) in
            [("wide", "1280,1400", "light"), ("narrow", "400,2200", "light"), ("dark", "1280,1400", "dark")]
        {
            let file = format!("--screenshot={folder}/{name}.png");
            let dark = format!("--blink-settings=preferredColorScheme={}", u8::from(scheme == "light"));
            browser(&[&file, &format!("--window-size={size}"), &dark], &address);
            assert!(std::fs::metadata(format!("{folder}/{name}.png")).unwrap().len() > 10_000);
        }
    });
}
