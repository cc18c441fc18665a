//! The server's half of the CURVE handshake (RFC 26).
//!
//! Before a client has shown that it knows the server's key, it costs one key agreement, and memory
//! for one command of fixed size.

use super::nacl::{self, BoxKey, long_nonce, random_bytes, short_nonce};
use super::traffic::{CLIENT_PREFIX, SERVER_PREFIX, Traffic};
use super::{COOKIE_LEN, HELLO_LEN, INITIATE_LEN, Random, ServerKeys, VOUCH_LEN, take};
use crate::command::put_frame;
use crate::error::{ProtocolError, Violation};
use crate::mechanism::{Mechanism, MechanismConfig, Progress};
use crate::metadata::Metadata;
use crate::secret::{Secret, equal};
use crate::stage::Stage;
use crate::zap::Credentials;

pub(super) fn start(config: &MechanismConfig) -> Box<dyn Mechanism> {
    let MechanismConfig::CurveServer { keys, random } = config else { return super::unfit() };
    Box::new(Server { keys: keys.clone(), random: *random, metadata: Vec::new(), step: Step::Hello })
}

enum Step {
    Hello,
    /// WELCOME is sent, with this cookie.
    Initiate {
        client_short: [u8; 32],
        short_secret: Secret<[u8; 32]>,
        cookie: Vec<u8>,
    },
    /// Waits for the verdict of the authenticator.
    Judgement(AuthenticatedClient),
    Done(AuthenticatedClient),
    Over,
}

/// A client that has proven its key.
struct AuthenticatedClient {
    /// Key of the rest of the connection.
    key: BoxKey,
    /// Nonce counter of the client's INITIATE.
    heard: u64,
    metadata: Vec<u8>,
}

struct Server {
    keys: ServerKeys,
    random: Random,
    metadata: Vec<u8>,
    step: Step,
}

impl Mechanism for Server {
    fn begin(&mut self, metadata: Vec<u8>, _out: &mut Vec<u8>) -> Result<Progress, ProtocolError> {
        self.metadata = metadata;
        Ok(Progress::Pending)
    }

    fn receive(&mut self, name: &[u8], data: &[u8], out: &mut Vec<u8>) -> Result<Progress, ProtocolError> {
        match (std::mem::replace(&mut self.step, Step::Over), name) {
            (Step::Hello, b"HELLO") => {
                self.step = self.hello(data, out)?;
                Ok(Progress::Pending)
            }
            (Step::Initiate { client_short, short_secret, cookie }, b"INITIATE") => {
                let (public, peer) = self.initiate(data, &client_short, &short_secret, &cookie)?;
                self.step = Step::Judgement(peer);
                let frames = vec![public.to_vec().into()];
                Ok(Progress::Judge(Credentials { mechanism: "CURVE", frames }))
            }
            _ => Err(Violation::UnexpectedCommand.into()),
        }
    }

    fn admit(&mut self, out: &mut Vec<u8>) -> Result<Progress, ProtocolError> {
        let Step::Judgement(mut peer) = std::mem::replace(&mut self.step, Step::Over) else {
            return Ok(Progress::Pending);
        };
        let metadata = Metadata::collect(&std::mem::take(&mut peer.metadata))?;
        let mut sealed = Vec::new();
        peer.key.seal(&short_nonce(b"CurveZMQREADY---", 1), &[&self.metadata], &mut sealed);
        put_frame(out, b"\x05READY", &[&1u64.to_be_bytes(), &sealed]);
        self.step = Step::Done(peer);
        Ok(Progress::Complete(metadata))
    }

    fn command_limit(&self) -> u64 {
        // While it costs little, a HELLO of another length is reported as malformed, not as too
        // large.
        if matches!(self.step, Step::Hello) { 512 } else { u64::MAX }
    }

    fn heeds_error(&self) -> bool {
        false
    }

    fn stage(&mut self, max_msg_size: Option<u64>) -> Option<Box<dyn Stage>> {
        match std::mem::replace(&mut self.step, Step::Over) {
            // READY used nonce 1.
            Step::Done(AuthenticatedClient { key, heard, .. }) => {
                Some(Box::new(Traffic::new(key, (SERVER_PREFIX, 1), (CLIENT_PREFIX, heard), max_msg_size)))
            }
            _ => None,
        }
    }
}

impl Server {
    /// Opens HELLO, and answers with WELCOME.
    fn hello(&self, data: &[u8], out: &mut Vec<u8>) -> Result<Step, ProtocolError> {
        if data.len() != HELLO_LEN {
            return Err(Violation::MalformedHello.into());
        }
        let mut rest = data;
        if take::<2>(&mut rest) != Some(&[1, 0]) {
            return Err(Violation::MalformedHello.into());
        }
        // There are 72 bytes of padding, so that WELCOME is not longer than the HELLO that it
        // answers.
        let malformed = Violation::MalformedHello;
        take::<72>(&mut rest).ok_or(malformed)?;
        let client_short = take::<32>(&mut rest).ok_or(malformed)?;
        let counter = take::<8>(&mut rest).ok_or(malformed)?;
        let key = BoxKey::agreed(client_short, &self.keys.secret)?;
        let nonce = short_nonce(b"CurveZMQHELLO---", u64::from_be_bytes(*counter));
        if key.open(&nonce, rest)?.iter().any(|&octet| octet != 0) {
            return Err(Violation::Cryptographic.into());
        }

        let short_secret = random_bytes::<32>(self.random)?;
        let short_public = nacl::public_key(&short_secret);
        // The client returns the cookie, and we accept only an equal one. The cookie has the
        // content that the RFC prescribes, but it is never opened.
        let cookie_nonce = random_bytes::<16>(self.random)?;
        let mut cookie = cookie_nonce.to_vec();
        BoxKey::own(random_bytes(self.random)?).seal(
            &long_nonce(b"COOKIE--", &cookie_nonce),
            &[client_short, &short_secret[..]],
            &mut cookie,
        );

        let nonce = random_bytes::<16>(self.random)?;
        let mut welcome = nonce.to_vec();
        key.seal(&long_nonce(b"WELCOME-", &nonce), &[&short_public, &cookie], &mut welcome);
        put_frame(out, b"\x07WELCOME", &[&welcome]);
        Ok(Step::Initiate { client_short: *client_short, short_secret, cookie })
    }

    /// Opens INITIATE and reads the client's long-term key.
    fn initiate(
        &self,
        data: &[u8],
        client_short: &[u8; 32],
        short_secret: &Secret<[u8; 32]>,
        cookie: &[u8],
    ) -> Result<([u8; 32], AuthenticatedClient), ProtocolError> {
        let malformed = Violation::MalformedInitiate;
        if data.len() < INITIATE_LEN {
            return Err(malformed.into());
        }
        let mut rest = data;
        let returned = take::<COOKIE_LEN>(&mut rest).ok_or(malformed)?;
        if !equal(returned, cookie) {
            return Err(Violation::Cryptographic.into());
        }
        let heard = u64::from_be_bytes(*take::<8>(&mut rest).ok_or(malformed)?);
        let key = BoxKey::agreed(client_short, short_secret)?;
        let content = key.open(&short_nonce(b"CurveZMQINITIATE", heard), rest)?;
        let mut rest = &content[..];
        let public = take::<32>(&mut rest).ok_or(malformed)?;
        let mut vouch = &take::<VOUCH_LEN>(&mut rest).ok_or(malformed)?[..];
        let vouch_nonce = take::<16>(&mut vouch).ok_or(malformed)?;
        let vouched =
            BoxKey::agreed(public, short_secret)?.open(&long_nonce(b"VOUCH---", vouch_nonce), vouch)?;
        // Compare both halves. Without the second half, a server could forward a vouch that was
        // meant for itself.
        if !equal(&vouched, &[*client_short, self.keys.public].concat()) {
            return Err(Violation::KeyExchange.into());
        }
        Ok((*public, AuthenticatedClient { key, heard, metadata: rest.to_vec() }))
    }
}
