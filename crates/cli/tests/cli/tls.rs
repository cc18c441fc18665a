//! `tls+tcp` and `wss`: certificates.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tautline_testkit::certificates;

use crate::observed::{World, answer_one, trouble};
use crate::support::{Running, TempDir, run, start, test};

// A self-signed certificate for example.org and its key, which is not secret.
const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/certificate.pem");
const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/key.pem");
// The same files for localhost.
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
        ended
            .failed(3, &["the peer's certificate is not trusted", "does --tls-trust contain its authority?"]);
        // A certificate that is itself trusted needs no matching name.
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
        ended.failed(1, &[&format!("{other}: there is no key in PEM")]);
        assert!(!ended.err.contains("sesame"));
        let no_certificate = format!("{KEY}: there is no certificate in PEM");
        run(&["pull", AT, "--tls-cert", KEY, "--tls-key", KEY]).failed(1, &[&no_certificate]);
        let trust = |file: &str| run(&["push", "wss://127.0.0.1:1/path", "x", "--tls-trust", file]);
        trust(KEY).failed(1, &[&format!("{KEY}: there is no trusted certificate in PEM")]);
        std::fs::write(&other, certificates::P521_CA).unwrap();
        trust(&other).failed(1, &[&other, "the key of a trusted certificate is not supported"]);
        trust("/dev/zero").failed(1, &["/dev/zero: it is not a regular file"]);
        for (key, text) in [
            (certificates::ENCRYPTED_KEY, "the key is encrypted"),
            (certificates::P521_KEY, "the key is not supported"),
            (certificates::SERVER_KEY, "the key does not match the certificate"),
        ] {
            std::fs::write(&other, key).unwrap();
            let ended = run(&["pull", AT, "--tls-cert", CERTIFICATE, "--tls-key", &other]);
            ended.failed(1, &[&format!("{other}: {text}")]);
        }
        let policy = path("policy.toml");
        let wrap = format!("certificate = \"{CERTIFICATE}\"\nkey = \"{other}\"\ntrust = \"{KEY}\"\n");
        std::fs::write(&policy, format!("[wraps.x]\nprotocol = \"tls\"\n{wrap}")).unwrap();
        let mismatch = format!("{other}: the key does not match");
        run(&["policy", &policy]).failed(1, &[&mismatch, "there is no trusted certificate in PEM"]);
        let ended = run(&["push", "wss://127.0.0.1:1/path", "x", "--tls-name", "no name"]);
        ended.failed(1, &["wss://127.0.0.1:1/path: the name of the server is not valid in a certificate"]);
    });
}

/// Collector that speaks https as localhost.
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
        // Trust the certificates of the system. A variable can replace them.
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
        ended.failed(1, &["there is no trusted certificate in PEM", "PEM file"]);
        world
            .run(&["metrics", "--otlp", &url, "--otlp-trust", "/missing"])
            .failed(1, &["/missing", "No such file"]);
    });
}

/// Returns the options of an end with certificates from `taut keygen --ca`.
fn identity(folder: &str, name: &str) -> Vec<String> {
    [
        ("--tls-cert", format!("{name}.pem")),
        ("--tls-key", format!("{name}-key.pem")),
        ("--tls-trust", "ca.pem".to_owned()),
    ]
    .into_iter()
    .flat_map(|(option, file)| [option.to_owned(), format!("{folder}/{file}")])
    .collect()
}

fn with<'a>(words: &[&'a str], more: &'a [String]) -> Vec<&'a str> {
    words.iter().copied().chain(more.iter().map(String::as_str)).collect()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn an_authority_for_tests_is_made() {
    test("an_authority_for_tests_is_made", || {
        let folder = TempDir::new();
        let certs = folder.path().join("certs");
        let at = certs.to_str().unwrap();
        let made = run(&["keygen", "--ca", at, "--client", "alice", "--client", "bob"]);
        assert_eq!(made.code, Some(0), "{made:?}");
        assert!(made.lines()[1].ends_with("localhost, 127.0.0.1, ::1"), "{made:?}");
        for name in ["ca", "server", "alice", "bob"] {
            assert_eq!(mode(&certs.join(format!("{name}-key.pem"))), 0o600);
            assert!(
                fs::read_to_string(certs.join(format!("{name}.pem"))).unwrap().contains("BEGIN CERTIFICATE")
            );
        }
        let read = |name: &str| fs::read(certs.join(name)).unwrap();
        let before = (read("ca.pem"), read("server.pem"), read("alice-key.pem"));
        // Existing files are not overwritten.
        let again = run(&["keygen", "--ca", at, "--client", "alice"]);
        again.failed(1, &["ca.pem: the file exists already", "--renew"]);
        run(&["keygen", "--ca", at, "--client", "../x"]).failed(2, &["is not a valid name of a client"]);
        run(&["keygen", "--ca", at, "--client", "ca"]).failed(2, &["is not a valid name of a client"]);
        assert_eq!(before, (read("ca.pem"), read("server.pem"), read("alice-key.pem")));
        assert_eq!(run(&["keygen", "--ca", at, "--renew", "--client", "alice"]).code, Some(0));
        let after = (read("ca.pem"), read("server.pem"), read("alice-key.pem"));
        assert!(before.0 == after.0 && before.1 != after.1 && before.2 != after.2);
        // Certificates of the old authority stay valid at both ends: bob's was not renewed.
        let server = identity(at, "server");
        for client in ["alice", "bob"] {
            let mut pull = start(&with(&["pull", "tls+tcp://127.0.0.1:*", "-n", "1"], &server));
            let endpoint = pull.bound();
            let pushed = run(&with(&["push", &endpoint, "hello"], &identity(at, client)));
            assert_eq!(pushed.code, Some(0), "{pushed:?}");
            assert_eq!(pull.end().lines(), ["hello"]);
        }
        assert_eq!(run(&["keygen", "--ca", at, "--force"]).code, Some(0));
        assert!(read("ca.pem") != after.0);
        let mut pull = start(&with(&["pull", "tls+tcp://127.0.0.1:*"], &identity(at, "server")));
        let endpoint = pull.bound();
        let pushed = run(&with(&["push", &endpoint, "x", "-w", "300ms"], &identity(at, "bob")));
        pushed.failed(3, &["the peer refuses our certificate"]);
    });
}

#[test]
fn a_server_in_tls_is_pinged() {
    test("a_server_in_tls_is_pinged", || {
        let folder = TempDir::new();
        let at = folder.path().to_str().unwrap().to_owned();
        assert_eq!(run(&["keygen", "--ca", &at, "--host", "127.0.0.1"]).code, Some(0));
        let (server, client) = (identity(&at, "server"), identity(&at, "client"));
        let mut router = start(&with(&["router", "tls+tcp://127.0.0.1:*"], &server));
        let endpoint = router.bound();
        let found = run(&with(&["ping", &endpoint, "-n", "2", "-i", "0"], &client));
        assert_eq!(found.code, Some(0), "{found:?}");
        assert!(found.lines()[0].ends_with("is a ROUTER"), "{found:?}");
        assert_eq!(found.lines().iter().filter(|line| line.contains("round trip")).count(), 2, "{found:?}");
        let other = run(&with(&["ping", &endpoint, "--tls-name", "example.org"], &client));
        other.failed(1, &["the peer's certificate is for another name"]);
        run(&["ping", &endpoint]).failed(1, &["the peer's certificate is not trusted"]);
        let anonymous = run(&["ping", &endpoint, "--tls-trust", &format!("{at}/ca.pem")]);
        anonymous.failed(1, &["the peer requires a certificate from us"]);
        run(&["ping", &endpoint.replace("tls+tcp", "tcp")]).failed(1, &["that is a TLS server"]);
    });
}
