//! Several connections at once to one listening socket: peers that send, do not read, flood, and leave, while
//! a correct peer tries to connect.
//!
//! The target measures the cost of untrusted peers: the memory in use, and the bytes read from them before a
//! correct peer's handshake is answered.

use crate::input::Reader;
use crate::live::*;
use crate::meter::{CONNECTION, Meter};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// As in the target `connection`: types that can bind and send no answers on their own.
const KINDS: [u8; 18] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 19];
/// Types that store the subscriptions or groups of their peers.
const KEEPERS: [u8; 3] = [1, 9, 14];
/// Limit of stored bytes per byte of a subscription. The shortest subscription takes five bytes of the
/// stream.
const KEPT: usize = 128;
const SCHEMES: [&str; 3] = ["ipc", "tcp", "ws"];
/// Limits of connections and of flooded bytes in one input.
const MOST_PEERS: usize = 4;
const FLOOD: usize = 2 << 20;
/// Limit of bytes read from untrusted peers before a correct peer is answered: the amount of a thousand
/// reads.
const UNFAIR: usize = 64 << 20;

/// Listeners, by type and scheme.
static LISTENERS: Mutex<BTreeMap<(u8, usize), (Socket, Address)>> = Mutex::new(BTreeMap::new());

/// The input selects the type and the scheme, then actions: an octet each, and its arguments.
pub fn run(input: &[u8]) {
    let mut reader = Reader::new(input);
    let (kind, mut scheme) = (reader.choice(&KINDS), usize::from(reader.byte()) % SCHEMES.len());
    if kind == 11 && SCHEMES[scheme] == "ws" {
        // STREAM has no WebSocket.
        scheme = 1;
    }
    let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
    let (socket, address) = listeners.entry((kind, scheme)).or_insert_with(|| {
        let socket = Socket::new(kind);
        let address = socket.bind(SCHEMES[scheme], &format!("peers-{kind}"));
        (socket, address)
    });
    let websocket = SCHEMES[scheme] == "ws";
    let meter = Meter::begin();
    let mut crowd = PeerSet {
        peers: Vec::new(),
        accepted_from_closed: 0,
        unfinished: 0,
        opened: 0,
        flood: FLOOD,
        said: Vec::new(),
    };
    while !reader.is_empty() {
        match reader.byte() % 10 {
            0 | 1 if crowd.opened < MOST_PEERS => {
                let mut peer = Peer::connect(address);
                peer.count_parts(websocket);
                if reader.byte() & 1 == 0 {
                    peer.write_all(&opening_bytes(kind, websocket), 1);
                }
                crowd.opened += 1;
                crowd.peers.push(peer);
            }
            2 | 3 => {
                let (which, len) = (reader.byte(), usize::from(reader.byte()));
                crowd.said = reader.bytes(len).to_vec();
                let said = crowd.said.clone();
                if let Some(peer) = crowd.peer(which) {
                    peer.write_all(&said, 1);
                }
            }
            4 => crowd.flood(reader.byte()),
            5 => {
                if let Some(peer) = crowd.peer(reader.byte()) {
                    while !peer.is_closed && !peer.read(4096).is_empty() {}
                }
            }
            6 => {
                let which = usize::from(reader.byte());
                if !crowd.peers.is_empty() {
                    let peer = crowd.peers.swap_remove(which % crowd.peers.len());
                    crowd.accepted_from_closed += peer.accepted;
                    crowd.unfinished += peer.unfinished();
                }
            }
            7 => socket.drain(usize::from(reader.byte())),
            8 => drop(socket.send(&[7; 100], 0)),
            _ => crowd.check_correct_peer_is_served(address, kind, websocket),
        }
    }
    let keeps = if KEEPERS.contains(&kind) { KEPT * crowd.taken() } else { 0 };
    let unfinished = crowd.unfinished + crowd.peers.iter().map(Peer::unfinished).sum::<usize>();
    let each = CONNECTION + HWM as usize * MAX_MESSAGE as usize;
    meter.check((1 + crowd.opened) * each + keeps + unfinished * 3 / 2, crowd.taken());
    for peer in crowd.peers {
        peer.finish(|| {
            socket.drain(usize::MAX);
            socket.send(b"answer", 0);
        });
    }
}

/// Peers of one input.
struct PeerSet {
    peers: Vec<Peer>,
    /// Bytes read from peers that have left.
    accepted_from_closed: usize,
    /// Unfinished bytes of peers that have left.
    unfinished: usize,
    opened: usize,
    /// Bytes that may still be flooded.
    flood: usize,
    /// Last bytes sent, which floods repeat.
    said: Vec<u8>,
}

impl PeerSet {
    fn peer(&mut self, which: u8) -> Option<&mut Peer> {
        let count = self.peers.len();
        self.peers.get_mut(usize::from(which).checked_rem(count)?)
    }

    fn taken(&self) -> usize {
        self.accepted_from_closed + self.peers.iter().map(|peer| peer.accepted).sum::<usize>()
    }

    fn flood(&mut self, which: u8) {
        let (most, said) = (self.flood, self.said.clone());
        if let Some(peer) = self.peer(which) {
            let before = peer.accepted;
            peer.flood(&said, most);
            self.flood = most.saturating_sub(peer.accepted - before);
        }
    }

    /// A correct peer connects and completes the greeting and the exchange of types, while all others repeat
    /// their last bytes.
    fn check_correct_peer_is_served(&mut self, address: &Address, kind: u8, websocket: bool) {
        let begins = opening_bytes(kind, websocket);
        let before = self.taken();
        let mut good = Peer::connect(address);
        good.write_all(&begins, 1);
        // A STREAM does not send on its own, so the peer waits for no answer.
        let wanted = if kind == 11 { 0 } else { 65 };
        let mut heard = 0;
        let mut look = 0;
        while heard < wanted && !good.is_closed {
            heard += good.read(4096).len();
            let said = &self.said;
            let taken: usize = self.peers.iter_mut().map(|peer| peer.write(said)).sum();
            if taken == 0 {
                look += 1;
                wait(good.fd(), libc::POLLIN, 1);
            }
            assert!(look < MAX_POLLS, "a good peer is not answered");
            let strangers = self.taken() - before;
            assert!(strangers < UNFAIR, "{strangers} bytes of strangers before a good peer is answered");
        }
        self.accepted_from_closed += good.accepted;
        self.opened += 1;
        self.flood = self.flood.saturating_sub(self.taken() - before);
    }
}

/// Peers that flood with PINGs, subscriptions, parts and WebSocket pings, and peers that only connect and
/// disconnect.
pub fn seeds() -> Vec<Vec<u8>> {
    let says = |which: u8, bytes: &[u8]| [&[2, which, bytes.len() as u8][..], bytes].concat();
    let ping = says(0, b"\x04\x09\x04PING\0\0ab");
    let part = says(0, &[&[1, 50][..], &[7; 50]].concat());
    let mut seeds = Vec::new();
    for (number, _) in KINDS.iter().enumerate() {
        let number = number as u8;
        seeds.push([&[number, number % 3, 0, 0][..], &says(0, b"\0\x05Hello"), &[7, 9, 8, 5, 0, 9]].concat());
        seeds.push([&[number, 0, 0, 0][..], &ping, &[4, 0, 9, 5, 0, 6, 0]].concat());
    }
    // PULL: 8 in the list.
    seeds.push([&[8, 0, 0, 0][..], &part, &[4, 0, 9]].concat());
    seeds.push([&[8, 1, 0, 0, 0, 1, 0, 0][..], &part, &[9, 4, 1, 9, 6, 0]].concat());
    seeds.push(
        [&[8, 2, 0, 1][..], &says(0, &upgrade("NULL")), &says(0, b"\x89\x80\0\0\0\0"), &[4, 0]].concat(),
    );
    let ready = b"\x82\x9b\0\0\0\0\x02\x05READY\x0bSocket-Type\0\0\0\x04PUSH";
    let data = says(0, &[&[0x82, 0xb3, 0, 0, 0, 0, 0][..], &[7; 50]].concat());
    let pings = says(0, b"\x89\x84\0\0\0\0ping");
    seeds.push(
        [&[8, 2, 0, 1][..], &says(0, &upgrade("NULL")), &pings, &[4, 0], &says(0, ready), &data, &[4, 0]]
            .concat(),
    );
    seeds.push([&[1, 0, 0, 0][..], &says(0, b"\x04\x0b\x09SUBSCRIBEa"), &[4, 0, 9, 7, 255]].concat());
    seeds.push([&[9, 0, 0, 0][..], &says(0, b"\0\x02\x01a\0\x02\0a"), &[4, 0, 9, 7, 255, 4, 0]].concat());
    seeds
}
