//! The PLAIN mechanism: the client sends a user name and a password in clear text (RFC 24).
//!
//! ```text
//! client            server
//!   HELLO ────────────▶      user name, password: judged
//!         ◀──────────── WELCOME
//!   INITIATE ─────────▶      metadata
//!         ◀──────────── READY, metadata
//! ```

use super::{Mechanism, MechanismConfig, MechanismInfo, Progress};
use crate::command::put_frame;
use crate::error::{ProtocolError, Violation};
use crate::metadata::Metadata;
use crate::secret::Secret;
use crate::zap::Credentials;

pub(super) static CLIENT: MechanismInfo =
    MechanismInfo { name: "PLAIN", as_server: false, allows_older_peers: false, start: client };
pub(super) static SERVER: MechanismInfo =
    MechanismInfo { name: "PLAIN", as_server: true, allows_older_peers: false, start: server };

/// The largest body of a HELLO: its name, and two strings of at most 255 bytes.
const MAX_HELLO: u64 = 6 + 2 * 256;

fn client(config: &MechanismConfig) -> Box<dyn Mechanism> {
    let (username, password) = match config {
        MechanismConfig::PlainClient { username, password } => (username.clone(), password.clone()),
        _ => Default::default(),
    };
    Box::new(Client { username, password, metadata: Vec::new(), awaits: ClientAwaits::Welcome })
}

fn server(_config: &MechanismConfig) -> Box<dyn Mechanism> {
    Box::new(Server { metadata: Vec::new(), awaits: ServerAwaits::Hello })
}

enum ClientAwaits {
    Welcome,
    Ready,
    Nothing,
}

struct Client {
    username: Vec<u8>,
    password: Secret<Vec<u8>>,
    metadata: Vec<u8>,
    awaits: ClientAwaits,
}

impl Mechanism for Client {
    fn begin(&mut self, metadata: Vec<u8>, out: &mut Vec<u8>) -> Result<Progress, ProtocolError> {
        self.metadata = metadata;
        let username = &self.username[..self.username.len().min(255)];
        let password = &self.password[..self.password.len().min(255)];
        let (user_len, pass_len) = ([username.len() as u8], [password.len() as u8]);
        put_frame(out, b"\x05HELLO", &[&user_len, username, &pass_len, password]);
        self.password = Secret::default();
        Ok(Progress::Pending)
    }

    fn receive(&mut self, name: &[u8], data: &[u8], out: &mut Vec<u8>) -> Result<Progress, ProtocolError> {
        match (&self.awaits, name) {
            (ClientAwaits::Welcome, b"WELCOME") => {
                if !data.is_empty() {
                    return Err(Violation::MalformedWelcome.into());
                }
                put_frame(out, b"\x08INITIATE", &[&self.metadata]);
                self.awaits = ClientAwaits::Ready;
                Ok(Progress::Pending)
            }
            (ClientAwaits::Ready, b"READY") => {
                self.awaits = ClientAwaits::Nothing;
                Metadata::collect(data).map(Progress::Complete)
            }
            _ => Err(Violation::UnexpectedCommand.into()),
        }
    }

    fn admit(&mut self, _out: &mut Vec<u8>) -> Result<Progress, ProtocolError> {
        Ok(Progress::Pending)
    }
}

enum ServerAwaits {
    Hello,
    /// Waits for the verdict of the authenticator.
    Judgement,
    Initiate,
    Nothing,
}

struct Server {
    metadata: Vec<u8>,
    awaits: ServerAwaits,
}

impl Mechanism for Server {
    fn begin(&mut self, metadata: Vec<u8>, _out: &mut Vec<u8>) -> Result<Progress, ProtocolError> {
        self.metadata = metadata;
        Ok(Progress::Pending)
    }

    fn receive(&mut self, name: &[u8], data: &[u8], out: &mut Vec<u8>) -> Result<Progress, ProtocolError> {
        match (&self.awaits, name) {
            (ServerAwaits::Hello, b"HELLO") => {
                let (username, rest) = string(data).ok_or(Violation::MalformedHello)?;
                let Some((password, [])) = string(rest) else { return Err(Violation::MalformedHello.into()) };
                self.awaits = ServerAwaits::Judgement;
                let frames = vec![username.to_vec().into(), password.to_vec().into()];
                Ok(Progress::Judge(Credentials { mechanism: "PLAIN", frames }))
            }
            (ServerAwaits::Initiate, b"INITIATE") => {
                let metadata = Metadata::collect(data)?;
                put_frame(out, b"\x05READY", &[&self.metadata]);
                self.awaits = ServerAwaits::Nothing;
                Ok(Progress::Complete(metadata))
            }
            _ => Err(Violation::UnexpectedCommand.into()),
        }
    }

    fn admit(&mut self, out: &mut Vec<u8>) -> Result<Progress, ProtocolError> {
        put_frame(out, b"\x07WELCOME", &[]);
        self.awaits = ServerAwaits::Initiate;
        Ok(Progress::Pending)
    }

    fn command_limit(&self) -> u64 {
        if matches!(self.awaits, ServerAwaits::Initiate) { u64::MAX } else { MAX_HELLO }
    }

    fn heeds_error(&self) -> bool {
        false
    }
}

/// Splits off a string after one octet of length. Returns the string and the bytes after it.
fn string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&len, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(len))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Box<dyn Mechanism>, Box<dyn Mechanism>) {
        let config =
            MechanismConfig::PlainClient { username: b"admin".to_vec(), password: b"s3cret".to_vec().into() };
        (client(&config), server(&MechanismConfig::PlainServer))
    }

    /// RFC 24, command by command.
    #[test]
    fn golden_commands() {
        let ((mut client, mut server), mut out) = (pair(), Vec::new());
        assert!(matches!(client.begin(b"\x01a\0\0\0\x01x".to_vec(), &mut out), Ok(Progress::Pending)));
        assert_eq!(out, b"\x04\x13\x05HELLO\x05admin\x06s3cret");
        assert!(matches!(server.begin(b"\x01b\0\0\0\x01y".to_vec(), &mut out), Ok(Progress::Pending)));
        let Ok(Progress::Judge(credentials)) = server.receive(b"HELLO", &out[8..], &mut Vec::new()) else {
            panic!("not judged")
        };
        assert_eq!(credentials.mechanism, "PLAIN");
        let frames: Vec<&[u8]> = credentials.frames.iter().map(|frame| frame.as_slice()).collect();
        assert_eq!(frames, [&b"admin"[..], b"s3cret"]);
        out.clear();
        assert!(matches!(server.admit(&mut out), Ok(Progress::Pending)));
        assert_eq!(out, b"\x04\x08\x07WELCOME");
        out.clear();
        assert!(matches!(client.receive(b"WELCOME", b"", &mut out), Ok(Progress::Pending)));
        assert_eq!(out, b"\x04\x10\x08INITIATE\x01a\0\0\0\x01x");
        let initiate = out.split_off(11);
        out.clear();
        let complete = server.receive(b"INITIATE", &initiate, &mut out);
        assert!(
            matches!(complete, Ok(Progress::Complete(list)) if list.0 == [("a".to_owned(), b"x".to_vec())])
        );
        assert_eq!(out, b"\x04\x0d\x05READY\x01b\0\0\0\x01y");
        let complete = client.receive(b"READY", &out[8..], &mut Vec::new());
        assert!(
            matches!(complete, Ok(Progress::Complete(list)) if list.0 == [("b".to_owned(), b"y".to_vec())])
        );
        assert!(client.stage(None).is_none() && server.stage(None).is_none());
    }

    #[test]
    fn long_credentials_are_cut() {
        let config =
            MechanismConfig::PlainClient { username: vec![b'u'; 300], password: vec![b'p'; 300].into() };
        let (mut client, mut out) = (client(&config), Vec::new());
        client.begin(Vec::new(), &mut out).unwrap();
        assert_eq!(out.len() as u64, 9 + MAX_HELLO);
        let mut server = server(&MechanismConfig::PlainServer);
        assert_eq!(server.command_limit(), MAX_HELLO);
        assert!(matches!(server.receive(b"HELLO", &out[15..], &mut Vec::new()), Ok(Progress::Judge(_))));
    }

    #[test]
    fn every_cut_of_hello_is_malformed() {
        let data = b"\x05admin\x06s3cret";
        for cut in 0..data.len() {
            let (_, mut server) = pair();
            let fault = server.receive(b"HELLO", &data[..cut], &mut Vec::new()).unwrap_err();
            assert_eq!(fault, Violation::MalformedHello.into(), "cut at {cut}");
        }
        let fault = pair().1.receive(b"HELLO", b"\x01a\x01bx", &mut Vec::new()).unwrap_err();
        assert_eq!(fault, Violation::MalformedHello.into());
    }

    #[test]
    fn commands_out_of_order() {
        let out = &mut Vec::new();
        let unexpected = |step: Result<Progress, ProtocolError>| {
            assert_eq!(step.unwrap_err(), Violation::UnexpectedCommand.into());
        };
        let (mut client, mut server) = pair();
        for name in [&b"INITIATE"[..], b"WELCOME", b"READY", b"hello"] {
            unexpected(server.receive(name, b"", out));
        }
        for name in [&b"HELLO"[..], b"INITIATE", b"READY"] {
            unexpected(client.receive(name, b"", out));
        }
        server.receive(b"HELLO", b"\0\0", out).unwrap();
        unexpected(server.receive(b"INITIATE", b"", out));
        unexpected(server.receive(b"HELLO", b"\0\0", out));
        server.admit(out).unwrap();
        unexpected(server.receive(b"HELLO", b"\0\0", out));
        assert_eq!(client.receive(b"WELCOME", b"x", out).unwrap_err(), Violation::MalformedWelcome.into());
        assert!(!server.heeds_error() && client.heeds_error());
    }
}
