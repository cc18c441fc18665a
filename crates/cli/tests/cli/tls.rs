//! `wss`: certificates.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::observed::{World, answer_one, trouble};
use crate::support::{Running, TempDir, run, start, test};

// A certificate of example.org, signed by itself, and its key, which protects nothing.
const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/certificate.pem");
const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/key.pem");
// The same of localhost.
const LOCALHOST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/localhost.pem");
const LOCALHOST_KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/localhost-key.pem");
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

/// A collector that speaks https, as localhost.
struct Collector {
    listener: TcpListener,
    config: Arc<ServerConfig>,
}

impl Collector {
    fn new() -> Collector {
        let certificate = CertificateDer::from_pem_file(LOCALHOST).unwrap();
        let key = PrivateKeyDer::from_pem_file(LOCALHOST_KEY).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Collector { listener, config: Arc::new(config.unwrap()) }
    }

    fn url(&self) -> String {
        format!("https://localhost:{}", self.listener.local_addr().unwrap().port())
    }

    fn accept(&self) -> StreamOwned<ServerConnection, TcpStream> {
        let (client, _) = self.listener.accept().unwrap();
        StreamOwned::new(ServerConnection::new(self.config.clone()).unwrap(), client)
    }
}

#[test]
fn metrics_are_sent_over_https() {
    test("metrics_are_sent_over_https", || {
        let world = World::new();
        trouble().write(&mut world.file(None));
        let collector = Collector::new();
        let url = collector.url();
        let args = ["metrics", "--otlp", &url, "-n", "1", "--otlp-trust", LOCALHOST];
        let pushes = Running::start(world.command(&args));
        let taken = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        let (head, body) = answer_one(collector.accept(), taken);
        assert!(head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{head}");
        assert!(body["resourceMetrics"].is_array());
        let ended = pushes.end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        // The system's certificates, which a variable may name.
        let mut command = world.command(&args[..5]);
        command.env("SSL_CERT_FILE", LOCALHOST);
        let pushes = Running::start(command);
        answer_one(collector.accept(), taken);
        assert_eq!(pushes.end().code, Some(0));
    });
}

#[test]
fn a_collector_that_is_not_trusted_gets_nothing() {
    test("a_collector_that_is_not_trusted_gets_nothing", || {
        let world = World::new();
        trouble().write(&mut world.file(None));
        let collector = Collector::new();
        let url = collector.url();
        let pushes = Running::start(world.command(&[
            "metrics",
            "--otlp",
            &url,
            "-n",
            "1",
            "--otlp-trust",
            CERTIFICATE,
        ]));
        let mut stream = collector.accept();
        assert!(stream.read(&mut [0; 100]).is_err());
        drop(stream);
        pushes.end().failed(1, &["invalid peer certificate"]);
        let folder = TempDir::new();
        let file = folder.path().join("text");
        std::fs::write(&file, "sesame-open").unwrap();
        let ended = world.run(&["metrics", "--otlp", &url, "--otlp-trust", file.to_str().unwrap()]);
        ended.failed(1, &["these are no certificates", "in PEM"]);
        world
            .run(&["metrics", "--otlp", &url, "--otlp-trust", "/missing"])
            .failed(1, &["/missing", "No such file"]);
    });
}
