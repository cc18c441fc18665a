//! `taut audit`: finds ZeroMQ sockets that others can reach, and suggests a safer setup. Checks
//! this machine or a source tree.
//!
//! For the machine, it reads the listening sockets from `/proc`. The counters file of an
//! observed program lists its sockets. It connects to all other sockets: a ZeroMQ socket sends its
//! greeting first. If a socket sends no greeting, we send no bytes and do not count it as ZeroMQ.
//! Other machines are not contacted.

#[cfg_attr(not(target_os = "linux"), path = "audit/listeners/absent.rs")]
mod listeners;
mod observed;
mod source;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use serde::Serialize;
use tautline::kind::SocketType;
use tautline_proto::{MechanismConfig, Version};

use crate::args::Audit;
use crate::failure::{Code, Failure, Result};
use crate::format::escaped;
use crate::ping::dial::Connection;
use crate::ping::handshake::{GREETING, Handshake, HandshakeResult};
use crate::tls::TlsArgs;
use observed::{Lookup, Observed};

/// Time limit for the first byte of a socket.
const BEGINNING: Duration = Duration::from_millis(300);
/// Time limit for each step of the handshake.
const HANDSHAKE: Duration = Duration::from_secs(2);

/// A listening socket.
#[derive(Debug)]
struct Listener {
    at: At,
    /// Process and file name of the program, if this user may see them.
    pid: Option<u32>,
    program: Option<String>,
}

/// Address of a listening socket.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum At {
    Tcp(SocketAddr),
    /// A path (or `@` and an abstract name) and its permissions.
    Path(String, u32),
}

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Fine,
    Note,
    Warning,
}

/// Finding about one endpoint or one line of source code.
#[derive(Debug, Serialize)]
struct Finding {
    level: Level,
    /// Endpoint, or `FILE:LINE`.
    at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    socket_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mechanism: Option<String>,
    what: String,
    advice: String,
}

/// Prints all findings. Fails with exit code 4 if there are warnings.
pub fn run(args: &Audit) -> Result<()> {
    let (mut all, looked_at) = match &args.source {
        Some(path) => source::scan(path)?,
        None => machine(&args.processes)?,
    };
    all.sort_by(|a, b| b.level.cmp(&a.level).then_with(|| a.at.cmp(&b.at)));
    let mut text = String::new();
    for finding in &all {
        text += &if args.json { line(finding)? } else { describe(finding) };
    }
    let warnings = all.iter().filter(|finding| finding.level == Level::Warning).count();
    if !args.json {
        let word = if warnings == 1 { "warning" } else { "warnings" };
        text += &format!("{looked_at}: {warnings} {word}\n");
    }
    crate::print(&text)?;
    if warnings > 0 { Err(Failure::new(Code::Trouble, "")) } else { Ok(()) }
}

fn line(finding: &Finding) -> Result<String> {
    let line = serde_json::to_string(finding).map_err(|error| Failure::failed(error.to_string()))?;
    Ok(line + "\n")
}

fn describe(finding: &Finding) -> String {
    let level = match finding.level {
        Level::Fine => "fine",
        Level::Note => "note",
        Level::Warning => "warning",
    };
    let program = match (&finding.program, finding.pid) {
        (Some(program), Some(pid)) => format!("  {} ({pid})", escaped(program.as_bytes())),
        _ => String::new(),
    };
    let kind = finding.socket_type.map(|kind| format!("{kind}, ")).unwrap_or_default();
    let mut text = format!("{level}  {}{program}: {kind}{}\n", escaped(finding.at.as_bytes()), finding.what);
    if !finding.advice.is_empty() {
        text += &format!("    {}\n", finding.advice);
    }
    text
}

/// Returns the findings about the sockets that listen on this machine.
fn machine(processes: &[u32]) -> Result<(Vec<Finding>, String)> {
    let all = listeners::all()?;
    let wanted = |listener: &&Listener| {
        processes.is_empty() || listener.pid.is_some_and(|pid| processes.contains(&pid))
    };
    let all: Vec<_> = all.iter().filter(wanted).collect();
    let observed = Observed::new(&all);
    let found: Vec<_> = all.iter().filter_map(|listener| judge(listener, &observed)).collect();
    let looked_at = format!("{} listening sockets, {} of ZeroMQ", all.len(), found.len());
    Ok((found, looked_at))
}

/// Returns the finding about a listening socket, or `None` if it is not a ZeroMQ socket.
fn judge(listener: &Listener, observed: &Observed) -> Option<Finding> {
    let (endpoint, reached_at) = match &listener.at {
        At::Tcp(address) => (format!("tcp://{address}"), format!("tcp://{}", near(*address))),
        At::Path(path, _) => (format!("ipc://{path}"), format!("ipc://{path}")),
    };
    // A connection would end in the handshake, which the program would count as a failure.
    let met = match observed.look_up(listener) {
        Lookup::Found(met) => met,
        Lookup::OtherProtocol => return None,
        Lookup::Unknown => meet(&reached_at)?,
    };
    let mechanism = met.mechanism;
    let secure = matches!(&*mechanism, "CURVE" | "GSSAPI" | "TLS");
    let open = match &listener.at {
        At::Tcp(address) if address.ip().is_unspecified() => Some("on every interface"),
        At::Tcp(address) if !address.ip().to_canonical().is_loopback() => {
            Some("on an address that others can reach")
        }
        At::Tcp(_) => None,
        At::Path(_, mode) => (mode & 0o007 != 0).then_some("for every user of this machine"),
    };
    let (level, what, advice) = match (open, &listener.at, secure) {
        (None, _, _) | (_, At::Path(..), true) => {
            (Level::Fine, format!("{mechanism}, not open to others"), "")
        }
        (Some(open), _, true) => (Level::Fine, format!("{mechanism}, {open}"), ""),
        (Some(open), At::Path(..), false) => (
            Level::Note,
            format!("{mechanism}, {open}"),
            "to close the file to others, set TAUT_POLICY=loopback or put it in a folder of mode 0700",
        ),
        (Some(open), At::Tcp(_), false) if mechanism == "PLAIN" => (
            Level::Warning,
            format!("PLAIN, {open}: passwords and messages are not encrypted"),
            "use CURVE instead of PLAIN, or TAUT_POLICY with a wrap, which needs no change of the program",
        ),
        (Some(open), At::Tcp(_), false) => (
            Level::Warning,
            format!("no authentication, {open}"),
            "bind it to 127.0.0.1, give it CURVE, or run it with TAUT_POLICY=loopback (docs/operate/policy.md)",
        ),
    };
    Some(Finding {
        level,
        at: endpoint,
        pid: listener.pid,
        program: listener.program.clone(),
        socket_type: met.socket_type.map(SocketType::name),
        mechanism: Some(mechanism),
        what,
        advice: advice.to_owned(),
    })
}

/// Returns the address by which this machine reaches a listening socket.
fn near(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Result of a handshake.
#[derive(Debug, PartialEq)]
struct Met {
    mechanism: String,
    socket_type: Option<SocketType>,
}

/// Makes a handshake with a socket that sends the first byte of ZMTP before we send any.
fn meet(endpoint: &str) -> Option<Met> {
    let connection = Connection::open(endpoint, BEGINNING, &TlsArgs::default()).ok()?;
    connection.set_timeout(BEGINNING).ok()?;
    if connection.peek().ok()? != Some(0xFF) {
        return None;
    }
    let mut talk = Handshake::new(connection, MechanismConfig::Null, SocketType::Dealer, GREETING, HANDSHAKE);
    let null = |socket_type| Some(Met { mechanism: "NULL".to_owned(), socket_type });
    match talk.shake_hands() {
        HandshakeResult::Met(_, peer) => null(peer.socket_type),
        HandshakeResult::OtherType(theirs) => null(theirs),
        HandshakeResult::OtherMechanism(mechanism) => Some(Met { mechanism, socket_type: None }),
        // The peer has sent a ZMTP greeting.
        HandshakeResult::Silent | HandshakeResult::Closed | HandshakeResult::Refused(_)
            if talk.version() >= Version::V2 =>
        {
            null(None)
        }
        _ => None,
    }
}
