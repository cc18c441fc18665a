//! Descriptors of every kind that untrusted peers send to a live `ipc` socket, before and after the
//! handshake, mixed with requests and offers of shared memory. A correct peer still gets its
//! answers, and no received descriptor stays open.

use super::memory::{Region, pair, send, take};
use crate::input::Reader;
use crate::live::*;
use crate::meter::{CONNECTION, Meter};
use std::fs::{self, File};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

const DEALER: u8 = 5;
const MOST_PEERS: usize = 4;
/// Limits of descriptors in one message, and in one input.
const MOST: u8 = 4;
const MOST_SENT: usize = 100;
/// Octets of a correct peer's greeting, and at least one more.
const ANSWER: usize = 65;

static LISTENER: Mutex<Option<(Socket, Address)>> = Mutex::new(None);

/// The input is a list of actions: an octet each, and its arguments.
pub fn run(input: &[u8]) {
    let mut reader = Reader::new(input);
    let mut listener = LISTENER.lock().unwrap_or_else(PoisonError::into_inner);
    let (socket, address) = listener.get_or_insert_with(|| {
        let socket = Socket::new(DEALER);
        let address = socket.bind("ipc", "descriptors");
        check_correct_peer_is_served(&socket, &address);
        (socket, address)
    });
    let open = descriptors();
    let meter = Meter::begin();
    let mut scene = Scene::default();
    while !reader.is_empty() {
        scene.step(&mut reader, socket, address);
    }
    check_correct_peer_is_served(socket, address);
    // The target's own buffers are small, and shared memory is not counted.
    meter.check((2 + scene.peers.len()) * (CONNECTION + HWM as usize * MAX_MESSAGE as usize), 0);
    let Scene { peers, regions, bells, mine, .. } = scene;
    for peer in peers {
        Peer::from_unix(peer).finish(|| socket.drain(usize::MAX));
    }
    drop((regions, bells, mine));
    // Other threads close the received descriptors.
    for look in 0.. {
        let left = descriptors();
        if left <= open {
            break;
        }
        assert!(look < MAX_POLLS, "{left} descriptors are open, {open} were");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the number of open descriptors of this process.
fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

#[derive(Default)]
struct Scene {
    peers: Vec<UnixStream>,
    regions: Vec<Region>,
    bells: Vec<UnixStream>,
    /// Other ends of the sent descriptors.
    mine: Vec<OwnedFd>,
    sent: usize,
}

impl Scene {
    fn step(&mut self, reader: &mut Reader<'_>, socket: &Socket, address: &Address) {
        let (what, which) = (reader.byte() % 8, usize::from(reader.byte()));
        let count = self.peers.len();
        match what {
            0 if count < MOST_PEERS => {
                let Address::Unix(name) = address else { unreachable!("ipc has names") };
                let address = SocketAddr::from_abstract_name(name).unwrap();
                let peer = UnixStream::connect_addr(&address).unwrap();
                peer.set_nonblocking(true).unwrap();
                if which & 1 == 0 {
                    write(&peer, &opening_bytes(DEALER, false));
                }
                self.peers.push(peer);
            }
            1 | 2 if count > 0 && self.sent < MOST_SENT => {
                let bytes = 1 + usize::from(reader.byte() % 32);
                let kinds = reader.byte() % (MOST + 1);
                let yours: Vec<OwnedFd> = (0..kinds).map(|_| self.made(reader.byte())).collect();
                let raw: Vec<RawFd> = yours.iter().map(AsRawFd::as_raw_fd).collect();
                self.sent += raw.len();
                send(&self.peers[which % count], bytes, &raw);
            }
            3 if count > 0 => {
                let len = usize::from(reader.byte());
                write(&self.peers[which % count], reader.bytes(len));
            }
            4 if count > 0 => {
                let takes_part = reader.byte() & 1 == 0;
                take(&self.peers[which % count], &mut self.regions, &mut self.bells, takes_part);
            }
            5 => {
                let word = usize::from(reader.byte());
                let value = u64::from_be_bytes([0; 8].map(|_: u8| reader.byte()));
                if let Some(region) = self.regions.iter().nth_back(which % self.regions.len().max(1)) {
                    region.store(word, value);
                }
            }
            6 => {
                socket.drain(usize::MAX);
                for _ in 0..which % 32 {
                    socket.send(&[7; 5000], 0);
                }
            }
            7 => check_correct_peer_is_served(socket, address),
            _ => {}
        }
    }

    /// Creates a descriptor of some kind to send.
    fn made(&mut self, kind: u8) -> OwnedFd {
        let (mine, yours): (OwnedFd, OwnedFd) = match kind % 8 {
            0 | 1 => {
                let (mine, yours) = pair();
                (mine.into(), yours.into())
            }
            2 => {
                let listener = TcpListener::bind("127.0.0.1:0").unwrap();
                let mut mine = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                // Closed with unread data, it leaves no port behind.
                mine.write_all(b"x").unwrap();
                (mine.into(), listener.accept().unwrap().0.into())
            }
            3 => {
                let (mine, yours) = UnixDatagram::pair().unwrap();
                (mine.into(), yours.into())
            }
            4 | 5 => {
                let region = Region::create(if kind & 8 == 0 { 65536 } else { 4095 }, kind >> 4);
                let yours = region.fd();
                self.regions.push(region);
                return yours;
            }
            6 => return File::open("/dev/null").unwrap().into(),
            _ => {
                let (mine, yours) = std::io::pipe().unwrap();
                (mine.into(), yours.into())
            }
        };
        self.mine.push(mine);
        yours
    }
}

fn write(mut peer: &UnixStream, bytes: &[u8]) {
    // Bytes that do not fit, or come too late, are not sent.
    let _ = peer.write(bytes);
}

/// A peer that sends only bytes gets its answer.
fn check_correct_peer_is_served(socket: &Socket, address: &Address) {
    let mut good = Peer::connect(address);
    good.write_all(&opening_bytes(DEALER, false), 1000);
    let mut heard = good.read(4096).len();
    for look in 0.. {
        if heard >= ANSWER {
            break;
        }
        assert!(!good.is_closed && look < MAX_POLLS, "a good peer is not answered");
        wait(good.fd(), libc::POLLIN, 1);
        heard += good.read(4096).len();
    }
    good.finish(|| socket.drain(usize::MAX));
}

/// Descriptors of each kind, alone and in pairs, before and after the handshake.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for begun in [0, 1] {
        for kind in 0..8 {
            seeds.push(vec![0, begun, 1, 0, 0, 1, kind, 7, 0, 6, 9, 4, 0, 0]);
            seeds.push(vec![0, begun, 1, 0, 3, 2, kind, 0, 7, 0, 2, 0, 0, 2, 4, kind]);
        }
        seeds.push(vec![0, begun, 0, 0, 1, 0, 4, 4, 0, 1, 2, 3, 1, 1, 3, 3, 4, 4, 6, 6, 31, 4, 1, 0]);
    }
    // Accepts the socket's offer of memory, and writes to it.
    let offered =
        [&[0, 0, 6, 31, 4, 0, 0, 6, 31, 4, 0, 0, 5, 0, 64][..], &[0xFF; 8], &[6, 31, 7, 0]].concat();
    seeds.push(offered);
    seeds
}
