//! Endpoint strings of every transport.

use tautline_core::fuzzing;

/// Parses any text.
pub fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok((canonical, binds, connects)) = fuzzing::endpoint(text) else { return };
    assert!(canonical.contains("://") && canonical.len() <= text.len() + 64);
    // A valid endpoint is also valid under its displayed name.
    if connects {
        let again = fuzzing::endpoint(&canonical).expect("the canonical text is read");
        assert_eq!(again, (canonical, binds, connects));
    }
}

/// The forms of the manual pages, and some invalid ones.
pub fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "tcp://127.0.0.1:5555",
        "tcp://*:*",
        "tcp://eth0:5555",
        "tcp://192.168.1.17:5555;192.168.1.1:5555",
        "tcp://[fe80::1%eth0]:5555",
        "tcp://[::]:0",
        "tcp://::1:5555",
        "tcp://example.org:5555/ ",
        "ipc:///tmp/feed",
        "ipc://@abstract",
        "ipc://*",
        "inproc://name",
        "udp://239.1.2.3:5555",
        "udp://eth0;239.1.2.3:5555",
        "ws://*:80/path",
        "ws://example.org:80/a?b=c",
        "wss://example.org:443/",
        "tls+tcp://example.org:5555",
        "vsock://@:5555",
        "vsock://2:4294967295",
        "vsock://*:*",
        "pgm://eth0;239.1.2.3:5555",
        "://",
        "tcp://",
        "tcp://:5555",
    ];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}
