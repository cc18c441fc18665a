//! Counters files, which a tool reads while a program of the same user writes them.

use tautline_observe::{
    Context, Endpoint, Event, HEADER, Image, MAGIC, Observed, Peer, Process, Reading, Route, Socket, VERSION,
    checksum, diagnose,
};

/// Position of the description of the first image.
const DESCRIPTION: usize = 64;

/// The input is a whole file, and also the first image of a file with a correct header.
pub fn run(input: &[u8]) {
    for file in [input.to_vec(), file(input)] {
        if let Ok(reading) = tautline_observe::parse(&file) {
            assert!(count(&reading) <= file.len() / 8);
            let again = Observed { before: Some(&reading), ..Observed::new(&reading) };
            let findings = diagnose(&[Observed::new(&reading), again]);
            findings.iter().for_each(|finding| assert!(!finding.what.is_empty()));
        }
    }
}

/// Number of records.
fn count(reading: &Reading) -> usize {
    let Reading { contexts, sockets, endpoints, peers, events, routes, .. } = reading;
    contexts.len() + sockets.len() + endpoints.len() + peers.len() + events.len() + routes.len()
}

/// Makes a file with this image.
fn file(image: &[u8]) -> Vec<u8> {
    let words = [1, image.len() as u64, checksum(image)];
    let check = !(words[0] ^ words[1] ^ words[2]);
    let mut file = vec![0; HEADER];
    file[..8].copy_from_slice(&MAGIC);
    file[8..12].copy_from_slice(&VERSION.to_le_bytes());
    for (place, word) in file[DESCRIPTION..].chunks_exact_mut(8).zip(words.into_iter().chain([check])) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    file.extend_from_slice(image);
    file
}

/// A process without sockets, and a process with a record of each kind.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut image = Image::new();
    image.finish(&mut Process::default());
    let empty = image.bytes().to_vec();
    image.clear();
    image.put(&Context::default());
    let (mut socket, mut endpoint, mut peer) = (Socket::default(), Endpoint::default(), Peer::default());
    (socket.id, endpoint.socket, peer.socket) = (1, 1, 1);
    image.put(&socket);
    image.put(&endpoint);
    image.put(&peer);
    image.put(&Event::default());
    image.put(&Route::default());
    image.finish(&mut Process::default());
    let whole = image.bytes().to_vec();
    vec![file(&whole), whole, empty]
}
