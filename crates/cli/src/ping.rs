//! `taut ping`: connects to an endpoint, makes the handshake itself, and describes the peer.
//!
//! A peer that distributes messages (PUSH, DEALER, REQ, PAIR, ...) would send us some of them after
//! the handshake, and they would be lost. Over NULL, the first handshake therefore stops when the
//! peer has sent its type. A second connection completes the handshake, but only if a peer of this
//! type sends no unrequested messages. Over PLAIN and CURVE, the peer sends its type last. There we
//! offer only types whose peers send no unrequested messages.

pub mod dial;
pub mod handshake;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use tautline::kind::SocketType;
use tautline_proto::{MechanismConfig, Peer, Version};

use crate::args::Ping;
use crate::config::Config;
use crate::endpoint;
use crate::failure::{Code, Failure, Result};
use crate::security::Security;
use dial::Connection;
use handshake::{Handshake, HandshakeResult};

/// Result of a ping.
#[derive(Debug, Serialize)]
struct PingResult {
    endpoint: String,
    address: String,
    zmtp: &'static str,
    mechanism: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    socket_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<String>,
    properties: Vec<(String, String)>,
    connect_us: f64,
    handshake_us: f64,
    round_trips_us: Vec<f64>,
    /// Reason for a missing round trip.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_round_trip: Option<String>,
}

/// Returns our type for a peer that sends no unrequested messages. Returns `None` for other peers.
fn harmless(theirs: SocketType) -> Option<SocketType> {
    use SocketType::*;
    Some(match theirs {
        Rep => Req,
        Router => Dealer,
        Pub | XPub => Sub,
        Sub | XSub => Pub,
        Pull => Push,
        Server => Client,
        Gather => Scatter,
        Radio => Dish,
        Dish => Radio,
        _ => return None,
    })
}

/// Our types whose possible peers send no unrequested messages, in the order of the attempts.
const HARMLESS: [SocketType; 7] = [
    SocketType::Req,
    SocketType::Sub,
    SocketType::Pub,
    SocketType::Push,
    SocketType::Client,
    SocketType::Dish,
    SocketType::Scatter,
];

/// Pings the endpoints of the command line.
pub fn run(args: &Ping) -> Result<()> {
    let config = Config::load()?;
    let (endpoints, saved) = endpoint::resolve(&args.endpoint, false, &config)?;
    let security = Security::new(&args.security, saved, &config)?;
    let mechanism = mechanism(&security)?;
    for endpoint in endpoints {
        Probe { args, address: &endpoint.address, mechanism: &mechanism }.run()?;
    }
    Ok(())
}

fn mechanism(security: &Security) -> Result<MechanismConfig> {
    Ok(match security {
        Security::Null => MechanismConfig::Null,
        Security::PlainClient { user, password } => {
            MechanismConfig::PlainClient { username: user.clone().into_bytes(), password: password.clone() }
        }
        Security::CurveClient { server, own } => MechanismConfig::CurveClient {
            public: *own.public.as_bytes(),
            secret: Arc::new((*own.secret.expose_bytes()).into()),
            server: *server.as_bytes(),
            random: |bytes| getrandom::fill(bytes).is_ok(),
        },
        _ => return Err(Failure::usage("ping is a client: --curve-server-key or --plain")),
    })
}

struct Probe<'a> {
    args: &'a Ping,
    address: &'a str,
    mechanism: &'a MechanismConfig,
}

/// Handshake that identified the peer.
struct Met {
    connection: Duration,
    handshake: Duration,
    remote: String,
    version: Version,
    theirs: Option<SocketType>,
    peer: Option<Peer>,
    /// Completed handshake, for further commands.
    talk: Option<Handshake>,
}

impl Probe<'_> {
    fn run(&self) -> Result<()> {
        let met = match self.mechanism {
            MechanismConfig::Null => self.meet_openly()?,
            _ => self.meet_by_types()?,
        };
        let mut found = self.found(&met);
        if !self.args.json {
            crate::print(&describe(&found))?;
        }
        let Met { version, theirs, talk, .. } = met;
        match talk {
            _ if version < Version::V3_1 => {
                found.no_round_trip = Some("ZMTP before 3.1 has no PING".to_owned())
            }
            Some(mut talk) => self.measure(&mut talk, &mut found)?,
            None => {
                let kind = theirs.map_or("ZeroMQ", SocketType::name);
                found.no_round_trip =
                    Some(format!("a {kind} socket would send messages to ping, so ping disconnected"));
            }
        }
        if self.args.json {
            let line = serde_json::to_string(&found).map_err(|error| Failure::failed(error.to_string()))?;
            return crate::print(&format!("{line}\n"));
        }
        found.no_round_trip.map_or(Ok(()), |why| crate::print(&format!("  no round trip: {why}\n")))
    }

    fn dial(&self) -> Result<(Connection, Duration)> {
        let start = Instant::now();
        let connection = Connection::open(self.address, self.args.timeout, &self.args.security.tls)?;
        Ok((connection, start.elapsed()))
    }

    fn talk(&self, connection: Connection, ours: SocketType, limit: usize) -> Handshake {
        Handshake::new(connection, self.mechanism.clone(), ours, limit, self.args.timeout)
    }

    /// Meets a NULL peer: the first handshake learns its type, the second one offers a type that
    /// fits.
    fn meet_openly(&self) -> Result<Met> {
        let (connection, connecting) = self.dial()?;
        let remote = connection.remote();
        let mut talk = self.talk(connection, SocketType::Dealer, handshake::GREETING);
        let end = talk.shake_hands();
        let (version, theirs, peer) = match end {
            HandshakeResult::Met(version, peer) => (version, peer.socket_type, Some(peer)),
            HandshakeResult::OtherType(theirs) => (talk.version(), theirs, None),
            other => return Err(self.failure(&other, &talk)),
        };
        let handshake = talk.handshake_time();
        drop(talk);
        let mut met = Met { connection: connecting, handshake, remote, version, theirs, peer, talk: None };
        if version < Version::V3_0 {
            return Ok(met);
        }
        if let Some(ours) = theirs.and_then(harmless) {
            let mut talk = self.talk(self.dial()?.0, ours, usize::MAX);
            match talk.shake_hands() {
                HandshakeResult::Met(_, peer) => (met.peer, met.talk) = (Some(peer), Some(talk)),
                other => return Err(self.failure(&other, &talk)),
            }
        }
        Ok(met)
    }

    /// Meets a PLAIN or CURVE peer: offers types until the peer accepts one.
    fn meet_by_types(&self) -> Result<Met> {
        let mut last = None;
        for ours in HARMLESS {
            let (connection, connecting) = self.dial()?;
            let remote = connection.remote();
            let mut talk = self.talk(connection, ours, usize::MAX);
            match talk.shake_hands() {
                HandshakeResult::Met(version, peer) => {
                    return Ok(Met {
                        connection: connecting,
                        handshake: talk.handshake_time(),
                        remote,
                        version,
                        theirs: peer.socket_type,
                        peer: Some(peer),
                        talk: Some(talk),
                    });
                }
                // The login succeeded or its result is unknown. The peer may accept another type.
                HandshakeResult::Closed if talk.is_logged_in() => {
                    last = Some(Failure::failed(format!(
                        "{}: the peer closed the connection at the end of the handshake: it does not accept our key, or its socket \
                     type would send messages to ping",
                        self.address
                    )))
                }
                HandshakeResult::OtherType(_) => {
                    last = Some(Failure::failed(format!(
                        "{}: the peer accepted the login, but its socket type would send messages to ping",
                        self.address
                    )))
                }
                other => return Err(self.failure(&other, &talk)),
            }
        }
        Err(last.unwrap_or_else(|| {
            Failure::failed(format!("{}: the peer accepted no socket type", self.address))
        }))
    }

    fn failure(&self, end: &HandshakeResult, talk: &Handshake) -> Failure {
        let address = self.address;
        let ours = handshake::mechanism_name(self.mechanism);
        match end {
            HandshakeResult::Closed if talk.greeting().is_empty() => Failure::failed(format!(
                "{address}: connected, but the other end closed at once without sending any data"
            ))
            .hint("is it ZeroMQ? A proxy without a server behind it does the same"),
            HandshakeResult::Closed if ours == "CURVE" => Failure::failed(format!(
                "{address}: the server closed the connection at the first encrypted command"
            ))
            .hint("--curve-server-key is probably not the public key of this server"),
            HandshakeResult::Closed => Failure::failed(format!(
                "{address}: the other end closed the connection during the handshake"
            )),
            HandshakeResult::Silent if talk.greeting().is_empty() => Failure::new(
                Code::Timeout,
                format!(
                    "{address}: connected, but received no data for {}",
                    humantime::format_duration(self.args.timeout)
                ),
            )
            .hint("is it ZeroMQ? ZeroMQ sends its greeting at once, unless the program is stopped"),
            HandshakeResult::Silent => {
                let failure = Failure::new(
                    Code::Timeout,
                    format!(
                        "{address}: the peer speaks ZMTP, but sent nothing during the handshake for {}",
                        humantime::format_duration(self.args.timeout)
                    ),
                );
                match ours {
                    "CURVE" => {
                        failure.hint("--curve-server-key is probably not the public key of this server")
                    }
                    _ => failure,
                }
            }
            HandshakeResult::SomethingElse => Failure::failed(format!(
                "{address}: the peer does not speak ZMTP: its first bytes are {}",
                talk.beginning()
            ))
            .hint(talk.guess()),
            HandshakeResult::OtherMechanism(theirs) => {
                let failure =
                    Failure::failed(format!("{address}: the peer uses the mechanism {theirs}, not {ours}"));
                match theirs.as_str() {
                    "CURVE" => failure.hint("use --curve-server-key KEY with the public key of the server"),
                    "PLAIN" => failure.hint("use --plain USER"),
                    "NULL" => failure.hint("remove --curve-server-key and --plain"),
                    _ => failure,
                }
            }
            HandshakeResult::Refused(status) => Failure::failed(format!(
                "{address}: the server refused the connection ({status})"
            ))
            .hint(if ours == "CURVE" {
                "does the server accept the key of --curve-key-file?"
            } else {
                "are the user name and the password correct?"
            }),
            HandshakeResult::Met(..) | HandshakeResult::OtherType(_) | HandshakeResult::Broken(_) => {
                let why = if let HandshakeResult::Broken(why) = end { why.as_str() } else { "unexpected" };
                Failure::failed(format!("{address}: {why}"))
            }
        }
    }

    fn found(&self, met: &Met) -> PingResult {
        let micros = |time: Duration| time.as_nanos() as f64 / 1000.0;
        let peer = met.peer.as_ref();
        let known =
            |name: &String| !["Socket-Type", "Identity"].iter().any(|known| known.eq_ignore_ascii_case(name));
        let properties = peer.map(|peer| peer.properties.iter().filter(|(name, _)| known(name)).collect());
        let properties: Vec<&(String, Vec<u8>)> = properties.unwrap_or_default();
        let shown = |(name, value): &(String, Vec<u8>)| (name.clone(), crate::format::escaped(value));
        PingResult {
            endpoint: self.address.to_owned(),
            address: met.remote.clone(),
            zmtp: match met.version {
                Version::V1 => "1.0",
                Version::V2 => "2.0",
                Version::V3_0 => "3.0",
                Version::V3_1 => "3.1",
            },
            mechanism: handshake::mechanism_name(self.mechanism),
            socket_type: met.theirs.map(SocketType::name),
            identity: peer
                .filter(|peer| !peer.routing_id.is_empty())
                .map(|peer| crate::format::escaped(&peer.routing_id)),
            properties: properties.into_iter().map(shown).collect(),
            connect_us: micros(met.connection),
            handshake_us: micros(met.handshake),
            round_trips_us: Vec::new(),
            no_round_trip: None,
        }
    }

    fn measure(&self, talk: &mut Handshake, found: &mut PingResult) -> Result<()> {
        for n in 0..self.args.count {
            if n > 0 {
                thread::sleep(self.args.interval);
            }
            match talk.ping(n) {
                Ok(time) => {
                    found.round_trips_us.push(time.as_nanos() as f64 / 1000.0);
                    if !self.args.json {
                        crate::print(&format!("  round trip {}\n", crate::bench::time(time)))?;
                    }
                }
                Err(HandshakeResult::Silent) if n == 0 => {
                    found.no_round_trip = Some("the peer sent no PONG".to_owned());
                    return Ok(());
                }
                Err(HandshakeResult::Silent) => {
                    return Err(Failure::new(
                        Code::Timeout,
                        format!("{}: the peer sent no PONG", self.address),
                    ));
                }
                Err(_) => return Err(Failure::failed(format!("{}: the connection was lost", self.address))),
            }
        }
        Ok(())
    }
}

fn describe(found: &PingResult) -> String {
    let article = if found.socket_type.is_some_and(|kind| kind.starts_with('X')) { "an" } else { "a" };
    let mut text = match found.socket_type {
        Some(kind) => format!("{} is {article} {kind}\n", found.endpoint),
        None => format!("{} speaks ZMTP, but does not send its socket type\n", found.endpoint),
    };
    text += &format!("  ZMTP {}, mechanism {}, ", found.zmtp, found.mechanism);
    text += &found.identity.as_ref().map_or("no identity".to_owned(), |id| format!("identity {id}"));
    if found.address != found.endpoint {
        text += &format!(", at {}", found.address);
    }
    text += &format!(
        "\n  connected in {}, handshake {}\n",
        crate::bench::time(Duration::from_nanos((found.connect_us * 1000.0) as u64)),
        crate::bench::time(Duration::from_nanos((found.handshake_us * 1000.0) as u64))
    );
    for (name, value) in &found.properties {
        text += &format!("  {name}: {value}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_that_accept_a_harmless_type_send_nothing_unasked() {
        let all = (0..21).filter_map(SocketType::from_code);
        for ours in HARMLESS {
            let peers: Vec<_> = all.clone().filter(|theirs| ours.accepts(*theirs)).collect();
            assert!(
                !peers.is_empty() && peers.iter().all(|theirs| harmless(*theirs).is_some()),
                "{ours:?} {peers:?}"
            );
        }
        for theirs in all {
            assert!(harmless(theirs).is_none_or(|ours| ours.accepts(theirs)), "{theirs:?}");
        }
    }
}
