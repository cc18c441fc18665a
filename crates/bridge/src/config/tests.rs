use super::*;

const NATS: &str = "[nats]\nservers = \"nats://127.0.0.1:4222\"\n";

/// Parses a file with one route. The given lines begin in line 4.
fn route(lines: &str) -> Result<Config, BridgeError> {
    Config::parse(&format!("{NATS}[[routes]]\n{lines}"))
}

#[test]
fn every_kind_of_route_is_read() {
    let text = r#"
[nats]
servers = ["nats://a:4222", "tls://b:4222"]

[[streams]]
name = "ORDERS"
subjects = ["orders.>"]
replicas = 3
max_age = "7days"
duplicate_window = "10m"

[[routes]]
name = "out"
promise = "as it comes"
socket = "SUB"
connect = ["tcp://127.0.0.1:1", "ipc:///tmp/x"]
subscribe = "EUR"
subject = "prices.>"
separator = "/"

[[routes]]
name = "in"
promise = "as it comes"
socket = "PUSH"
bind = "tcp://*:2"
subject = "jobs"
queue_group = "bridges"

[[routes]]
name = "orders"
promise = "stored"
socket = "PULL"
bind = "tcp://*:3"
stream = "ORDERS"
subject = "orders.new"
window = 10
id_part = 1

[[routes]]
name = "work"
promise = "worked off"
socket = "DEALER"
bind = "tcp://*:4"
stream = "ORDERS"
consumer = "workers"
subject = "orders.new"
answer_within = "5s"

[[routes]]
name = "again"
promise = "replay"
socket = "PUB"
bind = "tcp://*:5"
stream = "ORDERS"
subject = "orders.>"
start = 100
"#;
    let config = Config::parse(text).unwrap();
    let jobs: Vec<_> = config.routes.iter().map(|route| &route.job).collect();
    assert_eq!(jobs[0], &Job::Publish);
    assert_eq!(jobs[1], &Job::Deliver { group: Some("bridges".into()), queue: 1000, subscriptions: 10_000 });
    assert_eq!(jobs[2], &Job::Stored { stream: "ORDERS".into(), window: 10, id_part: Some(1) });
    assert!(matches!(jobs[3], Job::WorkedOff { window: 256, attempts: None, .. }));
    assert_eq!(
        jobs[4],
        &Job::Replay { stream: "ORDERS".into(), start: Start::Sequence(100), sequence: false }
    );
    assert_eq!(config.routes[0].link.subscribe, ["EUR"]);
    assert_eq!((config.streams[0].replicas, config.nats.servers.len()), (3, 2));
    assert_eq!(Config::parse(text).unwrap(), config);
}

#[test]
fn a_fault_has_its_line_and_its_reason() {
    let good = "name = \"r\"\npromise = \"stored\"\nsocket = \"PULL\"\nbind = \"tcp://*:1\"\nstream = \"S\"\nsubject = \"s\"\n";
    route(good).unwrap();
    for (from, to, line, what) in [
        ("\"r\"", "\"a b\"", 4, "not a valid name"),
        ("\"stored\"", "\"always\"", 5, "\"worked off\""),
        ("\"PULL\"", "\"PUSH\"", 6, "PULL, SUB, ROUTER"),
        ("tcp://*:1", "*:1", 7, "not a valid endpoint"),
        ("tcp://*:1", "tcp://localhost", 7, "no port"),
        ("stream = \"S\"", "", 4, "needs `stream`"),
        ("\"S\"", "\"S.x\"", 8, "not a valid name"),
        ("subject = \"s\"", "subject = \"a..b\"", 9, "not a valid subject"),
        ("subject = \"s\"", "subject = \"s\"\nwindow = 0", 10, "`window` must be from 1 to"),
        ("subject = \"s\"", "subject = \"s\"\nconsumer = \"c\"", 10, "`consumer` is not valid in"),
        ("subject = \"s\"", "subject = \"s\"\nhwm = 0", 10, "at least 1"),
        ("subject = \"s\"", "subject = \"s\"\nseparator = \"ab\"", 10, "not a separator"),
        ("subject = \"s\"", "subject = \"s\"\nsubscribe = \"x\"", 10, "only a SUB"),
        ("subject = \"s\"", "subject = \"s\"\nwindwo = 1", 10, "windwo"),
        ("subject = \"s\"", "subject = 1", 9, "string"),
    ] {
        let fault = route(&good.replace(from, to)).unwrap_err();
        assert!(fault.line == line && fault.what.contains(what), "{to}: {fault}");
    }
    let twice = format!("{NATS}[[routes]]\n{good}[[routes]]\n{good}");
    assert_eq!(Config::parse(&twice).unwrap_err().to_string(), "line 11: the route r is defined twice");
    assert!(Config::parse(NATS).unwrap_err().what.contains("no route"));
    assert_eq!(Config::parse("[nats]\nservers = []\n").unwrap_err().line, 2);
}

#[test]
fn secrets_are_in_files_that_can_be_read() {
    for (lines, line, what) in [
        ("servers = \"nats://user:secret@a:4222\"\n", 2, "password_file"),
        ("servers = \"nats://a\"\ncredentials = \"/does/not/exist\"\n", 3, "/does/not/exist"),
        ("servers = \"nats://a\"\nuser = \"u\"\n", 3, "needs `password_file`"),
        (
            "servers = \"nats://a\"\ntoken_file = \"Cargo.toml\"\nnkey_file = \"Cargo.toml\"\n",
            3,
            "use only one of",
        ),
        ("servers = \"nats://a\"\n[nats.tls]\nkey = \"/dev/null\"\n", 4, "need each other"),
    ] {
        let fault = Config::parse(&format!("[nats]\n{lines}")).unwrap_err();
        assert!(fault.line == line && fault.what.contains(what), "{lines}: {fault}");
        assert!(!fault.what.contains("secret"), "{fault}");
    }
}

#[test]
fn files_that_are_pipes_are_refused() {
    let pipe = std::env::temp_dir().join(format!("tautline-bridge-pipe-{}", std::process::id()));
    let _ = std::fs::remove_file(&pipe);
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let file = Config::load(&pipe).unwrap_err();
    let ca = format!("{NATS}tls = {{ ca = {:?} }}\n", pipe);
    let of_tls = Config::parse(&ca).unwrap_err();
    std::fs::remove_file(&pipe).unwrap();
    for fault in [file, of_tls] {
        assert!(fault.to_string().contains("regular file"), "{fault}");
    }
}

#[test]
fn byte_order_mark_before_a_certificate_is_a_fault() {
    let file = std::env::temp_dir().join(format!("tautline-bridge-mark-{}", std::process::id()));
    std::fs::write(&file, "\u{feff}-----BEGIN CERTIFICATE-----\n").unwrap();
    let fault = Config::parse(&format!("{NATS}tls = {{ ca = {file:?} }}\n")).unwrap_err();
    std::fs::remove_file(&file).unwrap();
    assert!(fault.line == 3 && fault.to_string().contains("begins with a byte order mark"), "{fault}");
}
