//! `taut web`: a page that shows all observed processes of this user, without anything from
//! elsewhere.
//!
//! The page (`web/page.html`) is one file; it asks for `data` every second and makes rates, the
//! graph and the charts itself, and for `tap` to show the messages of a socket. All are found only
//! below a path that cannot be guessed.

mod messages;

use serde_json::json;
use tautline_observe::hints;

use super::http::{Answer, Server};
use super::{Which, json};
use crate::args::Web;
use crate::failure::{Failure, Result};

const PAGE: &str = include_str!("web/page.html");

/// Answers until it is ended.
pub fn run(args: &Web) -> Result<()> {
    let server = Server::bind(&args.listen)?;
    if !server.at.ip().is_loopback() {
        notice!("taut: warning: {} can be reached from other machines, without encryption", server.at);
    }
    let token = token()?;
    crate::print(&format!("http://{}/{token}/\n", server.at))?;
    let below = format!("/{token}/");
    let which = Which::new(args.all);
    server.serve(move |path| {
        match path.strip_prefix(&below).map(|path| path.split_once('?').unwrap_or((path, ""))) {
            Some(("", "")) => Answer::new("text/html; charset=utf-8", PAGE.to_owned()),
            Some(("data", "")) => Answer::new("application/json", whole(which)),
            Some(("tap", question)) => messages::of(question),
            _ => Answer::nothing(),
        }
    })
}

/// 128 random bits, as digits.
fn token() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| Failure::failed(format!("random numbers: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// All that is known now.
fn whole(which: Which) -> String {
    let (seen, faults) = super::all(which);
    let processes = seen.iter().map(|seen| {
        let mut process = json::whole(seen, None);
        let hints = hints(&seen.reading, None).into_iter().map(|hint| {
            json!({
                "socket": hint.socket, "peer": hint.peer, "level": hint.level.as_str(), "what": hint.what,
                "evidence": hint.evidence, "advice": hint.advice,
            })
        });
        process["hints"] = hints.collect();
        process["file"] = json!(seen.found.path.file_name().map(|name| name.to_string_lossy()));
        process
    });
    let faults = faults.iter().map(|(found, fault)| format!("{}: {fault}", found.pid));
    json!({ "processes": processes.collect::<Vec<_>>(), "faults": faults.collect::<Vec<_>>() }).to_string()
}
