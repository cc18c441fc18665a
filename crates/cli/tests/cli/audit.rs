//! `taut audit`: sockets that listen on this machine, and risky lines in source code.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use tautline_observe::EndpointState;

use crate::observed::{Told, World};
use crate::support::{Running, TempDir, run, start, taut, test};
use crate::tapped::until_seen;

#[test]
fn open_sockets_are_named_with_what_they_are() {
    test("open_sockets_are_named_with_what_they_are", || {
        // This server does not speak ZMTP and sends no bytes.
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut open = start(&["sub", "--bind", "tcp://*:*"]);
        let mut near = start(&["rep", "tcp://127.0.0.1:*", "--echo"]);
        let (public, secure) = (open.bound(), near.bound());
        let port = |endpoint: &str| endpoint.rsplit(':').next().unwrap().to_owned();
        let pids = [open.id().to_string(), near.id().to_string()];
        let ended = run(&["audit", &pids[0], &pids[1]]);
        assert_eq!(ended.code, Some(4), "{ended:?}");
        let text = ended.text();
        let lines: Vec<&str> = text.lines().collect();
        let warning = format!(
            "warning  tcp://0.0.0.0:{}  taut ({}): SUB, no authentication, on every interface",
            port(&public),
            pids[0]
        );
        assert_eq!(lines[0], warning);
        assert!(lines[1].contains("TAUT_POLICY=loopback"), "{lines:?}");
        assert!(
            lines
                .iter()
                .any(|line| line
                    == &format!("fine  {secure}  taut ({}): REP, NULL, not open to others", pids[1])),
            "{lines:?}"
        );
        assert_eq!(*lines.last().unwrap(), "2 listening sockets, 2 of ZeroMQ: 1 warning");
        // An audit of the whole machine also finds the ZeroMQ sockets, and only those.
        let all = run(&["audit", "--json"]).text();
        let at = |at: String| {
            let line = all.lines().find(|line| line.contains(&format!("\"at\":\"{at}\"")))?;
            Some(serde_json::from_str::<serde_json::Value>(line).unwrap())
        };
        let found = at(format!("tcp://0.0.0.0:{}", port(&public))).unwrap();
        assert_eq!((&found["level"], &found["socket_type"]), (&"warning".into(), &"SUB".into()));
        assert_eq!(found["mechanism"], "NULL");
        assert!(at(secure).is_some());
        assert!(at(format!("tcp://{}", other.local_addr().unwrap())).is_none());
    });
}

#[test]
fn files_and_keys_make_a_difference() {
    test("files_and_keys_make_a_difference", || {
        let folder = TempDir::new();
        let key = folder.path().join("server.key");
        assert_eq!(run(&["keygen", "--out", key.to_str().unwrap()]).code, Some(0));
        let mut curve =
            start(&["pull", "tcp://*:*", "--curve-server", "--curve-key-file", key.to_str().unwrap()]);
        curve.bound();
        let path = folder.path().join("socket");
        let file = start(&["pull", &format!("ipc://{}", path.display())]);
        // An endpoint without a wildcard causes no `bound to` notice.
        while !path.exists() {}
        fs::set_permissions(&path, PermissionsExt::from_mode(0o777)).unwrap();
        let ended = run(&["audit", &curve.id().to_string(), &file.id().to_string()]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let text = ended.text();
        assert!(text.contains("CURVE, on every interface"), "{text}");
        assert!(text.contains(&format!("note  ipc://{}", path.display())), "{text}");
        assert!(text.contains("PULL, NULL, for every user of this machine"), "{text}");
        // A built-in policy closes the socket to others.
        let again = folder.path().join("again");
        let mut command = taut(&["pull", &format!("ipc://{}", again.display())]);
        command.env("TAUT_POLICY", "loopback");
        let closed = Running::start(command);
        while !again.exists() {}
        let text = run(&["audit", &closed.id().to_string()]).text();
        assert!(text.contains(&format!("fine  ipc://{}", again.display())), "{text}");
    });
}

#[test]
fn an_audit_tells_the_mechanism_that_the_policy_sets() {
    test("an_audit_tells_the_mechanism_that_the_policy_sets", || {
        let world = World::new();
        let folder = TempDir::new();
        let key = folder.path().join("host.key").to_str().unwrap().to_owned();
        assert_eq!(run(&["keygen", "--out", &key]).code, Some(0));
        fs::create_dir(folder.path().join("clients")).unwrap();
        let policy = folder.path().join("policy.toml");
        let rules = format!(
            "[[rules]]\naction = \"wrap\"\nwrap = \"x\"\ncall = \"bind\"\nendpoint = \"tcp://*\"\n\
             [wraps.x]\nkey = \"{key}\"\nclients = \"{}\"\n",
            folder.path().join("clients").display()
        );
        fs::write(&policy, rules).unwrap();
        let begin = |args: &[&str], policy: &str| {
            let mut command = world.command(args);
            command.env("TAUT_OBSERVE", "1").env("TAUT_POLICY", policy);
            let mut program = Running::start(command);
            let (at, pid) = (program.bound(), program.id().to_string());
            while until_seen(&world, &pid)["endpoints"][0]["mechanism"].as_str().is_none_or(str::is_empty) {}
            (program, at, pid)
        };
        let (_near, at, near) = begin(&["rep", "tcp://127.0.0.1:*", "--echo"], "audit");
        let (_wrapped, _, wrapped) = begin(&["sub", "--bind", "tcp://*:*"], policy.to_str().unwrap());
        let ended = world.run(&["audit", &near, &wrapped]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let text = ended.text();
        assert!(
            text.contains(&format!("fine  {at}  taut ({near}): REP, NULL, not open to others")),
            "{text}"
        );
        assert!(text.contains(&format!("taut ({wrapped}): SUB, CURVE, on every interface")), "{text}");
    });
}

/// The listener here never speaks, so all facts come from the file.
#[test]
fn an_observed_program_is_not_connected_to() {
    test("an_observed_program_is_not_connected_to", || {
        let world = World::new();
        let [plain, secure, other] = [0; 3].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        let at = |listener: &TcpListener| listener.local_addr().unwrap();
        let mut told = Told::new("news");
        for (id, name, mechanism) in [
            (1, format!("tcp://{}", at(&plain)), "NULL"),
            (2, format!("tcp://{}", at(&secure)), "CURVE"),
            (3, format!("ws://{}/", at(&other)), "NULL"),
        ] {
            told.socket(id, "PUB").type_code = 1;
            told.endpoint(id, &name, EndpointState::Listening).mechanism = mechanism.to_owned();
        }
        told.write(&mut world.file(None));
        let text = world.run(&["audit", &std::process::id().to_string()]).text();
        for (listener, mechanism) in [(&plain, "NULL"), (&secure, "CURVE")] {
            let found = text.lines().find(|line| line.starts_with(&format!("fine  tcp://{} ", at(listener))));
            assert!(
                found.is_some_and(|line| line.ends_with(&format!("PUB, {mechanism}, not open to others"))),
                "{text}"
            );
        }
        assert!(!text.contains(&at(&other).to_string()), "{text}");
    });
}

#[test]
fn source_code_is_looked_through() {
    test("source_code_is_looked_through", || {
        let folder = TempDir::new();
        let path = folder.path().to_str().unwrap();
        let clean = run(&["audit", "--source", path]);
        assert_eq!((clean.code, clean.text().as_str()), (Some(0), "0 files: 0 warnings\n"));
        fs::write(
            folder.path().join("server.py"),
            "import zmq\nsocket.bind('tcp://*:5555')\nx = socket.recv_pyobj()\n",
        )
        .unwrap();
        fs::write(folder.path().join("notes.txt"), "tcp://*:5555\n").unwrap();
        let ended = run(&["audit", "--source", path]);
        assert_eq!(ended.code, Some(4));
        let text = ended.text();
        assert!(
            text.contains(&format!("{path}/server.py:2: tcp://*:5555 is open to every machine")),
            "{text}"
        );
        assert!(
            text.contains(&format!("{path}/server.py:3: recv_pyobj executes data that a peer sends")),
            "{text}"
        );
        assert!(text.ends_with("1 files: 2 warnings\n"), "{text}");
        run(&["audit", "--source", "/nowhere/at/all"]).failed(1, &["/nowhere/at/all: No such file"]);
        run(&["audit", "1", "--source", path]).failed(2, &["cannot be used with"]);
    });
}
