//! `taut policy`: reads a policy as the library does, says what is wrong with it and with the key
//! files that it names, and what it does to a call. A file with a fault keeps programs from
//! starting, so it is looked at before it goes out.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tautline_policy::{Action, Call, Key, Policy, Question, Wrap, keys};

use crate::args;
use crate::failure::{Failure, Result};

/// Reads it, and answers.
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
            text += &format!("{word} {endpoint}: {}\n", answer(&policy, call, endpoint, args));
        }
    }
    if faults.is_empty() {
        return crate::print(&format!("{} has no fault\n{text}", args.policy));
    }
    crate::print(&text)?;
    Err(Failure::failed(faults.join("\n")).hint("a bind or a connect that is to be wrapped by it fails"))
}

fn read(named: &str) -> Result<Policy> {
    if let Some(policy) = Policy::ready(named) {
        return Ok(policy);
    }
    let text = fs::read_to_string(named).map_err(|error| Failure::file(Path::new(named), &error))?;
    Policy::parse(&text).map_err(|fault| {
        Failure::failed(format!("{named}: {fault}"))
            .hint("programs do not start with it; those that run keep what they have")
    })
}

/// What the key files of a wrap hold, without anything secret.
fn files(wrap: &Wrap, faults: &mut Vec<String>) -> String {
    let mut text = format!("wrap {}:", wrap.name);
    let mut tell = |what: String| text += &format!(" {what};");
    if let Some(path) = &wrap.key {
        match keys::pair(path) {
            Ok(pair) => tell(format!("its own key is {}", pair.public)),
            Err(error) => faults.push(error.to_string()),
        }
        if fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0) {
            faults.push(format!("{}: other users can read it: chmod 600", path.display()));
        }
    }
    match wrap.clients.as_deref().map(keys::clients) {
        Some(Ok(found)) => {
            tell(format!("clients' keys: {}", found.keys.len()));
            faults.extend(found.faults);
            if !found.ignored.is_empty() {
                let names = found.ignored.iter().filter_map(|path| path.file_name());
                let names: Vec<_> = names.map(|name| name.to_string_lossy()).collect();
                tell(format!("not called NAME.pub, so ignored: {}", names.join(", ")));
            }
        }
        Some(Err(error)) => faults.push(error.to_string()),
        None if wrap.servers().next().is_none() => tell("every client may that knows its key".to_owned()),
        None => {}
    }
    let mut servers = 0;
    for key in wrap.servers() {
        servers += 1;
        let Key::File(path) = key else { continue };
        match keys::publics(path) {
            Ok(found) if found.len() == 1 => {}
            Ok(found) => {
                faults.push(format!("{} has {} keys, and is to have one", path.display(), found.len()))
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

/// What happens to a call.
fn answer(policy: &Policy, call: Call, endpoint: &str, args: &args::Policy) -> String {
    let secure = args.mechanism == "CURVE" || endpoint.starts_with("wss://") || endpoint.starts_with("tls+");
    let socket_type = args.socket_type.to_uppercase();
    let verdict = policy.decide(&Question {
        address: address_of(endpoint),
        program: &args.program,
        mechanism: &args.mechanism,
        secure,
        private: endpoint.strip_prefix("ipc://").is_some_and(is_private),
        ..Question::new(call, &socket_type, endpoint)
    });
    let mut text = match verdict.action {
        Action::Allow => "allow".to_owned(),
        Action::Warn => "warn".to_owned(),
        Action::Refuse => "refuse".to_owned(),
        Action::Wrap if secure => "allow, as it is secure by itself".to_owned(),
        _ => format!("wrap {}", verdict.wrap.unwrap_or_default()),
    };
    if let Some(mode) = verdict.mode {
        text += &format!(", mode {mode:04o}");
    }
    match verdict.rule {
        Some(rule) => text + &format!(", by rule `{rule}`"),
        None => text + ", as no rule fits",
    }
}

/// The address in an endpoint. That of a name is not known beforehand.
fn address_of(endpoint: &str) -> Option<IpAddr> {
    let (transport, rest) = endpoint.split_once("://")?;
    if transport == "ipc" || transport == "inproc" {
        return None;
    }
    let (host, _) = rest.split('/').next()?.rsplit_once(':')?;
    match host.trim_matches(['[', ']']) {
        "*" => Some(Ipv4Addr::UNSPECIFIED.into()),
        host => host.parse().ok(),
    }
}

/// Whether no other user can reach a file that is there, or one that will be.
fn is_private(path: &str) -> bool {
    let is_closed =
        |path: &Path| fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 == 0);
    let path = Path::new(path);
    is_closed(path) || path.parent().is_some_and(is_closed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_have_addresses() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(address_of("tcp://*:5555"), Some(address("0.0.0.0")));
        assert_eq!(address_of("ws://127.0.0.1:*/path:1"), Some(address("127.0.0.1")));
        assert_eq!(address_of("tcp://[::1]:5555"), Some(address("::1")));
        for without in ["tcp://eth0:1", "tcp://orders.example.org:1", "ipc:///tmp/1.2.3.4:1", "tcp://", "x"] {
            assert_eq!(address_of(without), None, "{without}");
        }
    }
}
