//! TLS below ZMTP, either directly (`tls+tcp://`) or below WebSocket (`wss://`). The cryptography
//! is that of rustls, which is sans-I/O like this whole crate.
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
//! A server shows a certificate. If it has several, it shows the one with the name that the client
//! asks for. If the server has a list of trusted client certificates, it asks clients for a
//! certificate and refuses clients without one. A client trusts certificates in PEM, the system's
//! certificates, or both. A certificate that is itself among the trusted ones is accepted under any
//! name until it expires. Any other certificate needs a chain to a trusted one and, if a host name
//! is required, that name.
//!
//! Sessions are never resumed: each connection is judged anew. A peer can make this end keep at
//! most one record and one handshake message of at most 64 KiB. It can cause at most a few changes
//! of keys, warnings and empty messages in a row (rustls counts them).

mod config;
mod fault;
mod identity;
mod pem;
mod user;
mod verifier;

use std::io::{Read, Write};

use rustls::{ClientConnection, Connection, ServerConnection};

use crate::carrier::{Carrier, PeerCertificates};
use crate::error::{ProtocolError, TlsFault};
use crate::stage::Stage;
use config::Side;
pub use config::{BadCredentials, CredentialPart, TlsConfig, Versions, trusted_certificates};
pub use identity::Identity;

/// TLS and the carrier inside it.
pub struct Tls<C> {
    connection: Connection,
    inside: C,
    /// Revision of the configuration, see [`TlsConfig::with_revision`].
    revision: u64,
    /// Unencrypted bytes on their way between `connection` and `inside`. Empty between calls.
    clear: Vec<u8>,
    /// True if the peer has ended TLS.
    ended: bool,
    /// Fault that ended the connection.
    fault: Option<TlsFault>,
}

/// Memory that `clear` may keep from one call to the next, in bytes.
const KEEP: usize = 64 * 1024;

impl<C: Carrier> Tls<C> {
    /// Makes one end of a new stream.
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
        // The caller writes all sealed bytes at once. Only the first bytes wait for the handshake.
        connection.set_buffer_limit(None);
        Ok(Tls {
            connection,
            inside,
            revision: config.revision,
            clear: Vec::new(),
            ended: false,
            fault: None,
        })
    }

    /// Encrypts `clear` and appends the bytes to write.
    fn put(&mut self, out: &mut Vec<u8>) {
        if self.fault.is_none() {
            // Writing into memory does not fail.
            let _ = self.connection.writer().write_all(&self.clear);
        }
        self.tidy();
        self.take(out);
    }

    /// Appends the bytes to write.
    fn take(&mut self, out: &mut Vec<u8>) {
        while self.connection.wants_write() {
            if !matches!(self.connection.write_tls(out), Ok(1..)) {
                return;
            }
        }
    }

    /// Processes the records of the next few bytes.
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
            // Writing into memory does not fail.
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
        // rustls does not report the number of bytes that it keeps: at most a record and a
        // handshake message.
        self.inside.buffered()
    }

    fn is_out_of_memory(&self) -> bool {
        self.inside.is_out_of_memory()
    }

    fn has_output(&self) -> bool {
        self.connection.wants_write() || self.inside.has_output()
    }

    fn is_closed(&self) -> bool {
        self.ended || self.inside.is_closed()
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        self.inside.close(&mut self.clear);
        self.connection.send_close_notify();
        self.put(out);
    }
}

impl<C: Carrier> Carrier for Tls<C> {
    fn complete_handshake(&mut self) {
        self.inside.complete_handshake();
    }

    fn ping(&mut self) -> bool {
        self.inside.ping()
    }

    /// Returns the certificates of a client. Those of a server are not needed: a server's
    /// certificate has the name that the client asked for.
    fn peer_certificates(&self) -> Option<PeerCertificates> {
        let Connection::Server(connection) = &self.connection else { return None };
        let certificates = connection.peer_certificates()?;
        let user = certificates.first().map(|own| user::name(own)).unwrap_or_default();
        let certificates = certificates.iter().map(|one| one.to_vec()).collect();
        Some(PeerCertificates { user, certificates, verified_by: self.revision })
    }
}

#[cfg(test)]
mod tests;
