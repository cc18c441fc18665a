//! Names in DNS: the SRV records `_NAME._tcp.SUFFIX`; where there are none, and the file has a
//! port, the addresses of `NAME.SUFFIX`.
//!
//! A server of the answer is asked for again when the shortest time to live in it is over. Only an
//! answer of the name's servers counts, be it that there is no such name; what says that a server
//! has trouble, or nothing at all, is as if nothing had been asked.

mod ask;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use crate::config::Dns;
use crate::{Answer, Entry, Names, Resolver};
use ask::Reply;
use simple_dns::TYPE;
use simple_dns::rdata::RData;
use tautline_policy::file::read_text;

/// How long an answer counts at least: a time to live of 0 does not mean to ask all the time.
const LEAST: Duration = Duration::from_secs(1);
/// And at most, or if there are no such servers.
const MOST: Duration = Duration::from_secs(3600);
/// How long it counts that there is nothing by this name.
const NOTHING: Duration = Duration::from_secs(5);
/// Most servers of one name.
const MOST_SERVERS: usize = 1000;
/// How long an answer counts at least for each question that it took: the servers of a name say how
/// many that are.
const EACH_QUESTION: Duration = Duration::from_millis(10);
/// Where the system names its servers.
const SYSTEM: &str = "/etc/resolv.conf";

/// Asks DNS.
pub(crate) struct ByDns;

impl Resolver for ByDns {
    fn title(&self) -> &'static str {
        "DNS"
    }

    fn look_up(&self, names: &Names, name: &str) -> Result<Answer, String> {
        let Some(dns) = &names.dns else { return Ok(Answer::new(Vec::new(), MOST)) };
        let mut asking = Asking { dns, servers: servers(dns)?, fresh_for: MOST, questions: 0 };
        let mut found = asking.services(name)?;
        if let (true, Some(port)) = (found.is_empty(), dns.port) {
            let host = format!("{name}.{}", dns.suffix);
            found = asking.addresses(&host)?.into_iter().map(|ip| SocketAddr::new(ip, port)).collect();
        }
        if found.is_empty() {
            asking.fresh_for = asking.fresh_for.min(NOTHING);
        }
        found.sort();
        found.dedup();
        found.truncate(MOST_SERVERS);
        let least = LEAST.max(EACH_QUESTION * asking.questions);
        let entry = |at: SocketAddr| Entry { id: None, endpoints: vec![format!("tcp://{at}")] };
        Ok(Answer::new(found.into_iter().map(entry).collect(), asking.fresh_for.max(least)))
    }
}

/// The questions about one name.
struct Asking<'a> {
    dns: &'a Dns,
    servers: Vec<SocketAddr>,
    /// The shortest time to live so far.
    fresh_for: Duration,
    /// How many were asked.
    questions: u32,
}

impl Asking<'_> {
    /// What the SRV records lead to. Of those with different priorities, the first ones count.
    fn services(&mut self, name: &str) -> Result<Vec<SocketAddr>, String> {
        let mut services: Vec<(u16, u16, String)> = Vec::new();
        self.each(&format!("_{name}._tcp.{}", self.dns.suffix), TYPE::SRV, |data| {
            if let RData::SRV(service) = data {
                services.push((service.priority, service.port, service.target.to_string()));
            }
        })?;
        let first = services.iter().map(|service| service.0).min();
        // The root stands for: there is no such service.
        services
            .retain(|(priority, _, target)| Some(*priority) == first && !matches!(target.as_str(), "" | "."));
        // Each target is asked for once.
        services.sort_by(|a, b| a.2.cmp(&b.2));
        let mut found = Vec::new();
        for services in services.chunk_by(|a, b| a.2 == b.2).take(MOST_SERVERS) {
            if found.len() >= MOST_SERVERS {
                break;
            }
            for ip in self.addresses(&services[0].2)? {
                found.extend(services.iter().map(|(_, port, _)| SocketAddr::new(ip, *port)));
            }
        }
        Ok(found)
    }

    /// The addresses of a host. One with addresses of both families is one host, which is not to be
    /// connected to twice, unless the file says so.
    fn addresses(&mut self, host: &str) -> Result<Vec<IpAddr>, String> {
        let mut found = Vec::new();
        self.each(host, TYPE::A, |data| {
            if let RData::A(a) = data {
                found.push(Ipv4Addr::from(a.address).into());
            }
        })?;
        if found.is_empty() || self.dns.both_families {
            self.each(host, TYPE::AAAA, |data| {
                if let RData::AAAA(aaaa) = data {
                    found.push(Ipv6Addr::from(aaaa.address).into());
                }
            })?;
        }
        Ok(found)
    }

    /// Takes each record of this kind in the answer. Those of names that stand for the name (CNAME)
    /// are among them.
    fn each(&mut self, name: &str, kind: TYPE, mut take: impl FnMut(&RData<'_>)) -> Result<(), String> {
        self.questions = self.questions.saturating_add(1);
        let Reply(message) = ask::ask(&self.servers, name, kind)?;
        let packet = ask::parse(&message).ok_or("an answer makes no sense")?;
        for record in &packet.answers {
            let ttl = Duration::from_secs(record.ttl.into());
            self.fresh_for = self.fresh_for.min(ttl);
            take(&record.rdata);
        }
        Ok(())
    }
}

/// The servers to ask.
fn servers(dns: &Dns) -> Result<Vec<SocketAddr>, String> {
    if !dns.servers.is_empty() {
        return Ok(dns.servers.clone());
    }
    let text = read_text(Path::new(SYSTEM)).map_err(|error| format!("{SYSTEM}: {error}"))?;
    let servers = of_system(&text);
    if servers.is_empty() { Err(format!("{SYSTEM} names no server")) } else { Ok(servers) }
}

/// The servers of a resolv.conf(5).
fn of_system(text: &str) -> Vec<SocketAddr> {
    let server = |line: &str| {
        let address = line.trim().strip_prefix("nameserver")?.trim();
        Some(SocketAddr::new(address.parse().ok()?, 53))
    };
    text.lines().filter_map(server).collect()
}

#[cfg(test)]
mod tests;
