//! The folder of a host: what its programs have bound, and what is known of other hosts.
//!
//! ```text
//!  FOLDER/NAME/ID        an entry: the endpoints for other hosts, one a line
//!  FOLDER/NAME/ID.ipc    where the socket listens, for this host
//!  FOLDER/NAME/ID@HOST   an entry of another host, written by `taut names`
//! ```
//!
//! The program that has bound holds a lock on its entry as long as it lives. The system gives the
//! lock back when the program dies, however it dies. So an entry without a lock is that of a dead
//! program: the next one that reads the folder removes it. An entry of another host has no lock.
//!
//! Only this user may write to the folder. Files that are no entries (`folder/entry.rs`) are left
//! alone.

mod entry;

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{Answer, Entry, Folder, Names, Resolver, is_name, may_come_from_elsewhere};
use entry::{FileName, Found, SOCKET, new_id};

/// How often the folder is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// Most entries of a name.
const MOST_ENTRIES: usize = 10_000;
/// The file with what tells this host from others.
const HOST: &str = ".host";

/// What a program of this host has bound.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LocalEntry {
    /// The name.
    pub name: String,
    /// What tells the entries of the name apart.
    pub id: String,
    /// Where other hosts reach it; nowhere, perhaps.
    pub remote: Vec<String>,
}

impl LocalEntry {
    /// An entry.
    pub fn new(name: impl Into<String>, id: impl Into<String>, remote: Vec<String>) -> Self {
        LocalEntry { name: name.into(), id: id.into(), remote }
    }
}

/// A socket's entry in the folder. It goes with this value.
#[derive(Debug)]
pub struct Registration {
    folder: PathBuf,
    id: String,
    /// Locked, once the entry is there.
    file: Option<File>,
    /// A forked child leaves the entry alone.
    process: u32,
}

impl Registration {
    /// Makes the folder of the name, and chooses what the entry will be called.
    ///
    /// # Errors
    /// The system's; [`io::ErrorKind::PermissionDenied`] for a folder that others can write to.
    pub fn prepare(folder: &Folder, name: &str) -> io::Result<Registration> {
        let folder = make_folder(folder, name)?;
        Ok(Registration { folder, id: new_id(), file: None, process: std::process::id() })
    }

    /// What tells this entry from others, on any host.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The endpoint to listen at, for programs of this host.
    pub fn ipc(&self) -> String {
        ipc(&self.folder, &self.id)
    }

    /// Writes the entry; `remote` are the endpoints for other hosts.
    ///
    /// # Errors
    /// The system's.
    pub fn publish(&mut self, remote: &[String]) -> io::Result<()> {
        // Locked before others see it.
        self.file = Some(entry::write(&self.folder, &FileName::local(&self.id), remote)?);
        Ok(())
    }

    /// Takes the entry back.
    pub fn withdraw(&mut self) {
        if self.file.take().is_some() && self.process == std::process::id() {
            let _ = fs::remove_file(self.folder.join(&self.id));
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.withdraw();
    }
}

/// Looks into the folder.
pub(crate) struct InFolder;

impl Resolver for InFolder {
    fn title(&self) -> &'static str {
        "the folder"
    }

    fn look_up(&self, names: &Names, name: &str) -> Result<Answer, String> {
        let Some(folder) = &names.folder else { return Ok(Answer::new(Vec::new(), LOOK)) };
        let path = folder.path.join(name);
        let mut entries = Vec::new();
        for found in entries_of(folder, name)? {
            let local = found.host.is_none();
            let mut endpoints = found.remote;
            if local {
                endpoints.insert(0, ipc(&path, &found.id));
            }
            entries.push(Entry { id: local.then_some(found.id), endpoints });
        }
        entries.sort();
        Ok(Answer::new(entries, LOOK))
    }
}

/// All that programs of this host have bound.
///
/// # Errors
/// The system's; [`io::ErrorKind::PermissionDenied`] for a folder that others can write to.
pub fn locals(folder: &Folder) -> io::Result<Vec<LocalEntry>> {
    let of = |name: String, found: Found| LocalEntry { name, id: found.id, remote: found.remote };
    Ok(all(folder)?.into_iter().filter(|(_, f)| f.host.is_none()).map(|(name, f)| of(name, f)).collect())
}

/// The names in the file and in its folder.
///
/// # Errors
/// As [`locals`].
pub fn known_names(names: &Names) -> io::Result<BTreeSet<String>> {
    let mut known: BTreeSet<String> = names.names.iter().map(|(name, _)| name.clone()).collect();
    if let Some(folder) = &names.folder {
        known.extend(all(folder)?.into_iter().map(|(name, _)| name));
    }
    Ok(known)
}

/// All entries of other hosts: the host, and what is bound there.
///
/// # Errors
/// As [`locals`].
pub fn mirrored(folder: &Folder) -> io::Result<Vec<(String, LocalEntry)>> {
    let of = |(name, found): (String, Found)| {
        Some((found.host?, LocalEntry { name, id: found.id, remote: found.remote }))
    };
    Ok(all(folder)?.into_iter().filter_map(of).collect())
}

/// Writes an entry of another host, in place of what was there.
///
/// # Errors
/// The system's; [`io::ErrorKind::InvalidInput`] for what cannot be an entry of another host,
/// [`io::ErrorKind::AlreadyExists`] if a file that is no entry has its name.
pub fn mirror(folder: &Folder, host: &str, entry: &LocalEntry) -> io::Result<()> {
    let file = mirror_name(host, entry)?;
    if entry.remote.is_empty() || !entry.remote.iter().all(|endpoint| may_come_from_elsewhere(endpoint)) {
        return Err(invalid("it has an endpoint that another host cannot have"));
    }
    entry::write(&make_folder(folder, &entry.name)?, &file, &entry.remote)?;
    Ok(())
}

/// Removes an entry of another host.
///
/// # Errors
/// As [`mirror`].
pub fn unmirror(folder: &Folder, host: &str, entry: &LocalEntry) -> io::Result<()> {
    let file = mirror_name(host, entry)?;
    let folder = folder.path.join(&entry.name);
    entry::check_folder(&folder)?;
    entry::remove(&folder, &file)
}

/// What tells this host from others: made once by `new`, and kept in the folder.
///
/// # Errors
/// The system's; [`io::ErrorKind::PermissionDenied`] for a folder that others can write to,
/// [`io::ErrorKind::InvalidData`] if the file of the host has something else.
pub fn host(folder: &Folder, new: impl FnOnce() -> String) -> io::Result<String> {
    make_private(&folder.path)?;
    let known = match entry::read_text(&folder.path.join(HOST)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        known => known?.trim().to_owned(),
    };
    if known.is_empty() {
        let host = new();
        entry::place(&folder.path, HOST, &format!("{host}\n"))?;
        return Ok(host);
    }
    let wrong = || io::Error::new(io::ErrorKind::InvalidData, format!("{HOST} has no name of a host"));
    if is_part(&known) { Ok(known) } else { Err(wrong()) }
}

fn mirror_name(host: &str, entry: &LocalEntry) -> io::Result<FileName> {
    let file = FileName { id: entry.id.clone(), host: Some(host.to_owned()) };
    if !is_name(&entry.name) || FileName::parse(&file.to_string()).as_ref() != Some(&file) {
        return Err(invalid("that is no name, host and id of an entry"));
    }
    Ok(file)
}

/// Whether this can be a host: a name without dots.
fn is_part(text: &str) -> bool {
    is_name(text) && !text.contains('.')
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// All entries. Folders that cannot be used are left out.
fn all(folder: &Folder) -> io::Result<Vec<(String, Found)>> {
    let listed = match entry::check_folder(&folder.path).and_then(|()| fs::read_dir(&folder.path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed?,
    };
    let mut all = Vec::new();
    for name in listed.flatten().filter_map(|name| name.file_name().into_string().ok()) {
        if is_name(&name) {
            let found = entries_in(&folder.path.join(&name)).unwrap_or_default();
            all.extend(found.into_iter().map(|found| (name.clone(), found)));
        }
    }
    Ok(all)
}

/// The entries of one name; if they cannot be read, in words, why.
fn entries_of(folder: &Folder, name: &str) -> Result<Vec<Found>, String> {
    let path = folder.path.join(name);
    let said = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
    match entry::check_folder(&folder.path) {
        // No name is bound on this host.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        checked => checked.map_err(|error| said(&folder.path, error))?,
    }
    entries_in(&path).map_err(|error| said(&path, error))
}

/// The entries in the folder of a name. Those of dead programs are removed.
fn entries_in(path: &Path) -> io::Result<Vec<Found>> {
    let listed = match entry::check_folder(path).and_then(|()| fs::read_dir(path)) {
        // The name is not bound on this host.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed?,
    };
    let mut found = Vec::new();
    for file in listed.flatten().filter_map(|file| file.file_name().into_string().ok()) {
        if let Some(name) = FileName::parse(&file) {
            // It may be gone by now.
            found.extend(entry::read(path, name));
        } else {
            entry::sweep(path, &file);
        }
        if found.len() >= MOST_ENTRIES {
            break;
        }
    }
    Ok(found)
}

/// Makes the folder of a name.
fn make_folder(folder: &Folder, name: &str) -> io::Result<PathBuf> {
    make_private(&folder.path)?;
    let path = folder.path.join(name);
    make_private(&path)?;
    Ok(path)
}

/// Makes a folder, and those above it, for this user alone. One that is there already must be one
/// that only this user can write to.
fn make_private(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    entry::check_folder(path).map_err(|error| {
        // With the path: this is told where the caller only has a number.
        io::Error::new(error.kind(), format!("{}: {error}", path.display()))
    })
}

fn ipc(folder: &Path, id: &str) -> String {
    format!("ipc://{}/{id}{SOCKET}", folder.display())
}

#[cfg(all(test, unix))]
mod tests;
