//! What a new peer is sent before anything else.

use crate::pipe::{Else, Part, Pipe, PipeId, Pipes};

/// ZMQ_HELLO_MSG for a peer that we connect to over inproc. A bound socket greets when it is found
/// (`Offer::greet`), and other connections do so by themselves, at the start of each session.
pub(super) fn greet(pipes: &mut Pipes, id: PipeId) {
    let options = pipes.options.clone();
    let hello = options.hello();
    if !hello.is_empty()
        && let Some(pipe) = pipes.get(id)
        && pipe.peer.connected_here
        && pipe.is_inproc()
    {
        send_first(pipe, hello);
    }
}

/// ZMQ_PROBE_ROUTER: an empty message, which tells a ROUTER there our routing id.
pub(super) fn probe(pipes: &mut Pipes, id: PipeId) {
    if pipes.options.probe_router
        && let Some(pipe) = pipes.get(id)
    {
        send_first(pipe, b"");
    }
}

/// Sends a message, if there is room and memory for it.
pub(super) fn send_first(pipe: &mut Pipe, body: &[u8]) {
    if pipe.has_room(Else::Lose) {
        pipe.send_or_drop(&mut Part::copied(body, false));
    }
}
