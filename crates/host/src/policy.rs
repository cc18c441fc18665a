//! The policy of the host (crate `tautline-policy`), which the engine asks for each bind, each
//! connect and each accepted peer. Without a policy, the engine asks for no permission. The
//! environment or the program names the policy.
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
mod trust;
mod wrapping;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub use certificates::certificate_faults;
pub use foresee::{Forecast, Foreseen, foresee};

use crate::reload::{Read, ReloadedValue};
use bound::Permit;
use certificates::Certificates;
use tautline_core::Error;
use tautline_core::host::{
    Admission, AllowedTopics, CallRequest, Denied, EndpointRules, Permission, Server, SessionLimit,
};
use tautline_io::stderr_report;
use tautline_policy::{
    Action, Call, GrantedTopics, Key, Policy, PolicyDecision, PolicyQuery, Wrap, file, keys,
};
use tautline_queue::sync::{Arc, Mutex, lock};
use trust::Trust;
use wrapping::wrap_endpoint;

/// Maximum number of remembered reports. Each pair of a rule and its target is reported once.
const MAX_REMEMBERED_REPORTS: usize = 1000;

/// Asks the policy of the host.
#[derive(Debug)]
struct Guard {
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

/// Permission for a bind or a connect, with the lists of clients that a wrap names.
struct Allowed {
    permission: Permission,
    /// Keys of the clients that may connect.
    trust: Option<Trust>,
    /// Certificates of a TLS wrapper.
    certificates: Option<Arc<Certificates>>,
}

/// Returns the policy that the environment names, if it names one. If the policy has a fault, it
/// refuses everything.
pub(crate) fn of_environment() -> Option<Arc<dyn Admission>> {
    match Guard::of_environment() {
        Ok(guard) => guard.clone().map(|guard| guard as Arc<dyn Admission>),
        Err(_) => Some(Guard::closed()),
    }
}

/// Returns the fault of the policy that the environment names, if it has one. Every call is refused
/// then, and the fault is reported on standard error.
pub fn policy_fault() -> Option<&'static str> {
    Guard::of_environment().as_ref().err().map(String::as_str)
}

/// Opens a policy by the name of a ready-made one, or by its path. Reports a fault on standard
/// error.
pub(crate) fn open(named: &str) -> Result<Arc<dyn Admission>, Error> {
    match Guard::open(named) {
        Ok(guard) => Ok(guard),
        Err(fault) => {
            stderr_report::report_and_wait(&fault);
            Err(Error::Invalid)
        }
    }
}

impl Guard {
    /// Returns the policy that the environment names (`TAUT_POLICY`: a ready-made one, or a path),
    /// if it names one. Looked up once, because a program may change the environment
    /// later. The error describes the fault of the policy.
    fn of_environment() -> &'static Result<Option<Arc<Guard>>, String> {
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
    fn open(named: &str) -> Result<Arc<Guard>, String> {
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
    fn closed() -> Arc<Guard> {
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
    fn policy(&self) -> Option<Arc<Policy>> {
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

    /// The name of a rule, for events.
    fn rule_label(&self, verdict: &PolicyDecision) -> String {
        self.rule_name(verdict.rule.as_deref().unwrap_or_default())
    }

    /// The user id of a server that has shown its key: the name of the file in which a wrap finds
    /// that key. Empty if there is no such file.
    fn server_id(&self, policy: &Policy, server: &Server<'_>) -> String {
        let Some(key) = server.key.map(tautline_proto::z85::encode_key) else { return String::new() };
        let owner = |wrap: &Wrap| {
            let Some(Key::File(path)) = wrap.server(server.endpoint) else { return None };
            let found = keys::read_public_keys(path).ok()?;
            found.iter().any(|known| known.as_bytes() == key).then(|| wrap.server_id(server.endpoint))
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
        self.report_first(&what, peer);
    }

    /// Reports a decision about a peer, once for each rule and endpoint: the number of peers is not
    /// under our control.
    fn report_peer(&self, verdict: &PolicyDecision, does: &str, endpoint: &str, peer: &str) {
        let rule = verdict.rule.as_deref().unwrap_or_default();
        let what = format!("rule `{rule}` {does} peers at {endpoint}");
        self.report_first(&what, peer);
    }

    /// Reports a refusal of a peer to the user of the program, once.
    fn report_first(&self, what: &str, peer: &str) {
        if self.is_new(what) {
            let text = format!("{}: {what}; the first peer was {peer}", self.place);
            drop(stderr_report::report_in_background(&text));
        }
    }

    /// Adds to a permission for a bind the checks of the bound endpoint and of its peers.
    fn permit(
        self: &Arc<Self>,
        call: &CallRequest<'_>,
        verdict: &PolicyDecision,
        allowed: Allowed,
    ) -> Permission {
        let Allowed { mut permission, trust, certificates } = allowed;
        if call.is_bind() {
            permission.set_bind_permit(Box::new(Permit {
                guard: self.clone(),
                trust,
                certificates,
                wrap: verdict.wrap.clone(),
                endpoint: call.endpoint().to_owned(),
                socket_type: call.socket_type(),
                mechanism: call.mechanism(),
                is_secure: call.is_secure(),
            }));
        }
        permission
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

impl Admission for Guard {
    fn ask(self: Arc<Self>, call: &CallRequest<'_>) -> Result<Permission, Denied> {
        let invalid = |why: String| Denied { error: Error::Invalid, why };
        let policy = self.policy().ok_or_else(|| invalid("the policy cannot be read".to_owned()))?;
        let socket_type = call.socket_type();
        let (verdict, allowed) = judge(&policy, &self.program, call, socket_type);
        let verb = if call.is_bind() { "bind" } else { "connect" };
        let refused = |why| Err(Denied { error: Error::Os(tautline_io::errno::EACCES), why });
        let what = format!("{verb} {} of {socket_type}", call.endpoint());
        match verdict.action {
            Action::Refuse => {
                self.report_verdict(&verdict, "refuses", &what);
                return refused(self.rule_label(&verdict));
            }
            Action::Warn => self.report_verdict(&verdict, "warns about", &what),
            _ => {}
        }
        match allowed {
            Ok(allowed) => Ok(self.permit(call, &verdict, allowed)),
            Err(why) => {
                let what = format!("{verb} {}", call.endpoint());
                self.report_verdict(&verdict, &format!("cannot wrap ({why})"), &what);
                refused(format!("{} cannot wrap ({why})", self.rule_label(&verdict)))
            }
        }
    }

    fn may_know_topics(&self) -> bool {
        self.is_a_file() || self.policy().is_some_and(|policy| policy.has_topics())
    }

    fn may_change_topics(&self) -> bool {
        self.is_a_file()
    }

    fn topics_of_server(&self, server: &Server<'_>) -> Option<AllowedTopics> {
        let policy = self.policy()?;
        if !policy.has_topics() {
            return None;
        }
        let question = PolicyQuery {
            program: &self.program,
            mechanism: server.mechanism,
            user: server.peer.user(),
            user_id: &self.server_id(&policy, server),
            ..PolicyQuery::new(Call::Connect, server.socket_type, server.endpoint)
        };
        policy.topics(&question).map(allowed_topics)
    }

    fn limit_name(&self, limit: SessionLimit) -> Option<String> {
        let policy = self.policy()?;
        let limits = policy.limits();
        let (limit, name) = match limit {
            SessionLimit::MessageBytes => (limits.message_bytes, "message_bytes"),
            SessionLimit::SubscriptionBytes => {
                (limits.subscription_bytes_per_peer, "subscription_bytes_per_peer")
            }
        };
        limit.map(|_| format!("limit `{name}` of {}", self.place))
    }

    fn rule_name(&self, rule: &str) -> String {
        format!("rule `{rule}` of {}", self.place)
    }

    fn report_stranger(&self, endpoint: &str, peer: &str) {
        let what = format!("refused to connect to {endpoint}: {peer} is a process of another user");
        if self.is_new(&what) {
            drop(stderr_report::report_in_background(&format!("{}: {what}", self.place)));
        }
    }

    fn report_topic(&self, rule: &str, does: &str, endpoint: &str, first: &str) {
        let what = format!("rule `{rule}` does not allow peers at {endpoint} to {does} some topics");
        self.report_first(&what, first);
    }
}

/// The topics that a rule grants, in the form that the engine checks.
fn allowed_topics(granted: GrantedTopics) -> AllowedTopics {
    AllowedTopics::new(granted.prefixes, &granted.rule)
}

impl std::fmt::Display for PolicySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PolicySource::Ready(name) => write!(f, "policy {name}"),
            PolicySource::File(path) => write!(f, "policy {}", path.display()),
        }
    }
}

fn read(path: &Path) -> Read<Arc<Policy>> {
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

/// Returns the policy's verdict on a call, and the permission for an allowed call. The error says
/// why the endpoint cannot be wrapped; the call is refused then.
fn judge(
    policy: &Policy,
    program: &str,
    asked: &CallRequest<'_>,
    socket_type: &str,
) -> (PolicyDecision, Result<Allowed, String>) {
    let call = if asked.is_bind() { Call::Bind } else { Call::Connect };
    let question = PolicyQuery {
        address: asked.address(),
        program,
        mechanism: asked.mechanism(),
        secure: asked.is_secure(),
        private: asked.path().is_some_and(|path| is_private(path) || !asked.is_bind() && !is_there(path)),
        ..PolicyQuery::new(call, socket_type, asked.endpoint())
    };
    let verdict = policy.decide(&question);
    let own_user_only = call == Call::Connect && question.private && {
        let open = policy.decide(&PolicyQuery { private: false, ..question.clone() });
        let differs = (open.action, &open.wrap) != (verdict.action, &verdict.wrap);
        differs && matches!(open.action, Action::Refuse | Action::Wrap)
    };
    let limits = policy.limits();
    let mut allowed = Allowed { permission: asked.permit(), trust: None, certificates: None };
    allowed.permission.restrict(&EndpointRules {
        ipc_mode: verdict.mode,
        own_user_only,
        message_bytes: limits.message_bytes,
        subscription_bytes: limits.subscription_bytes_per_peer,
        unread_bytes: limits.unread_bytes_per_peer,
    });
    if let Some(name) = &verdict.wrap {
        let wrap = policy.wrap(name).ok_or_else(|| "there is no such wrap".to_owned());
        if let Err(why) = wrap.and_then(|wrap| wrap_endpoint(wrap, asked, &mut allowed)) {
            return (verdict, Err(why));
        }
    }
    (verdict, Ok(allowed))
}

#[cfg(test)]
mod tests;
