//! Other users of the machine cannot read an observed program. Only root can change the user:
//! without root, these tests print a message and do nothing.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::observed::World;
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

#[test]
fn root_gets_nothing_of_another_users_program() {
    test("root_gets_nothing_of_another_users_program", || {
        if !is_root() {
            return;
        }
        let world = World::new();
        chown(world.place(), Some(OTHER), Some(OTHER)).unwrap();
        let taut = copied(&world, Path::new(env!("CARGO_BIN_EXE_taut")), "taut");
        let mut command = Command::new(taut);
        command.env("XDG_CONFIG_HOME", "/nonexistent");
        command.args(["pull", "tcp://127.0.0.1:*"]).uid(OTHER).gid(OTHER).current_dir("/");
        command.env("XDG_RUNTIME_DIR", world.folder.path()).env("TAUT_OBSERVE", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut pull = Running::start(command);
        pull.bound();
        let socket = world.place().join(format!("{}.tap", pull.id()));
        assert_eq!(fs::metadata(&socket).unwrap().uid(), OTHER);
        assert_eq!(ask(&socket), b"");
        // Root learns whose program that is.
        let pid = pull.id().to_string();
        let run = |args: &[&str]| {
            let mut command = crate::support::taut(args);
            command.env("XDG_RUNTIME_DIR", "/nonexistent");
            Running::start(command).end()
        };
        let owner = format!("the process {pid} belongs to nobody");
        let command = format!("sudo -u nobody taut tap {pid} --bytes 20 --prefix 'a b'");
        run(&["tap", &pid, "--bytes", "20", "--prefix", "a b"]).failed(2, &[&owner, &command]);
    });
}
