//! Tests `ps`, `show`, `doctor` and `metrics` with counters files that the tests write like the
//! library.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Stdio;

use rustix::process::Signal;
use tautline_observe::{
    Context, DiscardReason, Endpoint, EndpointState, Event, Identity, Image, Output, Peer, PeerState,
    Process, Route, Socket, Topic,
};

use crate::support::{Ended, Running, TempDir, taut, test};

const SECOND: u64 = 1_000_000;
/// Time of the readings in the tests.
pub const NOW: u64 = 1_700_000_000 * SECOND;

/// Folder with counters files.
pub struct World {
    pub folder: TempDir,
}

impl World {
    pub fn new() -> World {
        let folder = TempDir::new();
        fs::DirBuilder::new().mode(0o700).create(folder.path().join("tautline")).unwrap();
        World { folder }
    }

    pub fn place(&self) -> PathBuf {
        self.folder.path().join("tautline")
    }

    /// Creates the counters file of a process, by default of this one.
    pub fn file(&self, pid: Option<u32>) -> Output {
        let own = Identity::own().unwrap();
        let identity = match pid {
            Some(pid) => Identity { pid, start_ticks: 0, ..own },
            None => own,
        };
        Output::create_in(&self.place(), &identity).unwrap()
    }

    pub fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = taut(args);
        command.env("XDG_RUNTIME_DIR", self.folder.path()).env("TAUT_COUNTERS", self.place());
        command
    }

    pub fn run(&self, args: &[&str]) -> Ended {
        Running::start(self.command(args)).end()
    }
}

/// Returns the name of the user of this process, as in the list of users.
pub fn user() -> String {
    let own = rustix::process::geteuid().as_raw().to_string();
    let list = fs::read_to_string("/etc/passwd").unwrap();
    let named = list.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == own).then(|| name.to_owned())
    });
    named.unwrap_or(own)
}

/// Data of a simulated process.
#[derive(Default)]
pub struct Told {
    pub process: Process,
    pub sockets: Vec<Socket>,
    pub endpoints: Vec<Endpoint>,
    pub peers: Vec<Peer>,
    pub events: Vec<Event>,
    pub routes: Vec<Route>,
    pub topics: Vec<Topic>,
}

impl Told {
    pub fn new(program: &str) -> Told {
        let mut told = Told::default();
        told.process.pid = std::process::id();
        told.process.program = program.to_owned();
        told.process.version = "0.1.0".to_owned();
        (told.process.since, told.process.written) = (NOW - 60 * SECOND, NOW);
        told
    }

    pub fn socket(&mut self, id: u64, kind: &str) -> &mut Socket {
        let mut socket = Socket::default();
        (socket.id, socket.context, socket.since) = (id, 1, NOW - 60 * SECOND);
        socket.type_name = kind.to_owned();
        socket.mechanism = "NULL".to_owned();
        (socket.send_hwm, socket.receive_hwm, socket.linger_ms) = (1000, 1000, -1);
        self.sockets.push(socket);
        self.sockets.last_mut().unwrap()
    }

    pub fn endpoint(&mut self, socket: u64, name: &str, state: EndpointState) -> &mut Endpoint {
        let mut endpoint = Endpoint::default();
        (endpoint.socket, endpoint.state, endpoint.since) = (socket, state, NOW - 12 * SECOND);
        endpoint.bound = state == EndpointState::Listening;
        (endpoint.given, endpoint.name) = (name.to_owned(), name.to_owned());
        self.endpoints.push(endpoint);
        self.endpoints.last_mut().unwrap()
    }

    pub fn peer(&mut self, socket: u64, id: u64, address: &str) -> &mut Peer {
        let mut peer = Peer::default();
        (peer.socket, peer.id, peer.state, peer.since) =
            (socket, id, PeerState::Connected, NOW - 60 * SECOND);
        (peer.limit_out, peer.limit_in) = (1000, 1000);
        peer.address = address.to_owned();
        peer.mechanism = "NULL".to_owned();
        self.peers.push(peer);
        if let Some(socket) = self.sockets.iter_mut().find(|one| one.id == socket) {
            socket.peers += 1;
        }
        self.peers.last_mut().unwrap()
    }

    pub fn write(&mut self, output: &mut Output) {
        let mut image = Image::new();
        let mut context = Context::default();
        (context.id, context.since, context.io_threads) = (1, NOW - 60 * SECOND, 1);
        image.put(&context);
        self.sockets.iter().for_each(|record| image.put(record));
        self.endpoints.iter().for_each(|record| image.put(record));
        self.peers.iter().for_each(|record| image.put(record));
        self.events.iter().for_each(|record| image.put(record));
        self.routes.iter().for_each(|record| image.put(record));
        self.topics.iter().for_each(|record| image.put(record));
        image.finish(&mut self.process);
        output.write(&image).unwrap();
    }
}

/// Returns a publisher with a slow subscriber and a PULL socket that cannot connect.
pub fn trouble() -> Told {
    let mut told = Told::new("news");
    let publisher = told.socket(3, "PUB");
    (publisher.messages_out, publisher.bytes_out, publisher.queued_out, publisher.dropped) =
        (12_345, 987_654, 1000, 77);
    told.endpoint(3, "tcp://127.0.0.1:5556", EndpointState::Listening).accepted = 2;
    let slow = told.peer(3, 1, "tcp://10.0.0.7:40000");
    (slow.messages_out, slow.queued_out, slow.dropped) = (5_000, 1000, 77);
    (slow.full_since, slow.last_out, slow.routing_id) =
        (NOW - 7 * SECOND, NOW - SECOND, b"slow\x1b".to_vec());
    let fast = told.peer(3, 2, "tcp://10.0.0.8:40000");
    (fast.messages_out, fast.last_out, fast.round_trip_us) = (7_345, NOW, 430);
    told.socket(5, "PULL");
    let lost = told.endpoint(5, "tcp://127.0.0.1:5999", EndpointState::Waiting);
    (lost.failures, lost.failing_since, lost.error) = (9, NOW - 12 * SECOND, 111);
    lost.failed_by = tautline_observe::CONNECT_FAILED;
    lost.reason = "Connection refused".to_owned();
    let mut event = Event::default();
    (event.at, event.socket, event.code) = (NOW - SECOND, 5, 1 << 31);
    (event.name, event.remote) = ("connect failed".to_owned(), "tcp://127.0.0.1:5999".to_owned());
    event.reason = "Connection refused".to_owned();
    told.events.push(event);
    told
}

#[test]
fn processes_are_listed() {
    test("processes_are_listed", || {
        let world = World::new();
        let none = world.run(&["ps"]);
        assert_eq!((none.code, none.text().as_str()), (Some(0), ""));
        let text =
            if rustix::process::geteuid().is_root() { "no process" } else { "no process of this user" };
        assert!(none.err.contains(&format!("{text} is observed")) && none.err.contains("TAUT_OBSERVE=1"));
        trouble().write(&mut world.file(None));
        let lines = world.run(&["ps"]).lines();
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(
            words(&lines[0]),
            [
                "PID", "PROGRAM", "VERSION", "SINCE", "AGE", "SOCKETS", "PEERS", "OUT", "IN", "QUEUED",
                "DROPPED"
            ]
        );
        let mut row = words(&lines[1]);
        // The time since its start, and the age of the counters.
        row.drain(3..5);
        let own = std::process::id().to_string();
        assert_eq!(row, [&own, "news", "0.1.0", "2", "2", "12.3k", "0", "1.00k", "77"]);
        let object: serde_json::Value =
            serde_json::from_str(&world.run(&["ps", "--json"]).lines()[0]).unwrap();
        assert_eq!(
            (object["pid"].as_u64(), object["sockets"].as_u64()),
            (Some(std::process::id().into()), Some(2))
        );
    });
}

#[test]
fn a_process_is_shown_with_all_of_it() {
    test("a_process_is_shown_with_all_of_it", || {
        let world = World::new();
        trouble().write(&mut world.file(None));
        let own = std::process::id().to_string();
        let text = world.run(&["show", &own]).text();
        for part in [
            ", Tautline 0.1.0, observed for ",
            ", counters ",
            " old\ncontext 1: 1 I/O thread",
            "socket 3: PUB, 2 peers",
            "out 12.3k (988kB), in 0 (0B), 1.00k queued to send and 0 queued to receive",
            "77 dropped at the high-water mark",
            "bound to tcp://127.0.0.1:5556, accepted 2 peers",
            "connects to tcp://127.0.0.1:5999, waiting for ",
            "9 attempts failed in ",
            ": Connection refused",
            "1000/1000 full for ",
            "slow\\x1b",
            "430µs",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let one = world.run(&["show", &format!("{own}/5")]).text();
        assert!(one.contains("high-water marks 1000 out, 1000 in, unlimited linger"), "{one}");
        assert!(one.contains("Z connect failed tcp://127.0.0.1:5999 Connection refused"), "{one}");
        assert!(!one.contains("PUB"), "{one}");
        let json = world.run(&["show", "--json", &format!("{own}/3")]);
        let object: serde_json::Value = serde_json::from_str(&json.lines()[0]).unwrap();
        assert_eq!(object["peers"][0]["routing_id"], "slow\\x1b");
        assert_eq!(object["peers"][0]["full_since"].as_u64(), Some(NOW - 7 * SECOND));
        assert_eq!(
            (object["sockets"].as_array().unwrap().len(), &object["endpoints"][0]["state"]),
            (1, &"listening".into())
        );
        world.run(&["show", &format!("{own}/9")]).failed(2, &["has no socket 9", "it has 3 (PUB), 5 (PULL)"]);
        let other = World::new();
        other
            .run(&["show", &own])
            .failed(2, &[&format!("the process {own} is not observed"), "taut run --observe"]);
        other.run(&["show", "999999999"]).failed(2, &["is not observed", "no such process runs"]);
        world.run(&["show", "news"]).failed(2, &["\"news\" is neither a process nor a socket"]);
    });
}

#[test]
fn facts_about_lost_messages_are_printed() {
    test("facts_about_lost_messages_are_printed", || {
        let world = World::new();
        let mut told = trouble();
        let publisher = &mut told.sockets[0];
        (publisher.unmatched, publisher.unmatched_topic) = (12, b"order\xff".to_vec());
        (publisher.discarded, publisher.discarded_by) = (2, DiscardReason::TooManyParts);
        told.peers[0].socket_type = "SUB".to_owned();
        told.endpoints[1].resolved = "tcp://10.0.0.7:5999".to_owned();
        let mut topic = Topic::default();
        (topic.socket, topic.published, topic.at) = (3, true, NOW);
        (topic.prefix, topic.length) = (b"orders".to_vec(), 6);
        told.topics.push(topic);
        told.write(&mut world.file(None));
        let pid = std::process::id().to_string();
        let text = world.run(&["show", &pid]).text();
        for part in [
            "12 without a subscriber (such as \"order\\xff\"), 2 discarded (several parts)",
            "  published lately \"orders\"\n",
            "connects to tcp://127.0.0.1:5999 at tcp://10.0.0.7:5999, waiting",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let json = world.run(&["show", "--json", &pid]);
        let object: serde_json::Value = serde_json::from_str(&json.lines()[0]).unwrap();
        let at = |path: &str| object.pointer(path).unwrap_or_else(|| panic!("{path} in {object}"));
        assert_eq!(at("/topics/0/prefix"), "orders");
        assert_eq!(at("/sockets/0/unmatched_topic"), "order\\xff");
        assert_eq!(at("/sockets/0/discarded_by"), "several parts");
        assert_eq!(at("/peers/0/socket_type"), "SUB");
        assert_eq!(at("/endpoints/1/resolved"), "tcp://10.0.0.7:5999");
        assert_eq!(at("/contexts/0/closed_sockets"), 0);
    });
}

#[test]
fn routes_are_shown_with_their_sockets() {
    test("routes_are_shown_with_their_sockets", || {
        let world = World::new();
        let mut told = trouble();
        let mut route = Route::default();
        (route.socket, route.since, route.received, route.done) = (5, NOW - SECOND, 12_345, 12_000);
        (route.waiting, route.again) = (345, 7);
        (route.name, route.promise) = ("orders \"in\"\x1b".to_owned(), "stored".to_owned());
        told.routes.push(route);
        told.write(&mut world.file(None));
        let pid = std::process::id().to_string();
        let shown = world.run(&["show", &pid]).text();
        let line = "  route orders \"in\"\\x1b (stored): 12.3k received, 12.0k done, 345 waiting, 7 again\n";
        assert!(shown.contains(line), "{shown}");
        assert!(!world.run(&["show", &format!("{pid}/3")]).text().contains("route"));
        assert!(world.run(&["ps"]).lines()[1].ends_with(" 1 route"));
        let metrics = world.run(&["metrics"]).text();
        let labels = "socket=\"5\",type=\"PULL\",route=\"orders \\\"in\\\"\\\\x1b\",promise=\"stored\"}";
        for (name, value) in
            [("received_total", 12_345), ("waiting", 345), ("again_total", 7), ("known_total", 0)]
        {
            let found = metrics.lines().find(|line| line.starts_with(&format!("tautline_route_{name}{{")));
            let found = found.unwrap_or_else(|| panic!("{name} in {metrics}"));
            assert!(found.ends_with(&format!("{labels} {value}")), "{found}");
        }
        let json: serde_json::Value =
            serde_json::from_slice(&world.run(&["show", "--json", &pid]).out).unwrap();
        assert_eq!(
            (json["routes"][0]["done"].as_u64(), json["routes"].as_array().unwrap().len()),
            (Some(12_000), 1)
        );
    });
}

#[test]
fn monitors_are_shown_if_they_are_asked_for() {
    test("monitors_are_shown_if_they_are_asked_for", || {
        let world = World::new();
        let mut told = trouble();
        let own = told.sockets.len();
        told.socket(90, "PAIR").monitor = true;
        told.endpoint(90, "inproc://events", EndpointState::Listening);
        told.peer(90, 91, "");
        told.write(&mut world.file(None));
        let pid = std::process::id().to_string();
        let cells = |args: &[&str]| -> Vec<String> {
            let line = world.run(args).lines().remove(1);
            line.split_whitespace().map(str::to_owned).collect()
        };
        let (usual, all) = (cells(&["ps"]), cells(&["ps", "--all"]));
        assert_eq!((&usual[5], &all[5]), (&own.to_string(), &(own + 1).to_string()));
        let usual = world.run(&["show", &pid]).text();
        assert!(!usual.contains("socket 90") && !usual.contains("inproc://events"), "{usual}");
        assert!(
            usual.ends_with(&format!("and 1 socket with monitor events: taut show {pid} --all\n")),
            "{usual}"
        );
        let marked = "socket 90: PAIR, carries monitor events, 1 peer";
        let all = world.run(&["show", &pid, "-a"]).text();
        assert!(all.contains(marked) && !all.contains("--all"), "{all}");
        let one = world.run(&["show", &format!("{pid}/90")]).text();
        assert!(one.contains(marked) && !one.contains("--all"), "{one}");
        let count = |args: &[&str]| {
            let shown: serde_json::Value = serde_json::from_slice(&world.run(args).out).unwrap();
            shown["sockets"].as_array().unwrap().len()
        };
        assert_eq!(count(&["show", &pid, "--json"]), own);
        assert_eq!(count(&["show", &pid, "--json", "--all"]), own + 1);
        let of_monitor = "socket=\"90\"";
        assert!(!world.run(&["metrics", "--peers"]).text().contains(of_monitor));
        assert!(world.run(&["metrics", "--peers", "--all"]).text().contains(of_monitor));
        // `doctor` always reports the problems of the process that it names.
        assert!(world.run(&["doctor", "--for", "0"]).text().contains(&format!("1 process, {own} sockets")));
    });
}

#[test]
fn a_process_that_has_crashed_is_shown_as_it_was() {
    test("a_process_that_has_crashed_is_shown_as_it_was", || {
        let world = World::new();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        let mut told = trouble();
        told.process.pid = pid;
        told.write(&mut world.file(Some(pid)));
        let lines = world.run(&["ps"]).lines();
        assert!(lines[1].contains(" 1m00s ") && lines[1].contains("  crashed or was killed "), "{lines:?}");
        assert!(lines[1].ends_with(" ago"), "{lines:?}");
        let shown = world.run(&["show", &pid.to_string()]).text();
        assert!(
            shown.contains(", crashed or was killed ") && shown.contains(": this is its last state"),
            "{shown}"
        );
        assert!(shown.contains("full for 7s"), "{shown}");
    });
}

#[test]
fn files_that_are_not_good_are_told_and_the_others_shown() {
    test("files_that_are_not_good_are_told_and_the_others_shown", || {
        let world = World::new();
        trouble().write(&mut world.file(None));
        let whole = fs::read(world.place().join(std::process::id().to_string())).unwrap();
        let mut child = std::process::Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let bad = world.place().join(child.id().to_string());
        let mut other_version = whole.clone();
        other_version[8] = 9;
        let mut turned = whole.clone();
        turned[4096 + (16 << 20)..].reverse();
        for (bytes, why) in [
            (&b""[..], "is truncated"),
            (b"text, and more of it", "is truncated"),
            (&whole[..5000], "is truncated"),
            (&vec![b'x'; 10_000], "not a file of counters"),
            (&other_version, "the file has layout version 9"),
            (&turned, "during each attempt to read it"),
        ] {
            fs::write(&bad, bytes).unwrap();
            for args in [&["ps"][..], &["metrics"], &["doctor", "--for", "0"]] {
                let ended = world.run(args);
                assert!(
                    ended.err.contains(why) && ended.err.contains(bad.to_str().unwrap()),
                    "{args:?} {ended:?}"
                );
                assert!(ended.text().contains("news"), "{args:?} {ended:?}");
            }
            for command in ["show", "tap"] {
                world.run(&[command, &child.id().to_string()]).failed(1, &[why, bad.to_str().unwrap()]);
            }
        }
        drop(child.stdin.take());
        child.wait().unwrap();
    });
}

#[test]
fn a_folder_that_others_may_enter_is_not_read() {
    test("a_folder_that_others_may_enter_is_not_read", || {
        let world = World::new();
        trouble().write(&mut world.file(None));
        fs::set_permissions(world.place(), PermissionsExt::from_mode(0o755)).unwrap();
        assert!(!world.run(&["ps"]).text().contains("news"));
    });
}

#[test]
fn the_doctor_names_what_is_wrong_and_what_to_do() {
    test("the_doctor_names_what_is_wrong_and_what_to_do", || {
        let world = World::new();
        let mut file = world.file(None);
        let mut healthy = Told::new("fine");
        healthy.socket(1, "REP").since = NOW;
        healthy.write(&mut file);
        let fine = world.run(&["doctor", "--for", "0"]);
        assert_eq!(fine.lines(), ["1 process, 1 socket: no problems found"]);
        trouble().write(&mut file);
        let own = std::process::id().to_string();
        let ill = world.run(&["doctor", &own, "--for", "0"]);
        assert_eq!(ill.code, Some(4), "{ill:?}");
        let text = ill.text();
        assert!(text.contains("PULL cannot connect to tcp://127.0.0.1:5999: Connection refused"), "{text}");
        assert!(text.contains("9 attempts in 12 s") && text.contains("No program listens there: "), "{text}");
        assert!(text.ends_with("findings\n"), "{text}");
        let lines = world.run(&["doctor", "--json", "--for", "0"]);
        assert_eq!(lines.code, Some(4));
        let first: serde_json::Value = serde_json::from_str(lines.text().lines().next().unwrap()).unwrap();
        assert_eq!((&first["program"], &first["level"]), (&"news".into(), &"trouble".into()));
        assert!(!first["rule"].as_str().unwrap().is_empty() && !first["advice"].as_str().unwrap().is_empty());
        // This process no longer updates its counters.
        let still = world.run(&["doctor", "--for", "1"]);
        assert_eq!(still.code, Some(4));
        assert!(still.text().contains("The process stands still: it is not running"), "{still:?}");
        World::new().run(&["doctor", &own]).failed(2, &["is not observed", "taut run --observe"]);
    });
}

/// Returns the answer of an HTTP server.
fn ask(at: &str, request: &str) -> String {
    let mut client = TcpStream::connect(at).unwrap();
    client.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn metrics_are_printed_and_answered() {
    test("metrics_are_printed_and_answered", || {
        let world = World::new();
        let mut told = trouble();
        told.process.program = "a\"b\\c\nd".to_owned();
        told.write(&mut world.file(None));
        let printed = world.run(&["metrics", "--peers"]).text();
        let own = std::process::id();
        let labels = format!(
            "pid=\"{own}\",program=\"a\\\"b\\\\c\\nd\",user=\"{}\",socket=\"3\",type=\"PUB\"",
            user()
        );
        assert!(
            printed.contains(&format!("tautline_socket_messages_sent_total{{{labels}}} 12345\n")),
            "{printed}"
        );
        assert!(printed.contains(&format!("tautline_peer_heartbeat_seconds{{{labels},peer=\"2\",address=\"tcp://10.0.0.8:40000\"}} 0.00043\n")));
        assert!(printed.starts_with("# TYPE tautline_process_info gauge\n") && !printed.contains("# EOF"));
        let mut server = Running::start(world.command(&["metrics", "--listen", "0"]));
        let at = server.notice("listening at http://");
        let at = at.trim_start_matches("listening at http://").trim_end_matches("/metrics").to_owned();
        let ask = |request: &str| ask(&at, request);
        let answer = ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}", body.len())));
        assert_eq!(body, world.run(&["metrics"]).text());
        let only = ask("HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(only.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{only}");
        assert!(only.contains(&format!("Content-Length: {}", body.len())) && only.ends_with("\r\n\r\n"));
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2";
        let answer = ask(&format!("GET /metrics HTTP/1.1\r\nAccept: {prometheus}\r\n\r\n"));
        assert!(answer.contains("\r\nContent-Type: application/openmetrics-text; version=1.0.0"), "{answer}");
        assert!(
            answer.contains("\r\n# TYPE tautline_process info\n") && answer.ends_with("\n# EOF\n"),
            "{answer}"
        );
        assert!(ask("GET /other HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(ask("POST / HTTP/1.1\r\n\r\n").contains("\r\nAllow: GET, HEAD\r\n"));
        assert!(ask("nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
        server.signal(Signal::TERM);
        server.end();
        world.run(&["metrics", "--listen", "nonsense:1:2"]).failed(1, &["--listen takes ADDRESS:PORT"]);
    });
}

/// Simulates a collector: accepts one request and sends this answer.
fn collect(listener: &TcpListener, answer: &str) -> (String, serde_json::Value) {
    answer_one(listener.accept().unwrap().0, answer)
}

/// Returns the request of a client after sending it this answer.
pub fn answer_one(mut client: impl Read + Write, answer: &str) -> (String, serde_json::Value) {
    let mut request = Vec::new();
    loop {
        let mut bytes = [0; 4096];
        let length = client.read(&mut bytes).unwrap();
        request.extend_from_slice(&bytes[..length]);
        let text = String::from_utf8_lossy(&request);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
        if body.len() == length.parse::<usize>().unwrap() {
            client.write_all(answer.as_bytes()).unwrap();
            client.flush().unwrap();
            return (head.to_owned(), serde_json::from_str(body).unwrap());
        }
    }
}

#[test]
fn metrics_are_sent_to_a_collector() {
    test("metrics_are_sent_to_a_collector", || {
        let world = World::new();
        trouble().write(&mut world.file(None));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let args = ["metrics", "--peers", "--otlp", &url, "--interval", "100ms", "-n", "3"];
        let taken = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        let pushes = Running::start(world.command(&args));
        let (head, first) = collect(&listener, "HTTP/1.1 503 Service Unavailable\r\n\r\nbusy\x1b");
        assert!(head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("\r\nContent-Type: application/json\r\n"), "{head}");
        collect(&listener, taken);
        assert_eq!(collect(&listener, taken).1, first);
        let ended = pushes.end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.err.contains("the server answered 503 busy\\x1b"), "{ended:?}");
        let resource = &first["resourceMetrics"][0];
        let name = serde_json::json!({ "key": "service.name", "value": { "stringValue": "news" } });
        assert_eq!(resource["resource"]["attributes"][0], name);
        let metrics = resource["scopeMetrics"][0]["metrics"].as_array().unwrap();
        let find = |name: &str| metrics.iter().find(|metric| metric["name"] == name).unwrap();
        let sent = &find("tautline_socket_sent_bytes")["sum"];
        assert_eq!((&sent["aggregationTemporality"], &sent["isMonotonic"]), (&2.into(), &true.into()));
        let point = &sent["dataPoints"][0];
        assert_eq!(
            (&point["asInt"], &point["timeUnixNano"]),
            (&"987654".into(), &(NOW * 1000).to_string().into())
        );
        assert_eq!(point["startTimeUnixNano"], ((NOW - 60 * SECOND) * 1000).to_string());
        let socket = serde_json::json!({ "key": "socket", "value": { "intValue": "3" } });
        assert_eq!(point["attributes"][0], socket);
        let up = find("tautline_endpoint_up")["gauge"]["dataPoints"].as_array().unwrap();
        assert_eq!(up.iter().map(|point| &point["asInt"]).collect::<Vec<_>>(), ["1", "0"]);
        let heartbeat = find("tautline_peer_heartbeat_seconds");
        assert_eq!(heartbeat["gauge"]["dataPoints"][0]["asDouble"], 0.00043);
        let mut command =
            world.command(&["metrics", "--otlp", &url, "-n", "1", "--otlp-header", "x-tenant=a=b"]);
        command.env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20sesame,x-tenant=other");
        let pushes = Running::start(command);
        let (head, _) = collect(&listener, taken);
        let head = head.to_lowercase();
        assert!(head.contains("\r\nauthorization: bearer sesame\r\n"), "{head}");
        assert!(head.contains("\r\nx-tenant: a=b\r\n") && !head.contains("other"), "{head}");
        assert!(head.contains(&format!("\r\nhost: {}\r\n", listener.local_addr().unwrap())), "{head}");
        assert_eq!(pushes.end().code, Some(0));
        let refused = Running::start(world.command(&["metrics", "--otlp", &format!("{url}/x"), "-n", "1"]));
        let answer = r#"{"partialSuccess":{"rejectedDataPoints":"7","errorMessage":"too old"}}"#;
        let (head, _) = collect(&listener, &format!("HTTP/1.1 200 OK\r\n\r\n{answer}"));
        assert!(head.starts_with("POST /x "), "{head}");
        refused.end().failed(1, &["the collector refused 7 data points: too old"]);
        drop(listener);
        world.run(&["metrics", "--otlp", &url, "-n", "1"]).failed(1, &["Connection refused"]);
        world.run(&["metrics", "--otlp", "ftp://a"]).failed(2, &["is not a valid address"]);
        let ended = world.run(&["metrics", "--otlp", "http://a", "--otlp-header", "sesame"]);
        ended.failed(2, &["--otlp-header number 1 does not have the form NAME=VALUE"]);
        assert!(!ended.err.contains("sesame"), "{ended:?}");
        world.run(&["metrics", "--otlp-header", "a=b"]).failed(2, &["--otlp"]);
    });
}

/// Uses the Python parser of Prometheus, which `tests/tools/cli/run.sh` provides.
#[test]
#[ignore = "needs a parser of OpenMetrics: tests/tools/cli/run.sh"]
fn metrics_are_understood_by_prometheus() {
    test("metrics_are_understood_by_prometheus", || {
        let world = World::new();
        let mut told = trouble();
        told.process.program = "a\"b\\c\nd".to_owned();
        told.write(&mut world.file(None));
        let mut server = Running::start(world.command(&["metrics", "--peers", "--listen", "0"]));
        let at = server.notice("listening at http://");
        let at = at.trim_start_matches("listening at http://").trim_end_matches("/metrics").to_owned();
        let answer = ask(&at, "GET / HTTP/1.1\r\nAccept: application/openmetrics-text\r\n\r\n");
        let open = answer.split_once("\r\n\r\n").unwrap().1.to_owned();
        are_understood(&open, "openmetrics.parser");
        are_understood(&world.run(&["metrics", "--peers"]).text(), "parser");
    });
}

fn are_understood(printed: &str, parser: &str) {
    let program = "
import importlib, sys
parse = importlib.import_module('prometheus_client.' + sys.argv[1]).text_string_to_metric_families
for family in parse(sys.stdin.read()):
    for sample in family.samples: print(family.type, sample.name, sorted(sample.labels.items()), float(sample.value))
";
    let mut command = std::process::Command::new(std::env::var("TAUT_PYTHON").unwrap());
    command.args(["-c", program, parser]).env("PYTHONPATH", std::env::var("TAUT_PROMETHEUS").unwrap());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut reader = Running::start(command);
    reader.write(printed.as_bytes());
    let lines = reader.end().lines();
    // Every line except the headers is one sample.
    let samples = printed.lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(lines.len(), samples, "{lines:#?}");
    let sent = format!(
        "counter tautline_socket_messages_sent_total [('pid', '{}'), ('program', 'a\"b\\\\c\\nd'), ('socket', '3'), \
             ('type', 'PUB'), ('user', '{}')] 12345.0",
        std::process::id(),
        user()
    );
    assert!(lines.contains(&sent), "{sent} is not in {lines:#?}");
}

#[test]
fn copies_of_the_library_in_a_process_are_told_apart() {
    test("copies_of_the_library_in_a_process_are_told_apart", || {
        let world = World::new();
        let own = std::process::id();
        let [mut first, mut second] = [world.file(None), world.file(None)];
        trouble().write(&mut first);
        let mut told = trouble();
        told.sockets[0].messages_out = 5;
        told.write(&mut second);
        let metrics = world.run(&["metrics", "--peers"]).text();
        let mut series: Vec<&str> = metrics.lines().filter(|line| !line.starts_with('#')).collect();
        series.iter_mut().for_each(|line| *line = line.rsplit_once(' ').unwrap().0);
        let count = series.len();
        series.sort_unstable();
        series.dedup();
        assert_eq!(series.len(), count, "{metrics}");
        let user = user();
        let sample = format!(
            "{{pid=\"{own}\",copy=\"1\",program=\"news\",user=\"{user}\",socket=\"3\",type=\"PUB\"}} 5\n"
        );
        assert!(metrics.contains(&format!("tautline_socket_messages_sent_total{sample}")), "{metrics}");
        let pids: Vec<String> = world.run(&["ps"]).lines()[1..]
            .iter()
            .map(|line| line.split_whitespace().next().unwrap().to_owned())
            .collect();
        assert_eq!(pids, [own.to_string(), format!("{own}.1")]);
        let shown = world.run(&["show", &format!("{own}.1/3")]).text();
        assert!(shown.starts_with(&format!("news ({own}.1), ")) && shown.contains("out 5 ("), "{shown}");
        assert_eq!(world.run(&["show", &own.to_string()]).text().matches("socket 3: PUB").count(), 2);
        world
            .run(&["show", &format!("{own}.7")])
            .failed(2, &[&format!("the process {own}.7 is not observed")]);
        let found = world.run(&["doctor", &format!("{own}.1"), "--for", "0"]).text();
        assert!(
            found.contains(&format!("news ({own}.1/5): ")) && !found.contains(&format!("({own}/")),
            "{found}"
        );
        assert!(found.contains(&format!("next: taut show {own}.1/5")), "{found}");
        let mut server = Running::start(world.command(&["web"]));
        let address = server.line();
        let (at, path) = address.trim_start_matches("http://").split_once('/').unwrap();
        let data = ask(at, &format!("GET /{path}data HTTP/1.1\r\n\r\n"));
        let data: serde_json::Value = serde_json::from_str(data.split_once("\r\n\r\n").unwrap().1).unwrap();
        let names: Vec<&str> =
            (0..2).map(|index| data["processes"][index]["name"].as_str().unwrap()).collect();
        assert_eq!(names, [own.to_string(), format!("{own}.1")]);
    });
}

#[test]
fn local_peers_are_shown_with_their_programs() {
    test("local_peers_are_shown_with_their_programs", || {
        let world = World::new();
        let mut told = trouble();
        let own = std::process::id();
        for (peer, address) in told.peers.iter_mut().zip(["ipc://", "ipc:///run/news.ipc"]) {
            (peer.address, peer.host) = (address.to_owned(), format!("localhost:0:0:{own}"));
            peer.routing_id.clear();
        }
        told.write(&mut world.file(None));
        let shown = world.run(&["show", &own.to_string()]).text();
        assert!(shown.contains(&format!(" ipc:// news ({own}) ")), "{shown}");
        assert!(shown.contains(&format!(" ipc:///run/news.ipc news ({own}) ")), "{shown}");
        let found = world.run(&["doctor", "--for", "0"]).text();
        assert!(found.contains(&format!("PUB drops messages for news ({own})")), "{found}");
        let json = world.run(&["show", "--json", &own.to_string()]).lines();
        let object: serde_json::Value = serde_json::from_str(&json[0]).unwrap();
        let peer = &object["peers"][0];
        assert_eq!((peer["process"].as_u64(), &peer["program"]), (Some(own.into()), &"news".into()));
    });
}

#[test]
fn wide_names_do_not_shift_the_columns() {
    test("wide_names_do_not_shift_the_columns", || {
        let world = World::new();
        let [mut first, mut second] = [world.file(None), world.file(None)];
        Told::new("注文サービス").write(&mut first);
        Told::new("news").write(&mut second);
        let lines = world.run(&["ps"]).lines();
        // Each of the six characters takes two columns, so they are 12 columns and 6 letters.
        let version = |line: &str| {
            line.chars().position(|letter| letter == '.').map(|_| {
                let before = line.split("0.1.0").next().unwrap();
                before.chars().count() + before.chars().filter(|letter| !letter.is_ascii()).count()
            })
        };
        assert_eq!(version(&lines[1]), version(&lines[2]), "{lines:#?}");
    });
}

#[test]
fn a_page_is_served_at_an_address_that_cannot_be_guessed() {
    test("a_page_is_served_at_an_address_that_cannot_be_guessed", || {
        let world = World::new();
        trouble().write(&mut world.file(None));
        let mut server = Running::start(world.command(&["web"]));
        let address = server.line();
        let (at, path) = address.trim_start_matches("http://").split_once('/').unwrap();
        assert!(at.starts_with("127.0.0.1:") && path.len() == 33, "{address}");
        let get = |path: &str| ask(at, &format!("GET /{path} HTTP/1.1\r\nHost: {at}\r\n\r\n"));
        let page = get(path);
        assert!(page.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/html"), "{page}");
        assert!(page.contains("default-src 'none'"), "{page}");
        // The page loads its parts from here, and no external resources.
        let mut parts = vec!["page.css".to_owned(), "page.js".to_owned()];
        let mut next = 0;
        while let Some(part) = parts.get(next).cloned() {
            assert!(next > 1 || page.contains(&format!("=\"{part}\"")), "{page}");
            let kind = if part.ends_with(".css") { "text/css" } else { "text/javascript" };
            let text = get(&format!("{path}{part}"));
            assert!(text.starts_with(&format!("HTTP/1.1 200 OK\r\nContent-Type: {kind};")), "{text}");
            let addresses = text.matches("://").count() - text.matches("http://www.w3.org/2000/svg").count();
            assert_eq!(addresses, 0, "{text}");
            for import in text.split(" from './").skip(1) {
                let import = import.split_once('\'').unwrap().0.to_owned();
                if !parts.contains(&import) {
                    parts.push(import);
                }
            }
            next += 1;
        }
        assert_eq!(parts.len(), 7, "{parts:?}");
        let data = get(&format!("{path}data"));
        let (head, body) = data.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("Content-Type: application/json") && head.contains("Cache-Control: no-store"));
        let data: serde_json::Value = serde_json::from_str(body).unwrap();
        let process = &data["processes"][0];
        assert_eq!((&process["program"], process["sockets"].as_array().unwrap().len()), (&"news".into(), 2));
        assert!(process["hints"].as_array().unwrap().iter().any(|hint| hint["level"] == "trouble"));
        for other in ["", "data", &path.replace(&path[..4], "0000"), &format!("{path}other")] {
            assert!(get(other).starts_with("HTTP/1.1 404 "), "{other}");
        }
        server.signal(Signal::TERM);
        server.end();
        let mut open = Running::start(world.command(&["web", "--listen", "0.0.0.0:0"]));
        open.notice("other machines can reach");
        open.signal(Signal::TERM);
        open.end();
    });
}
