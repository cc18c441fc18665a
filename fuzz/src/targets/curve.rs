//! The CURVE handshake, and the boxes that follow.

use std::sync::Arc;

use super::handshake;
use tautline_proto::{MechanismConfig, ServerKeys, public_key};

/// Secret key of the server.
pub const SERVER_SECRET: [u8; 32] = [0x51; 32];
/// Secret key of the client.
pub const CLIENT_SECRET: [u8; 32] = [0xC1; 32];

/// Runs one handshake.
pub fn run(input: &[u8]) {
    handshake::run(configs, input);
}

/// Runs handshakes of two ends. Their random numbers are fixed, so that an input always means
/// the same.
pub fn seeds() -> Vec<Vec<u8>> {
    handshake::seeds(configs)
}

/// The client and the server.
pub fn configs() -> [MechanismConfig; 2] {
    let client = MechanismConfig::CurveClient {
        public: public_key(&CLIENT_SECRET),
        secret: Arc::new(CLIENT_SECRET.into()),
        server: public_key(&SERVER_SECRET),
        random: fixed,
    };
    [
        client,
        MechanismConfig::CurveServer { keys: ServerKeys::new(Arc::new(SERVER_SECRET.into())), random: fixed },
    ]
}

fn fixed(out: &mut [u8]) -> bool {
    let len = out.len() as u8;
    out.iter_mut().enumerate().for_each(|(i, octet)| *octet = (i as u8).wrapping_mul(7) ^ len);
    true
}
