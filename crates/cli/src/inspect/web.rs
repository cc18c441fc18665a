//! `taut web`: serves a page about all observed processes of this user. The page loads no external
//! resources.
//!
//! The files of the page are in the program. The page requests `data` every second and computes
//! rates, the graph and the charts itself. It requests `tap` to show the messages of a socket. All
//! paths start with a random token.
//!
//! ```text
//!   page.html, page.css   the parts of the page, and their look
//!   page.js               requests the data; draws problems, tables and the age of the data
//!   rows.js               rows with rates, and the figures of the last minutes
//!   graph.js, charts.js   the graph of processes, and the charts
//!   messages.js, text.js  the messages of a socket; words and elements
//! ```

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

/// Files of the page: name, kind and content.
const FILES: [(&str, &str, &str); 8] = [
    ("", "text/html; charset=utf-8", include_str!("web/page.html")),
    ("page.css", "text/css; charset=utf-8", include_str!("web/page.css")),
    ("page.js", SCRIPT, include_str!("web/page.js")),
    ("rows.js", SCRIPT, include_str!("web/rows.js")),
    ("graph.js", SCRIPT, include_str!("web/graph.js")),
    ("charts.js", SCRIPT, include_str!("web/charts.js")),
    ("messages.js", SCRIPT, include_str!("web/messages.js")),
    ("text.js", SCRIPT, include_str!("web/text.js")),
];
const SCRIPT: &str = "text/javascript; charset=utf-8";

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
            Some(("data", "")) => HttpReply::new("application/json", whole(which)),
            Some(("tap", question)) => messages::of(question),
            Some((name, "")) => file(name),
            _ => HttpReply::nothing(),
        }
    })
}

/// Returns a file of the page.
fn file(name: &str) -> HttpReply {
    let found = FILES.iter().find(|file| file.0 == name);
    found.map_or_else(HttpReply::nothing, |(_, kind, text)| HttpReply::new(kind, (*text).to_owned()))
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
    let now = now();
    let mut findings = vec![Vec::new(); seen.len()];
    for finding in diagnose_all(&seen, &HashMap::new(), Duration::ZERO) {
        for finding in [&finding].into_iter().chain(&finding.effects) {
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
        process["end"] = json!(seen.end(now));
        process
    });
    let faults = faults.iter().map(|(found, fault)| format!("{}: {fault}", found.pid));
    json!({ "now": now, "processes": processes.collect::<Vec<_>>(), "faults": faults.collect::<Vec<_>>() })
        .to_string()
}
