//! `taut web`: serves a page about all observed processes of this user. The page loads no external
//! resources.
//!
//! The page (`web/page.html`) is one file. It requests `data` every second and computes rates, the
//! graph and the charts itself. It requests `tap` to show the messages of a socket. All paths start
//! with a random token.

mod messages;

use std::collections::HashMap;
use std::time::Duration;

use serde_json::json;

use super::doctor::diagnose_all;
use super::http::{HttpReply, Server};
use super::units::now;
use super::{SocketSelection, json};
use crate::args::Web;
use crate::failure::{Failure, Result};

const PAGE: &str = include_str!("web/page.html");

/// Serves the page until the process ends.
pub fn run(args: &Web) -> Result<()> {
    let server = Server::bind(&args.listen)?;
    if !server.at.ip().is_loopback() {
        notice!("taut: warning: other machines can reach {}, without encryption", server.at);
    }
    let token = token()?;
    crate::print(&format!("http://{}/{token}/\n", server.at))?;
    let below = format!("/{token}/");
    let which = SocketSelection::new(args.all);
    server.serve(move |request| {
        match request.path.strip_prefix(&below).map(|path| path.split_once('?').unwrap_or((path, ""))) {
            Some(("", "")) => HttpReply::new("text/html; charset=utf-8", PAGE.to_owned()),
            Some(("data", "")) => HttpReply::new("application/json", whole(which)),
            Some(("tap", question)) => messages::of(question),
            _ => HttpReply::nothing(),
        }
    })
}

/// Returns 128 random bits as digits.
fn token() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::failed(format!("the system has no random numbers: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns all current data.
fn whole(which: SocketSelection) -> String {
    let (seen, faults) = super::all(which);
    let mut findings = vec![Vec::new(); seen.len()];
    for finding in diagnose_all(&seen, &HashMap::new(), Duration::ZERO) {
        for finding in finding.effects.iter().chain([&finding]) {
            findings[finding.process].push(json!({
                "socket": finding.socket, "peer": finding.peer, "level": finding.level.as_str(),
                "what": finding.what, "evidence": finding.evidence, "advice": finding.advice,
            }));
        }
    }
    let processes = seen.iter().zip(findings).map(|(seen, findings)| {
        let mut process = json::whole(seen, None);
        process["hints"] = findings.into();
        process["name"] = json!(seen.reading.name());
        process
    });
    let faults = faults.iter().map(|(found, fault)| format!("{}: {fault}", found.pid));
    json!({ "now": now(), "processes": processes.collect::<Vec<_>>(), "faults": faults.collect::<Vec<_>>() })
        .to_string()
}
