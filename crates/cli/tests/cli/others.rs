//! Other users of the machine cannot read an observed program, but root can. Only root can change
//! the user: without root, these tests print a message and do nothing.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::observed::{World, trouble};
use crate::support::{Ended, Running, test};
use crate::tapped::{observed, until_seen};

/// User id of `nobody`.
const OTHER: u32 = 65_534;
/// Environment variable with the control socket that the child of a test connects to.
const SOCKET: &str = "TAUT_TEST_SOCKET";

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("not tested: only root can become another user");
    }
    root
}

/// Copies a program to a place that every user can read.
fn copied(world: &World, program: &Path, name: &str) -> PathBuf {
    let copy = world.folder.path().join(name);
    fs::copy(program, &copy).unwrap();
    fs::set_permissions(&copy, PermissionsExt::from_mode(0o755)).unwrap();
    copy
}

/// Runs a command as another user.
fn as_other(mut command: Command) -> Ended {
    command.uid(OTHER).gid(OTHER).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running::start(command).end()
}

/// Returns the answer of a control socket.
fn ask(socket: &Path) -> Vec<u8> {
    let mut answer = [0; 3];
    // A connection that closes at once may also return an error.
    let length = UnixStream::connect(socket).and_then(|mut stream| {
        stream.write_all(b"TAP 1\n\n")?;
        stream.read(&mut answer)
    });
    answer[..length.unwrap_or(0)].to_vec()
}

/// Helper process of a test, not a test.
#[test]
#[ignore = "run by another_user_gets_nothing"]
fn child_asks() {
    if let Ok(socket) = std::env::var(SOCKET) {
        println!("gets {} bytes", ask(Path::new(&socket)).len());
    }
}

#[test]
fn another_user_gets_nothing() {
    test("another_user_gets_nothing", || {
        if !is_root() {
            return;
        }
        let world = World::new();
        let mut pull = observed(&world, &["pull", "tcp://127.0.0.1:*"]);
        let (_, pid) = (pull.bound(), pull.id().to_string());
        until_seen(&world, &pid);
        let (folder, file) = (world.place(), world.place().join(&pid));
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
        let taut = copied(&world, Path::new(env!("CARGO_BIN_EXE_taut")), "taut");
        let run = |args: &[&str]| {
            let mut command = Command::new(&taut);
            command.args(args).env("XDG_RUNTIME_DIR", world.folder.path());
            command.env_remove("TAUT_COUNTERS");
            as_other(command)
        };
        let gets_nothing = || {
            let ended = run(&["ps"]);
            assert!(ended.out.is_empty() && ended.err.contains("no process of this user"), "{ended:?}");
            for command in ["show", "tap", "doctor"] {
                let owner = format!("the process {pid} belongs to root");
                run(&[command, &pid]).failed(2, &[&owner, &format!("sudo -u root taut {command} {pid}")]);
            }
        };
        gets_nothing();
        // The socket also refuses other users if its owner has opened all permissions.
        let socket = PathBuf::from(format!("{}.tap", file.display()));
        for (path, mode) in [(&folder, 0o755), (&file, 0o644), (&socket, 0o777)] {
            fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        }
        gets_nothing();
        let program = copied(&world, &std::env::current_exe().unwrap(), "tests");
        let mut command = Command::new(&program);
        command.args(["others::child_asks", "--exact", "--include-ignored", "--nocapture"]);
        command.env(SOCKET, &socket);
        let child = as_other(command);
        assert!(child.text().contains("gets 0 bytes"), "{child:?}");
        assert_eq!(ask(&socket), b"OK\n");
    });
}

/// Runs `taut` as root, without a folder that the environment selects.
fn as_root(args: &[&str]) -> Ended {
    let mut command = crate::support::taut(args);
    command.env_remove("TAUT_COUNTERS").env("XDG_RUNTIME_DIR", "/nonexistent");
    Running::start(command).end()
}

/// Starts an observed PULL of another user, in namespaces that the options of `unshare` name. The
/// folder `place` must belong to that user.
fn of_other(world: &World, namespaces: &[&str], place: &Path) -> Running {
    let taut = copied(world, Path::new(env!("CARGO_BIN_EXE_taut")), "taut");
    let user = OTHER.to_string();
    let mut command = match namespaces {
        [] => Command::new("setpriv"),
        namespaces => {
            let mut command = Command::new("unshare");
            command.args(namespaces).args(["--fork", "--kill-child", "sh", "-c"]);
            // The new /tmp hides the folder, as PrivateTmp= does.
            command.arg("exec 9<\"$0\" && mount -t tmpfs tmpfs /tmp && exec setpriv \"$@\"").arg(&taut);
            command
        }
    };
    command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]);
    // The new /tmp also hides the program.
    command.arg(if namespaces.is_empty() { taut } else { "/proc/self/fd/9".into() });
    command.args(["pull", "tcp://127.0.0.1:*"]).current_dir("/").env("XDG_CONFIG_HOME", "/nonexistent");
    command.env("XDG_RUNTIME_DIR", place).env("TAUT_OBSERVE", "1").env("TAUT_NAME", "orders");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running::start(command)
}

/// Returns the number of the observed process named `orders` that has bound this endpoint.
fn until_root_sees(at: &str) -> String {
    loop {
        let listed = as_root(&["ps", "--json"]);
        for line in listed.text().lines() {
            let process: serde_json::Value = serde_json::from_str(line).unwrap();
            let pid = process["pid"].to_string();
            let is_orders = process["program"] == "orders" && process["uid"] == OTHER;
            if is_orders && as_root(&["show", &pid]).text().contains(at) {
                return pid;
            }
        }
    }
}

fn is_shown_to_root(pid: &str, at: &str) {
    let listed = as_root(&["ps"]).lines();
    let cells = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(cells(&listed[0])[..3], ["PID", "USER", "PROGRAM"]);
    let row = listed.iter().map(|line| cells(line)).find(|row| row[0] == pid).unwrap();
    assert_eq!(row[1..3], ["nobody", "orders"]);
    let labels = format!("{{pid=\"{pid}\",program=\"orders\",user=\"nobody\"}} 1\n");
    assert!(as_root(&["metrics"]).text().contains(&format!("tautline_process_running{labels}")));
    let doctor = as_root(&["doctor", pid, "--for", "0"]);
    assert!(matches!(doctor.code, Some(0 | 4)) && !doctor.text().is_empty(), "{doctor:?}");
    let mut command = crate::support::taut(&["tap", pid, "-n", "1"]);
    command.env_remove("TAUT_COUNTERS");
    let mut tap = Running::start(command);
    tap.notice("tapping");
    assert_eq!(crate::support::run(&["push", at, "a message"]).code, Some(0));
    assert!(tap.line().ends_with(" in  a message"));
    assert_eq!(tap.end().code, Some(0));
}

#[test]
fn root_observes_programs_of_another_user() {
    test("root_observes_programs_of_another_user", || {
        if !is_root() {
            return;
        }
        let world = World::new();
        let closed = PermissionsExt::from_mode(0o711);
        fs::set_permissions(world.folder.path(), closed).unwrap();
        chown(world.place(), Some(OTHER), Some(OTHER)).unwrap();
        // Root does not know this folder: it finds the open file.
        let mut pull = of_other(&world, &[], world.folder.path());
        let at = pull.bound();
        let pid = until_root_sees(&at);
        assert_eq!(pid, pull.id().to_string());
        is_shown_to_root(&pid, &at);
        // The folder as a container's volume: selected by name.
        let mut command = crate::support::taut(&["ps"]);
        command.env("TAUT_COUNTERS", world.place());
        assert!(Running::start(command).end().text().contains(" nobody  orders "));
    });
}

#[test]
fn root_observes_a_program_with_its_own_mounts_and_process_numbers() {
    test("root_observes_a_program_with_its_own_mounts_and_process_numbers", || {
        if !is_root() {
            return;
        }
        let namespaces = ["--mount", "--pid", "--mount-proc"];
        if !Command::new("unshare")
            .args(namespaces)
            .args(["--fork", "true"])
            .status()
            .is_ok_and(|status| status.success())
        {
            eprintln!("not tested: this system allows no new namespaces");
            return;
        }
        let world = World::new();
        let mut pull = of_other(&world, &namespaces, Path::new("/nonexistent"));
        let at = pull.bound();
        let pid = until_root_sees(&at);
        assert!(!Path::new(&format!("/tmp/tautline-{OTHER}/{pid}")).exists());
        is_shown_to_root(&pid, &at);
    });
}

#[test]
fn hostile_files_of_another_user_are_told_or_ignored() {
    test("hostile_files_of_another_user_are_told_or_ignored", || {
        if !is_root() {
            return;
        }
        // The folder is in the usual place, so no other test may use this id.
        let hostile = 2_000_000 + std::process::id();
        let world = World::new();
        trouble().write(&mut world.file(None));
        let good = world.place().join(std::process::id().to_string());
        let folder = PathBuf::from(format!("/tmp/tautline-{hostile}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, PermissionsExt::from_mode(0o700)).unwrap();
        let owned = |path: &Path| chown(path, Some(hostile), Some(hostile)).unwrap();
        owned(&folder);
        let at = |name: &str| folder.join(name);
        // A pipe without a writer, links to another file and folder, and a file of another user.
        assert!(Command::new("mkfifo").arg(at("101")).status().unwrap().success());
        symlink(&good, at("102")).unwrap();
        symlink("/proc", at("103")).unwrap();
        fs::copy(&good, at("104")).unwrap();
        // A file that is large and empty, and one that claims a large image.
        fs::File::create(at("105")).unwrap().set_len(1 << 40).unwrap();
        let mut claims = fs::read(&good).unwrap()[..4096].to_vec();
        let (sequence, length, checksum) = (u64::MAX, 16_u64 << 20, 0);
        let words = [sequence, length, checksum, !(sequence ^ length ^ checksum)];
        for (index, word) in words.into_iter().enumerate() {
            claims[64 + 8 * index..72 + 8 * index].copy_from_slice(&word.to_le_bytes());
        }
        fs::write(at("106"), claims).unwrap();
        // A good file that claims to belong to process 1, which is of another user.
        fs::copy(&good, at("1")).unwrap();
        for name in ["105", "106", "1"] {
            owned(&at(name));
        }
        let listed = as_root(&["ps", "--json"]);
        let of_hostile = |line: &&str| line.contains(&format!("\"uid\":{hostile},"));
        let text = listed.text();
        let lines: Vec<&str> = text.lines().filter(of_hostile).collect();
        assert_eq!(lines.len(), 1, "{listed:?}");
        assert!(lines[0].contains("\"pid\":1,") && lines[0].contains("\"runs\":false"), "{lines:?}");
        for (name, fault) in [
            ("104", "not a file of counters of this user"),
            ("105", "not a file of counters"),
            ("106", "truncated"),
        ] {
            let told = format!("{}: ", at(name).display());
            assert!(
                listed.err.lines().any(|line| line.contains(&told) && line.contains(fault)),
                "{name} {listed:?}"
            );
        }
        // Others may enter the folder, or a link is in its place: nothing in it is read.
        fs::set_permissions(&folder, PermissionsExt::from_mode(0o701)).unwrap();
        let nothing = || {
            let listed = as_root(&["ps", "--json"]);
            let name = folder.display().to_string();
            assert!(
                !listed.text().lines().any(|line| of_hostile(&line)) && !listed.err.contains(&name),
                "{listed:?}"
            );
        };
        nothing();
        let moved = world.folder.path().join("moved");
        fs::set_permissions(&folder, PermissionsExt::from_mode(0o700)).unwrap();
        assert!(Command::new("mv").arg(&folder).arg(&moved).status().unwrap().success());
        symlink(&moved, &folder).unwrap();
        nothing();
        fs::remove_file(&folder).unwrap();
    });
}
