//! The handler's thread: requests and replies as frames (RFC 27).

use std::panic::{AssertUnwindSafe, catch_unwind};

use tautline_core::Secret;

use super::{Authenticate, Credentials, Password, Request, Status, Verdict};
use crate::Rep;
use crate::curve::PublicKey;
use crate::error::{Error, Result};
use crate::message::{Message, Multipart};

const VERSION: &str = "1.0";

/// Answers requests until the context ends. It must not end earlier: without a handler, a CURVE
/// server accepts every peer.
pub(crate) fn serve(mut socket: Rep, mut handler: impl Authenticate) {
    loop {
        match answer(&mut socket, &mut handler) {
            Ok(()) | Err(Error::Interrupted | Error::TimedOut) => {}
            Err(_) => return,
        }
    }
}

fn answer(socket: &mut Rep, handler: &mut impl Authenticate) -> Result<()> {
    let frames = socket.recv_multipart()?;
    let request_id = frames.get(1).cloned().unwrap_or_default();
    let verdict = match read(frames) {
        // After a panic the handler's state may be inconsistent. Keep the handler anyway: without
        // it, every peer would be accepted.
        Some(request) => {
            let verdict = catch_unwind(AssertUnwindSafe(|| handler.authenticate(&request)))
                .unwrap_or_else(|_| Verdict::new(Status::Fault, "the handler panicked"));
            #[cfg(feature = "tracing")]
            crate::trace::report_refusal(&request, &verdict);
            verdict
        }
        None => Verdict::refuse("malformed request"),
    };
    socket.send_multipart(reply(request_id, verdict))
}

/// Decodes a request; `None` if it is malformed.
fn read(frames: Multipart) -> Option<Request> {
    let mut frames = frames.into_iter();
    let [version, _request_id, domain, address, routing_id, mechanism] = [(); 6].map(|()| frames.next());
    if version? != VERSION {
        return None;
    }
    let text = |frame: Option<Message>| frame?.as_str().ok().map(str::to_owned);
    let mechanism = text(mechanism)?;
    let mut frame = || frames.next();
    let credentials = match mechanism.as_str() {
        "NULL" => Credentials::Null,
        "PLAIN" => Credentials::Plain {
            username: text(frame())?,
            password: Password(Secret::new(frame()?.as_bytes().to_vec())),
        },
        "CURVE" => Credentials::Curve(PublicKey::from(<[u8; 32]>::try_from(frame()?.as_bytes()).ok()?)),
        _ => Credentials::Other { mechanism, frames: frames.collect() },
    };
    Some(Request { domain: text(domain)?, address: text(address)?, routing_id: routing_id?, credentials })
}

fn reply(request_id: Message, verdict: Verdict) -> Multipart {
    let status = match verdict.status {
        Status::Admitted => "200",
        Status::Later => "300",
        Status::Refused => "400",
        Status::Fault => "500",
    };
    let mut properties = Vec::new();
    for (name, value) in &verdict.properties {
        if let (Ok(name_len @ 1..), Ok(value_len)) = (u8::try_from(name.len()), u32::try_from(value.len())) {
            properties.push(name_len);
            properties.extend_from_slice(name.as_bytes());
            properties.extend_from_slice(&value_len.to_be_bytes());
            properties.extend_from_slice(value.as_bytes());
        }
    }
    Multipart::from([
        Message::from(VERSION),
        request_id,
        Message::from(status),
        Message::from(verdict.text),
        Message::from(verdict.user_id),
        Message::from(properties),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(mechanism: &str, credentials: &[&[u8]]) -> Multipart {
        let fixed = ["1.0", "1", "domain", "127.0.0.1", "", mechanism];
        fixed
            .iter()
            .map(|frame| Message::from(*frame))
            .chain(credentials.iter().map(|frame| Message::from(*frame)))
            .collect()
    }

    #[test]
    fn requests_are_read() {
        let request = read(frames("PLAIN", &[b"joe", b"pass"])).unwrap();
        assert_eq!(
            (request.domain(), request.address(), request.routing_id()),
            ("domain", "127.0.0.1", &b""[..])
        );
        let Credentials::Plain { username, password } = request.credentials() else { panic!("{request:?}") };
        assert!(
            username == "joe"
                && password.matches("pass")
                && !password.matches("past")
                && password.expose() == b"pass"
        );
        assert!(!format!("{request:?}").contains("112"), "no password in a debug print");
        let curve = read(frames("CURVE", &[&[7; 32]])).unwrap();
        assert!(matches!(curve.credentials(), Credentials::Curve(key) if *key == PublicKey::from([7; 32])));
        assert!(matches!(read(frames("NULL", &[])).unwrap().credentials(), Credentials::Null));
        assert!(
            matches!(read(frames("X", &[b"1"])).unwrap().credentials(), Credentials::Other { frames, .. } if frames.len() == 1)
        );
    }

    #[test]
    fn malformed_requests_are_refused_unseen() {
        for (mechanism, credentials) in [
            ("PLAIN", &[&b"joe"[..]][..]),
            ("PLAIN", &[b"\xFF", b"pass"]),
            ("CURVE", &[]),
            ("CURVE", &[&[7; 31]]),
        ] {
            assert!(read(frames(mechanism, credentials)).is_none(), "{mechanism} {credentials:?}");
        }
        assert!(read(Multipart::from(["2.0", "1", "", "", "", "NULL"])).is_none());
        assert!(read(Multipart::from(["1.0", "1", "", "", ""])).is_none());
        assert!(read(Multipart::new()).is_none());
    }

    #[test]
    fn properties_are_encoded() {
        let verdict = Verdict::admit("joe").property("Hello", "World").property("", "nameless");
        let frames = reply(Message::from("1"), verdict);
        assert_eq!(frames[4], "joe");
        assert_eq!(frames[5], b"\x05Hello\0\0\0\x05World");
    }
}
