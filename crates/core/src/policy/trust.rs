//! The clients that may come: a file of keys, or a folder, looked at again when it changes.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::{LOOK, Stamp, complaint, stamp};
use crate::sync::{Arc, Mutex, lock};
use tautline_policy::keys;
use tautline_proto::z85;

/// Keys that are trusted.
#[derive(Debug)]
pub(crate) struct Trust {
    path: PathBuf,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    /// The user id of each: the name of the file that it stands in.
    keys: HashMap<[u8; 32], Arc<str>>,
    stamps: Vec<(PathBuf, Option<Stamp>)>,
    looked: Instant,
}

impl Trust {
    /// Reads the keys. The error says what is wrong with them.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let stamps = stamps(path);
        let keys = read(path).map_err(|error| error.to_string())?;
        Ok(Trust { path: path.to_owned(), known: Mutex::new(Known { keys, stamps, looked: Instant::now() }) })
    }

    /// As if the last look were long ago.
    #[cfg(test)]
    pub(super) fn look_soon(&self) {
        let looked = Instant::now().checked_sub(LOOK);
        lock(&self.known).looked = looked.unwrap_or_else(Instant::now);
    }

    /// Where they stand.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The user id of the key's owner if it is one of them, now. A list that is gone admits nobody.
    pub(crate) fn owner(&self, key: &[u8]) -> Option<Arc<str>> {
        let mut known = lock(&self.known);
        if known.looked.elapsed() >= LOOK {
            known.looked = Instant::now();
            let stamps = stamps(&self.path);
            if stamps != known.stamps {
                known.stamps = stamps;
                match read(&self.path) {
                    Ok(keys) => known.keys = keys,
                    Err(fault) if fault.kind() == ErrorKind::NotFound => {
                        known.keys.clear();
                        drop(complaint::say_later(&format!("{fault}; no client may connect")));
                    }
                    Err(fault) => {
                        drop(complaint::say_later(&format!("{fault}; the clients stay as they were")));
                    }
                }
            }
        }
        known.keys.get(<&[u8; 32]>::try_from(key).ok()?).cloned()
    }
}

/// Reads the keys, and reports what admits nobody.
fn read(path: &Path) -> io::Result<HashMap<[u8; 32], Arc<str>>> {
    let found = keys::clients(path)?;
    let mut known = HashMap::new();
    let mut faults = found.faults;
    for (text, owner) in found.keys {
        match z85::decode_key(text.as_bytes()) {
            Some(key) => drop(known.entry(key).or_insert_with(|| owner.into())),
            None => faults.push(format!("{}: {text} is no key", path.display())),
        }
    }
    for fault in faults {
        drop(complaint::say_later(&format!("{fault}; it admits nobody")));
    }
    Ok(known)
}

/// What changes with the keys: of a folder, each of its files.
pub(super) fn stamps(path: &Path) -> Vec<(PathBuf, Option<Stamp>)> {
    let mut all = vec![(path.to_owned(), stamp(path))];
    if let Ok(entries) = std::fs::read_dir(path) {
        all.extend(entries.flatten().map(|entry| (entry.path(), stamp(&entry.path()))));
        all.sort_by(|a, b| a.0.cmp(&b.0));
    }
    all
}
