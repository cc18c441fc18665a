//! The first messages to a new peer.

use crate::pipe::{OnFull, Part, Pipe, PipeId, Pipes};

/// Sends ZMQ_HELLO_MSG to a peer that we connect to over inproc. A bound socket greets when it is
/// found (`Offer::greet`). Other connections greet at the start of each session.
pub(super) fn greet(pipes: &mut Pipes, id: PipeId) {
    let options = pipes.options.clone();
    let hello = options.effective_hello_msg();
    if !hello.is_empty()
        && let Some(pipe) = pipes.get(id)
        && pipe.peer.connected_here
        && pipe.is_inproc()
    {
        send_first(pipe, hello);
    }
}

/// Sends an empty message for ZMQ_PROBE_ROUTER, which tells a ROUTER there our routing id.
pub(super) fn probe(pipes: &mut Pipes, id: PipeId) {
    if pipes.options.probe_router
        && let Some(pipe) = pipes.get(id)
    {
        send_first(pipe, b"");
    }
}

/// Sends a message, if there is room and memory for it.
pub(super) fn send_first(pipe: &mut Pipe, body: &[u8]) {
    if pipe.outgoing.has_room(OnFull::DropUncounted) {
        pipe.send_or_drop(&mut Part::copied(body, false));
    }
}
