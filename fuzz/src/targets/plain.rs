//! The PLAIN handshake.

use super::handshake;
use tautline_proto::MechanismConfig;

/// Runs one handshake.
pub fn run(input: &[u8]) {
    handshake::run(configs, input);
}

/// Handshakes of two ends, and the example of the RFC.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = handshake::seeds(configs);
    seeds.push(b"\x01\x07\x02\x03\x04\x13\x05HELLO\x05admin\x06s3cret\x04\x0a\x08INITIATE\x01".to_vec());
    seeds
}

/// The client and the server.
pub fn configs() -> [MechanismConfig; 2] {
    let client =
        MechanismConfig::PlainClient { username: b"admin".to_vec(), password: b"s3cret".to_vec().into() };
    [client, MechanismConfig::PlainServer]
}
