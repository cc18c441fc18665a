//! The policy's checks of the peers that connect to one bound endpoint.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::bound::Permit;
use super::{Certificates, Guard, Trust, allowed_topics};
use tautline_core::host::{AdmittedPeer, AllowedTopics, ConnectedPeer, Gate, Proof, Refusal};
use tautline_policy::{Action, Call, Limits, Policy, PolicyQuery};
use tautline_queue::sync::{Arc, Mutex, lock};

/// Checks each peer that connects to an endpoint.
pub(super) struct PeerGate {
    guard: Arc<Guard>,
    trust: Option<Trust>,
    certificates: Option<Arc<Certificates>>,
    socket_type: &'static str,
    mechanism: &'static str,
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
struct Counted {
    gate: Arc<PeerGate>,
    address: Option<IpAddr>,
}

/// Billionths.
const ONE: u64 = 1_000_000_000;

impl PeerGate {
    pub(super) fn new(permit: Permit, mechanism: &'static str, is_secure: bool) -> Arc<Self> {
        let counts = Counts { all: 0, by_address: HashMap::new(), allowance: ONE, since: Instant::now() };
        Arc::new(PeerGate {
            guard: permit.guard,
            trust: permit.trust,
            certificates: permit.certificates,
            socket_type: permit.socket_type,
            mechanism,
            secure: is_secure,
            endpoint: permit.endpoint,
            counts: Mutex::new(counts),
        })
    }

    fn policy(&self) -> Result<Arc<Policy>, Refusal> {
        self.guard.policy().ok_or_else(|| Refusal("the policy cannot be read".to_owned()))
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

    fn ask(&self, policy: &Policy, peer: ConnectedPeer<'_>, user_id: &str) -> Result<(), Refusal> {
        if !policy.depends_on_peers() {
            return Ok(());
        }
        let verdict = policy.decide(&self.question(peer, user_id));
        let name = peer.name();
        match verdict.action {
            Action::Refuse => {
                self.guard.report_peer(&verdict, "refuses", &self.endpoint, &name);
                Err(Refusal(self.guard.rule_label(&verdict)))
            }
            Action::Warn => {
                self.guard.report_peer(&verdict, "warns about", &self.endpoint, &name);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn question<'a>(&'a self, peer: ConnectedPeer<'_>, user_id: &'a str) -> PolicyQuery<'a> {
        PolicyQuery {
            address: peer.address(),
            program: self.guard.program(),
            mechanism: self.mechanism,
            secure: self.secure,
            private: peer.is_own_user(),
            user: peer.user(),
            user_id,
            ..PolicyQuery::new(Call::Accept, self.socket_type, &self.endpoint)
        }
    }
}

impl Gate for PeerGate {
    fn pause(&self) -> Option<Duration> {
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

    fn admit(self: Arc<Self>, peer: ConnectedPeer<'_>) -> Result<AdmittedPeer, Refusal> {
        let policy = self.policy()?;
        let address = peer.address();
        // If rules depend on the user id, ask them later, when it is known.
        if !policy.depends_on_user_ids() {
            self.ask(&policy, peer, "")?;
        }
        self.count(policy.limits(), address)?;
        Ok(Box::new(Counted { gate: self, address }))
    }

    fn refuse_over_limit(&self, limit: &str, peer: &str) -> Refusal {
        self.guard.report_limit(limit, &self.endpoint, peer);
        Refusal(format!("limit `{limit}` of {}", self.guard.place))
    }

    fn most_handshakes(&self) -> Option<u64> {
        self.guard.policy()?.limits().handshakes
    }

    fn handshake_bytes(&self) -> Option<u64> {
        self.guard.policy()?.limits().handshake_bytes
    }

    fn most_unread(&self) -> Option<u64> {
        self.guard.policy()?.limits().unread_bytes_per_peer
    }

    fn owner(&self, key: &[u8]) -> Result<Option<Arc<str>>, Refusal> {
        let Some(trust) = &self.trust else { return Ok(None) };
        let stranger = || Refusal(format!("its key is not in {}", trust.path().display()));
        trust.owner(key).map(Some).ok_or_else(stranger)
    }

    fn check_lists(&self) -> Result<(), Refusal> {
        let keys = self.trust.as_ref().is_none_or(Trust::is_current);
        let certificates = self.certificates.as_ref().is_none_or(|known| known.is_current());
        if keys && certificates {
            return Ok(());
        }
        Err(Refusal("the list of clients changed and cannot be read".to_owned()))
    }

    fn check_proof(&self, proof: Option<&mut Proof>) -> Result<(), Refusal> {
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

    fn check_peer(&self, peer: ConnectedPeer<'_>, user_id: &str) -> Result<(), Refusal> {
        let policy = self.policy()?;
        self.ask(&policy, peer, user_id)
    }

    fn topics(&self, peer: ConnectedPeer<'_>, user_id: &str) -> Option<AllowedTopics> {
        let policy = self.guard.policy().filter(|policy| policy.has_topics())?;
        policy.topics(&self.question(peer, user_id)).map(allowed_topics)
    }

    fn may_change(&self) -> bool {
        self.trust.is_some() || self.certificates.is_some() || self.guard.is_a_file()
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
