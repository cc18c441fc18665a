//! `tls+tcp` and `wss`: a pipeline over TLS, and peers without the right certificate.

use std::time::Duration;

use tautline_core::{Error, SocketType};

use super::patterns::QUIET;
use super::peer::{HEARTBEAT_IVL, IMMEDIATE, LINGER, Peer, SNDTIMEO};
use super::{Countdown, Scenario, fork, join, spawn};
use crate::rng::Rng;

const KEY_PEM: i32 = 103;
const CERT_PEM: i32 = 104;
const TRUST_PEM: i32 = 105;
const HOSTNAME: i32 = 106;
const ENDPOINTS: [&str; 2] = ["wss://127.0.0.1:5001/", "tls+tcp://127.0.0.1:5001"];

/// PUSH that trust the certificate of a PULL, and PUSH that do not trust it or expect another name.
/// The latter send no message.
pub(super) fn sealed(stage: &mut Scenario, rng: &mut Rng) {
    stage.over_tcp();
    let endpoint = *rng.pick(&ENDPOINTS);
    let (kind, lossy, ledger) = (stage.kind, stage.lossy, stage.ledger());
    let sent: Vec<(u32, u32)> = (0..rng.between(1, 3) as u32).map(|at| (at, kind.count(rng, 60))).collect();
    let busy = Countdown::new(sent.len());
    let mut pull = Peer::new(&stage.context(rng), SocketType::Pull, fork(rng));
    assert_eq!(pull.socket.bind(endpoint), Err(Error::Invalid), "a server without a certificate");
    pull.set_bytes(KEY_PEM, KEY);
    pull.set_bytes(CERT_PEM, CERTIFICATE);
    pull.bind_or_connect(endpoint, true);
    if lossy {
        pull.set_receive_timeout(QUIET);
    }
    let mut handles = Vec::new();
    for (sender, count) in sent.iter().copied() {
        let (context, rng, busy) = (stage.context(rng), fork(rng), busy.clone());
        handles.push(spawn("push", move || {
            let mut push = Peer::new(&context, SocketType::Push, rng);
            push.set_bytes(TRUST_PEM, CERTIFICATE);
            push.bind_or_connect(endpoint, false);
            for number in 0..count {
                push.send(&kind.message(sender, number)).unwrap_or_else(|error| panic!("{error}"));
            }
            if lossy {
                push.set(LINGER, 20_000);
            }
            drop(push);
            busy.count_down();
        }));
    }
    for _ in 0..rng.between(0, 2) {
        let (context, rng) = (stage.context(rng), fork(rng));
        handles.push(spawn("stranger", move || {
            let mut push = Peer::new(&context, SocketType::Push, rng);
            // This PUSH trusts another certificate than the server's, or no certificate.
            if push.rng.chance(2) {
                push.set_bytes(HOSTNAME, b"example.com");
            }
            push.set(IMMEDIATE, 1);
            push.set(HEARTBEAT_IVL, 0);
            push.set(SNDTIMEO, 300);
            push.set(LINGER, 0);
            match push.socket.connect(endpoint) {
                Ok(()) => {}
                Err(error) => return assert_eq!(error, Error::Invalid),
            }
            for _ in 0..5 {
                let outcome = push.try_send(&[b"from a stranger".to_vec()]);
                assert_eq!(outcome, Err(Error::Again), "a stranger sends");
                std::thread::sleep(Duration::from_millis(10));
            }
        }));
    }
    let mut missing: u32 = sent.iter().map(|(_, count)| count).sum();
    while missing > 0 {
        match pull.recv() {
            Ok(parts) => {
                ledger.record(0, &parts);
                missing -= 1;
            }
            Err(Error::Again) if lossy && busy.remaining() > 0 => {}
            Err(Error::Again) if lossy => break,
            Err(error) => panic!("{error}"),
        }
    }
    join(handles);
    ledger.check_complete(&sent);
}

/// A self-signed certificate of example.org, valid from 2026 to 2126 (the simulated clock shows
/// 2027), and its key, which only this test uses.
const CERTIFICATE: &[u8] = b"\
-----BEGIN CERTIFICATE-----\n\
MIIBizCCATCgAwIBAgIUbI02T2J6Xd8n1cIut4OlozLqgj4wCgYIKoZIzj0EAwIw\n\
DzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMjEyMjI4MzhaGA8yMTI2MTAyODIyMjgz\n\
OFowDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABC9N\n\
hTMYXRLxdqeZPAyGMlxuHg+YhfcYbijhuociAS8eST3pNuwxyXIO5Vadim2kHALU\n\
0dl/O2nheiUCOv+EemWjaDBmMB0GA1UdDgQWBBRcUKV2Jxc1t7aqjOw2y9kMvUYp\n\
rDAfBgNVHSMEGDAWgBRcUKV2Jxc1t7aqjOw2y9kMvUYprDAWBgNVHREEDzANggtl\n\
eGFtcGxlLm9yZzAMBgNVHRMBAf8EAjAAMAoGCCqGSM49BAMCA0kAMEYCIQDpH1F+\n\
kGrbUi1UtSqUCwzqpHH5dzTBq5LOpVndLBXd6AIhAKSIhJTcOMhnz/KnwaYvMmKh\n\
gnEvoNpde2VLDzAyd3dE\n\
-----END CERTIFICATE-----\n\
";
const KEY: &[u8] = b"\
-----BEGIN PRIVATE KEY-----\n\
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgRgj8UuY0hGu3v/Oq\n\
czNDw2JSNgLdRFLhrcbJqXbXkS+hRANCAAQvTYUzGF0S8XanmTwMhjJcbh4PmIX3\n\
GG4o4bqHIgEvHkk96TbsMclyDuVWnYptpBwC1NHZfztp4XolAjr/hHpl\n\
-----END PRIVATE KEY-----\n\
";
