//! `taut policy`: reads a policy as the library does. It reports faults in the policy and in its
//! key files, and the effect on a bind or a connect. A faulty policy file prevents programs from
//! starting, so check the file before you deploy it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tautline::{Foreseen, certificate_faults, foresee};
use tautline_policy::file::read_text;
use tautline_policy::{Action, Call, Key, Policy, Wrap, keys};
use tautline_proto::SocketType;

use crate::args;
use crate::failure::{Failure, Result};

/// Reads the policy and prints its effect.
pub fn run(args: &args::Policy) -> Result<()> {
    let policy = read(&args.policy)?;
    let (mut text, mut faults) = (String::new(), Vec::new());
    let mut wraps: Vec<_> = policy.wraps().iter().collect();
    wraps.sort_by_key(|wrap| &wrap.name);
    for wrap in wraps {
        text += &files(wrap, &mut faults);
    }
    for (call, word, endpoints) in
        [(Call::Bind, "bind", &args.bind), (Call::Connect, "connect", &args.connect)]
    {
        for endpoint in endpoints {
            let (answer, fault) = answer(&policy, call, endpoint, args);
            text += &format!("{word} {endpoint}: {answer}\n");
            faults.extend(fault.map(|fault| format!("{word} {endpoint}: {fault}")));
        }
    }
    if faults.is_empty() {
        return crate::print(&format!("{} is valid\n{text}", args.policy));
    }
    crate::print(&text)?;
    Err(Failure::failed(faults.join("\n")).hint("each bind or connect with this wrap fails"))
}

fn read(named: &str) -> Result<Policy> {
    if let Some(policy) = Policy::built_in(named) {
        return Ok(policy);
    }
    let text = read_text(Path::new(named)).map_err(|error| Failure::file(Path::new(named), &error))?;
    Policy::parse(&text).map_err(|fault| {
        Failure::failed(format!("{named}: {fault}"))
            .hint("programs do not start with this policy; running programs keep their current policy")
    })
}

/// Describes the key files of a wrap without any secret.
fn files(wrap: &Wrap, faults: &mut Vec<String>) -> String {
    let mut text = format!("wrap {}:", wrap.name);
    let mut tell = |what: String| text += &format!(" {what};");
    if let Some(path) = &wrap.key {
        match keys::read_pair(path) {
            Ok(pair) => tell(format!("its own key is {}", pair.public)),
            Err(error) => faults.push(error.to_string()),
        }
        if fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0) {
            faults.push(format!("{}: other users can read it: chmod 600", path.display()));
        }
    }
    if let Some(tls) = &wrap.tls {
        faults.extend(certificate_faults(tls));
        return text + " TLS\n";
    }
    match wrap.clients.as_deref().map(keys::read_clients) {
        Some(Ok(found)) => {
            tell(format!("clients' keys: {}", found.keys.len()));
            faults.extend(found.faults);
            if !found.ignored.is_empty() {
                let names = found.ignored.iter().filter_map(|path| path.file_name());
                let names: Vec<_> = names.map(|name| name.to_string_lossy()).collect();
                tell(format!("ignored, because the name is not NAME.pub: {}", names.join(", ")));
            }
        }
        Some(Err(error)) => faults.push(error.to_string()),
        None if wrap.servers().next().is_none() => {
            tell("every client that knows its key may connect".to_owned())
        }
        None => {}
    }
    let mut servers = 0;
    for key in wrap.servers() {
        servers += 1;
        let Key::File(path) = key else { continue };
        match keys::read_public_keys(path) {
            Ok(found) if found.len() == 1 => {}
            Ok(found) => {
                faults.push(format!("{} has {} keys, but must have exactly one", path.display(), found.len()))
            }
            Err(error) => faults.push(error.to_string()),
        }
    }
    if servers > 0 {
        tell(format!("servers' keys: {servers}"));
    }
    text.truncate(text.trim_end_matches(';').len());
    text + "\n"
}

/// Returns the effect on a call, and the reason if the call fails by a fault. The library decides,
/// exactly as for the sockets of programs.
fn answer(policy: &Policy, call: Call, endpoint: &str, args: &args::Policy) -> (String, Option<String>) {
    let socket_type = SocketType::from_name(args.socket_type.to_uppercase().as_bytes());
    let (program, mechanism) = (&*args.program, &*args.mechanism);
    let forecast = match foresee(policy, &Foreseen { call, endpoint, socket_type, program, mechanism }) {
        Ok(forecast) => forecast,
        Err(error) => return (format!("fails: {error}"), Some(error.to_string())),
    };
    let verdict = forecast.verdict;
    let wrap = verdict.wrap.unwrap_or_default();
    let mut text = match (&forecast.fault, verdict.action) {
        (Some(_), _) => format!("refuse, because `{wrap}` cannot be applied"),
        (None, Action::Allow) => "allow".to_owned(),
        (None, Action::Warn) => "warn".to_owned(),
        (None, Action::Refuse) => "refuse".to_owned(),
        (None, _) if forecast.is_secure => "allow, because it is secure without a wrap".to_owned(),
        (None, _) if endpoint.starts_with("inproc://") => "allow, because it stays in the program".to_owned(),
        (None, _) => format!("wrap {wrap}"),
    };
    if let Some(mode) = verdict.mode {
        text += &format!(", mode {mode:04o}");
    }
    match verdict.rule {
        Some(rule) => text += &format!(", by rule `{rule}`"),
        None => text += ", because no rule matches",
    }
    (text, forecast.fault)
}
