//! Observed programs that were killed or stopped.

use std::fs::File;
use std::time::{Duration, SystemTime};

use rustix::process::Signal;
use serde_json::Value;

use crate::observed::{Told, World, trouble};
use crate::support::{Running, run, test};
use crate::tapped::observed;
use crate::top::Session;

const AT: &str = "tcp://127.0.0.1:*";

/// Returns the output of `show` for a process.
fn shown(world: &World, pid: &str) -> Option<Value> {
    serde_json::from_slice(&world.run(&["show", pid, "--json"]).out).ok()
}

/// Starts a program that has received two messages. Its counters file contains them.
fn receiver(world: &World) -> (Running, String, Value) {
    let mut pull = observed(world, &["pull", AT]);
    let (at, pid) = (pull.bound(), pull.id().to_string());
    assert_eq!(run(&["push", &at, "one", "two"]).code, Some(0));
    let seen = loop {
        match shown(world, &pid) {
            Some(seen) if seen["sockets"][0]["messages_in"] == 2 => break seen,
            _ => {}
        }
    };
    (pull, pid, seen)
}

#[test]
fn a_killed_program_leaves_its_last_counters() {
    test("a_killed_program_leaves_its_last_counters", || {
        let world = World::new();
        let (pull, pid, before) = receiver(&world);
        // The interval grows if updates take long.
        assert!(before["interval_us"].as_u64() >= Some(250_000));
        pull.signal(Signal::KILL);
        assert_eq!(pull.end().code, None);
        for _ in 0..2 {
            let after = shown(&world, &pid).unwrap();
            assert_eq!((&after["runs"], &after["sockets"]), (&false.into(), &before["sockets"]));
            assert!(after["written"].as_u64() >= before["written"].as_u64());
            let text = world.run(&["show", &pid]).text();
            assert!(
                text.contains(", crashed or was killed ") && text.contains(" ago: this is its last state"),
                "{text}"
            );
            assert!(text.contains(", in 2 ("), "{text}");
            assert!(world.run(&["ps"]).text().contains("crashed or was killed "));
            // Its last state causes no findings. Its end is one.
            let found = world.run(&["doctor", "--for", "0"]);
            assert_eq!(found.code, Some(4), "{found:?}");
            let doctor: Vec<String> = found.text().lines().map(str::to_owned).collect();
            let first = &doctor[0];
            assert!(first.starts_with(&format!("warning  taut ({pid}): The process ended ")), "{doctor:?}");
            assert!(first.contains(" s ago: it crashed, was killed, "), "{doctor:?}");
            assert_eq!(doctor[3], format!("    next: taut show {pid}"));
            assert_eq!(doctor[4..], ["1 process (1 ended), 0 sockets: 1 finding"]);
            let metrics = world.run(&["metrics"]).text();
            let samples =
                |name: &str| metrics.lines().filter(|line| line.starts_with(&format!("{name}{{"))).count();
            assert_eq!(samples("tautline_process_running"), 1);
            assert_eq!(samples("tautline_socket_messages_received_total"), 1);
            assert_eq!(samples("tautline_socket_queued_to_receive") + samples("tautline_endpoint_up"), 0);
            // Reading the file does not remove it.
        }
        // The next observed program of the user keeps it. After a day, `ps` removes it.
        let mut next = observed(&world, &["pull", AT]);
        next.bound();
        assert!(world.run(&["show", &pid]).text().contains(", crashed or was killed "));
        let file = world.place().join(&pid);
        let long_ago = SystemTime::now() - Duration::from_secs(25 * 60 * 60);
        File::options().write(true).open(&file).unwrap().set_modified(long_ago).unwrap();
        assert!(!world.run(&["ps"]).text().contains("crashed or was killed "));
        assert!(!file.exists());
        world.run(&["show", &pid]).failed(2, &["is not observed"]);
    });
}

#[test]
fn a_killed_program_is_the_last_one_on_the_screen() {
    test("a_killed_program_is_the_last_one_on_the_screen", || {
        let world = World::new();
        let mut named = world.command(&["pull", AT]);
        named.env("TAUT_OBSERVE", "1").env("TAUT_NAME", "gone");
        let mut gone = Running::start(named);
        let (_, pid) = (gone.bound(), gone.id().to_string());
        while shown(&world, &pid).is_none_or(|seen| seen["sockets"][0].is_null()) {}
        gone.signal(Signal::KILL);
        gone.end();
        let mut session = Session::new(&world, &[]);
        session
            .wait(|screen| screen.contains("0 processes, 0 sockets") && screen.contains("1 process ended"));
        session.wait(|screen| {
            screen.lines().any(|line| {
                line.contains(" gone ") && line.contains(" ended ") && line.trim_end().ends_with(" ago")
            })
        });
    });
}

#[test]
fn an_ended_program_comes_after_running_ones_in_each_order() {
    test("an_ended_program_comes_after_running_ones_in_each_order", || {
        let world = World::new();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let mut gone = Told::new("gone");
        gone.process.pid = child.id();
        let socket = gone.socket(1, "PUB");
        (socket.peers, socket.queued_out) = (9, 5_000);
        // A new file of a running process removes the files of ended ones.
        trouble().write(&mut world.file(None));
        gone.write(&mut world.file(Some(child.id())));
        for order in ["trouble", "queued", "peers"] {
            let mut session = Session::new(&world, &["--sort", order]);
            session.wait_for_rows(|rows| {
                rows[3..5].iter().all(|row| row.contains(" news "))
                    && rows[5].contains(" gone ")
                    && rows[5].contains(" ended ")
            });
        }
    });
}

#[test]
fn a_stopped_program_is_shown_and_named() {
    test("a_stopped_program_is_shown_and_named", || {
        let world = World::new();
        let (pull, pid, before) = receiver(&world);
        pull.signal(Signal::STOP);
        let doctor = || world.run(&["doctor", &pid, "--for", "1", "--json"]).text();
        let finding = loop {
            let text = doctor();
            if let Some(line) = text.lines().find(|line| line.contains("stands-still")) {
                break line.to_owned();
            }
        };
        assert!(finding.contains("stopped") && finding.contains(&pid), "{finding}");
        let after = shown(&world, &pid).unwrap();
        assert_eq!((&after["runs"], &after["sockets"]), (&true.into(), &before["sockets"]));
        assert!(world.run(&["metrics"]).text().contains(&format!("pid=\"{pid}\"")));
        pull.signal(Signal::CONT);
        while doctor().contains("stands-still") {}
        pull.signal(Signal::TERM);
        assert_eq!(pull.end().code, Some(0));
    });
}
