//! What the policy says of the peers that come to one bound endpoint.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::{Certificates, Guard, Proof, Trust, is_secure};
use crate::options::{Mechanism, Options};
use crate::sync::{Arc, Mutex, lock};
use tautline_io::net::{Address, Stream};
use tautline_policy::{Action, Call, Limits, Policy, Question};

/// Looks at each peer that comes to an endpoint.
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
    /// Connections that may be accepted at once now, in billionths, and when that was so.
    allowance: u64,
    since: Instant,
}

/// A connection that counts as long as it is there.
#[derive(Debug)]
pub(crate) struct Counted {
    gate: Arc<Gate>,
    address: Option<IpAddr>,
}

/// A peer may not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal;

/// Billionths.
const ONE: u64 = 1_000_000_000;

impl Gate {
    /// Of an endpoint that is bound with these options.
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

    /// How long the next peer has to wait before it may be accepted, by the limit of handshakes.
    pub(crate) fn pause(&self) -> Option<Duration> {
        let limit = self.guard.policy()?.limits().handshakes_per_second?;
        let mut counts = lock(&self.counts);
        let now = Instant::now();
        let nanos = u64::try_from((now - counts.since).as_nanos()).unwrap_or(u64::MAX);
        counts.since = now;
        // No more than those of a tenth of a second come at once.
        let most = ONE.max(limit.saturating_mul(ONE / 10));
        counts.allowance = counts.allowance.saturating_add(nanos.saturating_mul(limit)).min(most);
        match counts.allowance.checked_sub(ONE) {
            Some(rest) => {
                counts.allowance = rest;
                None
            }
            None if limit == 0 => Some(Duration::from_secs(1)),
            None => Some(Duration::from_nanos((ONE - counts.allowance).div_ceil(limit).max(1))),
        }
    }

    /// Whether a peer that has just come may shake hands.
    pub(crate) fn admit(self: &Arc<Self>, stream: &Stream) -> Result<Counted, Refusal> {
        let policy = self.guard.policy().ok_or(Refusal)?;
        let address = address_of(stream);
        // What depends on the user id is asked when that is known.
        if !policy.asks_for_user_ids() {
            self.ask(&policy, stream, "")?;
        }
        self.count(policy.limits(), address)?;
        Ok(Counted { gate: self.clone(), address })
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
            self.guard.tell_limit(limit, &self.endpoint, &peer);
            return Err(Refusal);
        }
        counts.all += 1;
        if let Some(address) = address {
            counts.by_address.insert(address, own + 1);
        }
        Ok(())
    }

    /// Whether the key of a client is trusted. Without a list each is.
    pub(crate) fn trusts_key(&self, key: &[u8]) -> bool {
        self.trust.as_ref().is_none_or(|trust| trust.has(key))
    }

    /// Whether all that a client has shown is trusted.
    pub(crate) fn trusts(&self, proof: Option<&mut Proof>) -> bool {
        let mut nothing = Proof::default();
        let proof = proof.unwrap_or(&mut nothing);
        let has_key = |trust: &Trust| proof.key().is_some_and(|key| trust.has(key));
        self.trust.as_ref().is_none_or(has_key)
            && self.certificates.as_ref().is_none_or(|certificates| certificates.admit(proof))
    }

    /// Whether a peer may stay, now that the ZAP handler has named its user, or the policy has
    /// changed.
    pub(crate) fn admits(&self, stream: &Stream, user_id: &str) -> Result<(), Refusal> {
        let policy = self.guard.policy().ok_or(Refusal)?;
        self.ask(&policy, stream, user_id)
    }

    /// Whether peers may have to go while they are connected.
    pub(crate) fn may_change(&self) -> bool {
        self.trust.is_some() || self.certificates.is_some() || self.guard.is_a_file()
    }

    fn ask(&self, policy: &Policy, stream: &Stream, user_id: &str) -> Result<(), Refusal> {
        if !policy.asks_of_peers() {
            return Ok(());
        }
        let user = stream.peer_credentials().ok().map(|who| who.uid);
        let question = Question {
            address: address_of(stream),
            program: self.guard.program(),
            mechanism: self.mechanism.name(),
            secure: self.secure,
            private: user.is_some() && user == super::own_user(),
            user,
            user_id,
            ..Question::new(Call::Accept, self.socket_type, &self.endpoint)
        };
        let verdict = policy.decide(&question);
        let peer = crate::transport::peer_name(stream);
        match verdict.action {
            Action::Refuse => {
                self.guard.tell_of_peer(&verdict, "refuses", &self.endpoint, &peer);
                Err(Refusal)
            }
            Action::Warn => {
                self.guard.tell_of_peer(&verdict, "warns of", &self.endpoint, &peer);
                Ok(())
            }
            _ => Ok(()),
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
