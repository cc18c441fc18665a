//! CURVE and PLAIN. No output ever contains a secret.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::Signal;

use crate::support::{Ended, Running, TempDir, private, run, start, start_with_stdin, taut, test};

/// Creates a key pair in a file. Returns the path and the public key.
fn keys(folder: &Path, name: &str) -> (String, String) {
    let path = folder.join(name);
    let made = run(&["keygen", "--out", path.to_str().unwrap()]);
    let public = made.lines().remove(0);
    (path.to_str().unwrap().to_owned(), public)
}

fn secret_of(path: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let line = text.lines().find(|line| line.starts_with("secret")).unwrap();
    line.split('"').nth(1).unwrap().to_owned()
}

fn shows(ended: &Ended, secret: &str) -> bool {
    ended.text().contains(secret) || ended.err.contains(secret)
}

#[test]
fn a_key_file_is_for_its_owner() {
    test("a_key_file_is_for_its_owner", || {
        let folder = TempDir::new();
        let (path, public) = keys(folder.path(), "mine");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(public.len(), 40);
        let before = std::fs::read(&path).unwrap();
        run(&["keygen", "--out", &path]).failed(1, &[&path, "the file exists already"]);
        assert_eq!(std::fs::read(&path).unwrap(), before);
        let printed = run(&["keygen"]).lines();
        assert!(
            printed[1].starts_with("public = \"") && printed[2].starts_with("secret = \""),
            "{printed:?}"
        );
    });
}

#[test]
fn replay_serves_only_those_that_may_see_the_live_messages() {
    test("replay_serves_only_those_that_may_see_the_live_messages", || {
        let folder = TempDir::new();
        let (server, public) = keys(folder.path(), "server");
        let (client, known) = keys(folder.path(), "client");
        let (stranger, _) = keys(folder.path(), "stranger");
        let list = private(&folder, "list", &format!("{known} alice\n"));
        let (at, ring) = (folder.ipc("a"), folder.ipc("ring"));
        let publish =
            ["pub", &at, "--replay", &ring, "-D", " ", "--curve-server", "--curve-key-file", &server];
        let mut publisher = start_with_stdin(&[&publish[..], &["--curve-allow", &list]].concat());
        publisher.write(b"salaries alice\n");

        let follow = ["sub", &at, "--replay", &ring, "--from", "oldest", "-n", "1"];
        let keys = |file| [&follow[..], &["--curve-server-key", &public, "--curve-key-file", file]].concat();
        assert_eq!(start(&keys(&client)).end().lines(), ["salaries\t0\talice"]);
        for args in [keys(&stranger), follow.to_vec()] {
            let args = [&args[..], &["--timeout", "1"]].concat();
            let refused = start(&args).end();
            assert_eq!((refused.code, refused.text()), (Some(3), String::new()), "{refused:?}");
        }
        // Access the ring itself, without keys.
        let thief = ["dealer", &ring, "-D", "|", "-e", "|\\0\\0\\0\\0\\0\\0\\0\\0", "--timeout", "1"];
        let refused = start(&thief).end();
        assert!(refused.text().is_empty(), "{refused:?}");
        publisher.signal(Signal::INT);
        assert_eq!(publisher.end().code, Some(0));
    });
}

#[test]
fn curve_lets_in_the_keys_of_a_list() {
    test("curve_lets_in_the_keys_of_a_list", || {
        let folder = TempDir::new();
        let (server, public) = keys(folder.path(), "server");
        let (client, known) = keys(folder.path(), "client");
        let (stranger, _) = keys(folder.path(), "stranger");
        let list = folder.path().join("list");
        std::fs::write(&list, format!("# who may come in\n{known} alice\n")).unwrap();
        let at = folder.ipc("a");
        let server_args =
            ["--curve-server", "--curve-key-file", &server, "--curve-allow", list.to_str().unwrap()];
        let rep =
            start(&[&["rep", &at, "--echo", "-n", "1", "-v", "--out", "jsonl"][..], &server_args].concat());

        let asking = ["req", &at, "hello", "-v", "--curve-server-key", &public];
        let mut refused = start(&[&asking[..], &["--curve-key-file", &stranger]].concat());
        assert!(refused.notice("refused").contains("does the server accept this key or password?"));
        refused.signal(Signal::TERM);
        let refused = refused.end();
        assert_eq!(refused.code, Some(143));
        let answered = run(&[&asking[..], &["--curve-key-file", &client]].concat());
        assert_eq!(answered.lines(), ["hello"]);
        let served = rep.end();
        assert!(served.text().contains("\"user\":\"alice\""), "{served:?}");
        for path in [&server, &client, &stranger] {
            assert!(![&refused, &answered, &served].iter().any(|ended| shows(ended, &secret_of(path))));
        }
    });
}

#[test]
fn curve_without_a_pair_of_ones_own() {
    test("curve_without_a_pair_of_ones_own", || {
        let folder = TempDir::new();
        let (server, public) = keys(folder.path(), "server");
        let at = folder.ipc("a");
        let rep = start(&["rep", &at, "--echo", "-n", "2", "--curve-server", "--curve-key-file", &server]);
        assert_eq!(run(&["req", &at, "hello", "--curve-server-key", &public]).lines(), ["hello"]);
        // The file of the pair also contains the public key.
        assert_eq!(run(&["req", &at, "hello", "--curve-server-key", &server]).lines(), ["hello"]);
        assert_eq!(rep.end().code, Some(0));
    });
}

#[test]
fn a_wrong_server_key_is_told() {
    test("a_wrong_server_key_is_told", || {
        let folder = TempDir::new();
        let (server, _) = keys(folder.path(), "server");
        let (_, other) = keys(folder.path(), "other");
        let at = folder.ipc("a");
        let _rep = start(&["rep", &at, "--echo", "--curve-server", "--curve-key-file", &server, "-q"]);
        let mut wrong = start(&["req", &at, "x", "--curve-server-key", &other]);
        wrong.notice("is --curve-server-key the public key of that server?");
        // Without encryption, both ends notice that their mechanisms differ.
        let mut openly = start(&["req", &at, "x"]);
        assert!(openly.notice("another security mechanism").contains("--curve-server-key"));
    });
}

#[test]
fn a_key_of_the_wrong_length_is_told() {
    test("a_key_of_the_wrong_length_is_told", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        run(&["req", &at, "x", "--curve-server-key", "tooshort"])
            .failed(2, &["--curve-server-key", "40 characters, not 8"]);
        let hyphen = format!("-{}", "a".repeat(38));
        run(&["req", &at, "x", "--curve-server-key", &hyphen]).failed(2, &["40 characters, not 39"]);
        let path = folder.path().join("cut");
        std::fs::write(&path, "public = \"abc\"\nsecret = \"sesame-open\"\n").unwrap();
        let path = path.to_str().unwrap();
        let ended = run(&["rep", &at, "--echo", "--curve-server", "--curve-key-file", path]);
        ended.failed(1, &[path, "40 characters, not 11"]);
        assert!(!shows(&ended, "sesame-open"));
        run(&["req", &at, "x", "--curve-server-key", path]).failed(1, &[path, "40 characters, not 3"]);
        std::fs::write(path, "nothing of the kind\n").unwrap();
        run(&["rep", &at, "--echo", "--curve-server", "--curve-key-file", path])
            .failed(1, &["the file contains no secret key"]);
    });
}

#[test]
fn plain_takes_the_password_from_a_file_or_the_environment() {
    test("plain_takes_the_password_from_a_file_or_the_environment", || {
        let folder = TempDir::new();
        let users = private(&folder, "users", "joe:sword:fish\n");
        let right = private(&folder, "right", "sword:fish\n");
        let wrong = private(&folder, "wrong", "sesame-open");
        let at = folder.ipc("a");
        let rep = start(&["rep", &at, "--echo", "-v", "-n", "2", "--plain-users", &users]);
        let asking = ["req", &at, "x", "-v", "--plain", "joe"];
        let mut refused = start(&[&asking[..], &["--plain-password-file", &wrong]].concat());
        assert!(refused.notice("refused").contains("does the server accept this key or password?"));
        refused.signal(Signal::TERM);
        let refused = refused.end();
        let by_file = run(&[&asking[..], &["--plain-password-file", &right]].concat());
        assert_eq!(by_file.lines(), ["x"]);
        let mut command = taut(&asking);
        command.env("TAUT_PLAIN_PASSWORD", "sword:fish");
        let by_variable = Running::start(command).end();
        assert_eq!(by_variable.lines(), ["x"]);
        let served = rep.end();
        assert!(served.err.contains("user name \"joe\""), "{}", served.err);
        for ended in [&refused, &by_file, &by_variable, &served] {
            assert!(!shows(ended, "sword:fish") && !shows(ended, "sesame-open"), "{ended:?}");
        }
    });
}

#[test]
fn a_secret_that_others_can_read_is_warned_of() {
    test("a_secret_that_others_can_read_is_warned_of", || {
        let folder = TempDir::new();
        let (server, _) = keys(folder.path(), "server");
        std::fs::set_permissions(&server, std::fs::Permissions::from_mode(0o644)).unwrap();
        let at = folder.ipc("a");
        let ended = run(&["rep", &at, "--echo", "--curve-server", "--curve-key-file", &server, "--for", "0"]);
        assert!(ended.code == Some(0) && ended.err.contains("warning: other users can read"), "{ended:?}");
    });
}

#[test]
fn a_file_of_users_does_not_show_its_lines() {
    test("a_file_of_users_does_not_show_its_lines", || {
        let folder = TempDir::new();
        let users = private(&folder, "users", "joe:fine\nsesame-open\n");
        let ended = run(&["rep", &folder.ipc("a"), "--echo", "--plain-users", &users]);
        ended.failed(1, &["line 2: not user:password"]);
        assert!(!shows(&ended, "sesame-open"));
    });
}

#[test]
fn a_proxy_has_keys_and_passwords_of_its_own_at_each_end() {
    test("a_proxy_has_keys_and_passwords_of_its_own_at_each_end", || {
        let folder = TempDir::new();
        let (front, back) = (folder.ipc("front"), folder.ipc("back"));
        let (server, public) = keys(folder.path(), "server");
        let (client, known) = keys(folder.path(), "client");
        let (worker, _) = keys(folder.path(), "worker");
        let list = folder.path().join("list");
        std::fs::write(&list, &known).unwrap();
        let users = private(&folder, "users", "joe:swordfish\n");
        let password = private(&folder, "password", "swordfish\n");
        let _proxy = start(&[
            "proxy",
            &front,
            &back,
            "--curve-server",
            "--curve-key-file",
            &server,
            "--curve-allow",
            list.to_str().unwrap(),
            "--back-plain-users",
            &users,
        ]);
        let at_back = ["--plain", "joe", "--plain-password-file", &password];
        let _rep = start(&[&["rep", "--connect", &back, "--echo"][..], &at_back].concat());
        let at_front = ["req", &front, "hello", "-q", "--curve-server-key", &public, "--curve-key-file"];
        assert_eq!(run(&[&at_front[..], &[&client]].concat()).lines(), ["hello"]);
        // Each end has its own list: a client of one list is refused by the other end.
        run(&[&at_front[..], &[&worker, "-w", "300ms"]].concat()).failed(3, &["refused"]);
        run(&[&["req", &front, "x", "-w", "300ms"][..], &at_back].concat()).failed(3, &["mechanism"]);
    });
}

#[test]
fn a_proxy_logs_in_at_a_back_that_asks_for_it() {
    test("a_proxy_logs_in_at_a_back_that_asks_for_it", || {
        let folder = TempDir::new();
        let (front, back) = (folder.ipc("front"), folder.ipc("back"));
        let (server, public) = keys(folder.path(), "server");
        let _rep = start(&["rep", &back, "--echo", "--curve-server", "--curve-key-file", &server]);
        let connected = format!(">{back}");
        let _proxy = start(&["proxy", &front, &connected, "--back-curve-server-key", &public]);
        assert_eq!(run(&["req", &front, "-q", "hello"]).lines(), ["hello"]);
    });
}
