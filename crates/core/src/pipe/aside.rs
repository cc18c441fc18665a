//! What goes through a pipe beside its queues: most pipes have nothing of it.

use super::Traffic;
use crate::message::Message;
use std::collections::VecDeque;

/// What goes through a pipe beside its queues.
#[derive(Default)]
pub(super) struct Aside {
    /// Messages and bytes sent and received that no queue has counted.
    pub(super) uncounted: Traffic,
    /// Messages about the peer, which are received when nothing from it is there.
    pub(super) notes: VecDeque<Message>,
}
