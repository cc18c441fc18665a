//! `taut topics`: with endpoints, with names, and with libzmq as the peer.

use crate::libzmq::python;
use crate::support::{Running, TempDir, run, start, taut, test};

#[test]
fn topics_go_to_the_patterns_that_stand_for_them() {
    test("topics_go_to_the_patterns_that_stand_for_them", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let winds =
            start(&["topics", "sub", "weather.*.wind", "weather.lund.**", "-n", "2", "--connect", &at]);
        let all = start(&["topics", "sub", "**", "-n", "3", "--connect", &at]);
        let two = ["--bind", at.as_str(), "--wait", "3"];
        // Use one process per topic, because the topic is an argument. The first process waits for
        // all subscribers.
        let say = |args: &[&str]| run(&[&["topics", "pub"], args].concat()).code;
        assert_eq!(say(&[&["weather.rome.rain", "none"][..], &two].concat()), Some(0));
        assert_eq!(say(&[&["weather.lund.wind", "7 m/s"][..], &two].concat()), Some(0));
        assert_eq!(say(&[&["weather.rome.wind", "{n} m/s"][..], &two].concat()), Some(0));
        assert_eq!(winds.end().lines(), ["weather.lund.wind\t7 m/s", "weather.rome.wind\t1 m/s"]);
        assert_eq!(
            all.end().lines(),
            ["weather.rome.rain\tnone", "weather.lund.wind\t7 m/s", "weather.rome.wind\t1 m/s"]
        );
    });
}

#[test]
fn lines_are_bodies_of_a_topic() {
    test("lines_are_bodies_of_a_topic", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let sub = start(&["topics", "sub", "a/*", "-n", "2", "--print", "{topic}={body}", "--connect", &at]);
        let mut publisher = crate::support::start_with_stdin(&["topics", "pub", "a/b", "--bind", &at]);
        publisher.write(b"one\ntwo\n");
        assert_eq!(publisher.end().code, Some(0));
        assert_eq!(sub.end().lines(), ["a/b=one", "a/b=two"]);
    });
}

#[test]
fn a_space_is_a_name_that_all_find() {
    test("a_space_is_a_name_that_all_find", || {
        let folder = TempDir::new();
        let names = folder.path().join("names.toml");
        let entries = folder.path().join("names");
        std::fs::write(&names, format!("[folder]\npath = {:?}\n", entries.to_str().unwrap())).unwrap();
        let named = |args: &[&str]| {
            let mut command = taut(&[&["topics"], args].concat());
            command.env("TAUT_NAMES", &names);
            Running::start(command)
        };
        let sub = named(&["sub", "a.*", "-n", "2"]);
        let other = named(&["sub", "**", "-n", "1", "--space", "other"]);
        // Both publishers start after the subscriber, which finds both of them.
        assert_eq!(named(&["pub", "a.1", "one"]).end().code, Some(0));
        assert_eq!(named(&["pub", "a.2", "two"]).end().code, Some(0));
        assert_eq!(named(&["pub", "b", "elsewhere", "--space", "other"]).end().code, Some(0));
        assert_eq!(sub.end().lines(), ["a.1\tone", "a.2\ttwo"]);
        assert_eq!(other.end().lines(), ["b\telsewhere"]);
    });
}

#[test]
fn missing_names_file_is_named() {
    test("missing_names_file_is_named", || {
        let failed = |names: Option<&str>, code, text: &str| {
            for args in [&["topics", "pub", "a", "b"][..], &["push", "name://orders", "x"]] {
                let mut command = taut(args);
                command.env_remove("TAUT_NAMES").envs(names.map(|names| ("TAUT_NAMES", names)));
                Running::start(command).end().failed(code, &[text]);
            }
        };
        failed(None, 2, "set TAUT_NAMES to the path of one");
        failed(Some("/nonexistent/names"), 1, ": names /nonexistent/names: No such file");
        failed(Some("/dev/zero"), 1, ": names /dev/zero: it is not a regular file");
    });
}

#[test]
fn endpoint_that_programs_refuse_is_a_fault_of_the_names_file() {
    test("endpoint_that_programs_refuse_is_a_fault_of_the_names_file", || {
        let folder = TempDir::new();
        let names = folder.path().join("names.toml");
        let of = |endpoint: &str| {
            std::fs::write(&names, format!("[names]\norders = \"{endpoint}\"\n")).unwrap();
            run(&["names", "--file", names.to_str().unwrap()])
        };
        assert!(of("tcp://a:1").text().contains("tcp://a:1"));
        for wrong in ["tcp://a", "tcp://a:0", "tcp://*:1", "a:1"] {
            of(wrong).failed(1, &[": line 2: `orders` must list endpoints"]);
        }
    });
}

#[test]
fn invalid_topics_and_patterns_are_refused() {
    test("invalid_topics_and_patterns_are_refused", || {
        run(&["topics", "pub", "a.*", "body"]).failed(2, &["\"a.*\" is not a valid topic"]);
        run(&["topics", "sub", "a.**.b"]).failed(2, &["** must be at the beginning or at the end"]);
        run(&["topics", "sub"]).failed(2, &["PATTERN"]);
        run(&["topics", "pub", "a", "b", "--to", "c"]).failed(2, &["--to cannot be used"]);
    });
}

#[test]
#[ignore = "needs libzmq: tests/tools/cli/run.sh"]
fn topics_with_libzmq_at_the_other_end() {
    test("topics_with_libzmq_at_the_other_end", || {
        let mut peer =
            python("s = bound(zmq.SUB)\ns.subscribe(b'a.')\nprint(s.recv_multipart(), flush=True)");
        assert_eq!(run(&["topics", "pub", "a.b", "body", "--connect", &peer.bound()]).code, Some(0));
        assert_eq!(peer.line(), "[b'a.b', b'body']");
        let mut peer = python(
            "s = bound(zmq.XPUB)\nprint(s.recv(), flush=True)\nfor t in [b'a.b.c', b'a.b']: s.send_multipart([t, b'body'])\ncontext.destroy(-1)",
        );
        let sub = run(&["topics", "sub", "a.*", "-n", "1", "--connect", &peer.bound()]);
        assert_eq!(sub.lines(), ["a.b\tbody"]);
        assert_eq!(peer.line(), "b'\\x01a.'");
    });
}
