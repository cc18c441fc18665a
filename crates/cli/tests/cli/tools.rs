//! `proxy`, `bench`, `completions`, `man`, and `--help`.

use rustix::process::Signal;

use crate::support::{TempDir, run, start, test};

#[test]
fn a_proxy_joins_clients_and_services() {
    test("a_proxy_joins_clients_and_services", || {
        let folder = TempDir::new();
        let (front, back) = (folder.ipc("front"), folder.ipc("back"));
        let mut proxy = start(&["proxy", &front, &back, "--capture", "-"]);
        let _one = start(&["rep", "--connect", &back, "--echo"]);
        assert_eq!(run(&["req", &front, "-q", "hello"]).lines(), ["hello"]);
        let captured = [proxy.line(), proxy.line()];
        assert!(captured.iter().all(|line| line.ends_with("\t\thello")), "{captured:?}");
        proxy.signal(Signal::TERM);
        assert_eq!(proxy.end().code, Some(0));
    });
}

#[test]
fn a_proxy_whose_copies_are_not_read_ends() {
    test("a_proxy_whose_copies_are_not_read_ends", || {
        let folder = TempDir::new();
        let (front, back) = (folder.ipc("front"), folder.ipc("back"));
        let mut proxy = start(&["proxy", &front, &back, "--type", "streamer", "--capture", "-"]);
        let _pull = start(&["pull", "--connect", &back]);
        let _push = start(&["push", &front, "x", "-i", "5ms"]);
        assert_eq!(proxy.line(), "x");
        proxy.close_output();
        let ended = proxy.end();
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    });
}

#[test]
fn a_proxy_forwards_what_is_published() {
    test("a_proxy_forwards_what_is_published", || {
        let folder = TempDir::new();
        let (front, back, copies) = (folder.ipc("front"), folder.ipc("back"), folder.ipc("copies"));
        let proxy = start(&["proxy", &front, &back, "--type", "forwarder", "--capture", &copies]);
        let mut sub = start(&["sub", &back, "-s", "a"]);
        let mut copied = start(&["sub", &copies]);
        let publisher = start(&["pub", "--connect", &front, "a {n}", "-i", "10ms"]);
        assert!(sub.line().starts_with("a "));
        // The subscription, which goes upstream, is copied as well.
        assert!([copied.line(), copied.line()].iter().any(|line| line.starts_with("a ")));
        drop(publisher);
        proxy.signal(Signal::INT);
        assert_eq!(proxy.end().code, Some(0));
    });
}

#[test]
fn a_proxy_encrypts_in_front() {
    test("a_proxy_encrypts_in_front", || {
        let folder = TempDir::new();
        let (front, back) = (folder.ipc("front"), folder.ipc("back"));
        let path = folder.path().join("key");
        let path = path.to_str().unwrap();
        let public = run(&["keygen", "--out", path]).lines().remove(0);
        let _proxy = start(&["proxy", &front, &back, "--curve-server", "--curve-key-file", path]);
        let _rep = start(&["rep", "--connect", &back, "--echo"]);
        assert_eq!(run(&["req", &front, "-q", "hello", "--curve-server-key", &public]).lines(), ["hello"]);
    });
}

#[test]
fn a_proxy_hands_work_on() {
    test("a_proxy_hands_work_on", || {
        let folder = TempDir::new();
        let (front, back) = (folder.ipc("front"), folder.ipc("back"));
        let _proxy = start(&["proxy", &front, &back, "--type", "streamer"]);
        let pull = start(&["pull", "--connect", &back, "-n", "2"]);
        assert_eq!(run(&["push", &front, "one", "two"]).code, Some(0));
        assert_eq!(pull.end().lines(), ["one", "two"]);
    });
}

#[test]
fn a_proxy_that_cannot_bind_says_so() {
    test("a_proxy_that_cannot_bind_says_so", || {
        let folder = TempDir::new();
        run(&["proxy", &folder.ipc("a"), "tcp://192.0.2.1:1"])
            .failed(1, &["tcp://192.0.2.1:1", "does not belong to this machine"]);
        run(&["proxy", "nonsense", ":1"]).failed(2, &["\"nonsense\" is not a valid endpoint"]);
    });
}

#[test]
fn bench_measures_both_ends() {
    test("bench_measures_both_ends", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let ended = run(&["bench", &at, "inproc://b", ":*", "--json", "-n", "1000", "-r", "10", "-s", "100"]);
        for line in ended.lines() {
            let line: serde_json::Value = serde_json::from_str(&line).unwrap();
            assert!(line["messages_per_second"].as_f64().unwrap() > 0.0, "{line}");
            assert_eq!((line["bytes"].as_u64(), line["round_trip"]["count"].as_u64()), (Some(100), Some(10)));
            let trip = |name: &str| line["round_trip"][name].as_f64().unwrap();
            assert!(trip("least_us") <= trip("median_us") && trip("median_us") <= trip("most_us"), "{line}");
        }
        let curve = run(&["bench", ":*", "--curve", "-n", "1000", "-r", "10"]);
        assert!(curve.lines()[0].contains("CURVE"), "{curve:?}");
    });
}

#[test]
fn bench_measures_one_end() {
    test("bench_measures_one_end", || {
        let folder = TempDir::new();
        let (one, other) = (folder.ipc("a"), folder.ipc("b"));
        let receiver = start(&["bench", &one, "--end", "receive", "-n", "1000"]);
        assert!(run(&["bench", &one, "--end", "send", "-n", "1000"]).lines()[1].contains("messages/s"));
        assert!(receiver.end().lines()[1].contains("messages/s"));
        let answerer = start(&["bench", &other, "--end", "answer"]);
        assert!(run(&["bench", &other, "--end", "ask", "-r", "10"]).lines()[1].contains("(10 round trips)"));
        drop(answerer);
        run(&["bench", &one, "--end", "receive", "-w", "50ms"]).failed(3, &["no message arrived for 50ms"]);
    });
}

#[test]
fn shells_complete_every_command() {
    test("shells_complete_every_command", || {
        for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
            let script = run(&["completions", shell]).text();
            assert!(
                ["dealer", "--curve-server-key", "keygen"]
                    .iter()
                    .all(|word| script.contains(word.trim_start_matches('-'))),
                "{shell}"
            );
        }
        // Bash can parse the script.
        let script = run(&["completions", "bash"]).out;
        let folder = TempDir::new();
        let path = folder.path().join("taut.bash");
        std::fs::write(&path, script).unwrap();
        let read = std::process::Command::new("bash").arg("-n").arg(&path).status().unwrap();
        assert!(read.success());
    });
}

#[test]
fn every_command_has_a_page() {
    test("every_command_has_a_page", || {
        assert!(run(&["man"]).text().contains(".TH taut 1"));
        let folder = TempDir::new();
        let pages = folder.path().join("man1");
        let said = run(&["man", "--out", pages.to_str().unwrap()]).text();
        let count = std::fs::read_dir(&pages).unwrap().count();
        assert!(said.starts_with(&format!("{count} pages")), "{said} {count}");
        for name in ["taut.1", "taut-sub.1", "taut-ping.1"] {
            assert!(pages.join(name).exists(), "{name}");
        }
    });
}

#[test]
fn help_names_the_exit_codes() {
    test("help_names_the_exit_codes", || {
        let help = run(&["--help"]).text();
        assert!(help.contains("Exit codes: 0 done; 1 failed; 2 wrong usage; 3 "), "{help}");
        assert!(!help.contains('\x1b'));
        assert!(run(&["--version"]).text().starts_with("taut "));
        run(&[]).failed(2, &["Usage: taut"]);
    });
}
