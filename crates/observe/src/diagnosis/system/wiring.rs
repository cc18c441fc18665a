//! Endpoints that lead to the wrong place.

use std::collections::HashMap;

use super::finding;
use crate::diagnosis::graph::{Address, Graph, Place, SocketKey, fits};
use crate::diagnosis::text::{format_count, readable_name};
use crate::diagnosis::{Finding, Level};
use crate::event_text::{self, errno};
use crate::{Endpoint, EndpointState};

/// Events of a handshake that failed.
const HANDSHAKE: [u32; 3] = [0x800, 0x2000, 0x4000];

/// True if the endpoint cannot reach a peer at the moment, and its last failure was one of these
/// events.
fn fails_by(endpoint: &Endpoint, events: &[u32]) -> bool {
    let is_up = endpoint.state == EndpointState::Connected;
    endpoint.failures > 0 && !is_up && events.contains(&endpoint.failed_by)
}

/// A connection to a socket of a type that does not fit.
struct Misfit<'a> {
    from: Place<'a>,
    /// The bound endpoint, if its process is observed.
    to: Option<Place<'a>>,
    /// Type of the socket there.
    type_name: &'a str,
}

/// Returns the connections to a socket of a type that does not fit.
fn misfits<'a>(graph: &Graph<'a>) -> Vec<Misfit<'a>> {
    let failing = graph.connected().filter(|place| fails_by(place.endpoint, &HANDSHAKE));
    let found = failing.filter_map(|from| {
        let own = &*from.socket.type_name;
        let mut reached = graph.reached_from(from).filter(|to| graph.is_running(to.key.process));
        if let Some(to) = reached.find(|to| !fits(own, &to.socket.type_name)) {
            return Some(Misfit { from, to: Some(to), type_name: &to.socket.type_name });
        }
        let announced = &*from.endpoint.peer_type;
        let is_wrong = !announced.is_empty() && !fits(own, announced);
        is_wrong.then_some(Misfit { from, to: None, type_name: announced })
    });
    found.collect()
}

/// Returns the types that a socket of this type can talk to, in words.
fn partners(type_name: &str) -> String {
    let all = [
        "REQ", "REP", "DEALER", "ROUTER", "PUB", "XPUB", "SUB", "XSUB", "PUSH", "PULL", "PAIR", "SERVER",
        "CLIENT", "RADIO", "DISH", "GATHER", "SCATTER", "CHANNEL", "PEER",
    ];
    let fitting: Vec<&str> = all.into_iter().filter(|other| fits(type_name, other)).collect();
    match &fitting[..] {
        [] => "another type".to_owned(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// Returns a sentence about the endpoint that was probably meant.
fn meant(graph: &Graph<'_>, key: SocketKey) -> String {
    let Some(meant) = graph.meant_place(key) else { return String::new() };
    format!(
        " Perhaps {} was meant: {} of {} listens there, and no peer has come.",
        readable_name(meant.endpoint),
        meant.socket.type_name,
        graph.program(meant.key.process)
    )
}

/// A proxy whose two sides are swapped: the peers of each side would fit the other side.
pub(super) fn swapped_proxy(graph: &Graph<'_>) -> Vec<Finding> {
    let mut comers: HashMap<usize, Vec<Misfit<'_>>> = HashMap::new();
    for misfit in misfits(graph) {
        if let Some(to) = misfit.to {
            comers.entry(to.key.process).or_default().push(misfit);
        }
    }
    let swapped = comers.into_values().filter_map(|misfits| {
        let ends = || misfits.iter().filter_map(|misfit| Some((misfit, misfit.to?)));
        let (one, first) = ends().next()?;
        let is_mirror = |(two, second): &(&Misfit<'_>, Place<'_>)| {
            second.key != first.key
                && fits(&two.from.socket.type_name, &first.socket.type_name)
                && fits(&one.from.socket.type_name, &second.socket.type_name)
        };
        let (two, second) = ends().find(is_mirror)?;
        let count = misfits.len() as u64;
        Some(Finding {
            what: format!(
                "The two sides of {} are swapped: {} connects to its {}, and {} to its {}",
                graph.program(first.key.process),
                one.from.socket.type_name,
                first.socket.type_name,
                two.from.socket.type_name,
                second.socket.type_name
            ),
            evidence: format!(
                "{} at {}, {} at {}; {} cannot connect",
                first.socket.type_name,
                readable_name(first.endpoint),
                second.socket.type_name,
                readable_name(second.endpoint),
                format_count(count, "socket")
            ),
            advice: format!(
                "Exchange the two endpoints, either in the proxy or in the programs around it: {} belongs to {}, \
                 and {} to {}.",
                one.from.socket.type_name,
                second.socket.type_name,
                two.from.socket.type_name,
                first.socket.type_name
            ),
            ..finding(first.key, Level::Trouble, "swapped", count)
        })
    });
    swapped.collect()
}

/// A connection to a socket of a type that does not fit.
pub(super) fn wrong_type(graph: &Graph<'_>) -> Vec<Finding> {
    let found = misfits(graph).into_iter().map(|misfit| {
        let Misfit { from, to, type_name } = misfit;
        let own = &from.socket.type_name;
        let whose = to.map_or(String::new(), |to| format!(" of {}", graph.program(to.key.process)));
        let seconds = graph.now(from.key.process).saturating_sub(from.endpoint.failing_since) / 1_000_000;
        Finding {
            what: format!(
                "{own} connects to {}, but {type_name}{whose} listens there",
                readable_name(from.endpoint)
            ),
            evidence: format!(
                "{} failed in {seconds} s; {own} can talk to {} only",
                format_count(from.endpoint.failures, "handshake"),
                partners(own)
            ),
            advice: format!("Correct the endpoint or the type of the socket.{}", meant(graph, from.key)),
            next: format!("taut ping {}", readable_name(from.endpoint)),
            ..finding(from.key, Level::Trouble, "wrong-type", from.endpoint.failures)
        }
    });
    found.collect()
}

/// An endpoint that is bound, but in another namespace.
pub(super) fn other_namespace(graph: &Graph<'_>) -> Vec<Finding> {
    let failing = graph.connected().filter(|place| fails_by(place.endpoint, &[event_text::CONNECT_FAILED]));
    let found = failing.filter_map(|from| {
        let address = Address::new(from.endpoint);
        let apart = |to: &Place<'_>| {
            graph.is_running(to.key.process)
                && !graph.is_same_namespace(from.key.process, to.key.process, address.transport)
                && fits(&from.socket.type_name, &to.socket.type_name)
        };
        let is_there = graph.reached_from(from).next().is_some();
        let to = graph.same_port_or_path(from.endpoint).find(apart).filter(|_| !is_there)?;
        let (space, advice) = match address.transport {
            "ipc" => (
                "mount",
                "The two programs have different files (a container, or PrivateTmp= of systemd): choose a path that both \
                 mount, such as a folder in /run, or use tcp.",
            ),
            _ => (
                "network",
                "The two programs have different addresses (a container): connect to the address of the other one, and bind \
                 there to an address that is reachable from outside.",
            ),
        };
        let place = readable_name(from.endpoint);
        Some(Finding {
            what: format!(
                "{} cannot reach {place}: {} of {} is bound there in another {space} namespace",
                from.socket.type_name,
                to.socket.type_name,
                graph.program(to.key.process)
            ),
            evidence: format!(
                "{}; {}",
                from.endpoint.reason,
                format_count(from.endpoint.failures, "failed attempt")
            ),
            advice: advice.to_owned(),
            next: format!(
                "ls -l /proc/{}/ns /proc/{}/ns",
                graph.processes[from.key.process].reading.process.pid,
                graph.processes[to.key.process].reading.process.pid
            ),
            ..finding(from.key, Level::Trouble, "other-namespace", from.endpoint.failures)
        })
    });
    found.collect()
}

/// A path that two sockets are bound to: only the later one gets the connections.
pub(super) fn taken_path(graph: &Graph<'_>) -> Vec<Finding> {
    let paths = graph.all_bound().filter(|place| {
        place.endpoint.state == EndpointState::Listening
            && graph.is_running(place.key.process)
            && Address::new(place.endpoint).transport == "ipc"
    });
    let found = paths.filter_map(|place| {
        let later = |other: &Place<'_>| {
            other.key != place.key
                && other.endpoint.state == EndpointState::Listening
                && graph.is_running(other.key.process)
                && graph.is_same_namespace(place.key.process, other.key.process, "ipc")
                && other.endpoint.since > place.endpoint.since
        };
        let other = graph.same_port_or_path(place.endpoint).find(later)?;
        let path = readable_name(place.endpoint);
        Some(Finding {
            what: format!(
                "{} is bound to {path}, but {} of {} has bound the same path since",
                place.socket.type_name,
                other.socket.type_name,
                graph.program(other.key.process)
            ),
            evidence: "new connections to this path reach the later socket only".to_owned(),
            advice: "Give each socket its own path. Perhaps the same program was started twice.".to_owned(),
            ..finding(place.key, Level::Trouble, "taken-path", 1)
        })
    });
    found.collect()
}

/// An endpoint without a listener, while a socket of the type that fits waits at another one.
pub(super) fn wrong_endpoint(graph: &Graph<'_>) -> Vec<Finding> {
    let failing = graph.connected().filter(|place| {
        fails_by(place.endpoint, &[event_text::CONNECT_FAILED])
            && matches!(place.endpoint.error, errno::REFUSED | errno::NO_ENTRY)
            && graph.same_port_or_path(place.endpoint).all(|other| !graph.is_running(other.key.process))
    });
    let found = failing.filter_map(|from| {
        let meant = graph.meant_place(from.key)?;
        let seconds = graph.now(from.key.process).saturating_sub(from.endpoint.failing_since) / 1_000_000;
        if seconds < 2 {
            return None;
        }
        Some(Finding {
            what: format!(
                "{} cannot connect to {}, because no socket listens there; {} of {} listens at {}",
                from.socket.type_name,
                readable_name(from.endpoint),
                meant.socket.type_name,
                graph.program(meant.key.process),
                readable_name(meant.endpoint)
            ),
            evidence: format!(
                "{} in {seconds} s: {}; no peer has come to {}",
                format_count(from.endpoint.failures, "failed attempt"),
                from.endpoint.reason,
                readable_name(meant.endpoint)
            ),
            advice: "If both belong together, correct one of the two endpoints.".to_owned(),
            ..finding(from.key, Level::Trouble, "wrong-endpoint", seconds)
        })
    });
    let mut found: Vec<Finding> = found.collect();
    found.extend(wrong_address(graph));
    found
}

/// A name that resolves to an address without a listener, while the port is bound at another
/// address of this host.
fn wrong_address(graph: &Graph<'_>) -> Vec<Finding> {
    let failing = graph.connected().filter(|place| {
        fails_by(place.endpoint, &[event_text::CONNECT_FAILED]) && !place.endpoint.resolved.is_empty()
    });
    let found = failing.filter_map(|from| {
        let (given, resolved) = (Address::of(&from.endpoint.given), Address::of(&from.endpoint.resolved));
        let is_name =
            given.host != resolved.host && given.host.bytes().any(|byte| byte.is_ascii_alphabetic());
        let takes = |other: &Place<'_>| {
            graph.is_running(other.key.process) && fits(&from.socket.type_name, &other.socket.type_name)
        };
        let there = graph.same_port_or_path(from.endpoint).find(takes);
        let is_there = graph.reached_from(from).any(|other| graph.is_running(other.key.process));
        let there = there.filter(|_| is_name && !is_there)?;
        Some(Finding {
            what: format!(
                "The name `{}` resolves to {}, but no socket listens there; {} of {} listens at {}",
                given.host,
                resolved.host,
                there.socket.type_name,
                graph.program(there.key.process),
                readable_name(there.endpoint)
            ),
            evidence: format!(
                "{}: {}",
                format_count(from.endpoint.failures, "failed attempt"),
                from.endpoint.reason
            ),
            advice: "Correct the name in DNS or in /etc/hosts, or bind to the address that it has."
                .to_owned(),
            next: format!("getent hosts {}", given.host),
            ..finding(from.key, Level::Trouble, "wrong-address", from.endpoint.failures)
        })
    });
    found.collect()
}

/// A path that a running process has bound, but whose file is gone: new connections cannot find it.
pub(super) fn file_gone(graph: &Graph<'_>) -> Vec<Finding> {
    let failing = graph.connected().filter(|place| {
        fails_by(place.endpoint, &[event_text::CONNECT_FAILED])
            && place.endpoint.error == errno::NO_ENTRY
            && Address::new(place.endpoint).transport == "ipc"
            // Another path means another file in another working directory.
            && Address::new(place.endpoint).path.starts_with('/')
    });
    let found = failing.filter_map(|from| {
        let there = graph.reached_from(from).find(|there| {
            graph.is_running(there.key.process) && there.endpoint.state == EndpointState::Listening
        })?;
        let path = readable_name(there.endpoint);
        Some(Finding {
            what: format!("{} is bound to {path}, but the file is gone", there.socket.type_name),
            evidence: format!(
                "{} of {} cannot connect: {}; present peers go on",
                from.socket.type_name,
                graph.program(from.key.process),
                from.endpoint.reason
            ),
            advice: "Bind the endpoint again, or start the program again. A program that cleans up temporary files may have \
                     removed it: exclude the folder there, or use one in /run."
                .to_owned(),
            next: format!("ls -l {}", Address::new(there.endpoint).path),
            ..finding(there.key, Level::Trouble, "file-gone", from.endpoint.failures)
        })
    });
    let mut found: Vec<Finding> = found.collect();
    found.dedup_by_key(|finding| (finding.process, finding.socket));
    found
}

/// A listener at the loopback address, while a connection tries another address of this host.
pub(super) fn only_local(graph: &Graph<'_>) -> Vec<Finding> {
    let is_loopback = |host: &str| host.starts_with("127.") || matches!(host, "[::1]" | "localhost");
    let failing = graph.connected().filter(|place| {
        fails_by(place.endpoint, &[event_text::CONNECT_FAILED])
            && place.endpoint.error == errno::REFUSED
            && !is_loopback(Address::new(place.endpoint).host)
            && !is_loopback(Address::of(&place.endpoint.resolved).host)
    });
    let found = failing.filter_map(|from| {
        let there = graph.same_port_or_path(from.endpoint).find(|there| {
            graph.is_running(there.key.process)
                && there.endpoint.state == EndpointState::Listening
                && is_loopback(Address::new(there.endpoint).host)
                && fits(&from.socket.type_name, &there.socket.type_name)
        })?;
        Some(Finding {
            what: format!(
                "{} listens at {} only, and {} of {} connects to {}",
                there.socket.type_name,
                readable_name(there.endpoint),
                from.socket.type_name,
                graph.program(from.key.process),
                readable_name(from.endpoint)
            ),
            evidence: format!(
                "{}, {}; a listener at this address takes connections of its own host to it only",
                from.endpoint.reason,
                format_count(from.endpoint.failures, "failed attempt")
            ),
            advice: format!(
                "If {} is an address of this host, bind to `tcp://*` and the port, or to this address.",
                Address::new(from.endpoint).host
            ),
            ..finding(there.key, Level::Trouble, "only-local", from.endpoint.failures)
        })
    });
    found.collect()
}
