//! A program whose standard error is a full pipe continues to run, and no thread stays blocked on
//! the pipe.
//!
//! The program is this test itself, with a policy that refuses peers.

#![cfg(target_os = "linux")]

use std::fs;
use std::io::Write;
use std::process::Command;
use std::time::Duration;

use tautline_core::{Error, SocketType};
use tautline_testkit::with_watchdog;

/// Capacity of a pipe, see pipe(7).
const PIPE: usize = 65_536;
/// Environment variable that makes this test run as the program.
const IS_PROGRAM: &str = "TAUTLINE_TEST_OF_COMPLAINTS";

/// The program. It runs only as a child process.
#[test]
fn program() {
    if std::env::var_os(IS_PROGRAM).is_none() {
        return;
    }
    with_watchdog(Duration::from_secs(60), "complaints", || {
        let context = tautline_host::context();
        let mut socket = context.socket(SocketType::Pull).unwrap();
        for _ in 0..6 {
            assert!(matches!(socket.bind("tcp://0.0.0.0:*"), Err(Error::Os(_))));
        }
        while threads() > 0 {
            std::thread::yield_now();
        }
        socket.close();
        context.terminate().unwrap();
    });
}

/// Number of threads that write to standard error.
fn threads() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.trim() == "ZMQbg/say").count()
}

#[test]
fn a_full_pipe_as_standard_error_leaves_no_threads() {
    let (_reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(&[b'x'; PIPE]).unwrap();
    let ended = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "program"])
        .env(IS_PROGRAM, "1")
        .env("TAUT_POLICY", "loopback")
        .stderr(writer)
        .output()
        .unwrap();
    assert!(ended.status.success(), "{ended:?}");
}
