//! Socket that a recording was made of. The first message of the recording describes it, so that
//! `replay` can send the messages to the same place.

use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tautline_policy::file::{LONGEST, open};

use crate::args::{DirectionArg, SendType};
use crate::failure::{Failure, Result};

/// Key of the description in the line of a message.
const KEY: &str = "from";

/// Recorded socket, and the recorded direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Name of the socket type in ZMTP.
    #[serde(rename = "type")]
    pub kind: String,
    /// Direction of the messages: received or sent.
    pub direction: DirectionArg,
    /// Endpoints that the socket was bound to.
    #[serde(default)]
    pub bind: Vec<String>,
    /// Endpoints that the socket was connected to.
    #[serde(default)]
    pub connect: Vec<String>,
}

impl Origin {
    /// Reads the origin of a file. Returns `None` if the file has none.
    pub fn read(path: &Path) -> Result<Option<Origin>> {
        if path.as_os_str() == "-" {
            return Ok(None);
        }
        let failed = |error| Failure::file(path, &error);
        let file = match open(path) {
            Ok(file) => file,
            // The line of a pipe can be read only once, with the messages.
            Err(error) if error.kind() == ErrorKind::InvalidInput => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let mut line = Vec::new();
        BufReader::new(file.take(LONGEST)).read_until(b'\n', &mut line).map_err(failed)?;
        // An error in the line is reported later, when its message is read.
        let line: Value = serde_json::from_slice(&line).unwrap_or_default();
        Ok(line.get(KEY).and_then(|origin| Origin::deserialize(origin).ok()))
    }

    /// Adds the origin to the line of the first message.
    pub fn mark(origin: &mut Option<Origin>, line: &mut Value) {
        if let Some(origin) = origin.take() {
            line[KEY] = serde_json::to_value(origin).unwrap_or_default();
        }
    }

    /// Returns the type and the endpoints of the socket that replays the messages. If the recorded
    /// socket sent them, it is a similar socket; otherwise it is the peer of the recorded socket.
    pub fn player(&self) -> Option<(SendType, Vec<String>)> {
        let kind = match (self.direction, self.kind.as_str()) {
            (DirectionArg::Out, "PUB" | "XPUB") | (DirectionArg::In, "SUB" | "XSUB") => SendType::Pub,
            (DirectionArg::Out, "PUSH") | (DirectionArg::In, "PULL") => SendType::Push,
            (DirectionArg::Out, "RADIO") | (DirectionArg::In, "DISH") => SendType::Radio,
            (DirectionArg::Out, "SCATTER") | (DirectionArg::In, "GATHER") => SendType::Scatter,
            (_, "PAIR") => SendType::Pair,
            (_, "DEALER") => SendType::Dealer,
            (_, "CHANNEL") => SendType::Channel,
            (DirectionArg::Out, "ROUTER") => SendType::Router,
            (DirectionArg::Out, "CLIENT") => SendType::Client,
            _ => return None,
        };
        let bound = |text: &String| format!("@{text}");
        let connected = |text: &String| format!(">{text}");
        let endpoints: Vec<String> = match self.direction {
            DirectionArg::Out => {
                self.bind.iter().map(bound).chain(self.connect.iter().map(connected)).collect()
            }
            DirectionArg::In => {
                let there = self.bind.iter().map(|text| connected(&reachable(text)));
                // Drop the source address of the connection.
                let here = self.connect.iter().map(|text| match text.split_once("://") {
                    Some((transport, rest)) => {
                        format!("@{transport}://{}", rest.split_once(';').map_or(rest, |(_, to)| to))
                    }
                    None => bound(text),
                });
                there.chain(here).collect()
            }
        };
        (!endpoints.is_empty()).then_some((kind, endpoints))
    }
}

/// Returns the endpoint by which this machine reaches a bound endpoint.
fn reachable(bound: &str) -> String {
    for (every, one) in
        [("://*:", "://127.0.0.1:"), ("://0.0.0.0:", "://127.0.0.1:"), ("://[::]:", "://[::1]:")]
    {
        if bound.contains(every) {
            return bound.replacen(every, one, 1);
        }
    }
    bound.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(
        kind: &str,
        direction: DirectionArg,
        bind: &[&str],
        connect: &[&str],
    ) -> Option<(SendType, String)> {
        let all = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let origin = Origin { kind: kind.to_owned(), direction, bind: all(bind), connect: all(connect) };
        origin.player().map(|(kind, endpoints)| (kind, endpoints.join(" ")))
    }

    #[test]
    fn sent_messages_replay_from_the_same_endpoints() {
        for (kind, bind, connect, player) in [
            ("PUB", &["tcp://0.0.0.0:1"][..], &["ipc://x"][..], (SendType::Pub, "@tcp://0.0.0.0:1 >ipc://x")),
            ("ROUTER", &[], &["tcp://a:1"], (SendType::Router, ">tcp://a:1")),
        ] {
            assert_eq!(played(kind, DirectionArg::Out, bind, connect), Some((player.0, player.1.to_owned())));
        }
        assert_eq!(played("REP", DirectionArg::Out, &["tcp://a:1"], &[]), None);
        assert_eq!(played("PUB", DirectionArg::Out, &[], &[]), None);
    }

    #[test]
    fn received_messages_replay_from_the_other_end() {
        for (kind, bind, connect, player) in [
            ("SUB", &[][..], &["tcp://a:1", "tcp://b:9;c:2"][..], (SendType::Pub, "@tcp://a:1 @tcp://c:2")),
            (
                "PULL",
                &["tcp://*:1", "tcp://0.0.0.0:2"],
                &[],
                (SendType::Push, ">tcp://127.0.0.1:1 >tcp://127.0.0.1:2"),
            ),
            ("GATHER", &["tcp://[::]:1", "ipc://x"], &[], (SendType::Scatter, ">tcp://[::1]:1 >ipc://x")),
        ] {
            assert_eq!(played(kind, DirectionArg::In, bind, connect), Some((player.0, player.1.to_owned())));
        }
        assert_eq!(played("ROUTER", DirectionArg::In, &["tcp://a:1"], &[]), None);
    }

    #[test]
    fn pipe_has_no_origin() {
        let pipe = std::env::temp_dir().join(format!("taut-origin-{}", std::process::id()));
        let _ = std::fs::remove_file(&pipe);
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let origin = Origin::read(&pipe);
        std::fs::remove_file(&pipe).unwrap();
        assert_eq!(origin.unwrap(), None);
    }
}
