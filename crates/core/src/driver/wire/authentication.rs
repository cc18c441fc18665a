//! Requests to the application's ZAP handler about a peer (RFC 27).

use super::Wire;
use crate::conn::Loss;
use crate::driver::EventLoop;
use crate::host::{Proof, Refusal};
use crate::monitor::Claim;
use crate::transport;
use crate::zap::{ReplyState, RequestError};
use std::sync::Weak;
use std::task::{Wake, Waker};
use tautline_io::errno;
use tautline_proto::AuthFailure;
use tautline_proto::zap::{self, Credentials, ZapReply};
use tautline_queue::sync::{Arc, lock};

/// Status code of the ZAP handler for a peer that it refuses, RFC 27.
const DENIED: u16 = 400;

impl Wire {
    /// Asks the ZAP handler about the peer. If there is no handler, the options decide.
    pub(super) fn judge(self: &Arc<Self>, credentials: &Credentials) -> Result<(), Loss> {
        let address = transport::peer_name(&self.stream);
        let options = self.options();
        if let Some(handshake) = lock(&self.state).handshake() {
            let Credentials { mechanism, .. } = *credentials;
            let name = credentials.name().to_vec();
            handshake.claim = Some(Box::new(Claim { mechanism, name, reason: Vec::new() }));
        }
        if let Some(gate) = self.origin.gate() {
            if let Err(Refusal(why)) = gate.owner(credentials.name()) {
                self.refuse(DENIED, Vec::new(), &why);
                return Ok(());
            }
            lock(&self.state).proof = Some(Box::new(Proof::of_key(credentials.name())));
        }
        let request = zap::request(&options.zap_domain, address.as_bytes(), &options.routing_id, credentials);
        let waker = Waker::from(Arc::new(ZapReplyWaker(Arc::downgrade(self))));
        match self.site().desk.ask(request, waker) {
            Ok(inquiry) => {
                if let Some(handshake) = lock(&self.state).handshake() {
                    handshake.inquiry = Some(Box::new(inquiry));
                }
                Ok(())
            }
            Err(RequestError::Nobody) if self.origin.security().handler_optional => self.admit(None),
            Err(RequestError::Nobody) => Err(Loss::Stream(errno::EFAULT)),
            Err(RequestError::Failed(errno)) => Err(Loss::Stream(errno)),
        }
    }

    /// Refuses the peer, and sends the status and the reason to the peer.
    fn refuse(&self, status: u16, reason: Vec<u8>, because: &str) {
        let claim = lock(&self.state).handshake().and_then(|handshake| handshake.claim.take());
        let claim = claim.map(|claim| Claim { reason, ..*claim });
        let why = Loss::Protocol(AuthFailure::Denied { status }.into());
        self.report_failed_handshake(why, claim.as_ref(), b"", because);
        if let Some(handshake) = lock(&self.state).handshake() {
            handshake.refused = true;
            handshake.refuse(status);
        }
    }

    /// Admits the peer.
    fn admit(&self, verdict: Option<Box<ZapReply>>) -> Result<(), Loss> {
        let mut state = lock(&self.state);
        let Some(handshake) = state.handshake() else { return Ok(()) };
        handshake.verdict = verdict;
        handshake.admit().map_err(Loss::Protocol)
    }

    /// Reads the ZAP handler's answer, if it has arrived.
    fn read_zap_answer(self: &Arc<Self>, turn: &mut EventLoop) {
        let (answer, inquiry) = {
            let mut state = lock(&self.state);
            let Some(handshake) = state.handshake() else { return };
            let Some(inquiry) = &mut handshake.inquiry else { return };
            match inquiry.answer() {
                ReplyState::Pending => return,
                answer => (answer, handshake.inquiry.take()),
            }
        };
        // Drop the inquiry after the lock is released, because dropping it notifies the handler.
        drop(inquiry);
        match answer {
            ReplyState::Given(Ok(verdict)) if verdict.status == 200 => {
                if let Err(loss) = self.admit(Some(Box::new(verdict))) {
                    return self.end(turn, loss);
                }
            }
            ReplyState::Given(Ok(ZapReply { status, text, .. })) => self.refuse(status, text, ""),
            ReplyState::Given(Err(error)) => return self.end(turn, Loss::Protocol(error)),
            // As in libzmq: the peer will not be admitted. The peer waits until it gives up or
            // until its handshake times out.
            ReplyState::Lost | ReplyState::Pending => return,
        }
        self.shake_hands(turn);
    }
}

/// Woken by the handler's answer. Any number of requests share the one descriptor by which other
/// threads reach the I/O thread.
struct ZapReplyWaker(Weak<Wire>);

impl Wake for ZapReplyWaker {
    fn wake(self: Arc<Self>) {
        if let Some(wire) = self.0.upgrade() {
            let driver = wire.site().driver.clone();
            driver.post(Box::new(move |turn| wire.read_zap_answer(turn)));
        }
    }
}
