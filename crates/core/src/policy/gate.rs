//! The policy's checks of the peers that connect to one bound endpoint.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use super::{Certificates, Guard, Proof, Trust, is_secure};
use crate::options::{Mechanism, Options};
use tautline_io::net::{Address, Stream};
use tautline_policy::{Action, AllowedTopics, Call, Limits, Policy, PolicyQuery};
use tautline_queue::sync::{Arc, Mutex, lock};

/// Checks each peer that connects to an endpoint.
#[derive(Debug)]
pub(crate) struct Gate {
    guard: Arc<Guard>,
    trust: Option<Trust>,
    certificates: Option<Arc<Certificates>>,
    socket_type: &'static str,
    mechanism: Mechanism,
    secure: bool,
    endpoint: String,
    counts: Mutex<Counts>,
}

#[derive(Debug)]
struct Counts {
    all: u64,
    by_address: HashMap<IpAddr, u64>,
    /// Number of connections that may be accepted at once, in billionths, and the time of this
    /// value.
    allowance: u64,
    since: Instant,
}

/// A connection. The gate counts it until it is dropped.
#[derive(Debug)]
pub(crate) struct Counted {
    gate: Arc<Gate>,
    address: Option<IpAddr>,
}

/// The source of a peer, as far as sources are distinguished: an IPv4 address, an IPv6 network of
/// 64 bits (which one host has completely), or for ipc a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PeerSource {
    Address(IpAddr),
    User(u32),
    Unknown,
}

impl PeerSource {
    pub(crate) fn of(stream: &Stream) -> Self {
        match (address_of(stream), stream.peer_credentials()) {
            (Some(IpAddr::V6(address)), _) => {
                PeerSource::Address(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into())
            }
            (Some(address), _) => PeerSource::Address(address),
            (None, Ok(who)) => PeerSource::User(who.uid),
            (None, Err(_)) => PeerSource::Unknown,
        }
    }
}

/// Refusal of a peer, at its connect or later, with the rule or reason for events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal(pub(crate) String);

/// Billionths.
const ONE: u64 = 1_000_000_000;

impl Gate {
    /// Creates the gate of an endpoint that is bound with these options.
    pub(crate) fn new(
        guard: Arc<Guard>,
        trust: Option<Trust>,
        certificates: Option<Arc<Certificates>>,
        options: &Options,
        endpoint: &str,
    ) -> Arc<Self> {
        let counts = Counts { all: 0, by_address: HashMap::new(), allowance: ONE, since: Instant::now() };
        Arc::new(Gate {
            guard,
            trust,
            socket_type: options.socket_type.name(),
            mechanism: options.mechanism,
            secure: certificates.is_some() || is_secure(options, endpoint),
            certificates,
            endpoint: endpoint.to_owned(),
            counts: Mutex::new(counts),
        })
    }

    /// Returns the time until the next peer may be accepted, by the limit of handshakes.
    pub(crate) fn pause(&self) -> Option<Duration> {
        let limit = self.guard.policy()?.limits().handshakes_per_second?;
        let mut counts = lock(&self.counts);
        let now = Instant::now();
        let nanos = u64::try_from((now - counts.since).as_nanos()).unwrap_or(u64::MAX);
        counts.since = now;
        // A burst is at most the number of connections of a tenth of a second.
        let most = ONE.max(limit.saturating_mul(ONE / 10));
        counts.allowance = counts.allowance.saturating_add(nanos.saturating_mul(limit)).min(most);
        match counts.allowance.checked_sub(ONE) {
            Some(rest) => {
                counts.allowance = rest;
                None
            }
            None => Some(Duration::from_nanos((ONE - counts.allowance).div_ceil(limit.max(1)).max(1))),
        }
    }

    /// Checks if a newly connected peer may start a handshake.
    pub(crate) fn admit(self: &Arc<Self>, stream: &Stream) -> Result<Counted, Refusal> {
        let policy = self.policy()?;
        let address = address_of(stream);
        // If rules depend on the user id, ask them later, when it is known.
        if !policy.depends_on_user_ids() {
            self.ask(&policy, stream, "")?;
        }
        self.count(policy.limits(), address)?;
        Ok(Counted { gate: self.clone(), address })
    }

    fn policy(&self) -> Result<Arc<Policy>, Refusal> {
        self.guard.policy().ok_or_else(|| Refusal("the policy cannot be read".to_owned()))
    }

    /// Reports a peer that exceeds this limit. Returns the refusal for events.
    pub(crate) fn refuse_over_limit(&self, limit: &str, peer: &str) -> Refusal {
        self.guard.report_limit(limit, &self.endpoint, peer);
        Refusal(format!("limit `{limit}` of {}", self.guard.place))
    }

    /// Maximum number of parallel handshakes, and maximum number of bytes of one handshake.
    pub(crate) fn handshakes(&self) -> (Option<u64>, Option<u64>) {
        let policy = self.guard.policy();
        policy.map_or((None, None), |policy| (policy.limits().handshakes, policy.limits().handshake_bytes))
    }

    /// Maximum number of bytes that may be queued for a peer.
    pub(crate) fn most_unread(&self) -> Option<u64> {
        self.guard.policy()?.limits().unread_bytes_per_peer
    }

    fn count(&self, limits: &Limits, address: Option<IpAddr>) -> Result<(), Refusal> {
        let mut counts = lock(&self.counts);
        let is_full = |count: u64, limit: Option<u64>| limit.is_some_and(|limit| count >= limit);
        let own = address.map_or(0, |address| counts.by_address.get(&address).copied().unwrap_or(0));
        let too_many = if is_full(counts.all, limits.connections) {
            Some("connections")
        } else if address.is_some() && is_full(own, limits.connections_per_address) {
            Some("connections_per_address")
        } else {
            None
        };
        if let Some(limit) = too_many {
            drop(counts);
            let peer = address.map(|address| address.to_string()).unwrap_or_default();
            return Err(self.refuse_over_limit(limit, &peer));
        }
        counts.all += 1;
        if let Some(address) = address {
            counts.by_address.insert(address, own + 1);
        }
        Ok(())
    }

    /// The user id of a client that has shown this key. `None` if there is no list of clients.
    ///
    /// # Errors
    /// The key is not on the list.
    pub(crate) fn owner(&self, key: &[u8]) -> Result<Option<Arc<str>>, Refusal> {
        let Some(trust) = &self.trust else { return Ok(None) };
        let stranger = || Refusal(format!("its key is not in {}", trust.path().display()));
        trust.owner(key).map(Some).ok_or_else(stranger)
    }

    /// Checks that the lists of clients match their files, so that a new peer can be checked
    /// against them.
    ///
    /// # Errors
    /// A list has changed and could not be read for some seconds.
    pub(crate) fn is_current(&self) -> Result<(), Refusal> {
        let keys = self.trust.as_ref().is_none_or(Trust::is_current);
        let certificates = self.certificates.as_ref().is_none_or(|known| known.is_current());
        if keys && certificates {
            return Ok(());
        }
        Err(Refusal("the list of clients changed and cannot be read".to_owned()))
    }

    /// Checks that the whole proof of a client is trusted.
    ///
    /// # Errors
    /// The part that is not trusted.
    pub(crate) fn check_proof(&self, proof: Option<&mut Proof>) -> Result<(), Refusal> {
        let mut nothing = Proof::default();
        let proof = proof.unwrap_or(&mut nothing);
        if self.trust.is_some() {
            self.owner(proof.key().unwrap_or_default())?;
        }
        match &self.certificates {
            Some(certificates) if !certificates.admit(proof) => {
                Err(Refusal("its certificate is not trusted".to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Checks if a peer may stay, after the ZAP handler has named its user or the policy has
    /// changed.
    pub(crate) fn check_peer(&self, stream: &Stream, user_id: &str) -> Result<(), Refusal> {
        let policy = self.policy()?;
        self.ask(&policy, stream, user_id)
    }

    /// The topics that a peer may use. `None` means all topics.
    pub(crate) fn topics(&self, stream: &Stream, user_id: &str) -> Option<AllowedTopics> {
        let policy = self.guard.policy().filter(|policy| policy.has_topics())?;
        policy.topics(&self.question(stream, user_id))
    }

    /// True if a connected peer may lose its permission later.
    pub(crate) fn may_change(&self) -> bool {
        self.trust.is_some() || self.certificates.is_some() || self.guard.is_a_file()
    }

    fn ask(&self, policy: &Policy, stream: &Stream, user_id: &str) -> Result<(), Refusal> {
        if !policy.depends_on_peers() {
            return Ok(());
        }
        let verdict = policy.decide(&self.question(stream, user_id));
        let peer = crate::transport::peer_name(stream);
        match verdict.action {
            Action::Refuse => {
                self.guard.report_peer(&verdict, "refuses", &self.endpoint, &peer);
                Err(Refusal(self.guard.rule_label(&verdict)))
            }
            Action::Warn => {
                self.guard.report_peer(&verdict, "warns about", &self.endpoint, &peer);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl Gate {
    fn question<'a>(&'a self, stream: &Stream, user_id: &'a str) -> PolicyQuery<'a> {
        let user = stream.peer_credentials().ok().map(|who| who.uid);
        PolicyQuery {
            address: address_of(stream),
            program: self.guard.program(),
            mechanism: self.mechanism.name(),
            secure: self.secure,
            private: stream.is_peer_own_user(),
            user,
            user_id,
            ..PolicyQuery::new(Call::Accept, self.socket_type, &self.endpoint)
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = lock(&self.gate.counts);
        counts.all = counts.all.saturating_sub(1);
        if let Some(address) = self.address {
            match counts.by_address.get_mut(&address) {
                Some(count) if *count > 1 => *count -= 1,
                _ => {
                    counts.by_address.remove(&address);
                }
            }
        }
    }
}

fn address_of(stream: &Stream) -> Option<IpAddr> {
    match stream.peer_address() {
        Ok(Address::Inet(address)) => Some(address.ip().to_canonical()),
        _ => None,
    }
}
