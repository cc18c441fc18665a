//! Sockets that are bound and connected by names.

// A loom model has no sockets.
#![cfg(all(feature = "names", unix, not(loom)))]

mod common;

use common::{bind, last_endpoint, recv, set, test};
use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use tautline_core::{Context, Error, Flags, SharedSocket, Socket, SocketType, public_key};

const LINGER: i32 = 17;
const RCVTIMEO: i32 = 27;
const SNDTIMEO: i32 = 28;
const CURVE_SERVER: i32 = 47;
const CURVE_PUBLICKEY: i32 = 48;
const CURVE_SECRETKEY: i32 = 49;
const CURVE_SERVERKEY: i32 = 50;
/// Error numbers of POSIX.
const EACCES: i32 = 13;
const PEERS_OVER_INPROC: usize = 0;

/// A folder, and a names file in it.
struct NamesFolder(PathBuf);

impl NamesFolder {
    fn new(test: &str, text: &str) -> NamesFolder {
        let place = NamesFolder(std::env::temp_dir().join(format!("tautline-{test}-{}", std::process::id())));
        let _ = fs::remove_dir_all(&place.0);
        fs::create_dir_all(&place.0).unwrap();
        place.write(text);
        place
    }

    /// Creates a names file that only has a folder.
    fn with_folder(test: &str) -> NamesFolder {
        let place = NamesFolder::new(test, "");
        place.write(&format!("[folder]\npath = \"{}\"", place.0.join("f").display()));
        place
    }

    fn file(&self) -> PathBuf {
        self.0.join("names.toml")
    }

    /// Changes the file as an editor does.
    fn write(&self, text: &str) {
        let new = self.0.join("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.file()).unwrap();
    }

    /// Writes an entry of another host, as `taut names` does.
    fn write_entry_of_host(&self, name: &str, file: &str, endpoint: &str) {
        let folder = self.0.join("f").join(name);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).unwrap();
        let file = folder.join(file);
        fs::write(&file, format!("tautline-name 1\n{endpoint}\n")).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
    }

    /// Returns the number of files of a name: entries, and sockets of `ipc`.
    fn files(&self, name: &str) -> usize {
        fs::read_dir(self.0.join("f").join(name)).map_or(0, Iterator::count)
    }
}

impl Drop for NamesFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn socket(context: &Context, kind: SocketType) -> Socket {
    let mut socket = context.socket(kind).unwrap();
    set(&mut socket, LINGER, 0);
    socket
}

fn send(socket: &mut Socket, text: &str) {
    socket.send(text.as_bytes(), Flags::NONE).unwrap();
}

/// Polls for a change that sends no event, for example of a file. The pause only saves processor
/// time, and the watchdog of `test` ends a wait without a result.
fn wait_until(mut so: impl FnMut() -> bool) {
    while !so() {
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn without_a_file_there_are_no_names() {
    test("without_a_file_there_are_no_names", |context| {
        let mut socket = socket(context, SocketType::Push);
        assert_eq!(socket.connect("name://orders"), Err(Error::ProtocolNotSupported));
        assert_eq!(socket.bind("name://orders"), Err(Error::ProtocolNotSupported));
        let place = NamesFolder::new("none", "[names]\norders = \"nowhere\"");
        assert_eq!(context.set_names(&place.file()), Err(Error::Invalid));
        place.write("[names]\norders = \"tcp://127.0.0.1:1\"");
        context.set_names(&place.file()).unwrap();
        assert_eq!(context.set_names(&place.file()), Err(Error::Invalid), "it has one");
        assert_eq!(socket.connect("name://a b"), Err(Error::Invalid));
        // There is no folder for the entry.
        assert_eq!(socket.bind("name://orders"), Err(Error::NotSupported));
        socket.connect("name://orders").unwrap();
        assert_eq!(last_endpoint(&mut socket), "name://orders");
        assert_eq!(socket.disconnect("name://prices"), Err(Error::NoEntry));
        socket.disconnect("name://orders").unwrap();
        assert_eq!(socket.disconnect("name://orders"), Err(Error::NoEntry));
    });
}

#[test]
fn sockets_of_one_context_meet_without_a_stream() {
    test("sockets_of_one_context_meet_without_a_stream", |context| {
        let place = NamesFolder::with_folder("context");
        context.set_names(&place.file()).unwrap();
        let mut early = socket(context, SocketType::Push);
        early.connect("name://orders").unwrap();
        let mut pull = socket(context, SocketType::Pull);
        assert_eq!(bind(&mut pull, "name://orders"), "name://orders");
        send(&mut early, "1");
        assert_eq!(recv(&mut pull), b"1");
        let mut late = socket(context, SocketType::Push);
        late.connect("name://orders").unwrap();
        send(&mut late, "2");
        assert_eq!(recv(&mut pull), b"2");
        let over_streams = pull.peers().unwrap().into_iter().filter(|peer| !peer.address.is_empty()).count();
        assert_eq!(over_streams, PEERS_OVER_INPROC);
        // Unbinding the name removes its endpoints and its peers.
        pull.unbind("name://orders").unwrap();
        assert_eq!(place.files("orders"), 0);
        set(&mut late, SNDTIMEO, 0);
        wait_until(|| late.send(b"3", Flags::NONE) == Err(Error::Again));
    });
}

#[test]
fn two_contexts_meet_over_ipc_and_keys_are_asked_for() {
    test("two_contexts_meet_over_ipc_and_keys_are_asked_for", |context| {
        let place = NamesFolder::with_folder("contexts");
        let other = tautline_host::context();
        context.set_names(&place.file()).unwrap();
        other.set_names(&place.file()).unwrap();
        let mut pull = socket(context, SocketType::Pull);
        pull.bind("name://orders").unwrap();
        let mut push = socket(&other, SocketType::Push);
        push.connect("name://orders").unwrap();
        send(&mut push, "1");
        assert_eq!(recv(&mut pull), b"1");
        assert!(push.peers().unwrap().iter().any(|peer| peer.address.starts_with("ipc://")));
        // A client without the server's key cannot connect.
        let mut secure = socket(context, SocketType::Pull);
        set(&mut secure, CURVE_SERVER, 1);
        secure.set_option(CURVE_SECRETKEY, &[7; 32]).unwrap();
        secure.bind("name://secrets").unwrap();
        let mut stranger = socket(context, SocketType::Push);
        set(&mut stranger, SNDTIMEO, 300);
        stranger.connect("name://secrets").unwrap();
        assert_eq!(stranger.send(b"x", Flags::NONE), Err(Error::Again));
        drop((pull, push, secure, stranger));
        assert_eq!(place.files("orders") + place.files("secrets"), 0);
        other.terminate().unwrap();
    });
}

#[test]
fn a_socket_is_no_peer_of_its_own() {
    test("a_socket_is_no_peer_of_its_own", |context| {
        let place = NamesFolder::with_folder("own");
        context.set_names(&place.file()).unwrap();
        let mut one = socket(context, SocketType::Dealer);
        let mut two = socket(context, SocketType::Dealer);
        for socket in [&mut one, &mut two] {
            socket.bind("name://mesh").unwrap();
        }
        one.connect("name://mesh").unwrap();
        for number in 0..10 {
            send(&mut one, &number.to_string());
            assert_eq!(recv(&mut two), number.to_string().as_bytes());
        }
        one.disconnect("name://mesh").unwrap();
        assert_eq!(one.unbind("name://mesh"), Err(Error::NoEntry), "it went by the same name");
    });
}

#[test]
fn changed_file_is_applied_and_queue_is_sent() {
    test("changed_file_is_applied_and_queue_is_sent", |context| {
        let mut first = socket(context, SocketType::Pull);
        let mut second = socket(context, SocketType::Pull);
        let at = [bind(&mut first, "tcp://127.0.0.1:*"), bind(&mut second, "tcp://127.0.0.1:*")];
        let place = NamesFolder::new("file", &format!("[names]\norders = \"{}\"", at[0]));
        context.set_names(&place.file()).unwrap();
        let mut push = context.socket(SocketType::Push).unwrap();
        push.connect("name://orders").unwrap();
        for number in 0..100 {
            send(&mut push, &number.to_string());
        }
        place.write(&format!("[names]\norders = \"{}\"", at[1]));
        // The owner reads the new file during a call. Any of these calls may be the first to see it.
        set(&mut second, RCVTIMEO, 5);
        let mut reached = false;
        while !reached {
            send(&mut push, "more");
            let mut buffer = [0; 8];
            reached = second.recv(&mut buffer, Flags::NONE).is_ok();
        }
        for number in 0..100 {
            assert_eq!(recv(&mut first), number.to_string().as_bytes());
        }
    });
}

#[test]
fn a_shared_socket_has_names_too() {
    test("a_shared_socket_has_names_too", |context| {
        let place = NamesFolder::with_folder("shared");
        context.set_names(&place.file()).unwrap();
        let server = SharedSocket::new(socket(context, SocketType::Server)).unwrap();
        let client = SharedSocket::new(socket(context, SocketType::Client)).unwrap();
        server.bind("name://orders").unwrap();
        client.with(|client| client.connect("name://orders")).unwrap();
        client.send(b"1", Flags::NONE).unwrap();
        let mut message = tautline_core::Message::new();
        server.recv_message(&mut message, Flags::NONE).unwrap();
        assert_eq!(message.as_slice(), b"1");
        server.unbind("name://orders").unwrap();
        assert_eq!(place.files("orders"), 0);
    });
}

#[test]
fn entries_of_other_hosts_do_not_lead_into_the_program() {
    test("entries_of_other_hosts_do_not_lead_into_the_program", |context| {
        let place = NamesFolder::with_folder("inproc");
        context.set_names(&place.file()).unwrap();
        let mut inside = socket(context, SocketType::Pull);
        inside.bind("inproc://admin").unwrap();
        let mut plain_server = socket(context, SocketType::Pull);
        let plain_at = bind(&mut plain_server, "tcp://127.0.0.1:*");
        let mut curve_server = socket(context, SocketType::Pull);
        set(&mut curve_server, CURVE_SERVER, 1);
        curve_server.set_option(CURVE_SECRETKEY, &[7; 32]).unwrap();
        let curve_at = bind(&mut curve_server, "tcp://127.0.0.1:*");
        for (name, at) in [("orders", &plain_at), ("secrets", &curve_at)] {
            place.write_entry_of_host(name, "000000000000@host", "inproc://admin");
            place.write_entry_of_host(name, "111111111111@host", at);
        }
        let mut plain = socket(context, SocketType::Push);
        plain.connect("name://orders").unwrap();
        let mut curve = socket(context, SocketType::Push);
        for (option, key) in [
            (CURVE_SERVERKEY, public_key(&[7; 32])),
            (CURVE_PUBLICKEY, public_key(&[5; 32])),
            (CURVE_SECRETKEY, [5; 32]),
        ] {
            curve.set_option(option, &key).unwrap();
        }
        curve.connect("name://secrets").unwrap();
        for (client, server) in [(&mut plain, &mut plain_server), (&mut curve, &mut curve_server)] {
            // If there were two peers, the messages would go to them in turn.
            for text in ["1", "2", "3", "4"] {
                send(client, text);
                assert_eq!(recv(server), text.as_bytes());
            }
        }
        assert_eq!(inside.recv(&mut [0; 8], Flags::DONTWAIT), Err(Error::Again));
    });
}

#[test]
fn pipe_in_name_folder_does_not_hide_other_entries() {
    test("pipe_in_name_folder_does_not_hide_other_entries", |context| {
        let place = NamesFolder::with_folder("pipe");
        let other = tautline_host::context();
        context.set_names(&place.file()).unwrap();
        other.set_names(&place.file()).unwrap();
        place.write_entry_of_host("prices", "000000000000@host", "tcp://127.0.0.1:1");
        let pipe = place.0.join("f/prices/111111111111@host");
        assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
        let mut prices = socket(context, SocketType::Push);
        prices.connect("name://prices").unwrap();
        let mut push = socket(context, SocketType::Push);
        push.connect("name://orders").unwrap();
        let mut pull = socket(&other, SocketType::Pull);
        pull.bind("name://orders").unwrap();
        send(&mut push, "1");
        assert_eq!(recv(&mut pull), b"1");
        drop(pull);
        other.terminate().unwrap();
    });
}

#[test]
fn a_name_is_not_bound_in_a_folder_that_others_can_write_to() {
    test("a_name_is_not_bound_in_a_folder_that_others_can_write_to", |context| {
        let place = NamesFolder::with_folder("open");
        context.set_names(&place.file()).unwrap();
        fs::create_dir(place.0.join("f")).unwrap();
        fs::set_permissions(place.0.join("f"), fs::Permissions::from_mode(0o777)).unwrap();
        let mut pull = socket(context, SocketType::Pull);
        assert_eq!(pull.bind("name://orders"), Err(Error::Os(EACCES)));
        fs::set_permissions(place.0.join("f"), fs::Permissions::from_mode(0o700)).unwrap();
        pull.bind("name://orders").unwrap();
    });
}

#[test]
fn a_names_file_that_is_a_pipe_is_refused() {
    test("a_names_file_that_is_a_pipe_is_refused", |context| {
        let place = NamesFolder::new("fifo", "");
        let pipe = place.0.join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(context.set_names(&pipe), Err(Error::Invalid));
    });
}
