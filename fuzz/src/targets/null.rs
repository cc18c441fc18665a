//! The NULL handshake.

use super::handshake;
use tautline_proto::MechanismConfig;

/// Runs one handshake.
pub fn run(input: &[u8]) {
    handshake::run(configs, input);
}

/// Handshakes of two ends.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = handshake::seeds(configs);
    seeds.push(b"\x00\x00\x01\x00\x04\x0a\x05ERROR\x03400".to_vec());
    seeds.push(b"\x00\x06\x00\x00\x04\x26\x05READY\x0bSocket-Type\0\0\0\x03REQ\x08Identity\0\0\0\0".to_vec());
    seeds
}

fn configs() -> [MechanismConfig; 2] {
    [MechanismConfig::Null, MechanismConfig::Null]
}
