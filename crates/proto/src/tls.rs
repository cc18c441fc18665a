//! TLS below ZMTP, as it is (`tls+tcp://`) or in WebSocket (`wss://`). The cryptography is that of
//! rustls, which is sans-I/O like everything here.
//!
//! ```text
//!   ZMTP       to and from Session and its stages
//!     │
//!   inside     [`Direct`](crate::Direct), or [`WebSocket`](crate::ws::WebSocket)
//!     │
//!   [`Tls`]    records of TLS 1.3; for WebSocket 1.2 too
//!     │
//!   stream
//! ```
//!
//! A server shows a certificate: of several the one that has the name by which the client asks for
//! it. It asks for one of the client's if it has been told which to
//! trust, and turns away clients that show none. A client trusts what it is told to: certificates
//! in PEM, the system's, or both. A certificate that is itself among the trusted ones is good by
//! whatever name, as long as it has not expired; any other needs a chain to one of them, and, if a
//! host name is asked for, that name.
//!
//! No session is resumed: each connection is judged anew. What a peer can make this end keep is a
//! record and a message of the handshake, of 64 KiB at most; what it can make it do, a few changes
//! of keys, warnings and empty messages in a row (rustls counts them).

mod config;
mod fault;
mod identity;
mod user;
mod verifier;

use std::io::{Read, Write};

use rustls::{ClientConnection, Connection, ServerConnection};

use crate::carrier::{Carrier, Shown};
use crate::error::{ProtocolError, TlsFault};
use crate::stage::Stage;
use config::Side;
pub use config::{BadCredentials, TlsConfig, Versions, has_certificates};
pub use identity::Identity;

/// TLS, and what it carries.
pub struct Tls<C> {
    connection: Connection,
    inside: C,
    /// The number of the configuration.
    number: u64,
    /// Bytes between the two; empty between calls.
    clear: Vec<u8>,
    /// The peer has ended TLS.
    ended: bool,
    /// Why it is over.
    fault: Option<TlsFault>,
}

/// What `clear` may keep of its memory.
const KEEP: usize = 64 * 1024;

impl<C: Carrier> Tls<C> {
    /// One end of a new stream.
    ///
    /// # Errors
    /// [`BadCredentials`] if rustls cannot begin with this configuration.
    pub fn new(config: &TlsConfig, inside: C) -> Result<Self, BadCredentials> {
        let connection = match &config.side {
            Side::Server { config, .. } => ServerConnection::new(config.clone()).map(Connection::from),
            Side::Client { config, name } => {
                ClientConnection::new(config.clone(), name.clone()).map(Connection::from)
            }
        };
        let mut connection = connection.map_err(|_| BadCredentials::Name)?;
        // All that is sealed is written by the caller at once; only the beginning waits for the
        // handshake.
        connection.set_buffer_limit(None);
        Ok(Tls { connection, inside, number: config.number, clear: Vec::new(), ended: false, fault: None })
    }

    /// Encrypts `clear`, and yields what is to be written.
    fn put(&mut self, out: &mut Vec<u8>) {
        if self.fault.is_none() {
            // Into memory: does not fail.
            let _ = self.connection.writer().write_all(&self.clear);
        }
        self.tidy();
        self.take(out);
    }

    /// Yields what is to be written.
    fn take(&mut self, out: &mut Vec<u8>) {
        while self.connection.wants_write() {
            if !matches!(self.connection.write_tls(out), Ok(1..)) {
                return;
            }
        }
    }

    /// Takes the records of the next few bytes.
    fn advance(&mut self, wire: &mut &[u8], out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        if !matches!(self.connection.read_tls(wire), Ok(1..)) {
            return Err(TlsFault::Broken.into());
        }
        let is_new = self.connection.is_handshaking();
        let state = self.connection.process_new_packets().map_err(|error| fault::of(&error, is_new))?;
        let length = state.plaintext_bytes_to_read();
        self.ended = state.peer_has_closed();
        let broken = |_| ProtocolError::from(TlsFault::Broken);
        if self.inside.is_transparent() {
            let start = out.len();
            out.resize(start + length, 0);
            return self.connection.reader().read_exact(&mut out[start..]).map_err(broken);
        }
        self.clear.resize(length, 0);
        let read = self.connection.reader().read_exact(&mut self.clear).map_err(broken);
        let result = read.and_then(|()| self.inside.open(&self.clear, out));
        self.tidy();
        result
    }

    fn tidy(&mut self) {
        self.clear.clear();
        self.clear.shrink_to(KEEP);
    }
}

impl<C: Carrier> Stage for Tls<C> {
    fn seal(&mut self, zmtp: &[u8], out: &mut Vec<u8>) {
        if !self.inside.is_transparent() {
            self.inside.seal(zmtp, &mut self.clear);
            return self.put(out);
        }
        if self.fault.is_none() {
            // Into memory: does not fail.
            let _ = self.connection.writer().write_all(zmtp);
        }
        self.take(out);
    }

    fn open(&mut self, mut wire: &[u8], out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        if let Some(fault) = self.fault {
            return Err(fault.into());
        }
        while !wire.is_empty() && !self.ended {
            if let Err(error) = self.advance(&mut wire, out) {
                if let ProtocolError::Tls(fault) = error {
                    self.fault = Some(fault);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    fn buffered(&self) -> usize {
        // What rustls keeps, at most a record and a handshake message, it does not tell.
        self.inside.buffered()
    }

    fn exhausted(&self) -> bool {
        self.inside.exhausted()
    }

    fn has_output(&self) -> bool {
        self.connection.wants_write() || self.inside.has_output()
    }

    fn ended(&self) -> bool {
        self.ended || self.inside.ended()
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        self.inside.finish(&mut self.clear);
        self.connection.send_close_notify();
        self.put(out);
    }
}

impl<C: Carrier> Carrier for Tls<C> {
    fn established(&mut self) {
        self.inside.established();
    }

    fn ping(&mut self) -> bool {
        self.inside.ping()
    }

    /// The certificates of a client. That of a server is not of interest: it has the name that was
    /// asked for.
    fn shown(&self) -> Option<Shown> {
        let Connection::Server(connection) = &self.connection else { return None };
        let certificates = connection.peer_certificates()?;
        let user = certificates.first().map(|own| user::name(own)).unwrap_or_default();
        let certificates = certificates.iter().map(|one| one.to_vec()).collect();
        Some(Shown { user, certificates, judged: self.number })
    }
}

#[cfg(test)]
mod tests;
