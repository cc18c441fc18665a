use super::*;
use crate::SocketType;
use crate::ws::{Config, Role};

/// A certificate of example.org, signed by itself, good until 2126; and its key, which protects
/// nothing.
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

fn socket(role: Role) -> WebSocket {
    WebSocket::new(Config {
        role,
        socket_type: SocketType::Pair,
        mechanism: "NULL",
        as_server: false,
        max_msg_size: None,
        seed: [3; 32],
    })
}

fn pair(client: &TlsConfig) -> [Tls; 2] {
    let role = Role::Client { host: "example.org".into(), path: "/".into() };
    let server = TlsConfig::server(CERTIFICATE, KEY).unwrap();
    [Tls::new(client, socket(role)).unwrap(), Tls::new(&server, socket(Role::Server)).unwrap()]
}

/// Passes bytes on in pieces until both are quiet; what each has opened.
fn talk(ends: &mut [Tls; 2], piece: usize) -> Result<[Vec<u8>; 2], ProtocolError> {
    let mut opened = [Vec::new(), Vec::new()];
    loop {
        let mut quiet = true;
        for from in [0, 1] {
            let mut wire = Vec::new();
            ends[from].seal(&[], &mut wire);
            quiet &= wire.is_empty();
            for bytes in wire.chunks(piece) {
                ends[1 - from].open(bytes, &mut opened[1 - from])?;
            }
        }
        if quiet {
            return Ok(opened);
        }
    }
}

#[test]
fn two_ends_talk_in_any_pieces() {
    let trusting = TlsConfig::client(CERTIFICATE, [], None, "127.0.0.1").unwrap();
    for piece in [1, 5, 100, 100_000] {
        let mut ends = pair(&trusting);
        // The greeting of ZMTP that each WebSocket plays once it is open.
        let greetings = talk(&mut ends, piece).unwrap();
        assert!(greetings.iter().all(|greeting| greeting.len() == 64), "pieces of {piece}");
        let plain = [&[0; 64][..], b"\x02\0\0\0\0\0\x01\x11\x70", &[b'x'; 70_000]].concat();
        for from in [0, 1] {
            let (mut wire, mut out) = (Vec::new(), Vec::new());
            plain.chunks(999).for_each(|bytes| ends[from].seal(bytes, &mut wire));
            assert!(!wire.windows(10).any(|bytes| bytes == b"xxxxxxxxxx"));
            wire.chunks(piece).for_each(|bytes| ends[1 - from].open(bytes, &mut out).unwrap());
            assert!(out == plain[64..]);
        }
        let mut wire = Vec::new();
        ends[0].finish(&mut wire);
        ends[1].open(&wire, &mut Vec::new()).unwrap();
        assert!(ends[1].ended() && !ends[0].ended());
    }
}

#[test]
fn strangers_are_not_trusted() {
    let refused = |client: &TlsConfig| talk(&mut pair(client), 1000).unwrap_err();
    let nobody = TlsConfig::client(b"", [], None, "example.org").unwrap();
    let error = refused(&nobody);
    assert!(error == Clause::Tls.into() && error.may_pass());
    // Trusted as one of the system's, it is the end of a chain, and the name counts.
    let certificate = certificates_in(CERTIFICATE).unwrap()[0].to_vec();
    let named = |name| TlsConfig::client(b"", [certificate.clone()], Some(name), "127.0.0.1").unwrap();
    assert_eq!(refused(&named("example.com")), Clause::Tls.into());
    assert!(talk(&mut pair(&named("example.org")), 1000).is_ok());
}

#[test]
fn credentials_are_checked_at_once() {
    let server = |certificate, key| TlsConfig::server(certificate, key).err();
    assert_eq!(server(CERTIFICATE, KEY), None);
    for (certificate, key) in
        [(&b""[..], KEY), (CERTIFICATE, b""), (KEY, CERTIFICATE), (b"nonsense", b"nonsense")]
    {
        assert_eq!(server(certificate, key), Some(BadCredentials));
    }
    assert_eq!(TlsConfig::client(b"nonsense", [], None, "x").err(), Some(BadCredentials));
    assert_eq!(TlsConfig::client(CERTIFICATE, [], Some("no name"), "x").err(), Some(BadCredentials));
}

#[test]
fn what_is_not_tls_is_refused() {
    for wire in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\xff\0\0\0\0\0\0\0\x01\x7f", b"\x16\x03\x01\xff\xff"] {
        let mut end =
            pair(&TlsConfig::client(CERTIFICATE, [], None, "x").unwrap()).into_iter().nth(1).unwrap();
        assert_eq!(end.open(wire, &mut Vec::new()), Err(Clause::Tls.into()));
        assert_eq!(end.open(wire, &mut Vec::new()), Err(Clause::Tls.into()), "an end is an end");
    }
}
