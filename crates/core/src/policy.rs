//! The host's policy (crate `tautline-policy`), which is asked for each bind, each connect and each
//! accepted peer. There is no policy, and no check, unless the environment or the program names
//! one.
//!
//! ```text
//!  Context ── Guard ── Policy, read again when its file changes
//!               │
//!  Socket ──────┤ bind, connect: options of the endpoint, or a refusal
//!  Acceptor ─ Gate   peers: by address and user, by key, by the user id of the ZAP handler
//! ```
//!
//! A policy that cannot be read refuses everything. If a reload fails, the last valid policy stays
//! in force. Locks: the lock of a guard and the lock of a gate are leaves.

mod bound;
#[cfg_attr(not(feature = "tls"), path = "policy/no_tls.rs")]
mod certificates;
mod foresee;
mod gate;
mod keeper;
mod proof;
mod reload;
mod spare;
mod trust;
mod wrapping;

use std::collections::HashSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub use certificates::certificate_faults;
pub use foresee::{Forecast, Foreseen, foresee};
pub(crate) use gate::{Counted, Gate, PeerSource, Refusal};
pub(crate) use keeper::TopicKeeper;
pub use keeper::{TopicAction, TopicAuthorizer, TopicRequest};
pub(crate) use proof::Proof;
pub use reload::ReloadedValue;
pub(crate) use trust::Trust;
pub(crate) use wrapping::is_secure;
use wrapping::wrap_endpoint;

use crate::conn::Loss;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::options::Options;
use crate::transport::CarrierFactory;
use certificates::Certificates;
use tautline_io::net::Stream;
use tautline_io::stderr_report;
use tautline_policy::{
    Action, AllowedTopics, Call, Key, Policy, PolicyDecision, PolicyQuery, Wrap, file, keys,
};
use tautline_proto::ProtocolError;
use tautline_queue::sync::{Arc, Mutex, lock};

/// Maximum number of remembered reports. Each pair of a rule and its target is reported once.
const MAX_REMEMBERED_REPORTS: usize = 1000;
/// Asks the policy of the host.
#[derive(Debug)]
pub(crate) struct Guard {
    place: PolicySource,
    program: String,
    inner: Mutex<Inner>,
}

/// Source of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PolicySource {
    /// Built into the library.
    Ready(String),
    File(PathBuf),
}

#[derive(Debug)]
struct Inner {
    policy: LoadedPolicy,
    reported: HashSet<String>,
}

#[derive(Debug)]
enum LoadedPolicy {
    /// The policy could not be read when the context was created. Everything is refused.
    Nowhere,
    Ready(Arc<Policy>),
    File(ReloadedValue<Arc<Policy>>),
}

/// Permission for a bind or a connect.
#[derive(Default)]
pub(crate) struct Allowed {
    /// The options of the endpoint, if they differ from those of the socket.
    pub(crate) options: Option<Arc<Options>>,
    /// Keys of the clients that may connect.
    pub(crate) trust: Option<Trust>,
    /// TLS wrapper of the endpoint.
    pub(crate) wrapped: Option<Wrapped>,
    /// The wrap that a rule asks for.
    pub(crate) wrap: Option<String>,
}

/// TLS that a policy adds to an endpoint.
pub(crate) struct Wrapped {
    pub(crate) carrying: CarrierFactory,
    pub(crate) certificates: Arc<Certificates>,
}

/// A refused call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Denied {
    /// Error for the caller.
    pub(crate) error: Error,
    /// Rule or reason of the refusal, for events.
    pub(crate) why: String,
}

impl From<Denied> for Error {
    fn from(denied: Denied) -> Self {
        denied.error
    }
}

/// A call to ask the policy about.
pub(crate) struct PolicyRequest<'a> {
    pub(crate) call: Call,
    pub(crate) endpoint: &'a str,
    #[cfg_attr(not(feature = "tls"), allow(dead_code, reason = "TLS looks for its host"))]
    pub(crate) parsed: &'a Endpoint,
    /// The address to bind or connect to, if there is one and it is known.
    pub(crate) address: Option<IpAddr>,
    /// ipc: the path of the socket's file.
    pub(crate) path: Option<&'a Path>,
}

impl Guard {
    /// Returns the policy that the environment names (`TAUT_POLICY`: a ready-made one, or a path),
    /// or `None` if it names none. Looked up once, because a program may change the environment
    /// later. The error describes the fault of the policy.
    pub(crate) fn of_environment() -> &'static Result<Option<Arc<Guard>>, String> {
        static GUARD: OnceLock<Result<Option<Arc<Guard>>, String>> = OnceLock::new();
        GUARD.get_or_init(|| {
            let named = tautline_io::env::var_os("TAUT_POLICY").filter(|named| !named.is_empty());
            let Some(named) = named else { return Ok(None) };
            let named =
                named.into_string().map_err(|_| "the variable TAUT_POLICY is not UTF-8".to_owned())?;
            Guard::open(&named).map(Some).inspect_err(|fault| stderr_report::report_and_wait(fault))
        })
    }

    /// Opens a policy by the name of a ready-made one, or by its path.
    pub(crate) fn open(named: &str) -> Result<Arc<Guard>, String> {
        let (place, policy) = match Policy::built_in(named) {
            Some(policy) => (PolicySource::Ready(named.to_owned()), LoadedPolicy::Ready(Arc::new(policy))),
            None => {
                // The process may change its working directory.
                let path = std::path::absolute(named).map_err(|error| format!("{named}: {error}"))?;
                let policy = ReloadedValue::open(vec![path.clone()], || read(&path))?;
                (PolicySource::File(path), LoadedPolicy::File(policy))
            }
        };
        Ok(Arc::new(Guard::new(place, policy)))
    }

    /// Returns a guard that refuses everything, for a policy that cannot be read.
    pub(crate) fn closed() -> Arc<Guard> {
        Arc::new(Guard::new(PolicySource::Ready(String::new()), LoadedPolicy::Nowhere))
    }

    fn new(place: PolicySource, policy: LoadedPolicy) -> Self {
        let program = std::env::current_exe().ok();
        let program = program.as_deref().and_then(Path::file_name);
        let program = program.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let inner = Inner { policy, reported: HashSet::new() };
        Guard { place, program, inner: Mutex::new(inner) }
    }

    /// The current policy. Reads a changed file again, either completely or not at all.
    pub(crate) fn policy(&self) -> Option<Arc<Policy>> {
        match (&mut lock(&self.inner).policy, &self.place) {
            (LoadedPolicy::File(policy), PolicySource::File(path)) => {
                if let Err(fault) = policy.refresh(|| read(path)) {
                    drop(stderr_report::report_in_background(&format!(
                        "{fault}; the last valid policy stays in force"
                    )));
                }
                Some(policy.get().clone())
            }
            (LoadedPolicy::Ready(policy), _) => Some(policy.clone()),
            _ => None,
        }
    }

    /// Asks if a socket may do this, and with which options.
    ///
    /// # Errors
    /// EACCES if a rule refuses it, or asks for a wrap that cannot be applied; [`Error::Invalid`]
    /// if the policy cannot be read.
    pub(crate) fn ask(&self, asked: &PolicyRequest<'_>, options: &Options) -> Result<Allowed, Denied> {
        let invalid = |why: String| Denied { error: Error::Invalid, why };
        let policy = self.policy().ok_or_else(|| invalid("the policy cannot be read".to_owned()))?;
        let socket_type = options.socket_type.name();
        let (verdict, allowed) = judge(&policy, &self.program, asked, options, socket_type);
        let verb = if asked.call == Call::Bind { "bind" } else { "connect" };
        let refused = |why| Err(Denied { error: Error::Os(tautline_io::errno::EACCES), why });
        match verdict.action {
            Action::Refuse => {
                self.report_verdict(
                    &verdict,
                    "refuses",
                    &format!("{verb} {} of {socket_type}", asked.endpoint),
                );
                return refused(self.rule_label(&verdict));
            }
            Action::Warn => {
                self.report_verdict(
                    &verdict,
                    "warns about",
                    &format!("{verb} {} of {socket_type}", asked.endpoint),
                );
            }
            _ => {}
        }
        allowed.or_else(|why| {
            self.report_verdict(
                &verdict,
                &format!("cannot wrap ({why})"),
                &format!("{verb} {}", asked.endpoint),
            );
            refused(format!("{} cannot wrap ({why})", self.rule_label(&verdict)))
        })
    }

    /// The name of a rule, for events.
    fn rule_label(&self, verdict: &PolicyDecision) -> String {
        format!("rule `{}` of {}", verdict.rule.as_deref().unwrap_or_default(), self.place)
    }

    /// True if the policy may limit topics of peers, now or after a reload.
    pub(crate) fn may_know_topics(&self) -> bool {
        self.is_a_file() || self.policy().is_some_and(|policy| policy.has_topics())
    }

    /// The limit that has most likely ended a session, for events.
    pub(crate) fn limit_behind(&self, why: Loss) -> Option<String> {
        let policy = self.policy()?;
        let limits = policy.limits();
        let (limit, name) = match why {
            Loss::Protocol(ProtocolError::TooLarge { .. }) => (limits.message_bytes, "message_bytes"),
            Loss::Stream(tautline_io::errno::ENOBUFS) => {
                (limits.subscription_bytes_per_peer, "subscription_bytes_per_peer")
            }
            _ => return None,
        };
        limit.map(|_| format!("limit `{name}` of {}", self.place))
    }

    /// True if the topic rules may change.
    pub(crate) fn may_change_topics(&self) -> bool {
        self.is_a_file()
    }

    /// The topics that a peer to which we have connected may use. `None` means all topics.
    pub(crate) fn topics_of_server(
        &self,
        stream: &Stream,
        options: &Options,
        endpoint: &str,
    ) -> Option<AllowedTopics> {
        let policy = self.policy()?;
        if !policy.has_topics() {
            return None;
        }
        let question = PolicyQuery {
            program: &self.program,
            mechanism: options.mechanism.name(),
            user: stream.peer_credentials().ok().map(|who| who.uid),
            user_id: &self.server_id(&policy, options, endpoint),
            ..PolicyQuery::new(Call::Connect, options.socket_type.name(), endpoint)
        };
        policy.topics(&question)
    }

    /// The user id of a server that has shown its key: the name of the file in which a wrap finds
    /// that key. Empty if there is no such file.
    fn server_id(&self, policy: &Policy, options: &Options, endpoint: &str) -> String {
        if !options.mechanism.encrypts() || options.as_server {
            return String::new();
        }
        let key = tautline_proto::z85::encode_key(&options.curve_server_key);
        let owner = |wrap: &Wrap| {
            let Some(Key::File(path)) = wrap.server(endpoint) else { return None };
            let found = keys::read_public_keys(path).ok()?;
            found.iter().any(|known| known.as_bytes() == key).then(|| wrap.server_id(endpoint))
        };
        policy.wraps().iter().find_map(owner).unwrap_or_default()
    }

    /// The file name of this program.
    fn program(&self) -> &str {
        &self.program
    }

    /// True if the policy may change.
    fn is_a_file(&self) -> bool {
        matches!(self.place, PolicySource::File(_))
    }

    /// Reports that a limit refuses a peer, once for each limit and endpoint.
    fn report_limit(&self, limit: &str, endpoint: &str, peer: &str) {
        let what = format!("the limit `{limit}` refuses peers at {endpoint}");
        if self.is_new(&what) {
            drop(stderr_report::report_in_background(&format!(
                "{}: {what}; the first peer was {peer}",
                self.place
            )));
        }
    }

    /// Reports that another user is at an endpoint that may only be connected to our own user.
    pub(crate) fn report_stranger(&self, endpoint: &str, peer: &str) {
        let what = format!("refused to connect to {endpoint}: {peer} is a process of another user");
        if self.is_new(&what) {
            drop(stderr_report::report_in_background(&format!("{}: {what}", self.place)));
        }
    }

    /// Reports that a peer may not use a topic, once for each rule and endpoint.
    fn report_topic(&self, rule: &str, does: &str, endpoint: &str, first: &str) {
        let what = format!("rule `{rule}` does not allow peers at {endpoint} to {does} some topics");
        if self.is_new(&what) {
            drop(stderr_report::report_in_background(&format!(
                "{}: {what}; the first peer was {first}",
                self.place
            )));
        }
    }

    /// Reports a decision about a peer, once for each rule and endpoint: the number of peers is not
    /// under our control.
    fn report_peer(&self, verdict: &PolicyDecision, does: &str, endpoint: &str, peer: &str) {
        let rule = verdict.rule.as_deref().unwrap_or_default();
        let what = format!("rule `{rule}` {does} peers at {endpoint}");
        if self.is_new(&what) {
            drop(stderr_report::report_in_background(&format!(
                "{}: {what}; the first peer was {peer}",
                self.place
            )));
        }
    }

    /// Reports a decision to the user of the program, once for each rule and its target.
    fn report_verdict(&self, verdict: &PolicyDecision, does: &str, what: &str) {
        let rule = verdict.rule.as_deref().unwrap_or_default();
        let text = format!("rule `{rule}` {does} {what}");
        if self.is_new(&text) {
            stderr_report::report_and_wait(&format!("{}: {text}", self.place));
        }
    }

    /// True if this was not reported yet.
    fn is_new(&self, text: &str) -> bool {
        let mut inner = lock(&self.inner);
        if inner.reported.len() >= MAX_REMEMBERED_REPORTS {
            inner.reported.clear();
        }
        inner.reported.insert(text.to_owned())
    }
}

impl std::fmt::Display for PolicySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PolicySource::Ready(name) => write!(f, "policy {name}"),
            PolicySource::File(path) => write!(f, "policy {}", path.display()),
        }
    }
}

fn read(path: &Path) -> reload::Read<Arc<Policy>> {
    let text = file::read_text(path).map_err(|error| format!("policy {}: {error}", path.display()))?;
    let policy = Policy::parse(&text).map_err(|fault| format!("policy {}: {fault}", path.display()))?;
    Ok((Arc::new(policy), true))
}

/// True if other users cannot reach the file of a socket, because the file or its folder is closed
/// to them.
fn is_private(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let own = tautline_io::net::own_user();
        let is_closed = |path: &Path| {
            std::fs::metadata(path).is_ok_and(|found| found.mode() & 0o077 == 0 && own == found.uid())
        };
        is_closed(path) || path.parent().is_some_and(is_closed)
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}

/// True if the path exists, even as a broken link.
fn is_there(path: &Path) -> bool {
    !std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

/// Returns the policy's verdict on a call, and the options for an allowed call. The error says why
/// the endpoint cannot be wrapped; the call is refused then.
fn judge(
    policy: &Policy,
    program: &str,
    asked: &PolicyRequest<'_>,
    options: &Options,
    socket_type: &str,
) -> (PolicyDecision, Result<Allowed, String>) {
    let question = PolicyQuery {
        address: asked.address,
        program,
        mechanism: options.mechanism.name(),
        secure: is_secure(options, asked.endpoint),
        private: asked
            .path
            .is_some_and(|path| is_private(path) || asked.call == Call::Connect && !is_there(path)),
        ..PolicyQuery::new(asked.call, socket_type, asked.endpoint)
    };
    let verdict = policy.decide(&question);
    let mut own = options.clone();
    own.policy_settings.ipc_mode = verdict.mode;
    own.policy_settings.own_user_only = asked.call == Call::Connect && question.private && {
        let open = policy.decide(&PolicyQuery { private: false, ..question.clone() });
        let differs = (open.action, &open.wrap) != (verdict.action, &verdict.wrap);
        differs && matches!(open.action, Action::Refuse | Action::Wrap)
    };
    policy_limits(policy, &mut own);
    let mut allowed = Allowed::default();
    if let Some(name) = &verdict.wrap {
        let wrap = policy.wrap(name).ok_or_else(|| "there is no such wrap".to_owned());
        if let Err(why) = wrap.and_then(|wrap| wrap_endpoint(wrap, asked, &mut own, &mut allowed)) {
            return (verdict, Err(why));
        }
    }
    allowed.options = (own != *options).then(|| Arc::new(own));
    allowed.wrap.clone_from(&verdict.wrap);
    (verdict, Ok(allowed))
}

/// Copies the policy's limits into the options, as far as options can express them.
fn policy_limits(policy: &Policy, options: &mut Options) {
    let limits = policy.limits();
    options.max_msg_size = match (options.max_msg_size, limits.message_bytes) {
        (Some(own), Some(limit)) => Some(own.min(limit)),
        (own, limit) => own.or(limit),
    };
    options.policy_settings.most_subscriptions = limits.subscription_bytes_per_peer;
    options.policy_settings.most_unread = limits.unread_bytes_per_peer;
}

#[cfg(test)]
mod tests;
