//! A connected name: finds the endpoints of the name, and follows changes.
//!
//! ```text
//!  Resolve ── update_entries ────▶ Finder ─┬─ a Dialer for each endpoint: a peer appears as with
//!   (a thread of its own)                │  ZMQ_IMMEDIATE, once it is connected
//!                                        └─ a pair of inproc ends, for a socket of this context
//! ```
//!
//! Endpoints that no longer belong to the name are given up as by zmq_disconnect. The owner does
//! this in its next call, so messages that it sends before that call are not lost.

use super::{Dialer, EventLoop, Site};
use crate::conn::inproc::{self, Offer};
use crate::conn::{News, PeerInfo};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::host::{Allowed, Call, CallRequest, Denied, NameEntry, NameFollower, Resolve};
use crate::monitor::{Ends, event};
use crate::options::Options;
use crate::transport::ConnectTarget;
use std::time::Duration;
use tautline_io::errno;
use tautline_queue::sync::{Arc, Mutex, lock};

/// Prefix of the inproc endpoints of registered sockets.
const INPROC: &str = "inproc://tautline-name-";

/// Returns the inproc endpoint of the socket whose entry has this id.
pub(crate) fn inproc_endpoint(id: &str) -> String {
    format!("{INPROC}{id}")
}

/// The bound inproc names of a context.
pub(crate) trait InprocSockets: Send + Sync {
    /// True if a socket has bound this name.
    fn has(&self, name: &str) -> bool;

    /// Hands an end to the socket that has bound the name. Returns that socket's peer information,
    /// or `None` if the socket no longer exists.
    fn meet(&self, name: &str, offer: Offer) -> Option<Box<PeerInfo>>;
}

/// A path to one of the endpoints of the name.
#[derive(Clone)]
pub(crate) enum NamePath {
    /// Over streams.
    Dialer(Arc<Dialer>),
    /// To a socket of this context, at this inproc endpoint.
    Inproc,
    /// No path: the endpoint is unusable, or the policy refuses it. The monitor has reported this.
    Nowhere,
}

/// Plan for reaching a newly found endpoint.
enum Plan {
    Dial(Arc<Options>, Box<ConnectTarget>),
    Meet,
    Nowhere,
}

#[derive(Default)]
struct FinderState {
    over: bool,
    /// Version of the newest answer that was applied.
    version: u64,
    paths: Vec<(Arc<str>, NamePath)>,
    /// Paths that the owner has still to give up.
    removed: Vec<(Arc<str>, NamePath)>,
}

/// A connected name.
pub(crate) struct Finder {
    site: Arc<Site>,
    options: Arc<Options>,
    resolver: Arc<dyn Resolve>,
    neighbours: Arc<dyn InprocSockets>,
    /// Number of the socket. A socket does not connect to endpoints that it has bound itself.
    socket: u64,
    /// The name as the program gave it, for example `name://orders`.
    given: Arc<str>,
    /// Information about the socket for peers in this process.
    whoami: PeerInfo,
    state: Mutex<FinderState>,
}

impl Finder {
    /// Creates a finder that has found no peer yet.
    pub(crate) fn new(
        site: &Arc<Site>,
        options: &Options,
        resolver: &Arc<dyn Resolve>,
        neighbours: Arc<dyn InprocSockets>,
        socket: u64,
        given: Arc<str>,
        whoami: PeerInfo,
    ) -> Arc<Finder> {
        let mut options = options.clone();
        // A name may have many endpoints, or zero. One routing id cannot serve many peers.
        options.immediate = true;
        options.connect_routing_id = None;
        Arc::new(Finder {
            site: site.clone(),
            options: Arc::new(options),
            resolver: resolver.clone(),
            neighbours,
            socket,
            given,
            whoami,
            state: Mutex::default(),
        })
    }

    /// Owner: ends the search and returns all current paths, which the owner must give up.
    pub(crate) fn end_search(&self) -> Vec<(Arc<str>, NamePath)> {
        let mut state = lock(&self.state);
        state.over = true;
        let mut ways = std::mem::take(&mut state.paths);
        ways.append(&mut state.removed);
        drop(state);
        self.resolver.notify_follower_dropped();
        ways
    }

    /// Owner: takes the paths to give up, because their endpoints no longer belong to the name.
    pub(crate) fn take_removed(&self) -> Vec<(Arc<str>, NamePath)> {
        std::mem::take(&mut lock(&self.state).removed)
    }

    /// Returns the nearest endpoint of an entry, or `None` if the entry is the socket itself.
    fn nearest(&self, entry: &NameEntry) -> Option<Arc<str>> {
        if let Some(id) = &entry.id {
            if self.resolver.socket_of(id) == Some(self.socket) {
                return None;
            }
            let inproc = inproc_endpoint(id);
            if may_be_inproc(&self.options) && self.neighbours.has(inproc_name(&inproc)) {
                return Some(inproc.into());
            }
        }
        entry.endpoints.first().map(|endpoint| endpoint.as_str().into())
    }

    /// Decides how to reach an endpoint. Asks the policy, which may take a moment.
    fn plan(&self, endpoint: &str) -> Plan {
        match self.try_plan(endpoint) {
            Ok(plan) => plan,
            Err(Denied { error, why }) => {
                let ends = Ends::connected(endpoint);
                self.site.events.emit_because(
                    event::HANDSHAKE_FAILED_NO_DETAIL,
                    error.errno() as u32,
                    &ends,
                    &why,
                );
                Plan::Nowhere
            }
        }
    }

    fn try_plan(&self, endpoint: &str) -> Result<Plan, Denied> {
        let unfit = |error: Error| Denied {
            error,
            why: format!("{} contains this endpoint, which the socket cannot use", self.given),
        };
        let parsed = Endpoint::parse(endpoint).map_err(unfit)?;
        let allowed = self.allowed(endpoint, &parsed)?;
        match parsed {
            // Only `nearest` returns such an endpoint. A program's own inproc endpoint would bypass
            // CURVE and ZAP.
            Endpoint::Inproc(_) if endpoint.starts_with(INPROC) && may_be_inproc(&self.options) => {
                return Ok(Plan::Meet);
            }
            Endpoint::Stream(..) => {}
            _ => return Err(unfit(Error::Invalid)),
        }
        let mut target = ConnectTarget::new(parsed, &self.options).map_err(unfit)?;
        let Allowed { options, carrying, .. } = allowed;
        target.apply_policy(options.as_deref(), carrying);
        Ok(Plan::Dial(options.unwrap_or_else(|| self.options.clone()), Box::new(target)))
    }

    fn allowed(&self, endpoint: &str, parsed: &Endpoint) -> Result<Allowed, Denied> {
        let Some(admission) = self.site.admission() else { return Ok(Allowed::default()) };
        let call = CallRequest::new(Call::Connect, endpoint, parsed, None, &self.options);
        Ok(admission.clone().ask(&call)?.against(&self.options))
    }

    /// I/O thread: applies a new list of endpoints. `plans` are for the new ones.
    fn apply_endpoints(
        &self,
        turn: &mut EventLoop,
        version: u64,
        wanted: &[Arc<str>],
        plans: Vec<(Arc<str>, Plan)>,
    ) {
        let mut changed = false;
        {
            let state = &mut *lock(&self.state);
            if state.over || self.site.is_closed() || version < state.version {
                return;
            }
            state.version = version;
            for (endpoint, way) in state.paths.extract_if(.., |(endpoint, _)| !wanted.contains(endpoint)) {
                match &way {
                    // A dialer without a connection has no messages to lose.
                    NamePath::Dialer(dialer) if dialer.current().is_none() => {
                        dialer.linger(turn, Some(Duration::ZERO));
                    }
                    NamePath::Nowhere => {}
                    _ => {
                        state.removed.push((endpoint, way));
                        changed = true;
                    }
                }
            }
            for (endpoint, plan) in plans {
                if !wanted.contains(&endpoint) || state.paths.iter().any(|(known, _)| *known == endpoint) {
                    continue;
                }
                let way = match plan {
                    Plan::Dial(options, target) => {
                        NamePath::Dialer(Dialer::start(&self.site, options, *target, endpoint.clone(), None))
                    }
                    Plan::Meet if self.meet(&endpoint) => NamePath::Inproc,
                    // The other socket is gone. The next answer will reflect that.
                    Plan::Meet => continue,
                    Plan::Nowhere => NamePath::Nowhere,
                };
                state.paths.push((endpoint, way));
            }
        }
        if changed {
            self.site.inbox.push(News::NameChanged);
        }
    }

    /// Joins the socket with another socket of its context. Returns false if the other socket is
    /// gone.
    fn meet(&self, endpoint: &Arc<str>) -> bool {
        let ends: Arc<Ends> = Arc::new(Ends::connected(endpoint.clone()));
        let unknown = Box::new(PeerInfo::default());
        let (mut mine, theirs) = inproc::pair(&self.options, [unknown, Box::new(self.whoami.clone())]);
        mine.end.set_inbox(&self.site.inbox);
        mine.end.set_receive_hwm(self.options.receive_hwm);
        let Some(peer) = self.neighbours.meet(inproc_name(endpoint), theirs) else { return false };
        *mine.peer = PeerInfo { ends, ..*peer };
        self.site.inbox.push(News::Inproc(Box::new(mine)));
        true
    }
}

impl NameFollower for Finder {
    fn update_entries(self: Arc<Self>, version: u64, entries: &[NameEntry]) {
        let wanted: Vec<Arc<str>> = entries.iter().filter_map(|entry| self.nearest(entry)).collect();
        let known: Vec<Arc<str>> =
            lock(&self.state).paths.iter().map(|(endpoint, _)| endpoint.clone()).collect();
        let mut plans: Vec<(Arc<str>, Plan)> = Vec::new();
        for endpoint in &wanted {
            if !known.contains(endpoint) && plans.iter().all(|(planned, _)| planned != endpoint) {
                plans.push((endpoint.clone(), self.plan(endpoint)));
            }
        }
        let why = match wanted.len() {
            1 => "the name has 1 endpoint".to_owned(),
            count => format!("the name has {count} endpoints"),
        };
        self.site.events.emit_because(event::NAME, 0, &Ends::connected(self.given.clone()), &why);
        let driver = self.site.driver.clone();
        driver.post(Box::new(move |turn| self.apply_endpoints(turn, version, &wanted, plans)));
    }

    fn report_refused_endpoint(&self, resolver: &str, endpoint: &str) {
        let why = format!("{resolver} returned this endpoint for {}, which is not allowed", self.given);
        let number = Error::Invalid.errno() as u32;
        self.site.events.emit_because(
            event::HANDSHAKE_FAILED_NO_DETAIL,
            number,
            &Ends::connected(endpoint),
            &why,
        );
    }

    fn report_resolver(&self, resolver: &str, why: Option<&str>) {
        let ends = Ends::connected(self.given.clone());
        match why {
            Some(why) => {
                let why = format!("{resolver} failed: {why}");
                self.site.events.emit_because(event::NAME, errno::EHOSTUNREACH as u32, &ends, &why);
            }
            None => {
                let why = format!("{resolver} recovered");
                self.site.events.emit_because(event::NAME, 0, &ends, &why);
            }
        }
    }
}

/// The name in an inproc endpoint.
fn inproc_name(endpoint: &str) -> &str {
    endpoint.split_once("://").map_or(endpoint, |(_, name)| name)
}

/// True if sockets with these options may connect without a stream: they ask for no credentials and
/// send messages.
pub(crate) fn may_be_inproc(options: &Options) -> bool {
    let is_raw = options.type_info().raw || options.router_raw;
    !is_raw && !options.mechanism.has_credentials() && options.zap_domain.is_empty()
}
