//! `taut names --serve`: the agent that exchanges names between the hosts through a bucket in NATS.
//!
//! If programs of this host have bound names, it publishes these names in the bucket. It copies the
//! names of other hosts from the bucket to the folder of this host (`folder` in the names file).
//! The library reads only the folder and does not know NATS.
//!
//! ```text
//!  FOLDER/NAME/ID      ── put, renewed each third of a lease ──▶  bucket: HOST.ID.NAME
//!  FOLDER/NAME/ID@HOST ◀── as long as it is renewed ───────────   of other hosts
//! ```
//!
//! While NATS is disconnected, no entry is removed. After a reconnect, each known entry has a
//! whole lease for its renewal.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::{Duration, Instant};

use async_nats::jetstream::kv::{self, Entry, Operation, Store};
use futures_util::StreamExt;
use tautline_names::{
    Folder, LocalEntry, NamesConfig, Nats as Bucket, host, locals, mirror, mirrored, remove_mirrored,
};

use crate::config::{Login, Nats as Settings, Tls, check_pem};
use crate::fault::BridgeError;
use crate::nats::Nats;
use crate::stop::{self, Stop};
use crate::supervise::Signals;

/// Period of the scans of the folder.
const LOOK: Duration = Duration::from_millis(250);
/// Delay between two attempts to use a bucket.
const AGAIN: Duration = Duration::from_secs(1);
/// Number of renewals of an entry in one lease.
const RENEWALS: u32 = 3;
/// Limit of entries of other hosts in the folder.
const MOST_REMOTE: usize = 10_000;
/// Limit of hosts whose unusable entries are reported.
const MOST_TOLD: usize = 100;

/// Runs the agent until SIGINT or SIGTERM. Published entries stay in the bucket until their lease
/// ends, so that the next agent of this host can take them over.
///
/// # Errors
/// The file has no table `nats`, the folder or the login file cannot be used, NATS rejects the
/// login, or the system refuses a thread or a signal handler.
pub fn serve(names: &NamesConfig) -> Result<(), BridgeError> {
    let (Some(folder), Some(bucket)) = (names.folder.clone(), names.nats.clone()) else {
        return Err(BridgeError::new(0, "the names file has no table `nats`, which names the servers"));
    };
    let unusable = |error: io::Error| BridgeError::new(0, format!("{}: {error}", folder.path.display()));
    let host = host(&folder, || nuid::next().to_string()).map_err(unusable)?;
    let remote = mirrored(&folder).map_err(unusable)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.map_err(|error| BridgeError::new(0, error.to_string()))?.block_on(async {
        let (stopper, mut stop) = stop::pair();
        let signals = Signals::new().map_err(|error| BridgeError::new(0, error.to_string()))?;
        tokio::spawn(signals.forward_to(stopper));
        if let Some(ca) = &bucket.ca {
            check_pem(ca).map_err(|fault| BridgeError::new(0, fault))?;
        }
        let Some(nats) = Nats::connect(&settings(&bucket), &mut stop).await? else { return Ok(()) };
        let now = Instant::now();
        let of = |(host, entry): (String, _)| {
            (key(&host, &entry), Remote { host, entry, revision: 0, renewed: now })
        };
        let remote = remote.into_iter().map(of);
        let (told, faulty, remote) = (HashMap::new(), HashSet::new(), remote.collect());
        let mut agent = Agent { folder, bucket, host, published: told, remote, faulty };
        agent.attend(&nats, stop).await;
        Ok(())
    })
}

/// Synchronizes the folder and the bucket.
struct Agent {
    folder: Folder,
    bucket: Bucket,
    /// Id of this host.
    host: String,
    /// Entries of this host in the bucket, and the time of their last renewal.
    published: HashMap<LocalEntry, Instant>,
    /// Entries of other hosts in the folder, by their key in the bucket.
    remote: HashMap<String, Remote>,
    /// Hosts whose unusable entries have been reported.
    faulty: HashSet<String>,
}

/// An entry of another host.
struct Remote {
    host: String,
    entry: LocalEntry,
    /// Revision of its last renewal in the bucket. 0 if the agent has not received it from the
    /// bucket yet.
    revision: u64,
    renewed: Instant,
}

impl Agent {
    /// Runs a session for each connection.
    async fn attend(&mut self, nats: &Nats, mut stop: Stop) {
        loop {
            let mut connection = nats.connection();
            let why = tokio::select! {
                () = stop.wait_requested() => return,
                // After a reconnect, start a new session, which reads the whole bucket. Changes
                // between the two connections were missed.
                () = connection.wait_for_reconnect() => continue,
                Err(why) = self.session(nats) => why,
            };
            if nats.is_connected() {
                notice!("names: {why}; retrying");
            }
            tokio::select! {
                () = stop.wait_requested() => return,
                () = tokio::time::sleep(AGAIN) => {}
            }
        }
    }

    /// Watches the bucket and scans the folder, until an operation fails or NATS is disconnected.
    async fn session(&mut self, nats: &Nats) -> Result<std::convert::Infallible, String> {
        let store = self.open(nats).await.map_err(|error| format!("cannot open the bucket: {error}"))?;
        let watched = store.watch_with_history(">").await;
        let mut watched = watched.map_err(|error| format!("cannot watch the bucket: {error}"))?;
        // Publish all local entries again, and give all remote entries a full lease for their
        // renewal.
        self.published.clear();
        let now = Instant::now();
        self.remote.values_mut().for_each(|remote| remote.renewed = now);
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                entry = watched.next() => {
                    let entry = entry.ok_or("the watch of the bucket ended")?;
                    self.handle_update(&store, entry.map_err(|error| error.to_string())?).await?;
                }
                _ = look.tick() => {
                    if !nats.is_connected() {
                        return Err("NATS is disconnected".to_owned());
                    }
                    self.publish_entries(&store).await?;
                    self.expire(&store).await?;
                }
            }
        }
    }

    /// Opens the bucket. Tries to create it if it cannot be opened.
    async fn open(&self, nats: &Nats) -> Result<Store, String> {
        match nats.streams.get_key_value(&self.bucket.bucket).await {
            Ok(store) => Ok(store),
            Err(_) => {
                let config = kv::Config {
                    bucket: self.bucket.bucket.clone(),
                    description: "Names that programs have bound, for Tautline".to_owned(),
                    history: 1,
                    max_age: self.bucket.lease,
                    num_replicas: self.bucket.replicas,
                    ..kv::Config::default()
                };
                nats.streams.create_key_value(config).await.map_err(|error| error.to_string())
            }
        }
    }

    /// Compares the folder with the published entries. Publishes new entries that other hosts can
    /// reach, renews old ones, and deletes the entries of ended programs from the bucket.
    async fn publish_entries(&mut self, store: &Store) -> Result<(), String> {
        let mut here = locals(&self.folder).map_err(|error| error.to_string())?;
        here.retain(|entry| !entry.remote.is_empty());
        let gone: Vec<_> = self.published.keys().filter(|told| !here.contains(told)).cloned().collect();
        for entry in gone {
            store.purge(key(&self.host, &entry)).await.map_err(|error| error.to_string())?;
            self.published.remove(&entry);
        }
        let period = self.bucket.lease / RENEWALS;
        for entry in here {
            if self.published.get(&entry).is_none_or(|at| at.elapsed() >= period) {
                let value = entry.remote.join("\n").into();
                store.put(key(&self.host, &entry), value).await.map_err(|error| error.to_string())?;
                self.published.insert(entry, Instant::now());
            }
        }
        Ok(())
    }

    /// Handles an entry that was added, renewed or deleted.
    async fn handle_update(&mut self, store: &Store, heard: Entry) -> Result<(), String> {
        let Some((host, entry)) = parse(&heard) else { return Ok(()) };
        if host == self.host {
            // Delete an entry of this host that is neither published nor in the folder: its program
            // ended while no agent ran.
            let is_here =
                self.published.keys().any(|told| (&told.name, &told.id) == (&entry.name, &entry.id));
            let here = || locals(&self.folder).unwrap_or_default();
            let knows = |known: &LocalEntry| (&known.name, &known.id) == (&entry.name, &entry.id);
            if heard.operation == Operation::Put && !is_here && !here().iter().any(knows) {
                store.purge(&heard.key).await.map_err(|error| error.to_string())?;
            }
            return Ok(());
        }
        if heard.operation != Operation::Put {
            self.drop_remote(&heard.key);
            return Ok(());
        }
        if let Err(error) = self.mirror(&heard.key, &host, &entry) {
            // Report a host once, because hosts renew their entries often.
            if self.faulty.len() < MOST_TOLD && self.faulty.insert(host.clone()) {
                notice!("names: cannot update the entry {:?} of host {host:?}: {error}", entry.name);
            }
            self.drop_remote(&heard.key);
            return Ok(());
        }
        let remote = Remote { host, entry, revision: heard.revision, renewed: Instant::now() };
        self.remote.insert(heard.key, remote);
        Ok(())
    }

    /// Writes an entry of another host to the folder, unless it is there.
    fn mirror(&self, key: &str, host: &str, entry: &LocalEntry) -> io::Result<()> {
        match self.remote.get(key) {
            Some(known) if known.entry == *entry => Ok(()),
            None if self.remote.len() >= MOST_REMOTE => {
                Err(io::Error::other(format!("the folder already has {MOST_REMOTE} entries of other hosts")))
            }
            _ => mirror(&self.folder, host, entry),
        }
    }

    /// Removes entries that were not renewed for a lease from the folder. Asks the bucket first,
    /// because the watch may have missed a renewal. So NATS must be connected.
    async fn expire(&mut self, store: &Store) -> Result<(), String> {
        let lease = self.bucket.lease;
        let over = self.remote.iter().filter(|(_, remote)| remote.renewed.elapsed() > lease);
        for key in over.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            let found = store.entry(key.clone()).await.map_err(|error| error.to_string())?;
            let revision = found.map_or(0, |found| found.revision);
            match self.remote.get_mut(&key) {
                Some(remote) if revision > remote.revision => {
                    (remote.revision, remote.renewed) = (revision, Instant::now());
                }
                _ => self.drop_remote(&key),
            }
        }
        Ok(())
    }

    /// Removes an entry of another host from the folder.
    fn drop_remote(&mut self, key: &str) {
        if let Some(Remote { host, entry, .. }) = self.remote.remove(key)
            && let Err(error) = remove_mirrored(&self.folder, &host, &entry)
            && error.kind() != io::ErrorKind::NotFound
        {
            notice!("names: cannot update the entry {:?} of host {host:?}: {error}", entry.name);
        }
    }
}

/// Returns the key of an entry. The name comes last, because it may contain dots.
fn key(host: &str, entry: &LocalEntry) -> String {
    format!("{host}.{}.{}", entry.id, entry.name)
}

/// Returns the host and the entry, or `None` if the key is not that of an entry.
fn parse(heard: &Entry) -> Option<(String, LocalEntry)> {
    let mut parts = heard.key.splitn(3, '.');
    let (host, id, name) = (parts.next()?, parts.next()?, parts.next()?);
    let remote = std::str::from_utf8(&heard.value).ok()?.lines().map(str::to_owned).collect();
    Some((host.to_owned(), LocalEntry::new(name, id, remote)))
}

/// Returns the connection settings of the bridge for the bucket of a names file.
fn settings(bucket: &Bucket) -> Settings {
    let login = match &bucket.credentials {
        Some(path) => Login::Credentials(path.clone()),
        None => Login::Anonymous,
    };
    let tls = Tls { ca: bucket.ca.clone(), identity: None };
    Settings { line: 0, servers: bucket.servers.clone(), login_line: 0, login, tls }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_other_hosts_are_bounded() {
        let path = std::env::temp_dir().join(format!("tautline-bridge-names-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        let text = format!("[folder]\npath = {path:?}\n[nats]\nservers = \"n\"");
        let names = NamesConfig::parse(&text, &|_| true).unwrap();
        let of =
            |number: usize| LocalEntry::new("orders", format!("{number:012x}"), vec!["tcp://h:1".into()]);
        let remote = |number| {
            let (host, entry) = ("there".to_owned(), of(number));
            (key(&host, &entry), Remote { host, entry, revision: 0, renewed: Instant::now() })
        };
        let mut agent = Agent {
            folder: names.folder.unwrap(),
            bucket: names.nats.unwrap(),
            host: "here".to_owned(),
            published: HashMap::new(),
            remote: (1..MOST_REMOTE).map(remote).collect(),
            faulty: HashSet::new(),
        };
        let one_more = |agent: &Agent| agent.mirror(&key("there", &of(0)), "there", &of(0));
        one_more(&agent).unwrap();
        assert_eq!(mirrored(&agent.folder).unwrap().len(), 1);
        agent.remote.extend([remote(MOST_REMOTE)]);
        assert!(one_more(&agent).is_err());
        // A known entry may still change.
        agent
            .mirror(
                &key("there", &of(1)),
                "there",
                &LocalEntry::new("orders", of(1).id, vec!["tcp://h:2".into()]),
            )
            .unwrap();
        std::fs::remove_dir_all(path).unwrap();
    }
}
