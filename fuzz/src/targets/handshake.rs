//! Common parts of the handshake targets: a session against raw bytes, and two sessions with an attacker
//! between them.

use crate::input::{Reader, pieces};
use tautline_proto::{Established, MechanismConfig, ProtocolError, Session, SessionConfig, SocketType};

/// Limit of the bytes that a session may send in one handshake: two commands of the largest size, and a
/// greeting.
const MOST_SAID: usize = 2 * (64 * 1024 + 9) + 1024;

/// Outcome of a handshake. Equal outcomes look the same from outside.
#[derive(Debug, PartialEq)]
pub struct Outcome {
    /// Number of bytes that belonged to the handshake.
    pub used: Result<usize, ProtocolError>,
    /// All bytes that the session sent.
    pub said: Vec<u8>,
    /// Version, socket type and routing id of the peer, and the number of its properties.
    pub peer: Option<(u8, Option<SocketType>, Vec<u8>, usize)>,
    /// Frames that the session inserted for the peer.
    pub inbound: Vec<u8>,
}

/// Creates a session of this type and mechanism.
pub fn session(socket_type: SocketType, mechanism: MechanismConfig, authenticate: bool) -> Session {
    Session::new(SessionConfig {
        socket_type,
        routing_id: b"fuzz".to_vec(),
        mechanism,
        authenticate,
        max_msg_size: None,
        properties: vec![("X-Fuzz".into(), b"1".to_vec())],
    })
}

/// Selects one of all types.
pub fn socket_type(reader: &mut Reader<'_>) -> SocketType {
    SocketType::from_code(reader.byte() % 21).unwrap()
}

/// Feeds a stream to a session, cut in this way. A request for a decision is granted if `admit`.
pub fn play(session: &mut Session, stream: &[u8], cut: u8, admit: bool) -> (Outcome, Option<Established>) {
    let (mut used, mut said) = (Ok(0), Vec::new());
    for piece in pieces(stream, cut) {
        let taken = session.input(piece);
        if taken.is_ok() {
            judge(session, admit);
        }
        said.extend_from_slice(session.output());
        session.advance_output(session.output().len());
        assert!(said.len() <= MOST_SAID);
        match taken {
            Ok(taken) => used = used.map(|used| used + taken),
            Err(error) => {
                assert_eq!(session.input(b"more"), Err(error), "an end is an end");
                assert!(session.take_established().is_none() && session.refusal().len() <= 255);
                used = Err(error);
                break;
            }
        }
    }
    said.extend_from_slice(session.output());
    session.advance_output(usize::MAX);
    assert!(session.output().is_empty());
    let established = session.take_established();
    let peer = established.as_ref().map(|Established { version, peer, .. }| {
        assert!(peer.routing_id.len() <= 255);
        (*version as u8, peer.socket_type, peer.routing_id.clone(), peer.properties.len())
    });
    let inbound = established.as_ref().map(|established| established.inbound.clone()).unwrap_or_default();
    (Outcome { used, said, peer, inbound }, established)
}

fn judge(session: &mut Session, admit: bool) {
    if session.take_credentials().is_some() {
        match admit {
            // An error repeats at the next input.
            true => drop(session.admit()),
            false => session.refuse(400),
        }
    }
}

/// Feeds `stream` to a session after the greeting of a correct peer, whole and in pieces.
pub fn raw(mechanism: MechanismConfig, peer: MechanismConfig, greeting: bool, mut reader: Reader<'_>) {
    let (ours, cut, flags) = (socket_type(&mut reader), reader.byte(), reader.byte());
    let (authenticate, admit) = (flags & 1 != 0, flags & 2 != 0);
    let mut stream = Vec::new();
    if greeting {
        let theirs = SocketType::from_code(
            (0..21)
                .find(|code| SocketType::from_code(*code).is_some_and(|theirs| ours.accepts(theirs)))
                .unwrap_or_default(),
        );
        stream = greeting_of(session(theirs.unwrap(), peer, false));
    }
    stream.extend_from_slice(reader.rest());
    let (whole, _) = play(&mut session(ours, mechanism.clone(), authenticate), &stream, 0, admit);
    let (cut, _) = play(&mut session(ours, mechanism, authenticate), &stream, cut, admit);
    // The decision is requested between two pieces, before the session parses the next bytes.
    if !authenticate {
        assert_eq!(whole, cut, "a cut changes nothing");
    }
}

/// Returns the 64 octets of a session's greeting.
fn greeting_of(mut session: Session) -> Vec<u8> {
    session.input(b"\xff\0\0\0\0\0\0\0\x01\x7f\x03").unwrap();
    session.output()[..64].to_vec()
}

/// Runs two sessions with an attacker between them, who changes up to eight places of the exchanged bytes.
///
/// Without changes, the handshake must succeed, and each end must open the messages that the other end seals.
pub fn between(client: MechanismConfig, server: MechanismConfig, mut reader: Reader<'_>) {
    let ciphers = matches!(client, MechanismConfig::CurveClient { .. });
    let ours = socket_type(&mut reader);
    let Some(theirs) = (0..21).filter_map(SocketType::from_code).find(|theirs| ours.accepts(*theirs)) else {
        return;
    };
    let (cut, flags) = (reader.byte(), reader.byte());
    let (authenticate, admit) = (flags & 1 != 0, flags & 2 != 0);
    let edits = edits(usize::from(flags >> 4 & 7), &mut reader);
    let mut ends = [session(ours, client, false), session(theirs, server, authenticate)];
    let mut said = [0, 0];
    let mut over = false;
    while !over {
        over = true;
        for from in [0, 1] {
            let mut bytes = ends[from].output().to_vec();
            ends[from].advance_output(bytes.len());
            over &= bytes.is_empty();
            let start = said[from];
            said[from] += bytes.len();
            assert!(said[from] <= MOST_SAID);
            for edit in edits.iter().filter(|edit| usize::from(edit.from_client & 1) == from) {
                edit.apply(start, &mut bytes);
            }
            let to = &mut ends[1 - from];
            for piece in pieces(&bytes, cut) {
                if to.input(piece).is_err() {
                    break;
                }
            }
            judge(to, admit);
        }
    }
    let [client, server] = ends.map(|mut end| end.take_established());
    if edits.is_empty() && (admit || !authenticate) {
        assert!(client.is_some() && server.is_some(), "nobody was in the way");
    }
    let (Some(client), Some(server)) = (client, server) else { return };
    let rest = reader.rest();
    let (Some(mut seals), Some(mut opens)) = (client.stage, server.stage) else { return };
    let (frames, mut wire, mut plain) = (frames_of(rest), Vec::new(), Vec::new());
    for piece in pieces(&frames, cut) {
        seals.seal(piece, &mut wire);
    }
    let opened = pieces(&wire, cut.wrapping_add(1)).try_for_each(|piece| opens.open(piece, &mut plain));
    // An attacker in the middle can make the two ends use different versions, whose subscriptions and frames
    // have different forms.
    if edits.is_empty() {
        assert_eq!(opened, Ok(()));
        assert_eq!(plain, frames, "what is sealed is opened");
    }
    // Feed any bytes in the other direction. With a cipher, no message may result.
    let mut forged = Vec::new();
    let _ = pieces(rest, cut).try_for_each(|piece| seals.open(piece, &mut forged));
    assert!((forged.is_empty() || !ciphers) && seals.buffered() <= rest.len() + frames.len());
}

/// Reads the given number of edits.
pub fn edits(count: usize, reader: &mut Reader<'_>) -> Vec<Edit> {
    let edit =
        |_| Edit { from_client: reader.byte(), at: reader.word(), how: reader.byte(), with: reader.byte() };
    (0..count).map(edit).collect()
}

/// An edit of the bytes that one end sends.
pub struct Edit {
    from_client: u8,
    at: u16,
    how: u8,
    with: u8,
}

impl Edit {
    /// Applies the edit to `bytes`, which begin at offset `start` of this end's stream.
    pub fn apply(&self, start: usize, bytes: &mut Vec<u8>) {
        let Some(at) = usize::from(self.at).checked_sub(start).filter(|at| *at < bytes.len()) else { return };
        match self.how % 4 {
            0 => bytes[at] ^= self.with.max(1),
            1 => bytes.insert(at, self.with),
            2 => drop(bytes.remove(at)),
            _ => bytes.truncate(at),
        }
    }
}

/// Returns frames in the form of the queues, cut from any bytes: an octet of flags, an octet of length, the
/// body.
pub fn frames_of(bytes: &[u8]) -> Vec<u8> {
    let (mut reader, mut frames) = (Reader::new(bytes), Vec::new());
    while !reader.is_empty() {
        let (flags, len) = (reader.byte(), reader.word() as usize);
        let body = reader.bytes(len % 700);
        let flags = [0, 1, 4][usize::from(flags) % 3];
        let mut header = [0; tautline_proto::frame::MAX_HEADER];
        let header_len = tautline_proto::frame::encode_header(flags, body.len() as u64, &mut header);
        frames.extend_from_slice(&header[..header_len]);
        frames.extend_from_slice(body);
    }
    frames
}

/// Returns the bytes of one end in a correct handshake: greeting and commands, or commands only.
pub fn recorded(
    from: usize,
    configs: [MechanismConfig; 2],
    types: [SocketType; 2],
    greeting: bool,
) -> Vec<u8> {
    let [client, server] = configs;
    let mut ends = [session(types[0], client, false), session(types[1], server, false)];
    let mut all = [Vec::new(), Vec::new()];
    loop {
        let mut quiet = true;
        for from in [0, 1] {
            let bytes = ends[from].output().to_vec();
            ends[from].advance_output(bytes.len());
            quiet &= bytes.is_empty();
            let _ = ends[1 - from].input(&bytes);
            all[from].extend(bytes);
        }
        if quiet {
            return all[from][if greeting { 0 } else { 64 }..].to_vec();
        }
    }
}

/// Returns the inputs of a mechanism's target: both ends alone, and both with each other.
pub fn seeds(configs: fn() -> [MechanismConfig; 2]) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (code, types) in [(0, [SocketType::Pair; 2]), (5, [SocketType::Dealer, SocketType::Rep])] {
        // Mode, type, cut, flags.
        seeds.push([&[0, code, 1, 0][..], &recorded(1, configs(), types, false)].concat());
        seeds.push([&[1, types[1].code(), 7, 3][..], &recorded(0, configs(), types, false)].concat());
        seeds.push([&[2, code, 3, 0][..], b"\0\0\x05Hello\x01\x01\x2cworld\x02\0\x05\x04PING"].concat());
        seeds.push([&[2, code, 0, 3][..], &[0; 300]].concat());
        seeds.push([&[2, code, 0, 0x10, 1, 0, 70, 0, 1][..], b"\0\0\x01a"].concat());
    }
    seeds
}

/// Runs one input of a mechanism's target.
pub fn run(configs: fn() -> [MechanismConfig; 2], input: &[u8]) {
    let [client, server] = configs();
    let mut reader = Reader::new(input);
    match reader.byte() % 3 {
        0 => raw(client, server, true, reader),
        1 => raw(server, client, true, reader),
        _ => between(client, server, reader),
    }
}
