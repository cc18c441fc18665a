//! The clients that may connect: a file of keys, or a folder, checked again when it changes.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::reload::{Read, ReloadedValue};
use tautline_io::stderr_report;
use tautline_policy::keys::{self, Clients};
use tautline_proto::z85;
use tautline_queue::sync::{Arc, Mutex, lock};

/// If a changed list of clients cannot be read for this time, no client is admitted.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Keys that are trusted.
#[derive(Debug)]
pub(super) struct Trust {
    path: PathBuf,
    known: Mutex<TrustState>,
}

#[derive(Debug)]
struct TrustState {
    list: ReloadedValue<List>,
    /// The faults that were reported last.
    reported_faults: Vec<String>,
}

#[derive(Debug, Default)]
struct List {
    /// The user id of each key: the name of the file that contains it.
    keys: HashMap<[u8; 32], Arc<str>>,
    /// Files and lines that admit no client, with the reasons.
    faults: Vec<String>,
}

impl Trust {
    /// Reads the keys. The error describes the fault.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let read =
            || keys::read_clients(path).map(|found| decode(found, path)).map_err(|error| error.to_string());
        let list = ReloadedValue::open(vec![path.to_owned()], read)?;
        let mut known = TrustState { list, reported_faults: Vec::new() };
        known.report_faults();
        Ok(Trust { path: path.to_owned(), known: Mutex::new(known) })
    }

    /// Acts as if the last check and the first failed read were this much longer ago.
    #[cfg(test)]
    pub(super) fn age(&self, time: Duration) {
        lock(&self.known).list.age(time);
    }

    /// Path of the file or folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The user id of the key's owner, if the key is on the current list. A missing list admits no
    /// client.
    pub(super) fn owner(&self, key: &[u8]) -> Option<Arc<str>> {
        let mut known = lock(&self.known);
        known.refresh(&self.path);
        known.list.get().keys.get(<&[u8; 32]>::try_from(key).ok()?).cloned()
    }

    /// False if the list has changed and could not be read for a long time, so that new peers
    /// cannot be checked against it.
    pub(super) fn is_current(&self) -> bool {
        let mut known = lock(&self.known);
        known.refresh(&self.path);
        !known.list.has_failed_for(PATIENCE)
    }
}

impl TrustState {
    fn refresh(&mut self, path: &Path) {
        match self.list.refresh(|| read(path)) {
            Ok(true) => self.report_faults(),
            Ok(false) => {}
            Err(fault) => drop(stderr_report::report_in_background(&format!(
                "{fault}; the last valid list of clients stays in force"
            ))),
        }
    }

    /// Reports new faults.
    fn report_faults(&mut self) {
        let faults = &self.list.get().faults;
        for fault in faults.iter().filter(|fault| !self.reported_faults.contains(fault)) {
            drop(stderr_report::report_in_background(fault));
        }
        self.reported_faults.clone_from(faults);
    }
}

fn read(path: &Path) -> Read<List> {
    match keys::read_clients(path) {
        Ok(found) => Ok(decode(found, path)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let faults = vec![format!("{error}; no client may connect")];
            Ok((List { faults, ..List::default() }, true))
        }
        Err(error) => Err(error.to_string()),
    }
}

fn decode(found: Clients, path: &Path) -> (List, bool) {
    let mut list = List { faults: found.faults, ..List::default() };
    for (text, owner) in found.keys {
        match z85::decode_key(text.as_bytes()) {
            Some(key) => drop(list.keys.entry(key).or_insert_with(|| owner.into())),
            None => list.faults.push(format!("{}: {text} is not a key", path.display())),
        }
    }
    list.faults.iter_mut().for_each(|fault| fault.push_str("; it is ignored"));
    (list, !found.is_partial)
}
