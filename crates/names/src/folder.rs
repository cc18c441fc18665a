//! The folder of a host. It lists the bound endpoints of the host's programs, and known endpoints
//! of other hosts.
//!
//! ```text
//!  FOLDER/NAME/ID        an entry: the endpoints for other hosts, one a line
//!  FOLDER/NAME/ID.ipc    where the socket listens, for this host
//!  FOLDER/NAME/ID@HOST   an entry of another host, written by `taut names`
//! ```
//!
//! A program holds a lock on its entry as long as it lives. The system releases the lock when the
//! program dies for any reason. An entry without a lock therefore belongs to a dead program, and
//! the next reader of the folder removes it. An entry of another host has no lock.
//!
//! Only this user may write to the folder. Files that are not entries (`folder/entry.rs`) are left
//! unchanged.

mod entry;

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{Folder, NameEntry, NamesConfig, Resolution, Resolver, is_allowed_remotely, is_name};
use entry::{FileName, SOCKET, StoredEntry, new_id};

/// Interval at which the folder is read.
const LOOK: Duration = Duration::from_millis(250);
/// Most entries of a name.
const MOST_ENTRIES: usize = 10_000;
/// File with the identifier of this host.
const HOST: &str = ".host";

/// The bound endpoints of a socket of this host.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LocalEntry {
    /// The name.
    pub name: String,
    /// Identifier that distinguishes the entries of a name.
    pub id: String,
    /// Endpoints for other hosts; may be empty.
    pub remote: Vec<String>,
}

impl LocalEntry {
    /// Creates an entry.
    pub fn new(name: impl Into<String>, id: impl Into<String>, remote: Vec<String>) -> Self {
        LocalEntry { name: name.into(), id: id.into(), remote }
    }
}

/// A socket's entry in the folder. Dropping this value removes the entry.
#[derive(Debug)]
pub struct Registration {
    folder: PathBuf,
    id: String,
    /// File of the entry, locked, once the entry is published.
    file: Option<File>,
    /// Process that owns the entry. A forked child leaves the entry unchanged.
    process: u32,
}

impl Registration {
    /// Creates the folder of the name, and chooses the identifier of the entry.
    ///
    /// # Errors
    /// The system's error, or [`io::ErrorKind::PermissionDenied`] for a folder that other users can
    /// write to.
    pub fn prepare(folder: &Folder, name: &str) -> io::Result<Registration> {
        let folder = make_folder(folder, name)?;
        Ok(Registration { folder, id: new_id(), file: None, process: std::process::id() })
    }

    /// Returns the identifier of this entry, which is unique across hosts.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the endpoint to listen on for programs of this host.
    pub fn ipc(&self) -> String {
        ipc(&self.folder, &self.id)
    }

    /// Writes the entry. `remote` lists the endpoints for other hosts.
    ///
    /// # Errors
    /// The system's error.
    pub fn publish(&mut self, remote: &[String]) -> io::Result<()> {
        // The file is locked before other programs see it.
        self.file = Some(entry::write(&self.folder, &FileName::local(&self.id), remote)?);
        Ok(())
    }

    /// Removes the entry.
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

/// Resolves names by the folder.
pub(crate) struct FolderResolver;

impl Resolver for FolderResolver {
    fn title(&self) -> &'static str {
        "the folder"
    }

    fn look_up(&self, names: &NamesConfig, name: &str) -> Result<Resolution, String> {
        let Some(folder) = &names.folder else { return Ok(Resolution::new(Vec::new(), LOOK)) };
        let path = folder.path.join(name);
        let mut entries = Vec::new();
        for found in entries_of(folder, name)? {
            let local = found.host.is_none();
            let mut endpoints = found.remote;
            if local {
                endpoints.insert(0, ipc(&path, &found.id));
            }
            entries.push(NameEntry { id: local.then_some(found.id), endpoints });
        }
        entries.sort();
        Ok(Resolution::new(entries, LOOK))
    }
}

/// Returns the bound endpoints of all programs of this host.
///
/// # Errors
/// The system's error, or [`io::ErrorKind::PermissionDenied`] for a folder that other users can
/// write to.
pub fn locals(folder: &Folder) -> io::Result<Vec<LocalEntry>> {
    let of = |name: String, found: StoredEntry| LocalEntry { name, id: found.id, remote: found.remote };
    Ok(all_entries(folder)?
        .into_iter()
        .filter(|(_, f)| f.host.is_none())
        .map(|(name, f)| of(name, f))
        .collect())
}

/// Returns the names in the file and in its folder.
///
/// # Errors
/// The system's error, or [`io::ErrorKind::PermissionDenied`] for a folder that other users can
/// write to.
pub fn known_names(names: &NamesConfig) -> io::Result<BTreeSet<String>> {
    let mut known: BTreeSet<String> = names.names.iter().map(|(name, _)| name.clone()).collect();
    if let Some(folder) = &names.folder {
        known.extend(all_entries(folder)?.into_iter().map(|(name, _)| name));
    }
    Ok(known)
}

/// Returns all entries of other hosts, each with its host.
///
/// # Errors
/// The system's error, or [`io::ErrorKind::PermissionDenied`] for a folder that other users can
/// write to.
pub fn mirrored(folder: &Folder) -> io::Result<Vec<(String, LocalEntry)>> {
    let of = |(name, found): (String, StoredEntry)| {
        Some((found.host?, LocalEntry { name, id: found.id, remote: found.remote }))
    };
    Ok(all_entries(folder)?.into_iter().filter_map(of).collect())
}

/// Writes an entry of another host, and replaces an earlier one.
///
/// # Errors
/// The system's error. [`io::ErrorKind::InvalidInput`] for an invalid entry of another host.
/// [`io::ErrorKind::AlreadyExists`] if a file that is not an entry has its name.
pub fn mirror(folder: &Folder, host: &str, entry: &LocalEntry) -> io::Result<()> {
    let file = mirror_name(host, entry)?;
    if entry.remote.is_empty() || !entry.remote.iter().all(|endpoint| is_allowed_remotely(endpoint)) {
        return Err(invalid("its endpoints are missing or not allowed for another host"));
    }
    entry::write(&make_folder(folder, &entry.name)?, &file, &entry.remote)?;
    Ok(())
}

/// Removes an entry of another host.
///
/// # Errors
/// The system's error. [`io::ErrorKind::InvalidInput`] for an invalid entry of another host.
/// [`io::ErrorKind::PermissionDenied`] for a folder that other users can write to.
/// [`io::ErrorKind::InvalidData`] for a file that is not an entry.
pub fn remove_mirrored(folder: &Folder, host: &str, entry: &LocalEntry) -> io::Result<()> {
    let file = mirror_name(host, entry)?;
    let folder = folder.path.join(&entry.name);
    entry::check_folder(&folder)?;
    entry::remove(&folder, &file)
}

/// Returns the identifier of this host. `new` creates it once, and it is kept in the folder.
///
/// # Errors
/// The system's error. [`io::ErrorKind::PermissionDenied`] for a folder that other users can write
/// to. [`io::ErrorKind::InvalidData`] if the file of the host does not hold an identifier.
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
    let wrong = || io::Error::new(io::ErrorKind::InvalidData, format!("{HOST} does not hold a host name"));
    if is_part(&known) { Ok(known) } else { Err(wrong()) }
}

fn mirror_name(host: &str, entry: &LocalEntry) -> io::Result<FileName> {
    let file = FileName { id: entry.id.clone(), host: Some(host.to_owned()) };
    if !is_name(&entry.name) || FileName::parse(&file.to_string()).as_ref() != Some(&file) {
        return Err(invalid("the name, host or id of the entry is invalid"));
    }
    Ok(file)
}

/// True if this can be a host: a name without dots.
fn is_part(text: &str) -> bool {
    is_name(text) && !text.contains('.')
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// Returns all entries. Skips folders that cannot be used.
fn all_entries(folder: &Folder) -> io::Result<Vec<(String, StoredEntry)>> {
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

/// Returns the entries of one name, or an error message if they cannot be read.
fn entries_of(folder: &Folder, name: &str) -> Result<Vec<StoredEntry>, String> {
    let path = folder.path.join(name);
    let said = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
    match entry::check_folder(&folder.path) {
        // No program of this host has bound a name.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        checked => checked.map_err(|error| said(&folder.path, error))?,
    }
    entries_in(&path).map_err(|error| said(&path, error))
}

/// Returns the entries in the folder of a name. Removes those of dead programs.
fn entries_in(path: &Path) -> io::Result<Vec<StoredEntry>> {
    let listed = match entry::check_folder(path).and_then(|()| fs::read_dir(path)) {
        // No program of this host has bound the name.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed?,
    };
    let mut found = Vec::new();
    for file in listed.flatten().filter_map(|file| file.file_name().into_string().ok()) {
        if let Some(name) = FileName::parse(&file) {
            // The file may have been removed since.
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

/// Creates the folder of a name.
fn make_folder(folder: &Folder, name: &str) -> io::Result<PathBuf> {
    make_private(&folder.path)?;
    let path = folder.path.join(name);
    make_private(&path)?;
    Ok(path)
}

/// Creates a folder and its parents for this user alone. An existing folder must be writable by
/// this user only.
fn make_private(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    entry::check_folder(path).map_err(|error| {
        // With the path, because the caller reports this error where it would otherwise have only a
        // number.
        io::Error::new(error.kind(), format!("{}: {error}", path.display()))
    })
}

fn ipc(folder: &Path, id: &str) -> String {
    format!("ipc://{}/{id}{SOCKET}", folder.display())
}

#[cfg(all(test, unix))]
mod tests;

#[cfg(all(test, unix))]
mod model_tests;
