//! Sockets that observed programs describe in their counters files.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use tautline::kind::SocketType;
use tautline_observe::{ObservedProcess, Reading, read_process};

use super::{At, Listener, Met};
use crate::inspect::{self, owner_of};

/// Bound endpoints of the observed programs that this user can read: all of them, if it is root.
pub struct Observed {
    /// By process and place.
    endpoints: BTreeMap<(u32, At), Option<Met>>,
}

/// Result of a search.
#[derive(Debug, PartialEq)]
pub enum Lookup {
    /// The listener is this ZeroMQ socket.
    Found(Met),
    /// The listener is a ZeroMQ socket whose clients begin, such as `ws`.
    OtherProtocol,
    /// No file lists this listener.
    Unknown,
}

impl Observed {
    /// Reads the files of the listening processes.
    pub fn new(listeners: &[&Listener]) -> Observed {
        let pids: BTreeSet<u32> = listeners.iter().filter_map(|listener| listener.pid).collect();
        let mut observed = Observed { endpoints: BTreeMap::new() };
        // A file of a user must not describe the process of another user: it could hide an open
        // socket from root.
        let is_wanted = |found: &ObservedProcess| {
            found.is_running && pids.contains(&found.pid) && owner_of(found.pid) == Some(found.user)
        };
        for found in inspect::observed().into_iter().filter(is_wanted) {
            observed.add(found.pid, read_process(&found).ok());
        }
        observed
    }

    fn add(&mut self, pid: u32, reading: Option<Reading>) {
        let Some(reading) = reading else { return };
        for endpoint in reading.endpoints.iter().filter(|endpoint| endpoint.bound) {
            let Some((at, is_plain)) = place(&endpoint.name) else { continue };
            let socket = reading.socket(endpoint.socket);
            let code = socket.and_then(|socket| u8::try_from(socket.type_code).ok());
            let socket_type = code.and_then(SocketType::from_code);
            // An earlier library does not tell the mechanism.
            let told = (!endpoint.mechanism.is_empty())
                .then(|| Met { mechanism: endpoint.mechanism.clone(), socket_type });
            if !is_plain {
                self.endpoints.insert((pid, at), None);
            } else if told.is_some() {
                self.endpoints.insert((pid, at), told);
            }
        }
    }

    /// Finds the socket of a listener.
    pub fn look_up(&self, listener: &Listener) -> Lookup {
        let at = match &listener.at {
            At::Tcp(address) => At::Tcp(*address),
            // The mode of the file is not a part of the name.
            At::Path(path, _) => At::Path(path.clone(), 0),
        };
        match listener.pid.and_then(|pid| self.endpoints.get(&(pid, at))) {
            Some(Some(met)) => {
                Lookup::Found(Met { mechanism: met.mechanism.clone(), socket_type: met.socket_type })
            }
            Some(None) => Lookup::OtherProtocol,
            None => Lookup::Unknown,
        }
    }
}

/// Returns the place of a bound endpoint, and true if its sockets speak first.
fn place(endpoint: &str) -> Option<(At, bool)> {
    let (scheme, address) = endpoint.split_once("://")?;
    if scheme == "ipc" {
        return Some((At::Path(address.to_owned(), 0), true));
    }
    let address = address.split('/').next().unwrap_or(address);
    let address: SocketAddr = address.parse().ok()?;
    matches!(scheme, "tcp" | "tls+tcp" | "ws" | "wss").then_some((At::Tcp(address), scheme == "tcp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_have_the_place_of_their_listener() {
        let tcp = |address: &str| At::Tcp(address.parse().unwrap());
        for (endpoint, expected) in [
            ("tcp://0.0.0.0:5555", Some((tcp("0.0.0.0:5555"), true))),
            ("tcp://[::]:5555", Some((tcp("[::]:5555"), true))),
            ("ws://127.0.0.1:80/path", Some((tcp("127.0.0.1:80"), false))),
            ("tls+tcp://127.0.0.1:81", Some((tcp("127.0.0.1:81"), false))),
            ("ipc:///run/a/b.ipc", Some((At::Path("/run/a/b.ipc".to_owned(), 0), true))),
            ("ipc://@name", Some((At::Path("@name".to_owned(), 0), true))),
            ("tcp://eth0:5555", None),
            ("inproc://a", None),
            ("nonsense", None),
        ] {
            assert_eq!(place(endpoint), expected, "{endpoint}");
        }
    }
}
