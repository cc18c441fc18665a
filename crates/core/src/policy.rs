//! What the host allows: a policy (crate `tautline-policy`), asked for each bind, each connect and
//! each peer that comes. Off, unless the environment or the program names one; nothing is asked
//! then.
//!
//! ```text
//!  Context ── Guard ── Policy, read again when its file changes
//!               │
//!  Socket ──────┤ bind, connect: options of the endpoint, or a refusal
//!  Acceptor ─ Gate   peers: by address and user, by key, by the user id of the ZAP handler
//! ```
//!
//! A policy that cannot be read lets nothing pass. One that is changed into such a one stays as it
//! was. Locks: that of a guard and that of a gate are leaves.

#[cfg_attr(not(feature = "tls"), path = "policy/no_tls.rs")]
mod certificates;
mod complaint;
mod gate;
mod keeper;
mod proof;
mod stamp;
mod trust;

use std::collections::HashSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

pub(crate) use complaint::say;
#[cfg(feature = "names")]
pub(crate) use complaint::say_later;
pub(crate) use gate::{Counted, Gate, Refusal};
pub(crate) use keeper::TopicKeeper;
pub use keeper::{TopicAction, TopicAuthorizer, TopicRequest};
pub(crate) use proof::Proof;
pub(crate) use stamp::{Stamp, stamp};
pub(crate) use trust::Trust;

use crate::conn::Loss;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::options::Options;
use crate::sync::{Arc, Mutex, lock};
use crate::transport::Carrying;
use certificates::Certificates;
use tautline_io::net::Stream;
use tautline_policy::{Action, Call, Key, Policy, Question, Topics, Verdict, Wrap, keys};
use tautline_proto::{ProtocolError, Secret, public_key};

/// Time between two looks whether a file has changed, at least.
const LOOK: Duration = Duration::from_millis(100);
/// Most things that are told once each: rules and what they were applied to.
const TOLD: usize = 1000;
/// Numbers of the options that a wrap sets.
const CURVE_SERVER: i32 = 47;
const CURVE_PUBLICKEY: i32 = 48;
const CURVE_SECRETKEY: i32 = 49;
const CURVE_SERVERKEY: i32 = 50;

/// Asks the policy of the host.
#[derive(Debug)]
pub(crate) struct Guard {
    place: Place,
    program: String,
    inner: Mutex<Inner>,
}

/// Where a policy comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// With the library.
    Ready(String),
    File(PathBuf),
}

#[derive(Debug)]
struct Inner {
    /// `None`: it could not be read when the context was made, and nothing is allowed.
    policy: Option<Arc<Policy>>,
    /// How the file was when it was read last.
    stamp: Option<Stamp>,
    looked: Instant,
    told: HashSet<String>,
}

/// What is allowed of a bind or a connect.
#[derive(Default)]
pub(crate) struct Allowed {
    /// The options of the endpoint, if they are not those of the socket.
    pub(crate) options: Option<Arc<Options>>,
    /// Whose keys may come to it.
    pub(crate) trust: Option<Trust>,
    /// It goes through TLS.
    pub(crate) wrapped: Option<Wrapped>,
}

/// TLS that is put on an endpoint.
pub(crate) struct Wrapped {
    pub(crate) carrying: Carrying,
    pub(crate) certificates: Arc<Certificates>,
}

/// A call that is not allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Denied {
    /// What the caller gets.
    pub(crate) error: Error,
    /// What says so, for events.
    pub(crate) why: String,
}

impl From<Denied> for Error {
    fn from(denied: Denied) -> Self {
        denied.error
    }
}

/// A call that the policy is asked about.
pub(crate) struct Asked<'a> {
    pub(crate) call: Call,
    pub(crate) endpoint: &'a str,
    #[cfg_attr(not(feature = "tls"), allow(dead_code, reason = "TLS looks for its host"))]
    pub(crate) parsed: &'a Endpoint,
    /// The address that is bound or connected to, where there is one and it is known.
    pub(crate) address: Option<IpAddr>,
    /// ipc: the path of the socket's file.
    pub(crate) path: Option<&'a Path>,
}

impl Guard {
    /// The policy that the environment names (`TAUT_POLICY`: a ready-made one, or a path); `None`
    /// if it names none. Looked up once: a program may be changing the environment later. The error
    /// says what is wrong with it.
    pub(crate) fn of_environment() -> &'static Result<Option<Arc<Guard>>, String> {
        static GUARD: OnceLock<Result<Option<Arc<Guard>>, String>> = OnceLock::new();
        GUARD.get_or_init(|| {
            let named = tautline_io::env::var_os("TAUT_POLICY").filter(|named| !named.is_empty());
            let Some(named) = named else { return Ok(None) };
            let named = named.into_string().map_err(|_| "TAUT_POLICY is no text".to_owned())?;
            Guard::open(&named).map(Some).inspect_err(|fault| say(fault))
        })
    }

    /// A policy by the name of a ready-made one, or a path.
    pub(crate) fn open(named: &str) -> Result<Arc<Guard>, String> {
        let (place, policy, stamp) = match Policy::ready(named) {
            Some(policy) => (Place::Ready(named.to_owned()), policy, None),
            None => {
                // The process may change its folder.
                let path = std::path::absolute(named).map_err(|error| format!("{named}: {error}"))?;
                // Before it is read: what changes from here on is seen.
                let stamp = stamp(&path);
                let policy = read(&path)?;
                (Place::File(path), policy, stamp)
            }
        };
        Ok(Arc::new(Guard::new(place, Some(Arc::new(policy)), stamp)))
    }

    /// Allows nothing: there is a policy, and it cannot be read.
    pub(crate) fn closed() -> Arc<Guard> {
        Arc::new(Guard::new(Place::Ready(String::new()), None, None))
    }

    fn new(place: Place, policy: Option<Arc<Policy>>, stamp: Option<Stamp>) -> Self {
        let program = std::env::current_exe().ok();
        let program = program.as_deref().and_then(Path::file_name);
        let program = program.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let inner = Inner { policy, stamp, looked: Instant::now(), told: HashSet::new() };
        Guard { place, program, inner: Mutex::new(inner) }
    }

    /// The policy as it is now. A file that has changed is read again, as a whole or not at all.
    pub(crate) fn policy(&self) -> Option<Arc<Policy>> {
        let mut inner = lock(&self.inner);
        if let (Place::File(path), Some(_)) = (&self.place, &inner.policy)
            && inner.looked.elapsed() >= LOOK
        {
            inner.looked = Instant::now();
            let stamp = self.place.stamp();
            if stamp != inner.stamp {
                inner.stamp = stamp;
                match read(path) {
                    Ok(policy) => inner.policy = Some(Arc::new(policy)),
                    Err(fault) => drop(complaint::say_later(&format!("{fault}; the policy stays as it was"))),
                }
            }
        }
        inner.policy.clone()
    }

    /// Whether a socket may do this, and with which options.
    ///
    /// # Errors
    /// EACCES if a rule refuses it; [`Error::Invalid`] if the policy cannot be read, or a key that
    /// it names.
    pub(crate) fn ask(&self, asked: &Asked<'_>, options: &Options) -> Result<Allowed, Denied> {
        let invalid = |why: String| Denied { error: Error::Invalid, why };
        let policy = self.policy().ok_or_else(|| invalid("the policy cannot be read".to_owned()))?;
        let socket_type = options.socket_type.name();
        let question = Question {
            address: asked.address,
            program: &self.program,
            mechanism: options.mechanism.name(),
            secure: is_secure(options, asked.endpoint),
            private: asked.path.is_some_and(is_private),
            ..Question::new(asked.call, socket_type, asked.endpoint)
        };
        let verdict = policy.decide(&question);
        let verb = if asked.call == Call::Bind { "bind" } else { "connect" };
        match verdict.action {
            Action::Refuse => {
                self.tell(&verdict, "refuses", &format!("{verb} {} of {socket_type}", asked.endpoint));
                return Err(Denied { error: Error::Os(tautline_io::errno::EACCES), why: self.by(&verdict) });
            }
            Action::Warn => {
                self.tell(&verdict, "warns of", &format!("{verb} {} of {socket_type}", asked.endpoint));
            }
            _ => {}
        }
        let mut own = options.clone();
        own.by_policy.ipc_mode = verdict.mode;
        policy_limits(&policy, &mut own);
        let mut allowed = Allowed::default();
        if let (Some(name), true) = (&verdict.wrap, shakes_hands(asked.endpoint)) {
            let cannot = |what: String| {
                self.tell(&verdict, &format!("cannot wrap ({what})"), &format!("{verb} {}", asked.endpoint));
                invalid(format!("{} cannot wrap ({what})", self.by(&verdict)))
            };
            let wrap = policy.wrap(name).ok_or_else(|| cannot("there is no such wrap".to_owned()))?;
            wrapped(wrap, asked, &mut own, &mut allowed).map_err(cannot)?;
        }
        allowed.options = (own != *options).then(|| Arc::new(own));
        Ok(allowed)
    }

    /// A rule, for events.
    fn by(&self, verdict: &Verdict) -> String {
        format!("rule `{}` of {}", verdict.rule.as_deref().unwrap_or_default(), self.place)
    }

    /// Whether something may say which topics peers may use, now or when the policy is read again.
    pub(crate) fn may_know_topics(&self) -> bool {
        self.is_a_file() || self.policy().is_some_and(|policy| policy.has_topics())
    }

    /// The limit that a session has most likely ended for, for events.
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

    /// Whether that may change.
    pub(crate) fn may_change_topics(&self) -> bool {
        self.is_a_file()
    }

    /// The topics that a peer that we have connected to may use, if anything says so. `None` is
    /// any.
    pub(crate) fn topics_of_server(
        &self,
        stream: &Stream,
        options: &Options,
        endpoint: &str,
    ) -> Option<Topics> {
        let policy = self.policy()?;
        if !policy.has_topics() {
            return None;
        }
        let question = Question {
            program: &self.program,
            mechanism: options.mechanism.name(),
            user: stream.peer_credentials().ok().map(|who| who.uid),
            user_id: &self.server_id(&policy, options, endpoint),
            ..Question::new(Call::Connect, options.socket_type.name(), endpoint)
        };
        policy.topics(&question)
    }

    /// The user id of a server that has shown its key: what the file is called that a wrap finds
    /// that key in; else empty.
    fn server_id(&self, policy: &Policy, options: &Options, endpoint: &str) -> String {
        if !options.mechanism.encrypts() || options.as_server {
            return String::new();
        }
        let key = tautline_proto::z85::encode_key(&options.curve_server_key);
        let owner = |wrap: &Wrap| {
            let Some(Key::File(path)) = wrap.server(endpoint) else { return None };
            let mut owners = keys::owners(path).ok()?.into_iter();
            owners.find(|(known, _)| known.as_bytes() == key).map(|(_, owner)| owner)
        };
        policy.wraps().iter().find_map(owner).unwrap_or_default()
    }

    /// The file name of this program.
    fn program(&self) -> &str {
        &self.program
    }

    /// Whether the policy may change.
    fn is_a_file(&self) -> bool {
        matches!(self.place, Place::File(_))
    }

    /// Tells that a limit keeps a peer away, once for each limit and endpoint.
    fn tell_limit(&self, limit: &str, endpoint: &str, peer: &str) {
        let what = format!("the limit `{limit}` keeps peers away from {endpoint}");
        if self.is_new(&what) {
            drop(complaint::say_later(&format!("{}: {what}, {peer} first", self.place)));
        }
    }

    /// Tells that a peer may not use a topic, once for each rule and endpoint.
    fn tell_of_topic(&self, rule: &str, does: &str, endpoint: &str, first: &str) {
        let what = format!("rule `{rule}` does not let peers at {endpoint} {does} some topics");
        if self.is_new(&what) {
            drop(complaint::say_later(&format!("{}: {what}, {first} first", self.place)));
        }
    }

    /// Tells of a peer, once for each rule and endpoint: how many come is not for us to say.
    fn tell_of_peer(&self, verdict: &Verdict, does: &str, endpoint: &str, peer: &str) {
        let rule = verdict.rule.as_deref().unwrap_or_default();
        let what = format!("rule `{rule}` {does} peers at {endpoint}");
        if self.is_new(&what) {
            drop(complaint::say_later(&format!("{}: {what}, {peer} first", self.place)));
        }
    }

    /// Tells the user of the program, once for each rule and what it is applied to.
    fn tell(&self, verdict: &Verdict, does: &str, what: &str) {
        let rule = verdict.rule.as_deref().unwrap_or_default();
        let text = format!("rule `{rule}` {does} {what}");
        if self.is_new(&text) {
            say(&format!("{}: {text}", self.place));
        }
    }

    /// Whether this was not told yet.
    fn is_new(&self, text: &str) -> bool {
        let mut inner = lock(&self.inner);
        if inner.told.len() >= TOLD {
            inner.told.clear();
        }
        inner.told.insert(text.to_owned())
    }
}

impl Place {
    fn stamp(&self) -> Option<Stamp> {
        match self {
            Place::Ready(_) => None,
            Place::File(path) => stamp(path),
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Ready(name) => write!(f, "policy {name}"),
            Place::File(path) => write!(f, "policy {}", path.display()),
        }
    }
}

fn read(path: &Path) -> Result<Policy, String> {
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("policy {}: {error}", path.display()))?;
    Policy::parse(&text).map_err(|fault| format!("policy {}: {fault}", path.display()))
}

/// Whether CURVE or TLS protects a connection with these options.
pub(crate) fn is_secure(options: &Options, endpoint: &str) -> bool {
    is_in_tls(endpoint) || options.mechanism.encrypts() && !is_raw(options)
}

/// Whether the transport of an endpoint is TLS.
fn is_in_tls(endpoint: &str) -> bool {
    endpoint.starts_with("wss://") || endpoint.starts_with("tls+tcp://")
}

/// Whether streams have no ZMTP, and so no mechanism, whatever the options say of one.
fn is_raw(options: &Options) -> bool {
    options.facts().raw || options.router_raw
}

/// Whether the connections of an endpoint shake hands: those can be wrapped.
fn shakes_hands(endpoint: &str) -> bool {
    !endpoint.starts_with("inproc://") && !endpoint.starts_with("udp://")
}

/// Whether no other user can reach the file of a socket: it is closed to them, or its folder is.
fn is_private(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let own = own_user();
        let is_closed = |path: &Path| {
            std::fs::metadata(path)
                .is_ok_and(|found| found.mode() & 0o077 == 0 && own.is_none_or(|own| own == found.uid()))
        };
        is_closed(path) || path.parent().is_some_and(is_closed)
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}

/// The user that this process works for, if it is known.
fn own_user() -> Option<u32> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        static OWN: OnceLock<Option<u32>> = OnceLock::new();
        *OWN.get_or_init(|| std::fs::metadata("/proc/self").ok().map(|found| found.uid()))
    }
    #[cfg(not(unix))]
    None
}

/// What the policy's limits say that options can say.
fn policy_limits(policy: &Policy, options: &mut Options) {
    let limits = policy.limits();
    options.max_msg_size = match (options.max_msg_size, limits.message_bytes) {
        (Some(own), Some(limit)) => Some(own.min(limit)),
        (own, limit) => own.or(limit),
    };
    options.by_policy.most_subscriptions = limits.subscription_bytes_per_peer;
    options.by_policy.most_unread = limits.unread_bytes_per_peer;
}

/// Wraps an endpoint, unless the program has asked for the like itself.
fn wrapped(wrap: &Wrap, asked: &Asked<'_>, own: &mut Options, allowed: &mut Allowed) -> Result<(), String> {
    if is_secure(own, asked.endpoint) {
        return Ok(());
    }
    if is_raw(own) {
        return Err("the socket has no ZMTP".into());
    }
    if wrap.tls.is_some() {
        let certificates = Certificates::open(wrap, asked)?;
        let carrying = certificates.carrying(asked, own).map_err(|error| error.to_string())?;
        allowed.wrapped = Some(Wrapped { carrying, certificates });
        return Ok(());
    }
    // A name and a password are not put into CURVE: it would have to be another mechanism.
    if own.mechanism.has_credentials() {
        return Ok(());
    }
    put_on(wrap, asked, own)?;
    if let (Call::Bind, Some(clients)) = (asked.call, &wrap.clients) {
        allowed.trust = Some(Trust::open(clients)?);
    }
    Ok(())
}

/// Puts CURVE on an endpoint.
fn put_on(wrap: &Wrap, asked: &Asked<'_>, options: &mut Options) -> Result<(), String> {
    let mut set = |code, value: &[u8]| options.set(code, value).map_err(|_| "a key is none".to_owned());
    let pair = wrap.key.as_deref().map(keys::pair).transpose().map_err(|error| error.to_string())?;
    if asked.call == Call::Bind {
        let pair = pair.ok_or_else(|| format!("`{}` has no `key`, which a server needs", wrap.name))?;
        set(CURVE_SERVER, &1_i32.to_ne_bytes())?;
        set(CURVE_PUBLICKEY, pair.public.as_bytes())?;
        return set(CURVE_SECRETKEY, pair.secret.as_bytes());
    }
    let server = match wrap.server(asked.endpoint) {
        Some(Key::Text(key)) => key.clone(),
        Some(Key::File(path)) => {
            let found = keys::publics(path).map_err(|error| error.to_string())?;
            match &found[..] {
                [key] => key.clone(),
                _ => return Err(format!("{} has {} keys, and is to have one", path.display(), found.len())),
            }
        }
        None => return Err(format!("`servers` of `{}` has no key for it", wrap.name)),
    };
    set(CURVE_SERVERKEY, server.as_bytes())?;
    match pair {
        Some(pair) => {
            set(CURVE_PUBLICKEY, pair.public.as_bytes())?;
            set(CURVE_SECRETKEY, pair.secret.as_bytes())
        }
        None => {
            let mut secret = Secret::new([0; 32]);
            tautline_io::random::fill(&mut secret[..]).map_err(|error| error.to_string())?;
            set(CURVE_PUBLICKEY, &public_key(&secret))?;
            set(CURVE_SECRETKEY, &secret[..])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A file of its own.
    struct File(PathBuf);

    impl File {
        fn new(name: &str, text: &str) -> Self {
            let name = format!("tautline-{name}-{}", tautline_io::thread::process_id());
            let file = File(std::env::temp_dir().join(name));
            file.write(text);
            file
        }

        fn write(&self, text: &str) {
            fs::write(&self.0, text).unwrap();
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    /// As if the last look were long ago.
    fn look(looked: &mut Instant) {
        *looked = Instant::now().checked_sub(LOOK).unwrap();
    }

    #[test]
    fn a_file_with_a_fault_leaves_the_policy_as_it_was() {
        let file = File::new("policy", "[limits]\nconnections = 1\n");
        let guard = Guard::open(file.0.to_str().unwrap()).unwrap();
        let limit = |guard: &Guard| {
            look(&mut lock(&guard.inner).looked);
            guard.policy().unwrap().limits().connections
        };
        assert_eq!(limit(&guard), Some(1));
        file.write("[limits]\nconnections = many\n");
        assert_eq!(limit(&guard), Some(1));
        file.write("[limits]\nconnections = 1000\n");
        assert_eq!(limit(&guard), Some(1000));
        drop(file);
        assert_eq!(limit(&guard), Some(1000), "it is gone");
    }

    #[test]
    fn keys_that_cannot_be_read_leave_the_clients_as_they_were() {
        let text = |key: &[u8; 32]| String::from_utf8(tautline_proto::z85::encode_key(key).to_vec()).unwrap();
        let file = File::new("clients", &text(&[1; 32]));
        let trust = Trust::open(&file.0).unwrap();
        let has = |trust: &Trust, key: u8| {
            trust.look_soon();
            trust.owner(&[key; 32]).is_some()
        };
        assert!(has(&trust, 1) && !has(&trust, 2));
        file.write("nonsense");
        assert!(has(&trust, 1) && !has(&trust, 2));
        file.write(&format!("{}\n{}\n", text(&[2; 32]), text(&[3; 32])));
        assert!(!has(&trust, 1) && has(&trust, 2) && has(&trust, 3));
        assert_eq!(trust.owner(b"short"), None);
        assert!(trust.owner(&[2; 32]).is_some_and(|owner| owner.starts_with("tautline-clients")));
    }
}
