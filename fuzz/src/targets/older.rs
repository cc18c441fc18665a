//! Bytes of an established peer, through the parser of its protocol version.

use super::handshake::{frames_of, play, session};
use crate::input::{Reader, pieces};
use tautline_proto::{Established, MechanismConfig, SocketType, Stage, frame, stage};

/// The input selects the version, our type and the cuts, then frames of the peer.
pub fn run(input: &[u8]) {
    let mut reader = Reader::new(input);
    let (version, cut) = (reader.byte() % 4, reader.byte());
    let ours = reader.choice(&[
        SocketType::Pull,
        SocketType::XPub,
        SocketType::Sub,
        SocketType::Pub,
        SocketType::XSub,
        SocketType::Router,
    ]);
    let wire = reader.rest();
    let [Some(mut whole), Some(mut pieced), Some(mut other)] = [(); 3].map(|()| stage_for(version, ours))
    else {
        return;
    };
    let (mut all, mut parts) = (Vec::new(), Vec::new());
    let result = whole.open(wire, &mut all);
    let cut_result = pieces(wire, cut).try_for_each(|piece| pieced.open(piece, &mut parts));
    // Raw bytes are excepted: there, each piece is a message.
    assert!(version == 3 || (result, &all) == (cut_result, &parts), "a cut changes nothing");
    assert!(whole.buffered() <= wire.len() + 64 && all.len() <= 16 * wire.len() + 64);
    // The output is as well-formed as the input.
    let mut rest = &all[..];
    while let Some(header) = frame::decode_header(rest).expect("the stage has judged it") {
        let end = header.header_len as u64 + header.body_len;
        rest = usize::try_from(end).ok().and_then(|end| rest.get(end..)).unwrap_or_default();
    }
    // The other direction takes the contents of the queues. Cuts do not change the result
    // there either.
    let frames = frames_of(wire);
    let (mut all, mut parts) = (Vec::new(), Vec::new());
    whole.seal(&frames, &mut all);
    pieces(&frames, cut).for_each(|piece| other.seal(piece, &mut parts));
    assert_eq!(all, parts);
}

fn stage_for(version: u8, ours: SocketType) -> Option<Box<dyn Stage>> {
    let code = match ours {
        SocketType::Pull => SocketType::Push,
        SocketType::XPub | SocketType::Pub => SocketType::Sub,
        SocketType::Sub | SocketType::XSub => SocketType::Pub,
        _ => SocketType::Dealer,
    };
    let greeting = match version {
        0 => b"\x01\0".to_vec(),
        1 => vec![0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 0x7F, 1, code.code(), 0, 0],
        2 => {
            let mut greeting = [0; 64];
            greeting[..16].copy_from_slice(b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\0NULL");
            let mut ready = b"\x04\0\x05READY".to_vec();
            tautline_proto::metadata::put_property(&mut ready, "Socket-Type", code.name().as_bytes());
            ready[1] = ready.len() as u8 - 2;
            [&greeting[..], &ready].concat()
        }
        _ => return Some(stage::raw()),
    };
    let (outcome, established) = play(&mut session(ours, MechanismConfig::Null, false), &greeting, 0, true);
    assert_eq!(outcome.used, Ok(greeting.len()));
    established.and_then(|Established { stage, .. }| stage)
}

/// Frames of each version.
pub fn seeds() -> Vec<Vec<u8>> {
    vec![
        b"\x00\x00\x00\x06\x00Hello\x06\x01Hello\x01\x00".to_vec(),
        b"\x00\x01\x01\x02\x00\x01\x07\x00\x01topic\x02\x00\x00".to_vec(),
        b"\x00\x03\x00\xff\x00\x00\x00\x00\x00\x00\x00\x06\x00Hello".to_vec(),
        b"\x01\x00\x00\x00\x05Hello\x01\x00\x02\x00\x00\x00\x00\x00\x00\x00\x01a".to_vec(),
        b"\x01\x01\x01\x00\x01\x01\x00\x06\x00topic\x00\x06\x01topic".to_vec(),
        b"\x02\x01\x01\x00\x01\x01\x00\x06\x01topic\x04\x05\x04PING".to_vec(),
        b"\x02\x01\x02\x00\x0c\x09SUBSCRIBEab".to_vec(),
        b"\x03\x01\x00any bytes".to_vec(),
    ]
}
