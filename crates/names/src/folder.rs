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

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{Answer, Entry, Folder, Names, Resolver, is_name, may_come_from_elsewhere};

/// How often the folder is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// Most bytes of an entry.
const MOST_BYTES: u64 = 4096;
/// Most entries of a name.
const MOST_ENTRIES: usize = 10_000;
/// What the socket's file is called, beside its entry.
const SOCKET: &str = ".ipc";
/// An entry that is being written is called so.
const HIDDEN: &str = ".";

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
    /// The system's.
    pub fn prepare(folder: &Folder, name: &str) -> io::Result<Registration> {
        let folder = folder.path.join(name);
        make_folder(&folder)?;
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
        let hidden = self.folder.join(format!("{HIDDEN}{}", self.id));
        let written = write(&hidden, remote).and_then(|file| {
            // Locked before others see it.
            file.try_lock().map_err(io::Error::from)?;
            fs::rename(&hidden, self.folder.join(&self.id))?;
            Ok(file)
        });
        match written {
            Ok(file) => self.file = Some(file),
            Err(error) => {
                let _ = fs::remove_file(&hidden);
                return Err(error);
            }
        }
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
        for found in entries_in(&path).map_err(|error| format!("{}: {error}", path.display()))? {
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
/// The system's.
pub fn locals(folder: &Folder) -> io::Result<Vec<LocalEntry>> {
    let of = |name: String, found: Found| LocalEntry { name, id: found.id, remote: found.remote };
    Ok(all(folder)?.into_iter().filter(|(_, f)| f.host.is_none()).map(|(name, f)| of(name, f)).collect())
}

/// The names in the file and in its folder.
///
/// # Errors
/// The system's.
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
/// The system's.
pub fn mirrored(folder: &Folder) -> io::Result<Vec<(String, LocalEntry)>> {
    let of = |(name, found): (String, Found)| {
        Some((found.host?, LocalEntry { name, id: found.id, remote: found.remote }))
    };
    Ok(all(folder)?.into_iter().filter_map(of).collect())
}

/// Writes an entry of another host, in place of what was there.
///
/// # Errors
/// The system's; [`io::ErrorKind::InvalidInput`] for what can be no entry.
pub fn mirror(folder: &Folder, host: &str, entry: &LocalEntry) -> io::Result<()> {
    let (folder, file) = mirror_path(folder, host, entry)?;
    make_folder(&folder)?;
    let hidden = folder.join(format!("{HIDDEN}{file}"));
    write(&hidden, &entry.remote)?;
    fs::rename(hidden, folder.join(file))
}

/// Removes an entry of another host.
///
/// # Errors
/// As [`mirror`].
pub fn unmirror(folder: &Folder, host: &str, entry: &LocalEntry) -> io::Result<()> {
    let (folder, file) = mirror_path(folder, host, entry)?;
    fs::remove_file(folder.join(file))
}

fn mirror_path(folder: &Folder, host: &str, entry: &LocalEntry) -> io::Result<(PathBuf, String)> {
    let is_part = |text: &str| is_name(text) && !text.contains('.');
    let is_line = |text: &String| may_come_from_elsewhere(text);
    if !is_name(&entry.name) || !is_part(host) || !is_part(&entry.id) || !entry.remote.iter().all(is_line) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok((folder.path.join(&entry.name), format!("{}@{host}", entry.id)))
}

/// An entry as it lies in the folder of its name.
struct Found {
    id: String,
    /// Whose it is, if not this host's.
    host: Option<String>,
    remote: Vec<String>,
}

fn all(folder: &Folder) -> io::Result<Vec<(String, Found)>> {
    let mut all = Vec::new();
    for name in names_in(&folder.path)? {
        let found = entries_in(&folder.path.join(&name))?;
        all.extend(found.into_iter().map(|found| (name.clone(), found)));
    }
    Ok(all)
}

fn names_in(path: &Path) -> io::Result<Vec<String>> {
    let listed = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed?,
    };
    let names = listed.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    Ok(names.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| is_name(name)).collect())
}

/// The entries of one name. Those of dead programs are removed.
fn entries_in(path: &Path) -> io::Result<Vec<Found>> {
    let listed = match fs::read_dir(path) {
        // The name is not bound on this host.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed?,
    };
    let mut found = Vec::new();
    for file in listed.flatten().take(2 * MOST_ENTRIES) {
        let Ok(file) = file.file_name().into_string() else { continue };
        if file.starts_with(HIDDEN) || file.ends_with(SOCKET) || found.len() >= MOST_ENTRIES {
            continue;
        }
        // It may be gone by now.
        found.extend(read(path, &file));
    }
    Ok(found)
}

fn read(folder: &Path, file: &str) -> Option<Found> {
    let path = folder.join(file);
    let opened = File::open(&path).ok()?;
    let (id, host) = match file.split_once('@') {
        Some((id, host)) => (id, Some(host.to_owned())),
        None => (file, None),
    };
    if host.is_none() && !matches!(opened.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        let _ = fs::remove_file(&path);
        let _ = fs::remove_file(folder.join(format!("{file}{SOCKET}")));
        return None;
    }
    let mut text = String::new();
    opened.take(MOST_BYTES).read_to_string(&mut text).ok()?;
    let remote = text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
    Some(Found { id: id.to_owned(), host, remote })
}

fn write(path: &Path, lines: &[String]) -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    file.write_all(lines.iter().map(|line| format!("{line}\n")).collect::<String>().as_bytes())?;
    Ok(file)
}

/// Makes a folder, and those above it, for this user alone.
fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

fn ipc(folder: &Path, id: &str) -> String {
    format!("ipc://{}/{id}{SOCKET}", folder.display())
}

/// As good as unique among all hosts.
fn new_id() -> String {
    // std seeds its hashers with random numbers of the system.
    let random = RandomState::new().build_hasher().finish();
    format!("{:012x}", random & 0xffff_ffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scratch(Folder);

    impl Scratch {
        fn new(test: &str) -> Scratch {
            let path = std::env::temp_dir().join(format!("tautline-names-{test}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            Scratch(Folder { path, tcp: None, advertise: None })
        }

        fn resolve(&self, name: &str) -> Vec<Entry> {
            let names = Names { folder: Some(self.0.clone()), ..Names::default() };
            InFolder.resolve(&names, name).unwrap().entries
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0.path);
        }
    }

    #[test]
    fn an_entry_is_there_as_long_as_its_registration() {
        let scratch = Scratch::new("registration");
        assert_eq!(scratch.resolve("orders"), []);
        let mut one = Registration::prepare(&scratch.0, "orders").unwrap();
        assert_eq!(scratch.resolve("orders"), []);
        one.publish(&["tcp://h:1".into()]).unwrap();
        let entry = Entry { id: Some(one.id().into()), endpoints: vec![one.ipc(), "tcp://h:1".into()] };
        assert_eq!(scratch.resolve("orders"), [entry]);
        assert_eq!(scratch.resolve("prices"), []);
        let mut two = Registration::prepare(&scratch.0, "orders").unwrap();
        two.publish(&[]).unwrap();
        assert_eq!(scratch.resolve("orders").len(), 2);
        assert_eq!(locals(&scratch.0).unwrap().len(), 2);
        drop((one, two));
        assert_eq!(scratch.resolve("orders"), []);
    }

    #[test]
    fn the_entry_of_a_dead_program_is_removed() {
        let scratch = Scratch::new("dead");
        let folder = scratch.0.path.join("orders");
        make_folder(&folder).unwrap();
        // No program holds a lock on it.
        write(&folder.join("abc"), &["tcp://h:1".into()]).unwrap();
        write(&folder.join("abc.ipc"), &[]).unwrap();
        assert_eq!(scratch.resolve("orders"), []);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    }

    #[test]
    fn entries_of_other_hosts_need_no_program() {
        let scratch = Scratch::new("mirror");
        let entry = LocalEntry { name: "orders".into(), id: "abc".into(), remote: vec!["tcp://h:1".into()] };
        mirror(&scratch.0, "there", &entry).unwrap();
        let known = Entry { id: None, endpoints: vec!["tcp://h:1".into()] };
        assert_eq!(scratch.resolve("orders"), [known]);
        assert_eq!(mirrored(&scratch.0).unwrap(), [("there".to_owned(), entry.clone())]);
        assert_eq!(locals(&scratch.0).unwrap(), []);
        unmirror(&scratch.0, "there", &entry).unwrap();
        assert_eq!(scratch.resolve("orders"), []);
        for (name, host, id) in [("..", "h", "i"), ("n", "../h", "i"), ("n", "h", "a/b"), ("n", "h", "")] {
            let bad = LocalEntry { name: name.into(), id: id.into(), remote: Vec::new() };
            assert!(mirror(&scratch.0, host, &bad).is_err(), "{name} {host} {id}");
        }
    }
}
