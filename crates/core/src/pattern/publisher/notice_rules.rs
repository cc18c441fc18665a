//! The notices of an XPUB about the end of a peer's topics.

use crate::pattern::notices::{NoticeOrigin, SubscriptionChange, SubscriptionNotices};
use crate::pipe::{PipeId, Pipes};

/// Rules for telling the program of the topics of a pipe that is gone.
#[derive(Clone, Copy)]
pub(super) struct NoticeRules {
    hidden: bool,
    manual: bool,
    verboser: bool,
}

impl NoticeRules {
    pub(super) fn of(hidden: bool, pipes: &Pipes) -> Self {
        NoticeRules { hidden, manual: pipes.options.xpub_manual, verboser: pipes.options.xpub_verboser }
    }

    /// Handles the end of the pipe's subscription to `topic`. `last` is true if no other pipe has
    /// the topic.
    pub(super) fn report_unsubscription(self, notices: &mut SubscriptionNotices, topic: &[u8], last: bool) {
        if !self.hidden && !self.manual && (last || self.verboser) {
            notices.put_change(
                SubscriptionChange { subscribe: false, topic, new: last },
                None,
                NoticeOrigin::Applied(None),
            );
        }
    }

    /// Handles the end of the pipe's request for `topic`.
    pub(super) fn report_request_end(self, notices: &mut SubscriptionNotices, id: PipeId, topic: &[u8]) {
        if !self.hidden && self.manual {
            notices.put_end(id, topic);
        }
    }
}
