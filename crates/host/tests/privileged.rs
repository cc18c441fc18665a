//! A program with more rights than its caller ignores the environment variables.
//!
//! The program is a set-user-ID copy of this test, run by another user. This needs root, and a
//! folder for temporary files that permits set-user-ID programs.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tautline_core::{Error, SocketType};

/// User ID of the caller, an unprivileged user.
const CALLER: u32 = 65_534;
/// The program prints this if it has more rights than its caller.
const PRIVILEGED: &str = "is privileged";

/// A folder of a test, removed on drop.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The program. It runs only in the copy.
#[test]
fn program() {
    if !std::env::current_exe().unwrap().ends_with("set-user-id") {
        return;
    }
    if tautline_io::env::is_trusted() {
        return;
    }
    println!("{PRIVILEGED}");
    assert_eq!(tautline_host::policy_fault(), None);
    let context = tautline_host::context();
    let mut socket = context.socket(SocketType::Pull).unwrap();
    socket.bind("tcp://127.0.0.1:*").unwrap();
    assert_eq!(socket.bind("name://orders"), Err(Error::ProtocolNotSupported));
    // If the program itself turns observation on, the file is not in a folder that the caller names.
    let _ = context.observe();
    socket.close();
    context.terminate().unwrap();
}

#[test]
fn the_environment_does_not_count_for_a_set_user_id_program() {
    let folder = Folder(std::env::temp_dir().join(format!("tautline-privileged-{}", std::process::id())));
    fs::create_dir(&folder.0).unwrap();
    fs::set_permissions(&folder.0, PermissionsExt::from_mode(0o755)).unwrap();
    if chown(&folder.0, Some(0), None).is_err() {
        println!("skipped: this takes root");
        return;
    }
    let program = folder.0.join("set-user-id");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).unwrap();
    let callers = folder.0.join("callers");
    fs::create_dir(&callers).unwrap();
    chown(&callers, Some(CALLER), None).unwrap();
    fs::set_permissions(&callers, PermissionsExt::from_mode(0o700)).unwrap();
    fs::write(folder.0.join("names.toml"), format!("[folder]\npath = \"{}\"\n", callers.display())).unwrap();

    let output = Command::new(&program)
        .args(["--exact", "program", "--nocapture"])
        .current_dir("/")
        .env("TAUT_POLICY", "/no/such/policy")
        .env("TAUT_NAMES", folder.0.join("names.toml"))
        .env("TAUT_OBSERVE", "1")
        .env("XDG_RUNTIME_DIR", &callers)
        .uid(CALLER)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && !said.contains(PRIVILEGED) {
        println!("skipped: set-user-ID programs do not work in {}", folder.0.display());
        return;
    }
    assert!(output.status.success(), "{output:?}");
    assert_eq!(files_in(&callers), 0);
}

fn files_in(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}
