use tautline_testkit::certificates;

use super::*;
use crate::carrier::Direct;
use crate::socket_type::SocketType;
use crate::ws::{Config, Role, WebSocket};

/// A self-signed certificate of example.org, valid until 2126, and its key, which is not a secret.
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

const OWN: Identity<'static> = Identity { certificates: CERTIFICATE, key: KEY };

fn identity(certificates: &'static str, key: &'static str) -> Identity<'static> {
    Identity { certificates: certificates.as_bytes(), key: key.as_bytes() }
}

fn server() -> Identity<'static> {
    identity(certificates::SERVER, certificates::SERVER_KEY)
}

/// A client that trusts these certificates and requires this name.
fn trusting(pem: &[u8], name: Option<&str>) -> TlsConfig {
    TlsConfig::client(pem, [], None, name, "127.0.0.1", Versions::Tls13).unwrap()
}

/// The two ends of a WebSocket.
fn sockets(client: &TlsConfig) -> [Tls<WebSocket>; 2] {
    let role = Role::Client { host: "example.org".into(), path: "/".into() };
    let server = TlsConfig::server(OWN, None, Versions::Tls12And13).unwrap();
    [Tls::new(client, socket(role)).unwrap(), Tls::new(&server, socket(Role::Server)).unwrap()]
}

/// The two ends of a stream that carries ZMTP directly.
fn pair(client: &TlsConfig, server: &TlsConfig) -> [Tls<Direct>; 2] {
    [Tls::new(client, Direct).unwrap(), Tls::new(server, Direct).unwrap()]
}

/// Passes bytes on in pieces until both ends are silent, and returns the bytes that each end has
/// opened. The output of an end after a fault still reaches the other end.
fn talk<C: Carrier>(ends: &mut [Tls<C>; 2], piece: usize) -> Result<[Vec<u8>; 2], [ProtocolError; 2]> {
    let mut opened = [Vec::new(), Vec::new()];
    let mut faults = [None, None];
    loop {
        let mut quiet = true;
        for from in [0, 1] {
            let mut wire = Vec::new();
            ends[from].seal(&[], &mut wire);
            quiet &= wire.is_empty();
            for bytes in wire.chunks(piece) {
                if faults[1 - from].is_none() {
                    faults[1 - from] = ends[1 - from].open(bytes, &mut opened[1 - from]).err();
                }
            }
        }
        if quiet {
            return match faults {
                [Some(client), Some(server)] => Err([client, server]),
                [None, None] => Ok(opened),
                one => panic!("the other end has heard nothing of {one:?}"),
            };
        }
    }
}

/// Returns the faults that client and server report.
fn faults(client: &TlsConfig, server: &TlsConfig) -> [TlsFault; 2] {
    let faults = talk(&mut pair(client, server), 1000).expect_err("they are not to get on");
    assert!(faults.iter().all(ProtocolError::is_retryable));
    faults.map(|fault| match fault {
        ProtocolError::Tls(fault) => fault,
        other => panic!("{other}"),
    })
}

#[test]
fn two_ends_talk_in_any_pieces() {
    let client = TlsConfig::client(CERTIFICATE, [], None, None, "127.0.0.1", Versions::Tls12And13).unwrap();
    for piece in [1, 5, 100, 100_000] {
        let mut ends = sockets(&client);
        // Each WebSocket plays this greeting of ZMTP once it is open.
        let greetings = talk(&mut ends, piece).unwrap();
        assert!(greetings.iter().all(|greeting| greeting.len() == 64), "pieces of {piece}");
        let plain = [&[0; 64][..], b"\x02\0\0\0\0\0\x01\x11\x70", &[b'x'; 70_000]].concat();
        exchange(&mut ends, piece, &plain, &plain[64..]);
        let plain = [b'x'; 70_000];
        let mut ends = pair(&client, &TlsConfig::server(OWN, None, Versions::Tls13).unwrap());
        assert!(talk(&mut ends, piece).unwrap().iter().all(Vec::is_empty));
        exchange(&mut ends, piece, &plain, &plain);
    }
}

/// Sends `plain` in both directions and ends the connection.
fn exchange<C: Carrier>(ends: &mut [Tls<C>; 2], piece: usize, plain: &[u8], expected: &[u8]) {
    for from in [0, 1] {
        let (mut wire, mut out) = (Vec::new(), Vec::new());
        plain.chunks(999).for_each(|bytes| ends[from].seal(bytes, &mut wire));
        assert!(!wire.windows(10).any(|bytes| bytes == b"xxxxxxxxxx"));
        wire.chunks(piece).for_each(|bytes| ends[1 - from].open(bytes, &mut out).unwrap());
        assert!(out == expected);
    }
    let mut wire = Vec::new();
    ends[0].close(&mut wire);
    ends[1].open(&wire, &mut Vec::new()).unwrap();
    assert!(ends[1].is_closed() && !ends[0].is_closed());
}

#[test]
fn server_sends_the_certificate_for_the_requested_name() {
    // Each certificate is accepted by a client that trusts only that one, which shows the server's
    // choice.
    let [first, second] = [CERTIFICATE, certificates::SERVER.as_bytes()];
    let [ca, own_key, server_key] = [certificates::CA.as_bytes(), KEY, certificates::SERVER_KEY.as_bytes()];
    let both = [first, second, ca].concat();
    for keys in [[own_key, server_key].concat(), [server_key, own_key].concat()] {
        let own = Identity { certificates: &both, key: &keys };
        let server = TlsConfig::server(own, None, Versions::Tls13).unwrap();
        let shows = |trusted, name| talk(&mut pair(&trusting(trusted, Some(name)), &server), 1000).is_ok();
        assert!(shows(ca, "localhost") && !shows(first, "localhost"));
        // Both certificates have this name.
        assert!(shows(first, "example.org") && !shows(ca, "example.org"));
        // No certificate has this name, and an address is not sent to the server.
        assert!(shows(first, "example.com") && shows(first, "127.0.0.1") && !shows(ca, "127.0.0.1"));
    }
    // One of the keys may have no certificate yet, but the first certificate has its key.
    let keys = [own_key, server_key].concat();
    let server = |certificates, key| TlsConfig::server(Identity { certificates, key }, None, Versions::Tls13);
    assert!(server(second, &keys).is_ok());
    let reversed = [ca, second].concat();
    assert_eq!(server(&reversed, server_key).err(), Some(BadCredentials::Order));
    assert_eq!(server(ca, server_key).err(), Some(BadCredentials::KeyMismatch));
}

#[test]
fn bytes_sealed_early_are_sent_after_the_handshake() {
    let ca = certificates::CA.as_bytes();
    let mut ends =
        pair(&trusting(ca, Some("localhost")), &TlsConfig::server(server(), None, Versions::Tls13).unwrap());
    let mut wire = Vec::new();
    ends[0].seal(b"a greeting", &mut wire);
    ends[1].open(&wire, &mut Vec::new()).unwrap();
    assert_eq!(talk(&mut ends, 1000).unwrap(), [Vec::new(), b"a greeting".to_vec()]);
}

#[test]
fn pings_are_those_of_what_is_inside() {
    let client = trusting(CERTIFICATE, None);
    assert!(sockets(&client).iter_mut().all(|end| end.ping()));
    let mut ends = pair(&client, &TlsConfig::server(OWN, None, Versions::Tls13).unwrap());
    assert!(!ends.iter_mut().any(|end| end.ping()));
}

#[test]
fn a_server_has_to_be_trusted_by_its_name() {
    let at = TlsConfig::server(server(), None, Versions::Tls13).unwrap();
    let ca = certificates::CA.as_bytes();
    for name in [None, Some("localhost"), Some("example.org"), Some("127.0.0.1"), Some("::1")] {
        assert!(talk(&mut pair(&trusting(ca, name), &at), 1000).is_ok(), "{name:?}");
    }
    let other_name = faults(&trusting(ca, Some("example.com")), &at);
    assert_eq!(other_name, [TlsFault::OtherName, TlsFault::Refused(42)]);
    assert_eq!(faults(&trusting(ca, Some("10.0.0.1")), &at)[0], TlsFault::OtherName);
    let other = trusting(certificates::OTHER_CA.as_bytes(), None);
    assert_eq!(faults(&other, &at), [TlsFault::Untrusted, TlsFault::Refused(48)]);
    assert_eq!(faults(&trusting(b"", None), &at)[0], TlsFault::Untrusted);
}

#[test]
fn expired_certificates_are_refused() {
    let expired = identity(certificates::EXPIRED, certificates::EXPIRED_KEY);
    let at = TlsConfig::server(expired, None, Versions::Tls13).unwrap();
    let ca = certificates::CA.as_bytes();
    let found = faults(&trusting(ca, None), &at);
    assert_eq!(found, [TlsFault::Expired, TlsFault::Refused(45)]);
    // An expired certificate is refused even if it is trusted itself.
    let itself = trusting(certificates::EXPIRED.as_bytes(), None);
    assert_eq!(faults(&itself, &at)[0], TlsFault::Expired);
}

#[test]
fn pinned_certificates_need_no_matching_name() {
    let own = identity(certificates::SELF_SIGNED, certificates::SELF_SIGNED_KEY);
    let at = TlsConfig::server(own, None, Versions::Tls13).unwrap();
    let itself = trusting(certificates::SELF_SIGNED.as_bytes(), Some("example.org"));
    assert!(talk(&mut pair(&itself, &at), 1000).is_ok());
    // If the certificate is trusted as one of the system's, it is the end of a chain, and the name
    // counts.
    let certificate = pem::certificates(CERTIFICATE).unwrap()[0].to_vec();
    let named = |name| {
        let system = [certificate.clone()];
        TlsConfig::client(b"", system, None, Some(name), "127.0.0.1", Versions::Tls13).unwrap()
    };
    let at = TlsConfig::server(OWN, None, Versions::Tls13).unwrap();
    assert_eq!(faults(&named("example.com"), &at)[0], TlsFault::OtherName);
    assert!(talk(&mut pair(&named("example.org"), &at), 1000).is_ok());
}

#[test]
fn clients_prove_what_they_are() {
    let clients = certificates::CA.as_bytes();
    let at = TlsConfig::server(server(), Some(clients), Versions::Tls13).unwrap().with_revision(7);
    let with = |own| TlsConfig::client(clients, [], own, Some("localhost"), "", Versions::Tls13).unwrap();
    let alice = identity(certificates::CLIENT, certificates::CLIENT_KEY);
    let mut ends = pair(&with(Some(alice)), &at);
    talk(&mut ends, 1000).unwrap();
    assert_eq!(ends[0].peer_certificates(), None, "the server is known by the name that was asked for");
    let shown = ends[1].peer_certificates().unwrap();
    assert_eq!((&*shown.user, shown.verified_by, shown.certificates.len()), ("alice", 7, 1));
    assert!(at.admits(&shown.certificates));
    assert_eq!(faults(&with(None), &at), [TlsFault::Refused(116), TlsFault::NoCertificate]);
    let mallory = identity(certificates::OTHER_CLIENT, certificates::OTHER_CLIENT_KEY);
    assert_eq!(faults(&with(Some(mallory)), &at), [TlsFault::Refused(48), TlsFault::Untrusted]);
    // A server certificate is not valid for a client.
    assert_eq!(faults(&with(Some(server())), &at)[1], TlsFault::BadCertificate);
    // Judged with another list, with a list that has the certificate itself, and with an empty
    // list.
    let by = |clients: &[u8]| TlsConfig::server(server(), Some(clients), Versions::Tls13).unwrap();
    assert!(!by(certificates::OTHER_CA.as_bytes()).admits(&shown.certificates));
    assert!(by(certificates::CLIENT.as_bytes()).admits(&shown.certificates));
    assert!(!by(b"").admits(&shown.certificates) && !at.admits(&[]));
    assert!(talk(&mut pair(&with(Some(alice)), &by(certificates::CLIENT.as_bytes())), 1000).is_ok());
    assert_eq!(faults(&with(Some(alice)), &by(b""))[1], TlsFault::Untrusted);
    // A client shows no certificate to a server that does not ask for one.
    let mut ends = pair(&with(Some(alice)), &TlsConfig::server(server(), None, Versions::Tls13).unwrap());
    talk(&mut ends, 1000).unwrap();
    assert_eq!(ends[1].peer_certificates(), None);
}

#[test]
fn a_client_without_a_common_name_goes_by_another() {
    let clients = certificates::OTHER_CA.as_bytes();
    let at = TlsConfig::server(server(), Some(clients), Versions::Tls13).unwrap();
    let own = identity(certificates::OTHER_CLIENT, certificates::OTHER_CLIENT_KEY);
    let client =
        TlsConfig::client(certificates::CA.as_bytes(), [], Some(own), None, "localhost", Versions::Tls13);
    let mut ends = pair(&client.unwrap(), &at);
    talk(&mut ends, 1000).unwrap();
    assert_eq!(ends[1].peer_certificates().unwrap().user, "spiffe://example.org/mallory");
}

#[test]
fn credentials_are_checked_at_once() {
    fn at(certificates: &[u8], key: &[u8], clients: Option<&[u8]>) -> Option<BadCredentials> {
        TlsConfig::server(Identity { certificates, key }, clients, Versions::Tls13).err()
    }
    assert_eq!(at(CERTIFICATE, KEY, None), None);
    for (certificate, key, fault) in [
        (&b""[..], KEY, BadCredentials::NoCertificate),
        (CERTIFICATE, &b""[..], BadCredentials::NoKey),
        (KEY, CERTIFICATE, BadCredentials::NoCertificate),
        (b"nonsense", b"nonsense", BadCredentials::NoCertificate),
        (&CERTIFICATE[..100], KEY, BadCredentials::Certificate),
        (CERTIFICATE, &KEY[..100], BadCredentials::Key),
        (CERTIFICATE, certificates::ENCRYPTED_KEY.as_bytes(), BadCredentials::EncryptedKey),
        (CERTIFICATE, certificates::ENCRYPTED_RSA_KEY.as_bytes(), BadCredentials::EncryptedKey),
        (certificates::P521_CA.as_bytes(), certificates::P521_KEY.as_bytes(), BadCredentials::KeyKind),
        (
            certificates::RSA_1024_CA.as_bytes(),
            certificates::RSA_1024_KEY.as_bytes(),
            BadCredentials::KeyKind,
        ),
        (CERTIFICATE, certificates::SERVER_KEY.as_bytes(), BadCredentials::KeyMismatch),
    ] {
        assert_eq!(at(certificate, key, None), Some(fault));
        assert!(!fault.to_string().is_empty());
    }
    for form in ["TRUSTED CERTIFICATE", "X509 CERTIFICATE", "PKCS7"] {
        let other = certificates::SERVER.replace("CERTIFICATE", form);
        assert_eq!(at(other.as_bytes(), KEY, None), Some(BadCredentials::CertificateForm));
        let both = [&other, certificates::CA].concat();
        assert_eq!(at(CERTIFICATE, KEY, Some(both.as_bytes())), Some(BadCredentials::TrustForm));
    }
    for unsupported in [certificates::P521_CA, certificates::RSA_1024_CA] {
        let both = [certificates::CA, unsupported].concat();
        assert_eq!(at(CERTIFICATE, KEY, Some(both.as_bytes())), Some(BadCredentials::TrustKind));
    }
    let broken =
        [certificates::CA, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"].concat();
    assert_eq!(at(CERTIFICATE, KEY, Some(broken.as_bytes())), Some(BadCredentials::Trust));
    assert_eq!(at(CERTIFICATE, KEY, Some(b"nonsense")), Some(BadCredentials::NoTrust));
    let to = |trusted, own, name| TlsConfig::client(trusted, [], own, name, "x", Versions::Tls13).err();
    assert_eq!(to(b"nonsense", None, None), Some(BadCredentials::NoTrust));
    assert_eq!(to(CERTIFICATE, None, Some("no name")), Some(BadCredentials::Name));
    let wrong = Identity { certificates: CERTIFICATE, key: certificates::SERVER_KEY.as_bytes() };
    assert_eq!(to(CERTIFICATE, Some(wrong), None), Some(BadCredentials::KeyMismatch));
}

#[test]
fn every_block_counts_wherever_it_begins() {
    let both = [certificates::CA, certificates::OTHER_CA];
    let indented = both.concat().replace('\n', "\n  ");
    for text in [
        both.concat(),
        both.map(|one| format!("\u{feff}{one}")).concat(),
        both.map(str::trim_end).concat(),
        format!("  {indented}"),
        both.concat().replace('\n', "\r\n"),
    ] {
        assert_eq!(trusted_certificates(text.as_bytes()).unwrap().len(), 2, "{text}");
    }
    let [certificates, key] =
        [certificates::SERVER, certificates::SERVER_KEY].map(|one| format!("\u{feff}{one}"));
    assert_eq!(Identity { certificates: certificates.as_bytes(), key: key.as_bytes() }.check(), Ok(()));
    let system = [certificates::SELF_SIGNED, certificates::EXPIRED];
    assert!(
        trusted_certificates(system.concat().as_bytes()).is_ok(),
        "RSA, and a certificate that has expired"
    );
}

#[test]
fn bytes_that_are_not_tls_are_refused() {
    for wire in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\xff\0\0\0\0\0\0\0\x01\x7f", b"\x16\x03\x01\xff\xff"] {
        for end in
            &mut pair(&trusting(CERTIFICATE, None), &TlsConfig::server(OWN, None, Versions::Tls13).unwrap())
        {
            assert_eq!(end.open(wire, &mut Vec::new()), Err(TlsFault::NotTls.into()));
            assert_eq!(end.open(wire, &mut Vec::new()), Err(TlsFault::NotTls.into()), "an end is an end");
        }
    }
}

#[test]
fn a_handshake_message_is_not_larger_than_it_may_be() {
    let mut end = Tls::new(&TlsConfig::server(OWN, None, Versions::Tls13).unwrap(), Direct).unwrap();
    // Sends the beginning of a ClientHello of 16 MiB, in an endless series of records of 16 KiB.
    let mut record = [&b"\x16\x03\x01\x40\0"[..], &[0; 1 << 14]].concat();
    record[5..9].copy_from_slice(&[1, 0xff, 0xff, 0xff]);
    let mut taken = 0;
    let fault = loop {
        if let Err(fault) = end.open(&record, &mut Vec::new()) {
            break fault;
        }
        taken += record.len();
        assert!(taken < 1 << 20, "it keeps what comes");
        record[5..9].fill(0);
    };
    assert!(matches!(fault, ProtocolError::Tls(_)), "{fault}");
}

#[test]
fn new_keys_without_end_are_refused() {
    let ca = certificates::CA.as_bytes();
    let mut ends = pair(&trusting(ca, None), &TlsConfig::server(server(), None, Versions::Tls13).unwrap());
    talk(&mut ends, 1000).unwrap();
    let mut flood = |messages: bool| -> Result<(), ProtocolError> {
        for _ in 0..1000 {
            let (mut wire, mut answer) = (Vec::new(), Vec::new());
            ends[0].connection.refresh_traffic_keys().unwrap();
            let message: &[u8] = if messages { b"x" } else { b"" };
            ends[0].seal(message, &mut wire);
            ends[1].open(&wire, &mut Vec::new())?;
            ends[1].seal(message, &mut answer);
            assert!(answer.len() < 100);
            ends[0].open(&answer, &mut Vec::new())?;
        }
        Ok(())
    };
    assert_eq!(flood(true), Ok(()), "whoever says something may change its keys");
    assert_eq!(flood(false), Err(ProtocolError::from(TlsFault::Broken)));
}
