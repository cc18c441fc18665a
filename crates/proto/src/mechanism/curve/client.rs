//! The client's half of the CURVE handshake (RFC 26).

use std::sync::Arc;

use super::nacl::{self, BoxKey, long_nonce, random_bytes, short_nonce};
use super::traffic::{CLIENT_PREFIX, SERVER_PREFIX, Traffic};
use super::{READY_LEN, Random, WELCOME_LEN, take};
use crate::command::put_frame;
use crate::error::{ProtocolError, Violation};
use crate::mechanism::{Mechanism, MechanismConfig, Progress};
use crate::metadata::Metadata;
use crate::secret::Secret;
use crate::stage::Stage;

pub(super) fn start(config: &MechanismConfig) -> Box<dyn Mechanism> {
    let MechanismConfig::CurveClient { public, secret, server, random } = config else {
        return super::unfit();
    };
    Box::new(Client {
        public: *public,
        secret: secret.clone(),
        server: *server,
        random: *random,
        metadata: Vec::new(),
        step: Step::Start,
    })
}

enum Step {
    Start,
    /// HELLO is sent, made with these keys.
    Welcome {
        short_public: [u8; 32],
        short_secret: Secret<[u8; 32]>,
        key: BoxKey,
    },
    /// INITIATE is sent. The key is that of the rest of the connection.
    Ready(BoxKey),
    /// Holds the nonce counter of the server's READY.
    Done(BoxKey, u64),
    Over,
}

struct Client {
    public: [u8; 32],
    secret: Arc<Secret<[u8; 32]>>,
    server: [u8; 32],
    random: Random,
    metadata: Vec<u8>,
    step: Step,
}

impl Mechanism for Client {
    fn begin(&mut self, metadata: Vec<u8>, out: &mut Vec<u8>) -> Result<Progress, ProtocolError> {
        self.metadata = metadata;
        let short_secret = random_bytes(self.random)?;
        let short_public = nacl::public_key(&short_secret);
        let key = BoxKey::agreed(&self.server, &short_secret)?;
        let mut proof = Vec::with_capacity(80);
        key.seal(&short_nonce(b"CurveZMQHELLO---", 1), &[&[0; 64]], &mut proof);
        let counter = 1u64.to_be_bytes();
        put_frame(out, b"\x05HELLO", &[&[1, 0], &[0; 72], &short_public, &counter, &proof]);
        self.step = Step::Welcome { short_public, short_secret, key };
        Ok(Progress::Pending)
    }

    fn receive(&mut self, name: &[u8], data: &[u8], out: &mut Vec<u8>) -> Result<Progress, ProtocolError> {
        match (std::mem::replace(&mut self.step, Step::Over), name) {
            (Step::Welcome { short_public, short_secret, key }, b"WELCOME") => {
                let key = self.welcome(data, &short_public, &short_secret, &key, out)?;
                self.step = Step::Ready(key);
                Ok(Progress::Pending)
            }
            (Step::Ready(key), b"READY") => {
                if data.len() < READY_LEN {
                    return Err(Violation::MalformedReady.into());
                }
                let mut rest = data;
                let counter = take::<8>(&mut rest).ok_or(Violation::MalformedReady)?;
                let counter = u64::from_be_bytes(*counter);
                let list = key.open(&short_nonce(b"CurveZMQREADY---", counter), rest)?;
                let metadata = Metadata::collect(&list)?;
                self.step = Step::Done(key, counter);
                Ok(Progress::Complete(metadata))
            }
            // As in libzmq, READY is examined whenever it arrives, but there is no key yet to open
            // it.
            (Step::Welcome { .. }, b"READY") if data.len() < READY_LEN => {
                Err(Violation::MalformedReady.into())
            }
            (Step::Welcome { .. }, b"READY") => Err(Violation::Cryptographic.into()),
            _ => Err(Violation::UnexpectedCommand.into()),
        }
    }

    fn admit(&mut self, _out: &mut Vec<u8>) -> Result<Progress, ProtocolError> {
        Ok(Progress::Pending)
    }

    fn command_limit(&self) -> u64 {
        // The server is unproven until its WELCOME is open. An ERROR has at most 262 bytes.
        if matches!(self.step, Step::Welcome { .. }) { 512 } else { u64::MAX }
    }

    fn stage(&mut self, max_msg_size: Option<u64>) -> Option<Box<dyn Stage>> {
        match std::mem::replace(&mut self.step, Step::Over) {
            // HELLO used nonce 1, INITIATE nonce 2.
            Step::Done(key, heard) => {
                Some(Box::new(Traffic::new(key, (CLIENT_PREFIX, 2), (SERVER_PREFIX, heard), max_msg_size)))
            }
            _ => None,
        }
    }
}

impl Client {
    /// Opens WELCOME, and answers with INITIATE.
    fn welcome(
        &mut self,
        data: &[u8],
        short_public: &[u8; 32],
        short_secret: &Secret<[u8; 32]>,
        key: &BoxKey,
        out: &mut Vec<u8>,
    ) -> Result<BoxKey, ProtocolError> {
        // As in libzmq, a WELCOME of the wrong length counts as a box that does not open.
        if data.len() != WELCOME_LEN {
            return Err(Violation::Cryptographic.into());
        }
        let mut rest = data;
        let nonce = take::<16>(&mut rest).ok_or(Violation::MalformedWelcome)?;
        let content = key.open(&long_nonce(b"WELCOME-", nonce), rest)?;
        let mut rest = &content[..];
        let server_short = take::<32>(&mut rest).ok_or(Violation::MalformedWelcome)?;
        let cookie = rest;

        let vouch_nonce = random_bytes::<16>(self.random)?;
        let mut vouch = vouch_nonce.to_vec();
        let vouch_key = BoxKey::agreed(server_short, &self.secret)?;
        vouch_key.seal(&long_nonce(b"VOUCH---", &vouch_nonce), &[short_public, &self.server], &mut vouch);

        let key = BoxKey::agreed(server_short, short_secret)?;
        let mut sealed = Vec::new();
        let nonce = short_nonce(b"CurveZMQINITIATE", 2);
        key.seal(&nonce, &[&self.public, &vouch, &self.metadata], &mut sealed);
        put_frame(out, b"\x08INITIATE", &[cookie, &2u64.to_be_bytes(), &sealed]);
        Ok(key)
    }
}
