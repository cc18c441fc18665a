//! `taut policy`: reports faults of policies and of their key files, and the effect of a policy.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::{TempDir, run, test};

#[test]
fn ready_made_policies_answer() {
    test("ready_made_policies_answer", || {
        let said = |policy: &str, options: &[&str]| run(&[&["policy", policy], options].concat()).lines();
        let endpoint = ["--bind", "tcp://*:5555", "--type", "rep"];
        let open = |what: &str, rule: &str| format!("bind tcp://*:5555: {what}, by rule `{rule}`");
        assert_eq!(said("audit", &endpoint)[1..], [open("warn", "audit:open-bind")]);
        assert_eq!(said("loopback", &endpoint)[1..], [open("refuse", "loopback:open-bind")]);
        let secured = [&endpoint[..], &["--mechanism", "CURVE"]].concat();
        assert_eq!(said("loopback", &secured)[1..], ["bind tcp://*:5555: allow, by rule `loopback:secure`"]);
        let both = ["--bind", "ipc:///nowhere/x", "--connect", "tcp://orders:5555"];
        let wanted = [
            "strict is valid",
            "bind ipc:///nowhere/x: allow, mode 0600, by rule `strict:private-ipc`",
            "connect tcp://orders:5555: refuse, by rule `strict:plaintext`",
        ];
        assert_eq!(said("strict", &both), wanted);
    });
}

#[test]
fn faults_have_a_place() {
    test("faults_have_a_place", || {
        let folder = TempDir::new();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let wrong = file("wrong.toml", "\n[[rules]]\naction = \"drop\"\n");
        run(&["policy", &wrong]).failed(1, &[": line 3: `action` must be one of", "do not start"]);
        run(&["policy", "/nowhere/policy.toml"]).failed(1, &["/nowhere/policy.toml: "]);

        let key = folder.path().join("host.key").to_str().unwrap().to_owned();
        let made = run(&["keygen", "--out", &key]).lines();
        let clients = folder.path().join("clients");
        fs::create_dir(&clients).unwrap();
        let good = format!(
            "[[rules]]\naction = \"wrap\"\nwrap = \"x\"\ncall = [\"bind\", \"connect\"]\nendpoint = \"tcp://*\"\n\
             [wraps.x]\nkey = \"{key}\"\nclients = \"{}\"\nservers = {{ \"tcp://*\" = \"{}\" }}\n",
            clients.display(),
            file("server.pub", &made[0]),
        );
        let policy = file("policy.toml", &good);
        fs::write(clients.join("one.pub"), &made[0]).unwrap();
        let said = run(&["policy", &policy, "--bind", "tcp://*:1"]).lines();
        let wanted = [
            format!("{policy} is valid"),
            format!("wrap x: its own key is {}; clients' keys: 1; servers' keys: 1", made[0]),
            "bind tcp://*:1: wrap x, by rule `rule 1`".to_owned(),
        ];
        assert_eq!(said, wanted);
        // The call of a program would fail, so the command fails with the same error.
        let said = run(&["policy", &policy, "--connect", "tcp://b:1", "--mechanism", "PLAIN"]);
        said.failed(1, &["connect tcp://b:1: the socket already uses PLAIN, which CURVE would replace"]);
        let other = file("other.toml", &good.replace("\"tcp://*\" =", "\"tcp://a:*\" ="));
        let said = run(&["policy", &other, "--connect", "tcp://b:1"]);
        said.failed(1, &["connect tcp://b:1: `servers` of `x` has no key for this endpoint"]);
        fs::write(clients.join("one.pub~"), "").unwrap();
        let said = run(&["policy", &policy]).lines();
        assert!(said[1].contains("ignored, because the name is not NAME.pub: one.pub~"), "{said:?}");
        let secret = fs::read_to_string(&key).unwrap();
        let secret =
            secret.lines().find_map(|line| line.strip_prefix("secret = ")).unwrap().trim_matches('"');
        assert!(!said.concat().contains(secret));

        // These faults would otherwise appear only at a bind.
        fs::set_permissions(Path::new(&key), fs::Permissions::from_mode(0o640)).unwrap();
        fs::write(clients.join("two.pub"), "no key\n").unwrap();
        file("server.pub", &format!("{0}\n{0}\n", made[0]));
        let ended = run(&["policy", &policy]);
        ended.failed(
            1,
            &[
                "host.key: other users can read it",
                "two.pub has a line that is not a public key",
                "has 2 keys, but must have exactly one",
            ],
        );
        fs::remove_file(&key).unwrap();
        run(&["policy", &policy]).failed(1, &["host.key: "]);
    });
}
