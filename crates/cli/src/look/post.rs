//! One POST by HTTP/1.1, without encryption.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::failure::{Failure, Result};

/// How long a server may take for each step.
const TIME: Duration = Duration::from_secs(10);
/// The longest answer that is read.
const LONGEST: u64 = 64 * 1024;

/// Where to.
#[derive(Debug, PartialEq, Eq)]
pub struct Url {
    host: String,
    port: u16,
    path: String,
}

impl Url {
    /// `http://HOST[:PORT][/PATH]`.
    pub fn parse(text: &str, port: u16, path: &str) -> Result<Url> {
        let Some(rest) = text.strip_prefix("http://") else {
            return Err(Failure::usage(format!("{text:?} is no http://HOST[:PORT][/PATH]")).hint(
                "https is spoken by a collector on this machine, which sends on what it gets by http",
            ));
        };
        let (authority, own) = match rest.find('/') {
            Some(at) if rest.len() > at + 1 => rest.split_at(at),
            at => (&rest[..at.unwrap_or(rest.len())], path),
        };
        // The colons of an address in brackets do not divide.
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, digits)) if !digits.ends_with(']') => (host, digits.parse().ok()),
            _ => (authority, Some(port)),
        };
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        match port {
            Some(port) if !host.is_empty() && is_plain(rest) => {
                Ok(Url { host: host.to_owned(), port, path: own.to_owned() })
            }
            _ => Err(Failure::usage(format!("{text:?} is no http://HOST[:PORT][/PATH]"))),
        }
    }
}

/// Sends this JSON; the status and the body of the answer.
pub fn post(url: &Url, body: &str) -> io::Result<(u16, String)> {
    let host = url.host.trim_matches(['[', ']']);
    let mut outcome = Err(ErrorKind::NotFound.into());
    for address in (host, url.port).to_socket_addrs()? {
        outcome = TcpStream::connect_timeout(&address, TIME);
        if outcome.is_ok() {
            break;
        }
    }
    let mut stream = outcome?;
    stream.set_read_timeout(Some(TIME))?;
    stream.set_write_timeout(Some(TIME))?;
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: {}:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         User-Agent: taut/{}\r\nConnection: close\r\n\r\n",
        url.path,
        url.host,
        url.port,
        body.len(),
        env!("CARGO_PKG_VERSION"),
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(LONGEST).read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.strip_prefix("HTTP/1.").and_then(|head| head.split(' ').nth(1));
    let status = status.and_then(|status| status.trim_end().get(..3)?.parse().ok());
    Ok((status.ok_or(ErrorKind::InvalidData)?, body.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_what_is_usual() {
        for (text, host, port, path) in [
            ("http://collector", "collector", 4318, "/v1/metrics"),
            ("http://collector/", "collector", 4318, "/v1/metrics"),
            ("http://10.0.0.7:80/a/b", "10.0.0.7", 80, "/a/b"),
            ("http://[::1]", "[::1]", 4318, "/v1/metrics"),
            ("http://[::1]:9", "[::1]", 9, "/v1/metrics"),
        ] {
            let url = Url { host: host.to_owned(), port, path: path.to_owned() };
            assert_eq!(Url::parse(text, 4318, "/v1/metrics").unwrap(), url);
        }
        for text in ["https://a", "a:1", "http://", "http://a:b", "http://a b", "http://a/\r\nX: y"] {
            assert!(Url::parse(text, 1, "/").is_err(), "{text}");
        }
    }
}
