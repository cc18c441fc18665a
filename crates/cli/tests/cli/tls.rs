//! `wss`: certificates.

use crate::support::{TempDir, run, start, test};

// A certificate of example.org, signed by itself, and its key, which protects nothing.
const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/certificate.pem");
const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/key.pem");
const AT: &str = "wss://127.0.0.1:*/path";
const IDENTITY: [&str; 4] = ["--tls-cert", CERTIFICATE, "--tls-key", KEY];

#[test]
fn messages_go_over_wss() {
    test("messages_go_over_wss", || {
        for more in [&[][..], &["--tls-name", "example.org"]] {
            let mut pull = start(&[&["pull", AT, "-n", "1"][..], &IDENTITY].concat());
            let at = pull.bound();
            let push = run(&[&["push", &at, "hello", "--tls-trust", CERTIFICATE][..], more].concat());
            assert_eq!(push.code, Some(0), "{push:?}");
            assert_eq!(pull.end().lines(), ["hello"]);
        }
        let ended =
            run(&[&["bench", AT, "-n", "100", "-r", "10", "--tls-trust", CERTIFICATE][..], &IDENTITY]
                .concat());
        assert!(ended.lines()[1].contains("messages/s"), "{ended:?}");
    });
}

#[test]
fn a_proxy_speaks_wss_in_front() {
    test("a_proxy_speaks_wss_in_front", || {
        let folder = TempDir::new();
        let back = folder.ipc("back");
        let mut proxy = start(&[&["proxy", AT, &back][..], &IDENTITY].concat());
        let at = proxy.bound();
        let _rep = start(&["rep", "--connect", &back, "--echo"]);
        assert_eq!(run(&["req", &at, "hello", "--tls-trust", CERTIFICATE]).lines(), ["hello"]);
    });
}

#[test]
fn a_server_that_is_not_trusted_is_told() {
    test("a_server_that_is_not_trusted_is_told", || {
        let mut pull = start(&[&["pull", AT][..], &IDENTITY].concat());
        let at = pull.bound();
        let ended = run(&["push", &at, "x", "-w", "300ms", "-q"]);
        ended.failed(3, &["is the certificate one that the client trusts (--tls-trust)"]);
        // One that is trusted itself needs no name.
        let ended = run(&["push", &at, "x", "--tls-trust", CERTIFICATE, "--tls-name", "example.com"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
    });
}

#[test]
fn missing_and_wrong_files_are_told() {
    test("missing_and_wrong_files_are_told", || {
        let folder = TempDir::new();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        run(&["pull", AT]).failed(2, &["a wss server needs a certificate", "--tls-cert FILE --tls-key FILE"]);
        run(&["pull", AT, "--tls-cert", CERTIFICATE]).failed(2, &["--tls-key"]);
        let missing = path("missing");
        run(&["pull", AT, "--tls-cert", &missing, "--tls-key", KEY]).failed(1, &[&missing, "No such file"]);
        let other = path("other");
        std::fs::write(&other, "sesame-open").unwrap();
        let ended = run(&["pull", AT, "--tls-cert", CERTIFICATE, "--tls-key", &other]);
        ended.failed(1, &[&other, "there is no PEM in it"]);
        assert!(!ended.err.contains("sesame"));
        run(&["pull", AT, "--tls-cert", KEY, "--tls-key", KEY]).failed(1, &["the certificates are not good"]);
    });
}
