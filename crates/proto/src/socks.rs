//! SOCKS 5 as a client (RFC 1928, RFC 1929): the exchange with a proxy before the stream leads to
//! the peer.
//!
//! The interface is that of a [`Session`](crate::Session): bytes in, bytes out, split in any way.
//! The engine reads at most [`Socks::missing`] bytes at a time, so the first bytes of the peer
//! behind the proxy are not mistaken for an answer of the proxy. The only kept data is one answer
//! of at most 262 bytes.

use std::fmt;
use std::net::SocketAddr;

use crate::secret::Secret;

/// Destination to which the proxy shall connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// An address.
    Address(SocketAddr),
    /// A host name of at most 255 bytes (more is cut), which the proxy resolves, and a port.
    Name(String, u16),
}

/// Request of a client to a proxy.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// Destination of the connection.
    pub target: Target,
    /// User name and password, at most 255 bytes each (more is cut). If `None`, only a proxy
    /// without authentication is usable.
    pub login: Option<(Vec<u8>, Secret<Vec<u8>>)>,
}

/// Reason why the proxy did not connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocksError {
    /// The answering program is not a SOCKS 5 proxy, or a broken one.
    NotSocks,
    /// The proxy requires a method of authentication that we do not have.
    Method,
    /// The proxy does not accept user name and password.
    Login,
    /// The proxy could not or would not connect: the code of its reply.
    Reply(u8),
}

enum State {
    Method,
    Login,
    Reply,
    Done,
    Failed(SocksError),
}

/// An exchange in progress.
pub struct Socks {
    request: Request,
    state: State,
    /// Answer being gathered. Never longer than `wanted`.
    pending: Vec<u8>,
    /// Length at which `pending` is judged again.
    wanted: usize,
    /// The password passes through this buffer.
    out: Secret<Vec<u8>>,
    written: usize,
}

const VERSION: u8 = 5;
const LOGIN_VERSION: u8 = 1;
const NO_AUTHENTICATION: u8 = 0;
const USERNAME_PASSWORD: u8 = 2;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const DOMAIN_NAME: u8 = 3;
const IPV6: u8 = 4;
/// Octets of a reply before the bound address.
const REPLY_HEAD: usize = 4;

impl Socks {
    /// Starts the exchange. The greeting is ready to be written.
    pub fn new(request: Request) -> Self {
        let method = if request.login.is_some() { USERNAME_PASSWORD } else { NO_AUTHENTICATION };
        let out = vec![VERSION, 1, method].into();
        Socks { request, state: State::Method, pending: Vec::new(), wanted: 2, out, written: 0 }
    }

    /// Returns the number of bytes that the proxy must still send for the next step. The caller
    /// must not read more than these. 0 if the exchange is complete.
    pub fn missing(&self) -> usize {
        match self.state {
            State::Done | State::Failed(_) => 0,
            _ => self.wanted - self.pending.len(),
        }
    }

    /// Takes bytes from the proxy and returns the number of bytes that belong to the exchange.
    pub fn input(&mut self, bytes: &[u8]) -> Result<usize, SocksError> {
        let mut used = 0;
        loop {
            if let State::Failed(refusal) = self.state {
                return Err(refusal);
            }
            let take = self.missing().min(bytes.len() - used);
            self.pending.extend_from_slice(&bytes[used..used + take]);
            used += take;
            if self.missing() > 0 || self.is_done() {
                return Ok(used);
            }
            if let Err(refusal) = self.step() {
                self.state = State::Failed(refusal);
            }
        }
    }

    /// Returns the bytes to write to the proxy now.
    pub fn output(&self) -> &[u8] {
        &self.out[self.written..]
    }

    /// Drops the first `n` bytes of the output, which have been written.
    pub fn advance_output(&mut self, n: usize) {
        self.written = (self.written + n).min(self.out.len());
    }

    /// True if the stream leads to the target now.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    fn step(&mut self) -> Result<(), SocksError> {
        match self.state {
            State::Method => self.method(),
            State::Login => match self.pending[..] {
                [LOGIN_VERSION, 0] => {
                    self.ask();
                    Ok(())
                }
                [LOGIN_VERSION, _] => Err(SocksError::Login),
                _ => Err(SocksError::NotSocks),
            },
            State::Reply => self.reply(),
            State::Done | State::Failed(_) => Ok(()),
        }
    }

    fn method(&mut self) -> Result<(), SocksError> {
        match (&self.pending[..], &self.request.login) {
            ([VERSION, NO_AUTHENTICATION], None) => self.ask(),
            ([VERSION, USERNAME_PASSWORD], Some((username, password))) => {
                let mut login = Vec::with_capacity(3 + username.len() + password.len());
                login.push(LOGIN_VERSION);
                put_short(&mut login, username);
                put_short(&mut login, password);
                self.expect(State::Login, 2, login);
            }
            ([VERSION, _], _) => return Err(SocksError::Method),
            _ => return Err(SocksError::NotSocks),
        }
        Ok(())
    }

    fn ask(&mut self) {
        let mut request = vec![VERSION, CONNECT, 0];
        let port = match &self.request.target {
            Target::Address(SocketAddr::V4(address)) => {
                request.push(IPV4);
                request.extend(address.ip().octets());
                address.port()
            }
            Target::Address(SocketAddr::V6(address)) => {
                request.push(IPV6);
                request.extend(address.ip().octets());
                address.port()
            }
            Target::Name(name, port) => {
                request.push(DOMAIN_NAME);
                put_short(&mut request, name.as_bytes());
                *port
            }
        };
        request.extend(port.to_be_bytes());
        self.expect(State::Reply, REPLY_HEAD, request);
    }

    fn reply(&mut self) -> Result<(), SocksError> {
        match self.pending[..] {
            [VERSION, 0, ..] => {}
            [VERSION, code, ..] => return Err(SocksError::Reply(code)),
            _ => return Err(SocksError::NotSocks),
        }
        // The address that the proxy connects from is useless to us, but it has to be read.
        let address = match (self.pending[REPLY_HEAD - 1], self.pending.get(REPLY_HEAD)) {
            (IPV4, _) => 4,
            (IPV6, _) => 16,
            (DOMAIN_NAME, None) => 1,
            (DOMAIN_NAME, Some(length)) => 1 + usize::from(*length),
            _ => return Err(SocksError::NotSocks),
        };
        // A name starts with its length.
        let port = if address == 1 && self.pending.len() == REPLY_HEAD { 0 } else { 2 };
        self.wanted = REPLY_HEAD + address + port;
        if self.pending.len() >= self.wanted {
            self.state = State::Done;
        }
        Ok(())
    }

    fn expect(&mut self, state: State, wanted: usize, out: Vec<u8>) {
        self.state = state;
        self.pending.clear();
        self.wanted = wanted;
        self.out = out.into();
        self.written = 0;
    }
}

/// Appends one octet of length and as many bytes.
fn put_short(out: &mut Vec<u8>, bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(255)];
    out.push(bytes.len() as u8);
    out.extend_from_slice(bytes);
}

/// Omits the password.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("target", &self.target).field("login", &self.login.is_some()).finish()
    }
}

impl fmt::Display for SocksError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SocksError::NotSocks => f.write_str("not a SOCKS 5 proxy"),
            SocksError::Method => f.write_str("the proxy requires another authentication method"),
            SocksError::Login => f.write_str("the proxy refuses user name and password"),
            SocksError::Reply(code) => write!(f, "the proxy refuses with code {code}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to_v4(login: Option<(&str, &str)>) -> Socks {
        let target = Target::Address("192.0.2.1:5555".parse().unwrap());
        with(target, login)
    }

    fn with(target: Target, login: Option<(&str, &str)>) -> Socks {
        let login = login.map(|(user, password)| (user.into(), password.as_bytes().to_vec().into()));
        Socks::new(Request { target, login })
    }

    /// Returns the client's output after each piece.
    fn talk(socks: &mut Socks, pieces: &[&[u8]]) -> Result<Vec<Vec<u8>>, SocksError> {
        let mut said = Vec::new();
        let mut take = |socks: &mut Socks| {
            said.push(socks.output().to_vec());
            socks.advance_output(said.last().unwrap().len());
        };
        take(socks);
        for piece in pieces {
            assert_eq!(socks.input(piece)?, piece.len());
            take(socks);
        }
        Ok(said)
    }

    #[test]
    fn golden_without_login() {
        let mut socks = to_v4(None);
        let said = talk(&mut socks, &[b"\x05\x00", b"\x05\x00\x00\x01\x0a\x00\x00\x01\x04\x38"]).unwrap();
        assert_eq!(said, [&b"\x05\x01\x00"[..], b"\x05\x01\x00\x01\xc0\x00\x02\x01\x15\xb3", b""]);
        assert!(socks.is_done());
        assert_eq!(socks.input(b"\xff"), Ok(0), "what comes behind the reply is the peer's");
    }

    #[test]
    fn golden_with_login_name_and_v6() {
        let mut socks = with(Target::Name("example.org".into(), 80), Some(("me", "secret")));
        let reply = [&b"\x05\x00\x00\x04"[..], &[0; 16], b"\0\x01"].concat();
        let said = talk(&mut socks, &[b"\x05\x02", b"\x01\x00", &reply]).unwrap();
        assert_eq!(said[0], b"\x05\x01\x02");
        assert_eq!(said[1], b"\x01\x02me\x06secret");
        assert_eq!(said[2], b"\x05\x01\x00\x03\x0bexample.org\x00\x50");
        assert!(socks.is_done());
        let mut socks = with(Target::Address("[2001:db8::1]:1".parse().unwrap()), None);
        let said = talk(&mut socks, &[b"\x05\x00", b"\x05\x00\x00\x03\x02hi\0\x01"]).unwrap();
        assert_eq!(said[1], b"\x05\x01\x00\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\0\x01");
        assert!(socks.is_done());
    }

    #[test]
    fn every_split_is_the_same() {
        for reply in [
            &b"\x05\x00\x00\x01abcd\0\x01"[..],
            b"\x05\x00\x00\x03\x00\0\x01",
            b"\x05\x00\x00\x03\x04host\0\x01",
        ] {
            let all = [b"\x05\x02\x01\x00", reply, b"\xff\x00"].concat();
            let end = all.len() - 2;
            for cut in 0..=all.len() {
                let mut socks = to_v4(Some(("u", "")));
                let first = socks.input(&all[..cut]).unwrap();
                let used = first + socks.input(&all[first..]).unwrap();
                assert_eq!(used, end, "cut at {cut}");
                assert!(socks.is_done());
            }
            // Read like the engine: at most the missing bytes.
            let (mut socks, mut at) = (to_v4(Some(("u", ""))), 0);
            while !socks.is_done() {
                let missing = socks.missing();
                assert!(missing > 0 && missing < 260);
                assert_eq!(socks.input(&all[at..at + missing]), Ok(missing));
                at += missing;
            }
            assert_eq!(at, end);
        }
    }

    #[test]
    fn refusals() {
        let refused = |login, pieces: &[&[u8]]| talk(&mut to_v4(login), pieces).unwrap_err();
        let login = Some(("me", "x"));
        assert_eq!(refused(None, &[b"HT"]), SocksError::NotSocks);
        assert_eq!(refused(None, &[b"\x04\x00"]), SocksError::NotSocks);
        assert_eq!(refused(None, &[b"\x05\xff"]), SocksError::Method);
        assert_eq!(refused(None, &[b"\x05\x02"]), SocksError::Method, "not offered");
        assert_eq!(refused(login, &[b"\x05\x00"]), SocksError::Method, "not offered");
        assert_eq!(refused(login, &[b"\x05\x02", b"\x01\x01"]), SocksError::Login);
        assert_eq!(refused(login, &[b"\x05\x02", b"\x05\x00"]), SocksError::NotSocks);
        for code in 1..=255 {
            assert_eq!(refused(None, &[b"\x05\x00", &[5, code, 0, 1]]), SocksError::Reply(code));
        }
        assert_eq!(refused(None, &[b"\x05\x00", b"\x05\x00\x00\x02"]), SocksError::NotSocks);
        assert_eq!(refused(None, &[b"\x05\x00", b"\x04\x00\x00\x01"]), SocksError::NotSocks);
        let mut socks = to_v4(None);
        assert_eq!(socks.input(b"\x05\xff"), Err(SocksError::Method));
        assert_eq!(socks.input(b"\x05\x00"), Err(SocksError::Method), "an end is an end");
        assert_eq!(socks.missing(), 0);
    }

    #[test]
    fn long_names_and_logins_are_truncated() {
        let long = "x".repeat(300);
        let mut socks = with(Target::Name(long.clone(), 1), Some((&long, &long)));
        let said = talk(&mut socks, &[b"\x05\x02", b"\x01\x00"]).unwrap();
        assert_eq!(said[1].len(), 1 + 256 + 256);
        assert_eq!(said[2].len(), 4 + 256 + 2);
        let request = Request {
            target: Target::Name(String::new(), 0),
            login: Some((vec![], b"pass".to_vec().into())),
        };
        assert!(!format!("{request:?}").contains("pass"));
    }
}
