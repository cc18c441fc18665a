//! Helpers for tests of observed contexts.

#![allow(dead_code, reason = "each test uses some of it")]

use super::writes::Writes;
use std::path::PathBuf;
use std::time::Duration;
use tautline_core::{Context, Socket};
use tautline_observe::{Peer, ReadError, Reading, processes, read};
use tautline_testkit::with_watchdog;

/// Time after which a test hangs.
pub const LIMIT: Duration = Duration::from_secs(120);
/// ZMQ_ROUTING_ID.
pub const ROUTING_ID: i32 = 5;

/// Runs a test in an observed context. Tests identify their sockets by routing ids.
pub fn observed(name: &str, body: impl FnOnce(&Context) + Send + 'static) {
    with_watchdog(LIMIT, name, move || {
        let context = tautline_host::context();
        context.observe().unwrap();
        body(&context);
        context.terminate().unwrap();
    });
}

/// Returns the counters file of this process.
pub fn own_file() -> PathBuf {
    let own = std::process::id();
    let found = processes().into_iter().find(|found| found.pid == own && found.is_running);
    found.expect("this process is observed").path
}

/// Reads until a snapshot shows the expected state.
pub fn until<T>(mut seen: impl FnMut(&Reading) -> Option<T>) -> T {
    let path = own_file();
    let looks = Writes::of(&path);
    loop {
        match read(&path) {
            Ok(reading) => {
                if let Some(found) = seen(&reading) {
                    return found;
                }
            }
            // The file has no snapshot yet, or is being written.
            Err(ReadError::Busy) => {}
            Err(fault) => panic!("{fault}"),
        }
        looks.wait();
    }
}

/// Gives a socket a name, by which its test finds it.
pub fn named(socket: &mut Socket, name: &str) {
    socket.set_option(ROUTING_ID, name.as_bytes()).unwrap();
}

/// Returns the socket with this name, and its peers.
pub fn find<'a>(reading: &'a Reading, name: &str) -> Option<(&'a tautline_observe::Socket, Vec<&'a Peer>)> {
    let socket = reading.sockets.iter().find(|socket| socket.routing_id == name.as_bytes())?;
    Some((socket, reading.peers_of(socket.id).collect()))
}
