//! The results of [`Pattern`](super::Pattern): the peer of a part, and the route of the following
//! parts.

use crate::pipe::{Delivered, PipeId, Route};

/// Result of sending a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent {
    /// The pipe of the part's only receiver. `None` if the part was dropped, or if the socket type
    /// sends to all peers that want a message.
    pub(crate) to: Option<PipeId>,
    /// The destination of the following parts.
    pub(crate) route: Route,
}

impl Sent {
    /// The part was dropped, or went to any number of pipes.
    pub(crate) const UNADDRESSED: Sent = Sent { to: None, route: Route::NONE };

    /// The part went to this pipe. The pattern decides about the following parts.
    #[inline]
    pub(crate) fn to(pipe: PipeId) -> Sent {
        Sent { to: Some(pipe), route: Route::NONE }
    }
}

/// Result of receiving a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Received {
    /// The pipe of the sender. `None` if the pipe is gone, or if this library made the part.
    pub(crate) from: Option<PipeId>,
    /// Length of the whole body, even if the buffer was shorter.
    pub(crate) len: usize,
    /// True if more parts of the same message follow.
    pub(crate) more: bool,
    /// The source of the following parts.
    pub(crate) route: Route,
}

impl Received {
    /// The part came from this pipe. The pattern decides about the following parts.
    #[inline]
    pub(crate) fn new(from: Option<PipeId>, part: Delivered) -> Received {
        Received { from, len: part.len, more: part.more, route: Route::NONE }
    }
}
