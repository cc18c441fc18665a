//! TLS that a policy applies to programs that are unaware of it.

// A loom model has no sockets.
#![cfg(all(feature = "tls", unix, not(loom)))]

mod common;

use common::{bind, policy, recv, set, test};
use std::fs;
use std::path::Path;

use tautline_core::{Context, Error, Flags, Message, Socket, SocketType};
use tautline_host::{Foreseen, certificate_faults, foresee};
use tautline_policy::{Call, Policy};
use tautline_testkit::certificates as with;

const EACCES: i32 = 13;
const LINGER: i32 = 17;
const RECONNECT_IVL: i32 = 18;
const PLAIN_SERVER: i32 = 44;
const PLAIN_USERNAME: i32 = 45;
const KEY_PEM: i32 = 103;
const CERT_PEM: i32 = 104;
const TRUST_PEM: i32 = 105;
const DISCONNECTED: u16 = 0x200;
const HANDSHAKE_SUCCEEDED: u16 = 0x1000;
const FAILED_PROTOCOL: u16 = 0x2000;

/// A folder with policies and certificates.
struct Folder(policy::Folder);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = policy::Folder::new(&format!("tls-{name}"));
        for (name, text) in [
            ("server.pem", with::SERVER),
            ("server-key.pem", with::SERVER_KEY),
            ("client.pem", with::CLIENT),
            ("client-key.pem", with::CLIENT_KEY),
            ("ca.pem", with::CA),
            ("clients/ca.pem", with::CA),
        ] {
            folder.file(name, text);
        }
        Folder(folder)
    }

    fn path(&self) -> &Path {
        &self.0.0
    }

    fn file(&self, name: &str, text: &str) -> String {
        self.0.file(name, text)
    }

    /// Returns a context under the policy of a server whose clients must present certificates.
    fn server(&self) -> Context {
        self.under(
            "server",
            "bind",
            "certificate = \"DIR/server.pem\"\nkey = \"DIR/server-key.pem\"\nclients = \"DIR/clients\"\n",
        )
    }

    /// Returns a context under the policy of a client, with a certificate.
    fn client(&self) -> Context {
        self.under("client", "connect", "certificate = \"DIR/client.pem\"\nkey = \"DIR/client-key.pem\"\ntrust = \"DIR/ca.pem\"\nservers = { \"ipc://*\" = \"localhost\" }\n")
    }

    /// Returns an additional context under a separate policy.
    fn under(&self, name: &str, call: &str, wrap: &str) -> Context {
        let wrap = wrap.replace("DIR", self.path().to_str().unwrap());
        let rule = format!("[[rules]]\ncall = \"{call}\"\naction = \"wrap\"\nwrap = \"x\"\n");
        let policy =
            self.file(&format!("{name}.toml"), &format!("[wraps.x]\nprotocol = \"tls\"\n{wrap}{rule}"));
        let context = tautline_host::context();
        context.set_policy(&policy).unwrap();
        context
    }
}

fn socket(context: &Context, socket_type: SocketType) -> Socket {
    let mut socket = context.socket(socket_type).unwrap();
    set(&mut socket, LINGER, 0);
    set(&mut socket, RECONNECT_IVL, 10);
    socket
}

fn connected(context: &Context, socket_type: SocketType, endpoint: &str) -> Socket {
    let mut socket = socket(context, socket_type);
    socket.connect(endpoint).unwrap();
    socket
}

fn monitor(context: &Context, socket: &mut Socket) -> Socket {
    socket.monitor(Some("inproc://events"), 0xFFFF, 1, SocketType::Pair).unwrap();
    common::connected(context, SocketType::Pair, "inproc://events")
}

fn until(events: &mut Socket, wanted: u16) {
    loop {
        let event = recv(events);
        let _ = recv(events);
        if u16::from_ne_bytes([event[0], event[1]]) == wanted {
            return;
        }
    }
}

#[test]
fn programs_that_know_nothing_of_it_speak_tls() {
    test("programs_that_know_nothing_of_it_speak_tls", |context| {
        let folder = Folder::new("wrap");
        let (ours, theirs) = (folder.server(), folder.client());
        let ipc = format!("ipc://{}/socket", folder.path().display());
        for at in ["tcp://127.0.0.1:*", "ws://127.0.0.1:*/path", &ipc] {
            let mut server = socket(&ours, SocketType::Rep);
            let endpoint = bind(&mut server, at);
            assert_eq!(
                endpoint.split_once(':'),
                endpoint.split_once(':').filter(|(scheme, _)| at.starts_with(scheme))
            );
            let mut client = connected(&theirs, SocketType::Req, &endpoint);
            for size in [10, 100_000] {
                client.send(&vec![b'x'; size], Flags::NONE).unwrap();
                let mut message = Message::new();
                server.recv_message(&mut message, Flags::NONE).unwrap();
                assert_eq!(message.as_slice().len(), size);
                assert_eq!(message.property("User-Id").unwrap().to_str(), Ok("alice"));
                server.send(b"answer", Flags::NONE).unwrap();
                assert_eq!(recv(&mut client), b"answer");
            }
        }
        // The wrapper is plain `tls+tcp` and `wss`.
        for (at, to) in [("tcp", "tls+tcp"), ("ws", "wss")] {
            let mut server = socket(&ours, SocketType::Rep);
            let endpoint = bind(&mut server, &format!("{at}://127.0.0.1:*"));
            let mut own = socket(context, SocketType::Req);
            own.set_option(TRUST_PEM, with::CA.as_bytes()).unwrap();
            own.set_option(CERT_PEM, with::CLIENT.as_bytes()).unwrap();
            own.set_option(KEY_PEM, with::CLIENT_KEY.as_bytes()).unwrap();
            own.connect(&endpoint.replacen(at, to, 1)).unwrap();
            own.send(b"hello", Flags::NONE).unwrap();
            assert_eq!(recv(&mut server), b"hello");
        }
        ours.terminate().unwrap();
        theirs.terminate().unwrap();
    });
}

#[test]
fn a_renewed_certificate_is_shown_to_the_next_client() {
    test("a_renewed_certificate_is_shown_to_the_next_client", |context| {
        let folder = Folder::new("renew");
        let ours = folder.server();
        let mut server = socket(&ours, SocketType::Pull);
        let endpoint = bind(&mut server, "tcp://127.0.0.1:*");
        let at = endpoint.replacen("tcp", "tls+tcp", 1);
        let trusting = |certificate: &str| {
            let mut push = socket(context, SocketType::Push);
            push.set_option(TRUST_PEM, certificate.as_bytes()).unwrap();
            push.set_option(CERT_PEM, with::CLIENT.as_bytes()).unwrap();
            push.set_option(KEY_PEM, with::CLIENT_KEY.as_bytes()).unwrap();
            push
        };
        // This client trusts only the server's current certificate.
        let mut before = trusting(with::SERVER);
        before.connect(&at).unwrap();
        before.send(b"before", Flags::NONE).unwrap();
        assert_eq!(recv(&mut server), b"before");
        let mut after = trusting(with::RENEWED);
        let mut events = monitor(context, &mut after);
        after.connect(&at).unwrap();
        until(&mut events, FAILED_PROTOCOL);
        folder.file("server.pem", with::RENEWED);
        // Certificate and key do not match until the new key is written.
        until(&mut events, FAILED_PROTOCOL);
        folder.file("server-key.pem", with::RENEWED_KEY);
        until(&mut events, HANDSHAKE_SUCCEEDED);
        after.send(b"after", Flags::NONE).unwrap();
        assert_eq!(recv(&mut server), b"after");
        before.send(b"still there", Flags::NONE).unwrap();
        assert_eq!(recv(&mut server), b"still there");
        drop(server);
        ours.terminate().unwrap();
    });
}

/// A server whose clients must present certificates, and a client that it has admitted.
struct Admitted {
    folder: Folder,
    ours: Context,
    theirs: Context,
    server: Socket,
    events: Socket,
    endpoint: String,
    alice: Socket,
}

impl Admitted {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        let (ours, theirs) = (folder.server(), folder.client());
        let mut server = socket(&ours, SocketType::Pull);
        let events = monitor(&ours, &mut server);
        let endpoint = bind(&mut server, "tcp://127.0.0.1:*");
        let mut alice = connected(&theirs, SocketType::Push, &endpoint);
        alice.send(b"hello", Flags::NONE).unwrap();
        assert_eq!(recv(&mut server), b"hello");
        Admitted { folder, ours, theirs, server, events, endpoint, alice }
    }

    fn end(self) {
        drop((self.server, self.events, self.alice));
        self.ours.terminate().unwrap();
        self.theirs.terminate().unwrap();
    }
}

#[test]
fn removed_authority_closes_its_clients() {
    test("removed_authority_closes_its_clients", |context| {
        let mut admitted = Admitted::new("clients");
        let mut mallory = socket(context, SocketType::Push);
        mallory.set_option(TRUST_PEM, with::CA.as_bytes()).unwrap();
        mallory.set_option(CERT_PEM, with::OTHER_CLIENT.as_bytes()).unwrap();
        mallory.set_option(KEY_PEM, with::OTHER_CLIENT_KEY.as_bytes()).unwrap();
        mallory.connect(&admitted.endpoint.replacen("tcp", "tls+tcp", 1)).unwrap();
        until(&mut admitted.events, FAILED_PROTOCOL);
        // Add the other authority, and then remove the first one.
        admitted.folder.file("clients/other.pem", with::OTHER_CA);
        mallory.send(b"by now", Flags::NONE).unwrap();
        assert_eq!(recv(&mut admitted.server), b"by now");
        admitted.alice.send(b"as before", Flags::NONE).unwrap();
        assert_eq!(recv(&mut admitted.server), b"as before");
        fs::remove_file(admitted.folder.path().join("clients/ca.pem")).unwrap();
        until(&mut admitted.events, DISCONNECTED);
        until(&mut admitted.events, FAILED_PROTOCOL);
        mallory.send(b"still there", Flags::NONE).unwrap();
        assert_eq!(recv(&mut admitted.server), b"still there");
        admitted.end();
    });
}

#[test]
fn broken_files_do_not_undo_the_removal_of_an_authority() {
    test("broken_files_do_not_undo_the_removal_of_an_authority", |_| {
        let mut admitted = Admitted::new("broken");
        admitted.folder.file("clients/new.pem", "half a certificate");
        admitted.folder.file("server.pem", "half a certificate");
        let clients = admitted.folder.path().join("clients");
        fs::rename(clients.join("ca.pem"), clients.join("ca.pem~")).unwrap();
        until(&mut admitted.events, DISCONNECTED);
        until(&mut admitted.events, FAILED_PROTOCOL);
        admitted.end();
    });
}

#[test]
fn a_name_and_a_password_go_through_tls() {
    test("a_name_and_a_password_go_through_tls", |_| {
        let folder = Folder::new("plain");
        let (ours, theirs) = (folder.server(), folder.client());
        let mut handler = ours.socket(SocketType::Rep).unwrap();
        handler.bind("inproc://zeromq.zap.01").unwrap();
        let mut server = socket(&ours, SocketType::Pull);
        set(&mut server, PLAIN_SERVER, 1);
        let endpoint = bind(&mut server, "tcp://127.0.0.1:*");
        let mut push = socket(&theirs, SocketType::Push);
        push.set_option(PLAIN_USERNAME, b"bob").unwrap();
        push.connect(&endpoint).unwrap();
        push.send(b"hello", Flags::NONE).unwrap();
        let request: Vec<_> = (0..8).map(|_| recv(&mut handler)).collect();
        assert_eq!((&request[5][..], &request[6][..]), (&b"PLAIN"[..], &b"bob"[..]));
        for part in [&b"1.0"[..], &request[1], b"200", b"OK", b"bob"] {
            handler.send(part, Flags::MORE).unwrap();
        }
        handler.send(b"", Flags::NONE).unwrap();
        assert_eq!(recv(&mut server), b"hello");
        drop((handler, server, push));
        ours.terminate().unwrap();
        theirs.terminate().unwrap();
    });
}

#[test]
fn unwrappable_endpoints_are_refused() {
    test("unwrappable_endpoints_are_refused", |_| {
        let folder = Folder::new("cannot");
        let ours = folder.server();
        assert_eq!(socket(&ours, SocketType::Stream).bind("tcp://127.0.0.1:*"), Err(Error::Os(EACCES)));
        let none = folder.under("none", "bind", "certificate = \"/nowhere\"\nkey = \"/nowhere\"\n");
        assert_eq!(socket(&none, SocketType::Pull).bind("tcp://127.0.0.1:*"), Err(Error::Os(EACCES)));
        let client = folder.under("half", "bind", "trust = \"DIR/ca.pem\"\n");
        assert_eq!(socket(&client, SocketType::Pull).bind("tcp://127.0.0.1:*"), Err(Error::Os(EACCES)));
        let nothing = folder.under("nothing", "connect", "trust = \"DIR/empty\"\n");
        fs::create_dir(folder.path().join("empty")).unwrap();
        assert_eq!(socket(&nothing, SocketType::Push).connect("tcp://127.0.0.1:9"), Err(Error::Os(EACCES)));
        // The endpoint has no host, and the policy names no server for it.
        let nameless = folder.under("nameless", "connect", "trust = \"DIR/ca.pem\"\n");
        assert_eq!(socket(&nameless, SocketType::Push).connect("ipc:///nowhere"), Err(Error::Os(EACCES)));
        // inproc has no handshake.
        let mut near = socket(&ours, SocketType::Pull);
        near.bind("inproc://here").unwrap();
    });
}

#[test]
fn fault_of_a_file_has_its_path_and_reason() {
    test("fault_of_a_file_has_its_path_and_reason", |_| {
        let folder = Folder::new("reasons");
        let place = folder.path().display().to_string();
        folder.file("encrypted.pem", with::ENCRYPTED_KEY);
        folder.file("both.pem", &[with::CA, with::P521_CA].concat());
        folder.file("trusted.pem", &with::CA.replace("CERTIFICATE", "TRUSTED CERTIFICATE"));
        folder.file("reversed.pem", &[with::CA, with::SERVER].concat());
        folder.file("bom.pem", &format!("\u{feff}{}\u{feff}{}", with::CA, with::OTHER_CA));
        let pair = |certificate: &str, key: &str, clients: &str| {
            format!(
                "certificate = \"{place}/{certificate}\"\nkey = \"{place}/{key}\"\nclients = \"{place}/{clients}\""
            )
        };
        for (wrap, fault) in [
            (pair("server.pem", "server-key.pem", "ca.pem"), None),
            (pair("server.pem", "server-key.pem", "bom.pem"), None),
            (pair("server.pem", "encrypted.pem", "ca.pem"), Some("encrypted.pem: the key is encrypted")),
            (pair("server.pem", "client-key.pem", "ca.pem"), Some("client-key.pem: the key does not match")),
            (
                pair("reversed.pem", "server-key.pem", "ca.pem"),
                Some("reversed.pem: the first certificate is not"),
            ),
            (
                pair("trusted.pem", "server-key.pem", "ca.pem"),
                Some("trusted.pem: a certificate has an unsupp"),
            ),
            (
                pair("server.pem", "server-key.pem", "both.pem"),
                Some("both.pem: the key of a trusted certific"),
            ),
            (
                pair("server.pem", "server-key.pem", "server-key.pem"),
                Some("server-key.pem: there is no trusted"),
            ),
        ] {
            let rule = "[[rules]]\ncall = \"bind\"\naction = \"wrap\"\nwrap = \"x\"\n";
            let text = format!("[wraps.x]\nprotocol = \"tls\"\n{wrap}\n{rule}");
            let policy = Policy::parse(&text).unwrap();
            let faults = certificate_faults(policy.wraps().first().unwrap().tls.as_ref().unwrap());
            let wanted = fault.map(|fault| format!("{place}/{fault}"));
            assert_eq!(faults.len(), usize::from(wanted.is_some()), "{faults:?}");
            let (call, endpoint, program, mechanism) = (Call::Bind, "tcp://127.0.0.1:*", "x", "NULL");
            let asked = Foreseen { call, endpoint, socket_type: None, program, mechanism };
            let foreseen = foresee(&policy, &asked).unwrap().fault;
            for fault in faults.into_iter().chain(foreseen) {
                assert!(fault.contains(wanted.as_ref().unwrap()), "{fault}: {wanted:?}");
            }
        }
    });
}

#[test]
fn strict_takes_tls_for_safe() {
    test("strict_takes_tls_for_safe", |context| {
        context.set_policy("strict").unwrap();
        let mut server = socket(context, SocketType::Pull);
        assert_eq!(server.bind("tcp://127.0.0.1:*"), Err(Error::Os(EACCES)));
        server.set_option(CERT_PEM, with::SERVER.as_bytes()).unwrap();
        server.set_option(KEY_PEM, with::SERVER_KEY.as_bytes()).unwrap();
        let endpoint = bind(&mut server, "tls+tcp://127.0.0.1:*");
        let mut push = socket(context, SocketType::Push);
        push.set_option(TRUST_PEM, with::CA.as_bytes()).unwrap();
        push.connect(&endpoint).unwrap();
        push.send(b"hello", Flags::NONE).unwrap();
        assert_eq!(recv(&mut server), b"hello");
    });
}
