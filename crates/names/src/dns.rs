//! Names in DNS: the SRV records `_NAME._tcp.SUFFIX`. If there are no such records and the file has
//! a port, the addresses of `NAME.SUFFIX`.
//!
//! An answer is refreshed when the shortest time to live in it has passed. Only an answer of the
//! name's own servers counts, including the answer that the name does not exist. An error of a
//! server, or no response, leaves earlier results in force. If this happens for one target of SRV
//! records, or for one of the two families of a host, the others still count, and so do its earlier
//! addresses.

mod query;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::config::Dns;
use crate::{NameEntry, NamesConfig, Resolution, Resolver};
use query::Reply;
use simple_dns::TYPE;
use simple_dns::rdata::RData;
use tautline_policy::file::read_text;

/// Shortest lifetime of an answer, so that a time to live of 0 does not cause constant queries.
const LEAST: Duration = Duration::from_secs(1);
/// Longest lifetime of an answer. Also the lifetime if DNS is not configured.
const MOST: Duration = Duration::from_secs(3600);
/// Lifetime of the answer that a name does not exist.
const NOTHING: Duration = Duration::from_secs(5);
/// Most servers of one name.
const MOST_SERVERS: usize = 1000;
/// Shortest lifetime of an answer per query that it took. The servers of a name decide how many
/// queries are needed.
const EACH_QUESTION: Duration = Duration::from_millis(10);
/// File in which the system lists its servers.
const SYSTEM: &str = "/etc/resolv.conf";

/// Time limit for looking up all targets of the SRV records.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most lookups whose addresses are remembered.
const MOST_REMEMBERED: usize = 10_000;
/// Port of DNS.
const PORT: u16 = 53;
/// Most servers that are read from the system's file.
const MOST_OF_SYSTEM: usize = 3;

/// Last known addresses of each target, by the address of the server that was asked and by the kind
/// of record.
type Remembered = BTreeMap<(SocketAddr, String, u16), Vec<IpAddr>>;

/// Resolver that asks DNS.
pub(crate) struct DnsResolver {
    remembered: Mutex<Remembered>,
}

/// Resolver for all names.
pub(crate) static BY_DNS: DnsResolver = DnsResolver::new();

impl DnsResolver {
    const fn new() -> Self {
        DnsResolver { remembered: Mutex::new(BTreeMap::new()) }
    }
}

impl Resolver for DnsResolver {
    fn title(&self) -> &'static str {
        "DNS"
    }

    fn look_up(&self, names: &NamesConfig, name: &str) -> Result<Resolution, String> {
        let Some(dns) = &names.dns else { return Ok(Resolution::new(Vec::new(), MOST)) };
        let remembered = &self.remembered;
        let mut asking = Asking { dns, servers: servers(dns)?, remembered, fresh_for: MOST, questions: 0 };
        let mut found = match (asking.query_srv(name)?, dns.port) {
            (Some(found), _) => found,
            (None, Some(port)) => {
                let host = format!("{name}.{}", dns.suffix);
                asking.addresses(&host)?.into_iter().map(|ip| SocketAddr::new(ip, port)).collect()
            }
            (None, None) => Vec::new(),
        };
        if found.is_empty() {
            asking.fresh_for = asking.fresh_for.min(NOTHING);
        }
        found.sort();
        found.dedup();
        found.truncate(MOST_SERVERS);
        let least = LEAST.max(EACH_QUESTION * asking.questions);
        let entry = |at: SocketAddr| NameEntry { id: None, endpoints: vec![format!("tcp://{at}")] };
        Ok(Resolution::new(found.into_iter().map(entry).collect(), asking.fresh_for.max(least)))
    }
}

/// The queries for one name.
struct Asking<'a> {
    dns: &'a Dns,
    servers: Vec<SocketAddr>,
    remembered: &'a Mutex<Remembered>,
    /// Shortest time to live so far.
    fresh_for: Duration,
    /// Number of queries so far.
    questions: u32,
}

impl Asking<'_> {
    /// Returns the addresses of the SRV targets, or `None` if there are no SRV records. Uses only
    /// the records with the lowest priority number, which are preferred.
    fn query_srv(&mut self, name: &str) -> Result<Option<Vec<SocketAddr>>, String> {
        let mut services: Vec<(u16, u16, String)> = Vec::new();
        self.for_each_record(&format!("_{name}._tcp.{}", self.dns.suffix), TYPE::SRV, |data| {
            if let RData::SRV(service) = data {
                services.push((service.priority, service.port, service.target.to_string()));
            }
        })?;
        if services.is_empty() {
            return Ok(None);
        }
        // The root as a target means that there is no such service. Port 0 is not a valid port.
        services.retain(|(_, port, target)| *port != 0 && !matches!(target.as_str(), "" | "."));
        let first = services.iter().map(|service| service.0).min();
        services.retain(|(priority, ..)| Some(*priority) == first);
        // Each target is looked up once.
        services.sort_by(|a, b| a.2.cmp(&b.2));
        let deadline = Instant::now() + PATIENCE;
        let (mut found, mut fault) = (Vec::new(), None);
        for services in services.chunk_by(|a, b| a.2 == b.2).take(MOST_SERVERS) {
            if found.len() >= MOST_SERVERS {
                break;
            }
            let target = &services[0].2;
            let addresses = match Instant::now() < deadline {
                true => self.addresses(target),
                false => Err("not all targets were resolved in time".to_owned()),
            };
            let addresses = addresses.unwrap_or_else(|why| {
                fault = Some(why);
                self.recall_all(target)
            });
            for ip in addresses {
                found.extend(services.iter().map(|(_, port, _)| SocketAddr::new(ip, *port)));
            }
        }
        match fault {
            Some(why) if found.is_empty() => return Err(why),
            // Ask again soon.
            Some(_) => self.fresh_for = self.fresh_for.min(NOTHING),
            None => {}
        }
        Ok(Some(found))
    }

    /// Returns the addresses of a host. A host with addresses of both families must not be
    /// connected to twice, so its IPv4 addresses are used, unless the file asks for both. If one of
    /// two lookups fails, its earlier addresses count.
    fn addresses(&mut self, host: &str) -> Result<Vec<IpAddr>, String> {
        let (mut found, mut fault) = (Vec::new(), None);
        for kind in [TYPE::A, TYPE::AAAA] {
            let is_last = kind == TYPE::AAAA;
            if is_last && !found.is_empty() && !self.dns.both_families {
                break;
            }
            match self.addresses_of_kind(host, kind) {
                Ok(addresses) => found.extend(addresses),
                Err(why) if is_last && fault.is_some() => return Err(why),
                Err(why) => {
                    found.extend(self.recall(host, kind));
                    fault = Some(why);
                }
            }
        }
        match fault {
            Some(why) if found.is_empty() => return Err(why),
            // Ask again soon.
            Some(_) => self.fresh_for = self.fresh_for.min(NOTHING),
            None => {}
        }
        Ok(found)
    }

    /// Looks up the addresses of a host in one family, and remembers them.
    fn addresses_of_kind(&mut self, host: &str, kind: TYPE) -> Result<Vec<IpAddr>, String> {
        let mut found: Vec<IpAddr> = Vec::new();
        self.for_each_record(host, kind, |data| match data {
            RData::A(a) => found.push(Ipv4Addr::from(a.address).into()),
            RData::AAAA(aaaa) => found.push(Ipv6Addr::from(aaaa.address).into()),
            _ => {}
        })?;
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= MOST_REMEMBERED {
            remembered.clear();
        }
        remembered.insert(self.key(host, kind), found.clone());
        Ok(found)
    }

    /// Returns the addresses of the last successful lookup.
    fn recall(&self, host: &str, kind: TYPE) -> Vec<IpAddr> {
        let remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        remembered.get(&self.key(host, kind)).cloned().unwrap_or_default()
    }

    /// Returns the addresses of the last successful lookups of both families.
    fn recall_all(&self, host: &str) -> Vec<IpAddr> {
        let mut found = self.recall(host, TYPE::A);
        if found.is_empty() || self.dns.both_families {
            found.extend(self.recall(host, TYPE::AAAA));
        }
        found
    }

    fn key(&self, host: &str, kind: TYPE) -> (SocketAddr, String, u16) {
        (self.servers[0], host.to_owned(), kind.into())
    }

    /// Calls `take` for each record of this kind in the answer, including records of the names that
    /// an alias (CNAME) leads to.
    fn for_each_record(
        &mut self,
        name: &str,
        kind: TYPE,
        mut take: impl FnMut(&RData<'_>),
    ) -> Result<(), String> {
        self.questions = self.questions.saturating_add(1);
        let Reply(message) = query::ask(&self.servers, name, kind)?;
        for_each_record_in(&message, |ttl, data| {
            self.fresh_for = self.fresh_for.min(ttl);
            take(data);
        })
    }
}

/// Calls `take` with the lifetime and the data of each record of an answer.
fn for_each_record_in(message: &[u8], mut take: impl FnMut(Duration, &RData<'_>)) -> Result<(), String> {
    let packet = query::parse(message).ok_or("an answer is malformed")?;
    for record in &packet.answers {
        take(Duration::from_secs(record.ttl.into()), &record.rdata);
    }
    Ok(())
}

/// Reads an answer as for a name, for the fuzzer.
#[cfg(feature = "fuzzing")]
pub(crate) fn count_records(message: &[u8], question: &[u8]) -> Option<usize> {
    let mut count = 0;
    let read = for_each_record_in(message, |_, data| {
        if let RData::SRV(service) = data {
            drop(service.target.to_string());
        }
        count += 1;
    });
    (read.is_ok() && query::is_answer_to(message, question)).then_some(count)
}

/// Returns the servers to ask.
fn servers(dns: &Dns) -> Result<Vec<SocketAddr>, String> {
    if !dns.servers.is_empty() {
        return Ok(dns.servers.clone());
    }
    match read_text(Path::new(SYSTEM)) {
        Ok(text) => Ok(of_system(&text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(of_system("")),
        Err(error) => Err(format!("{SYSTEM}: {error}")),
    }
}

/// Reads the servers of a resolv.conf(5) as glibc does: text after the address is a comment. If it
/// lists no server, returns the server of this host.
pub(crate) fn of_system(text: &str) -> Vec<SocketAddr> {
    let server = |line: &str| {
        let line = line.strip_prefix("nameserver")?.strip_prefix([' ', '\t'])?;
        server_of_system(line.split_ascii_whitespace().next()?)
    };
    let servers: Vec<SocketAddr> = text.lines().filter_map(server).take(MOST_OF_SYSTEM).collect();
    if servers.is_empty() { vec![SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT)] } else { servers }
}

/// Parses an address with an optional interface: `fe80::1%eth0`.
fn server_of_system(text: &str) -> Option<SocketAddr> {
    let Some((address, zone)) = text.split_once('%') else {
        return Some(SocketAddr::new(text.parse().ok()?, PORT));
    };
    let address: Ipv6Addr = address.parse().ok()?;
    let of_interface = || {
        let is_name = !zone.contains('/') && !zone.starts_with('.');
        let file = is_name.then(|| format!("/sys/class/net/{zone}/ifindex"))?;
        read_text(Path::new(&file)).ok()?.trim().parse().ok()
    };
    let scope = zone.parse().ok().or_else(of_interface)?;
    Some(SocketAddrV6::new(address, PORT, 0, scope).into())
}

#[cfg(test)]
mod tests;
