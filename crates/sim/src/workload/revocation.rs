//! A policy whose list of clients changes while the process is short of descriptors, or while other
//! files of the list are malformed.

use std::time::Duration;

use tautline_core::{SocketType, public_key, z85};

use super::peer::{HEARTBEAT_IVL, LINGER, Peer, SNDTIMEO};
use super::{Scenario, fork};
use crate::rng::Rng;
use crate::world;

const RECONNECT_IVL: i32 = 18;
const CURVE_PUBLICKEY: i32 = 48;
const CURVE_SECRETKEY: i32 = 49;
const CURVE_SERVERKEY: i32 = 50;
/// Time after which a changed list is in force, and its clients are connected again.
const SETTLED: Duration = Duration::from_secs(30);
const LIST: &str = "/sim/clients";

/// A PULL whose policy admits two clients. After the key of one of them is removed, only the other
/// one's messages arrive, even if no descriptor is free to read the list.
pub(super) fn revoked(stage: &mut Scenario, rng: &mut Rng) {
    stage.over_tcp();
    world::with(|world| world.kernel.faults.stop_losses());
    let endpoint = stage.endpoint();
    let [server, good, bad] = [(); 3].map(|()| [(); 32].map(|()| rng.next() as u8));
    let list =
        List { is_folder: rng.chance(2), good: text(&public_key(&good)), bad: text(&public_key(&bad)) };
    write("/sim/server.key", &key_pair(&server));
    list.write(true);
    write(
        "/sim/policy.toml",
        &format!(
            "[wraps.in]\nkey = \"/sim/server.key\"\nclients = \"{LIST}\"\n[[rules]]\ncall = \"bind\"\n\
             action = \"wrap\"\nwrap = \"in\"\n"
        ),
    );
    let context = tautline_host::context();
    context.set_policy("/sim/policy.toml").unwrap();
    let mut pull = Peer::new(&context, SocketType::Pull, fork(rng));
    pull.set_receive_timeout(100);
    pull.socket.bind(&endpoint).unwrap();
    let mut clients = [good, bad].map(|key| {
        let mut push = Peer::new(&stage.context(rng), SocketType::Push, fork(rng));
        push.set_bytes(CURVE_SERVERKEY, &public_key(&server));
        push.set_bytes(CURVE_PUBLICKEY, &public_key(&key));
        push.set_bytes(CURVE_SECRETKEY, &key);
        push.set(HEARTBEAT_IVL, 0);
        push.set(RECONNECT_IVL, 200);
        push.set(SNDTIMEO, 5);
        push.set(LINGER, 0);
        push.socket.connect(&endpoint).unwrap();
        push
    });
    hear(&mut clients, &mut pull, b"before", [true, true]);
    // The operator removes a key. Strangers use up all descriptors, for a while.
    let is_short = rng.chance(2);
    if is_short {
        world::with(|world| world.kernel.limit_descriptors());
    }
    let is_partly_malformed = rng.chance(2);
    if is_partly_malformed {
        list.write_malformed(rng);
    }
    std::thread::sleep(Duration::from_micros(rng.spread(1, 2_000_000)));
    list.write(false);
    if is_short {
        std::thread::sleep(SETTLED);
        drain(&mut pull);
        hear(&mut clients, &mut pull, b"short", [true, false]);
        world::with(|world| world.kernel.most_descriptors = usize::MAX);
    }
    std::thread::sleep(SETTLED);
    drain(&mut pull);
    hear(&mut clients, &mut pull, b"after", [true, false]);
    drop(clients);
    drop(pull);
    stage.contexts.push(context);
}

/// The list of clients: a file or a folder.
struct List {
    is_folder: bool,
    good: String,
    bad: String,
}

impl List {
    /// Writes the list with the good client, and with the bad one if `has_bad` is true.
    fn write(&self, has_bad: bool) {
        let List { good, bad, .. } = self;
        if !self.is_folder {
            return write(LIST, &format!("{good}\n{}", if has_bad { bad } else { "" }));
        }
        world::with(|world| world.kernel.make_folder(LIST.as_bytes()));
        let path = format!("{LIST}/bad.pub");
        match has_bad {
            true => {
                write(&format!("{LIST}/good.pub"), &format!("public = \"{good}\"\n"));
                write(&path, &format!("public = \"{bad}\"\n"));
            }
            false => drop(world::with(|world| world.kernel.remove_settings(path.as_bytes()))),
        }
    }

    /// Adds a malformed file to a folder. A file without a key admits no client.
    fn write_malformed(&self, rng: &mut Rng) {
        if self.is_folder {
            let name = *rng.pick(&["new.pub", "README", "bad.pub~"]);
            let text = *rng.pick::<&str>(&["", "public = \"half a k", "no key"]);
            write(&format!("{LIST}/{name}"), text);
        }
    }
}

/// Replaces a file.
fn write(path: &str, bytes: &str) {
    world::with(|world| world.kernel.write_settings(path.as_bytes(), bytes.as_bytes()));
}

fn text(key: &[u8; 32]) -> String {
    String::from_utf8(z85::encode_key(key).to_vec()).expect("Z85")
}

fn key_pair(secret: &[u8; 32]) -> String {
    format!("public = \"{}\"\nsecret = \"{}\"\n", text(&public_key(secret)), text(secret))
}

/// Receives all messages that have arrived.
fn drain(pull: &mut Peer) {
    while pull.try_recv().is_ok() {}
}

/// Lets both clients send until all expected clients are heard. No other client may be heard.
fn hear(clients: &mut [Peer; 2], pull: &mut Peer, word: &[u8], expected: [bool; 2]) {
    let mut heard = [false; 2];
    let start = world::current_time();
    let elapsed = || Duration::from_nanos(world::current_time() - start);
    let all = expected == [true, true];
    while heard != expected || !all && elapsed() < Duration::from_secs(20) {
        for (client, push) in clients.iter_mut().enumerate() {
            let _ = push.try_send(&[word.to_vec(), vec![client as u8]]);
        }
        while let Ok(parts) = pull.recv() {
            let client = usize::from(parts[1][0]);
            assert!(expected[client], "a client whose key was removed is heard: {parts:?}");
            heard[client] = true;
        }
        std::thread::sleep(Duration::from_millis(500));
        assert!(elapsed() < Duration::from_secs(600), "only {heard:?} are heard");
    }
}
