//! Check of a bound endpoint by its real properties: the address of its socket, and the file that
//! it has created.
//!
//! The endpoint text may say something else. With ZMQ_USE_FD the program has bound the socket
//! itself.

use super::gate::PeerGate;
use super::{Certificates, Guard, Trust, is_private};
use std::path::Path;
use tautline_core::Error;
use tautline_core::host::{BindPermit, BoundEndpoint, Denied, Gate};
use tautline_io::errno;
use tautline_io::net::Address;
use tautline_policy::{Action, Call, PolicyDecision, PolicyQuery};
use tautline_queue::sync::Arc;

/// The permission for a bind.
pub(super) struct Permit {
    pub(super) guard: Arc<Guard>,
    pub(super) trust: Option<Trust>,
    pub(super) certificates: Option<Arc<Certificates>>,
    /// The wrap that was applied.
    pub(super) wrap: Option<String>,
    /// The endpoint as the program gave it.
    pub(super) endpoint: String,
    pub(super) socket_type: &'static str,
    /// The mechanism of the socket, without the wrap.
    pub(super) mechanism: &'static str,
    /// True if the endpoint is secure without the wrap.
    pub(super) is_secure: bool,
}

impl BindPermit for Permit {
    fn check(&self, bound: &BoundEndpoint<'_>) -> Result<(), Denied> {
        let Some(policy) = self.guard.policy() else { return Ok(()) };
        let (address, path) = match &bound.address {
            Some(Address::Inet(address)) => (Some(address.ip().to_canonical()), None),
            Some(Address::Unix { path }) => (None, Some(path.as_path())),
            _ => (None, None),
        };
        let (socket_type, wrap) = (self.socket_type, self.wrap.as_deref());
        // The program's own socket may be unrelated to the endpoint text.
        let real = bound.is_foreign.then_some(bound.endpoint);
        for endpoint in std::iter::once(&*self.endpoint).chain(real) {
            let verdict = policy.decide(&PolicyQuery {
                address,
                program: self.guard.program(),
                mechanism: self.mechanism,
                secure: self.is_secure,
                private: path.is_some_and(is_private),
                ..PolicyQuery::new(Call::Bind, socket_type, endpoint)
            });
            let is_ipc = bound.endpoint.starts_with("ipc://");
            let Some(why) = objection(&verdict, wrap, path.filter(|_| is_ipc), is_ipc) else { continue };
            let what = format!("bind {} of {socket_type}, which is {}{why}", self.endpoint, bound.endpoint);
            self.guard.report_verdict(&verdict, "refuses", &what);
            let why = format!("{}{why}", self.guard.rule_label(&verdict));
            return Err(Denied { error: Error::Os(errno::EACCES), why });
        }
        Ok(())
    }

    fn gate(self: Box<Self>, mechanism: &'static str, is_secure: bool) -> Arc<dyn Gate> {
        PeerGate::new(*self, mechanism, is_secure)
    }
}

/// Returns why a bound endpoint does not fit the verdict about it.
fn objection(
    verdict: &PolicyDecision,
    wrap: Option<&str>,
    path: Option<&Path>,
    is_ipc: bool,
) -> Option<String> {
    match verdict.action {
        Action::Refuse => return Some(String::new()),
        Action::Wrap if verdict.wrap.as_deref() != wrap => {
            return Some(format!(": it is not wrapped in `{}`", verdict.wrap.as_deref().unwrap_or_default()));
        }
        _ => {}
    }
    let wanted = verdict.mode.filter(|_| is_ipc)?;
    match path.and_then(mode) {
        Some(mode) if mode & !wanted == 0 => None,
        Some(mode) => Some(format!(": its file has mode {mode:04o}, not {wanted:04o}")),
        None => Some(format!(": it has no file that could have mode {wanted:04o}")),
    }
}

/// The permissions of the file of a socket.
#[cfg(unix)]
fn mode(path: &Path) -> Option<u32> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let found = std::fs::symlink_metadata(path).ok()?;
    found.file_type().is_socket().then(|| found.mode() & 0o777)
}

#[cfg(not(unix))]
fn mode(_: &Path) -> Option<u32> {
    None
}
