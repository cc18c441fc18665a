//! Parses endpoints of the command line: with or without a transport, with a mark for bind or
//! connect, or as the name of a saved context.

use std::path::Path;

use crate::config::{Config, Saved};
use crate::failure::{Failure, Result};
use tautline::endpoint::{EndpointError, check};

/// Endpoint, and how to use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// True to bind, false to connect.
    pub bind: bool,
    /// Complete address with its transport.
    pub address: String,
}

/// True if an argument can only be an endpoint: it has a transport, optionally behind `@` or `>`.
pub fn has_transport(text: &str) -> bool {
    let text = text.strip_prefix(['@', '>']).unwrap_or(text);
    !matches!(check(text), Err(EndpointError::NoTransport | EndpointError::UnknownTransport))
}

/// Resolves an argument into endpoints and the context that it names. `bind` is the default if the
/// argument itself does not choose.
pub fn resolve<'a>(text: &str, bind: bool, config: &'a Config) -> Result<(Vec<Endpoint>, Option<&'a Saved>)> {
    // `@:5555` and `@/tmp/name` are endpoints to bind, not names.
    let is_name = |rest: &&str| !rest.contains("://") && !rest.starts_with([':', '/', '.']);
    if let Some(name) = text.strip_prefix('@').filter(is_name) {
        let saved = config.context(name)?;
        let bind = saved.bind.unwrap_or(bind);
        let endpoints = saved.endpoints().map(|address| one(address, bind)).collect::<Result<_>>()?;
        return Ok((endpoints, Some(saved)));
    }
    Ok((vec![one(text, bind)?], None))
}

/// Resolves an argument that is not the name of a saved context into one endpoint. `bind` is the
/// default if the argument itself does not choose.
pub fn one(text: &str, bind: bool) -> Result<Endpoint> {
    // As in CZMQ: `@` binds and `>` connects.
    let (bind, text) = match text.as_bytes() {
        [b'@', ..] => (true, &text[1..]),
        [b'>', ..] => (false, &text[1..]),
        _ => (bind, text),
    };
    let address = complete(text).ok_or_else(|| {
        Failure::usage(format!("{text:?} is not a valid endpoint"))
            .hint("for example tcp://127.0.0.1:5555, ipc:///tmp/name, :5555, or @NAME of a saved context")
    })?;
    if address.starts_with("inproc://") {
        return Err(Failure::usage(format!(
            "{address}: inproc works only inside one process, and taut is a separate process"
        ))
        .hint("use ipc:// between processes of one machine"));
    }
    if let Err(error) = check(&address) {
        let hint = "for example tcp://127.0.0.1:5555 or ipc:///tmp/name";
        return Err(Failure::usage(format!("{address}: {error}")).hint(hint));
    }
    Ok(Endpoint { bind, address })
}

/// Adds a missing transport and host. A port alone means this machine: reachability from other
/// machines must be requested explicitly.
pub fn complete(text: &str) -> Option<String> {
    if text.contains("://") {
        return Some(text.to_owned());
    }
    if text.starts_with(['/', '.']) && text.contains('/') {
        let path = std::path::absolute(Path::new(text)).ok()?;
        return Some(format!("ipc://{}", path.display()));
    }
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    let is_port = port == "*" || (!port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
    if !is_port || host.contains([' ', '/']) || (host.contains(':') && !host.starts_with('[')) {
        return None;
    }
    let host = if host.is_empty() { "127.0.0.1" } else { host };
    Some(format!("tcp://{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_forms_are_completed() {
        for (text, address) in [
            ("tcp://*:5555", Some("tcp://*:5555")),
            (":5555", Some("tcp://127.0.0.1:5555")),
            ("5555", Some("tcp://127.0.0.1:5555")),
            (":*", Some("tcp://127.0.0.1:*")),
            ("example.org:80", Some("tcp://example.org:80")),
            ("[::1]:80", Some("tcp://[::1]:80")),
            ("/tmp/x", Some("ipc:///tmp/x")),
            ("hello", None),
            ("hello world", None),
            ("::1", None),
            ("a b:1", None),
            ("", None),
        ] {
            assert_eq!(complete(text).as_deref(), address, "{text}");
        }
        assert!(complete("./x").unwrap().starts_with("ipc:///"));
    }

    #[test]
    fn a_prefix_says_what_to_do_with_it() {
        let config = Config::default();
        let first = |text: &str| resolve(text, false, &config).map(|(endpoints, _)| endpoints[0].clone());
        assert_eq!(first("@tcp://*:1").unwrap(), Endpoint { bind: true, address: "tcp://*:1".to_owned() });
        assert_eq!(first("@:1").unwrap(), Endpoint { bind: true, address: "tcp://127.0.0.1:1".to_owned() });
        assert_eq!(first(">:1").unwrap(), Endpoint { bind: false, address: "tcp://127.0.0.1:1".to_owned() });
        assert!(first("@prices").unwrap_err().what.contains("prices"));
        assert!(first("inproc://x").unwrap_err().what.contains("one process"));
        assert!(first("tcp://x").unwrap_err().what.contains("no port"));
        assert!(has_transport("tcp://x") && has_transport("@ipc://x") && !has_transport("http://x"));
    }
}
