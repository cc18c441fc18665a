//! Asking the application's ZAP handler about a peer (RFC 27).

use super::Wire;
use crate::conn::Loss;
use crate::driver::{Source, Turn};
use crate::sync::{Arc, lock};
use crate::transport;
use crate::zap::{Answer, Unasked};
use tautline_io::errno;
use tautline_io::reactor::{Event, Interest, Mode};
use tautline_proto::AuthFailure;
use tautline_proto::zap::{self, Credentials, Verdict};

impl Wire {
    /// Asks the ZAP handler about the peer; if there is none, the options decide.
    pub(super) fn judge(self: &Arc<Self>, turn: &mut Turn, credentials: &Credentials) -> Result<(), Loss> {
        let address = transport::peer_name(&self.stream);
        let options = self.options();
        let request = zap::request(&options.zap_domain, address.as_bytes(), &options.routing_id, credentials);
        match self.site().desk.ask(request) {
            Ok(inquiry) => {
                let source = Arc::new(Asking(self.clone()));
                let token = turn
                    .register(source, inquiry.as_fd(), Interest::READ, Mode::Level)
                    .map_err(|error| Loss::Stream(error.raw_os_error().unwrap_or(errno::EFAULT)))?;
                if let Some(handshake) = lock(&self.state).handshake() {
                    handshake.inquiry = Some(Box::new((inquiry, token)));
                }
                Ok(())
            }
            Err(Unasked::Nobody) if self.origin.security().handler_optional => self.admit(None),
            Err(Unasked::Nobody) => Err(Loss::Stream(errno::EFAULT)),
            Err(Unasked::Failed(errno)) => Err(Loss::Stream(errno)),
        }
    }

    /// The peer may come in.
    fn admit(&self, verdict: Option<Box<Verdict>>) -> Result<(), Loss> {
        let mut state = lock(&self.state);
        let Some(handshake) = state.handshake() else { return Ok(()) };
        handshake.verdict = verdict;
        handshake.admit().map_err(Loss::Protocol)
    }

    /// The ZAP handler may have answered.
    fn answered(self: &Arc<Self>, turn: &mut Turn) {
        let (answer, inquiry) = {
            let mut state = lock(&self.state);
            let Some(handshake) = state.handshake() else { return };
            let Some(inquiry) = &mut handshake.inquiry else { return };
            match inquiry.0.answer() {
                Answer::Pending => return,
                answer => (answer, handshake.inquiry.take()),
            }
        };
        if let Some(inquiry) = inquiry {
            turn.unregister(inquiry.1, inquiry.0.as_fd());
        }
        match answer {
            Answer::Given(Ok(verdict)) if verdict.status == 200 => {
                if let Err(loss) = self.admit(Some(Box::new(verdict))) {
                    return self.end(turn, loss);
                }
            }
            Answer::Given(Ok(Verdict { status, .. })) => {
                self.report_failed_handshake(Loss::Protocol(AuthFailure::Denied { status }.into()));
                if let Some(handshake) = lock(&self.state).handshake() {
                    handshake.refused = true;
                    handshake.refuse(status);
                }
            }
            Answer::Given(Err(error)) => return self.end(turn, Loss::Protocol(error)),
            // As in libzmq: nobody will let the peer in. It waits until it gives up, or its time is over.
            Answer::Lost | Answer::Pending => return,
        }
        self.shake_hands(turn);
    }
}

/// The descriptor of a question to the ZAP handler, as a source of the reactor.
struct Asking(Arc<Wire>);

impl Source for Asking {
    fn ready(self: Arc<Self>, turn: &mut Turn, _event: &Event) {
        self.0.answered(turn);
    }

    fn timer(self: Arc<Self>, _turn: &mut Turn, _key: u64) {}
}
