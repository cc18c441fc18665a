//! Helpers for the tests of policies: files, keys, sockets under a policy, and events.

use super::{connected, recv, set};
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use tautline_core::{Context, Error, Socket, SocketType, public_key, z85};

const EACCES: i32 = 13;
const LINGER: i32 = 17;
const CURVE_PUBLICKEY: i32 = 48;
const CURVE_SECRETKEY: i32 = 49;
const CURVE_SERVERKEY: i32 = 50;

/// A folder with a policy, and with keys.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("tautline-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        Folder(folder)
    }

    /// Replaces a file in one step. The new file has another time of modification.
    pub fn file(&self, name: &str, text: &str) -> String {
        let (path, new) = (self.0.join(name), self.0.join(".new"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let before = fs::metadata(&path).and_then(|found| found.modified()).ok();
        let mut file = fs::File::create(&new).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let later = before.map_or_else(SystemTime::now, |before| before + Duration::from_secs(1));
        file.set_modified(later).unwrap();
        fs::rename(&new, &path).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Writes a key pair, whose secret key is all of this byte. Returns the file and the public key.
    pub fn key(&self, name: &str, secret: u8) -> (String, String) {
        let secret = [secret; 32];
        let public = text(&public_key(&secret));
        let file = self.file(name, &format!("public = \"{public}\"\nsecret = \"{}\"\n", text(&secret)));
        (file, public)
    }

    /// Writes policies that wrap all of tcp: the server has key 1, and clients have key 2.
    pub fn wraps(&self) -> (String, String) {
        let (server, server_public) = self.key("server.key", 1);
        let (client, client_public) = self.key("client.key", 2);
        self.file("clients/one.pub", &client_public);
        let clients = self.0.join("clients");
        let at = self.file(
            "server.toml",
            &format!(
                "[wraps.in]\nkey = \"{server}\"\nclients = \"{}\"\n[[rules]]\ncall = \"bind\"\naction = \"wrap\"\n\
                 wrap = \"in\"\n",
                clients.display()
            ),
        );
        let to = self.file(
            "client.toml",
            &format!(
                "[wraps.out]\nkey = \"{client}\"\nservers = {{ \"tcp://*\" = \"{server_public}\" }}\n[[rules]]\n\
                 call = \"connect\"\naction = \"wrap\"\nwrap = \"out\"\n"
            ),
        );
        (at, to)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn text(key: &[u8; 32]) -> String {
    String::from_utf8(z85::encode_key(key).to_vec()).unwrap()
}

pub fn refused(result: Result<(), Error>) {
    assert_eq!(result, Err(Error::Os(EACCES)));
}

pub fn socket(context: &Context, socket_type: SocketType) -> Socket {
    let mut socket = context.socket(socket_type).unwrap();
    set(&mut socket, LINGER, 0);
    socket
}

/// Returns an additional context under this policy.
pub fn context_with_policy(policy: &str) -> Context {
    let context = tautline_host::context();
    context.set_policy(policy).unwrap();
    context
}

/// Returns a PAIR that receives the events of a socket.
pub fn monitor(context: &Context, socket: &mut Socket) -> Socket {
    let endpoint = new_endpoint();
    socket.monitor(Some(&endpoint), 0xFFFF, 1, SocketType::Pair).unwrap();
    connected(context, SocketType::Pair, &endpoint)
}

/// Waits for this event.
pub fn wait_for_event(events: &mut Socket, wanted: u16) {
    loop {
        let event = recv(events);
        let _ = recv(events);
        if u16::from_ne_bytes([event[0], event[1]]) == wanted {
            return;
        }
    }
}

/// An event in the format of version 3.
#[derive(Debug, PartialEq, Eq)]
pub struct Event {
    pub number: u64,
    pub value: u64,
    pub user_id: String,
    pub reason: String,
}

/// Returns a PAIR that receives the events of a socket, with their reasons.
pub fn events(context: &Context, socket: &mut Socket) -> Socket {
    let endpoint = new_endpoint();
    socket.monitor_in_detail(&endpoint).unwrap();
    connected(context, SocketType::Pair, &endpoint)
}

/// Returns an endpoint that no other monitor of the process uses.
fn new_endpoint() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("inproc://events-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Returns the next event with this number.
pub fn next(events: &mut Socket, wanted: u64) -> Event {
    std::iter::repeat_with(|| event(events)).find(|event| event.number == wanted).unwrap()
}

/// Returns the next event.
pub fn event(events: &mut Socket) -> Event {
    let number = |part: &Vec<u8>| u64::from_ne_bytes(part[..].try_into().unwrap());
    let text = |part: &Vec<u8>| String::from_utf8_lossy(part).into_owned();
    let mut parts = vec![recv(events)];
    while more(events) {
        parts.push(recv(events));
    }
    Event {
        number: number(&parts[0]),
        value: number(&parts[2]),
        user_id: text(&parts[7]),
        reason: text(&parts[8]),
    }
}

/// True if more parts follow the last received part.
fn more(socket: &mut Socket) -> bool {
    const RCVMORE: i32 = 13;
    let mut value = [0; 4];
    socket.option(RCVMORE, &mut value).unwrap();
    i32::from_ne_bytes(value) != 0
}

/// Makes the socket a CURVE client. Its secret key is all of this byte, the server's is all ones.
pub fn with_key(socket: &mut Socket, secret: u8) {
    socket.set_option(CURVE_SERVERKEY, &public_key(&[1; 32])).unwrap();
    socket.set_option(CURVE_PUBLICKEY, &public_key(&[secret; 32])).unwrap();
    socket.set_option(CURVE_SECRETKEY, &[secret; 32]).unwrap();
}
