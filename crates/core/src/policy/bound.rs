//! Check of a bound endpoint by its real properties: the address of its socket, and the file that
//! it has created.
//!
//! The endpoint text may say something else. With ZMQ_USE_FD the program has bound the socket
//! itself.

use super::{Denied, Guard, PolicyRequest, is_private, is_secure};
use crate::options::Options;
use crate::transport::Bound;
use std::path::Path;
use tautline_io::errno;
use tautline_io::net::Address;
use tautline_policy::{Action, PolicyDecision, PolicyQuery};

impl Guard {
    /// Asks if a bound endpoint may stay. `options` are those of the socket, `wrap` is the wrap
    /// that was applied.
    ///
    /// # Errors
    /// EACCES if a rule refuses it, or asks for a wrap or permissions that it does not have.
    pub(crate) fn ask_again(
        &self,
        asked: &PolicyRequest<'_>,
        bound: &Bound,
        options: &Options,
        wrap: Option<&str>,
    ) -> Result<(), Denied> {
        let Some(policy) = self.policy() else { return Ok(()) };
        let found = bound.listener.local_address();
        let (address, path) = match &found {
            Ok(Address::Inet(address)) => (Some(address.ip().to_canonical()), None),
            Ok(Address::Unix { path }) => (None, Some(path.as_path())),
            _ => (None, None),
        };
        let socket_type = options.socket_type.name();
        // The program's own socket may be unrelated to the endpoint text.
        let real = options.use_fd.is_some().then_some(&*bound.endpoint);
        for endpoint in std::iter::once(asked.endpoint).chain(real) {
            let verdict = policy.decide(&PolicyQuery {
                address,
                program: &self.program,
                mechanism: options.mechanism.name(),
                secure: is_secure(options, asked.endpoint),
                private: path.is_some_and(is_private),
                ..PolicyQuery::new(asked.call, socket_type, endpoint)
            });
            let is_ipc = bound.endpoint.starts_with("ipc://");
            let Some(why) = objection(&verdict, wrap, path.filter(|_| is_ipc), is_ipc) else { continue };
            let what = format!("bind {} of {socket_type}, which is {}{why}", asked.endpoint, bound.endpoint);
            self.report_verdict(&verdict, "refuses", &what);
            let why = format!("{}{why}", self.rule_label(&verdict));
            return Err(Denied { error: crate::error::Error::Os(errno::EACCES), why });
        }
        Ok(())
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
