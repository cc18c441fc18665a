//! Files of entries: recognising, reading, writing and removing them.
//!
//! The folder may have been configured by mistake, and hold files of other programs. A file is
//! therefore an entry only if its name has the right form, it is a regular file that only this user
//! (or root) can write to, and it begins with [`MARKER`]. Links are not followed. An entry is
//! written under another name, locked, and renamed. An entry without a lock therefore belongs to a
//! dead program.

use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::SystemTime;

use super::is_part;

/// First line of each entry.
const MARKER: &str = "tautline-name 1\n";
/// Most bytes of an entry.
const MOST_BYTES: usize = 4096;
/// Suffix of the socket's file beside its entry.
pub(super) const SOCKET: &str = ".ipc";
/// Prefix of an entry that is being written; an id follows.
const DRAFT: &str = ".new-";
/// Number of hexadecimal digits of an id.
const ID_DIGITS: usize = 12;

/// The file name of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileName {
    pub(super) id: String,
    /// Host of the entry; `None` for this host.
    pub(super) host: Option<String>,
}

impl FileName {
    pub(super) fn local(id: &str) -> Self {
        FileName { id: id.to_owned(), host: None }
    }

    /// Parses a file name. Returns `None` if it does not have the form of an entry's name.
    pub(super) fn parse(file: &str) -> Option<Self> {
        let (id, host) = match file.split_once('@') {
            Some((id, host)) => (id, Some(host)),
            None => (file, None),
        };
        let is_entry = is_id(id) && host.is_none_or(is_part);
        is_entry.then(|| FileName { id: id.to_owned(), host: host.map(str::to_owned) })
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)?;
        self.host.as_ref().map_or(Ok(()), |host| write!(f, "@{host}"))
    }
}

/// An entry found in the folder of its name.
pub(super) struct StoredEntry {
    pub(super) id: String,
    /// Host of the entry; `None` for this host.
    pub(super) host: Option<String>,
    pub(super) remote: Vec<String>,
}

/// Reads an entry. Returns `None` for any other file. Removes the entry of a dead program.
pub(super) fn read(folder: &Path, name: FileName) -> Option<StoredEntry> {
    let path = folder.join(name.to_string());
    let (file, text) = open(&path).and_then(with_text).ok()?;
    let lines = text.strip_prefix(MARKER)?;
    if name.host.is_none() && is_unlocked(&file) {
        let _ = fs::remove_file(&path);
        remove_socket(&folder.join(format!("{}{SOCKET}", name.id)));
        return None;
    }
    let remote = lines.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
    Some(StoredEntry { id: name.id, host: name.host, remote })
}

/// Removes a file if it is an unfinished entry of a dead program.
pub(super) fn sweep(folder: &Path, file: &str) {
    if !file.strip_prefix(DRAFT).is_some_and(is_id) {
        return;
    }
    let path = folder.join(file);
    // A program writes the marker only while it holds the lock.
    if open(&path)
        .and_then(with_text)
        .is_ok_and(|(file, text)| text.starts_with(MARKER) && is_unlocked(&file))
    {
        let _ = fs::remove_file(path);
    }
}

/// Writes an entry. The lock is held as long as the returned file is open.
///
/// # Errors
/// The system's error. [`io::ErrorKind::InvalidInput`] for endpoints that are too long or not
/// single lines. [`io::ErrorKind::AlreadyExists`] if a file that is not an entry has its name.
pub(super) fn write(folder: &Path, name: &FileName, remote: &[String]) -> io::Result<File> {
    let text: String =
        [MARKER.to_owned()].into_iter().chain(remote.iter().map(|line| format!("{line}\n"))).collect();
    let is_line = |line: &String| !line.is_empty() && !line.contains('\n');
    if text.len() > MOST_BYTES || !remote.iter().all(is_line) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the endpoints are too long for an entry"));
    }
    let file = name.to_string();
    match is_entry(&folder.join(&file)) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(_) => {
            let what = format!("{file} exists and is not an entry");
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
        }
    }
    place(folder, &file, &text)
}

/// Removes an entry.
///
/// # Errors
/// The system's error, or [`io::ErrorKind::InvalidData`] for a file that is not an entry.
pub(super) fn remove(folder: &Path, name: &FileName) -> io::Result<()> {
    let path = folder.join(name.to_string());
    is_entry(&path)?;
    fs::remove_file(path)
}

/// Replaces a file atomically with a new, locked file.
pub(super) fn place(folder: &Path, file: &str, text: &str) -> io::Result<File> {
    let draft = folder.join(format!("{DRAFT}{}", new_id()));
    let mut options = OpenOptions::new();
    // Always a new file, so that no existing file is written to and no link is followed.
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o644).custom_flags(libc::O_NOFOLLOW);
    }
    let mut new = options.open(&draft)?;
    let written = (|| {
        // Lock before writing the marker: a marked file without a lock counts as that of a dead
        // program.
        new.try_lock().map_err(io::Error::from)?;
        new.write_all(text.as_bytes())?;
        fs::rename(&draft, folder.join(file))
    })();
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written.map(|()| new)
}

/// Reads a file of this user.
///
/// # Errors
/// The system's error. [`io::ErrorKind::PermissionDenied`] for a file that other users can write
/// to. [`io::ErrorKind::InvalidData`] for a file that is too long or not regular.
pub(super) fn read_text(path: &Path) -> io::Result<String> {
    Ok(with_text(open(path)?)?.1)
}

/// Succeeds if only this user (or root) can write to a folder.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] with the reason, or the system's error.
pub(super) fn check_folder(path: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    if !found.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "it is not a folder"));
    }
    check_owner(&found)
}

fn is_entry(path: &Path) -> io::Result<()> {
    let is_marked = read_text(path)?.starts_with(MARKER);
    is_marked.then_some(()).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it is not an entry"))
}

/// Opens a file that only this user (or root) can write to.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    // The file may be a pipe without a writer, which would block the call.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY,
    );
    let file = options.open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is not a regular file"));
    }
    check_owner(&found)?;
    Ok(file)
}

fn with_text(mut file: File) -> io::Result<(File, String)> {
    let mut text = String::new();
    (&mut file).take(MOST_BYTES as u64 + 1).read_to_string(&mut text)?;
    if text.len() > MOST_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is too long"));
    }
    Ok((file, text))
}

/// True if the program that had locked the file is dead.
fn is_unlocked(file: &File) -> bool {
    is_obtained(&file.try_lock_shared())
}

/// True if a lock was obtained. If the system cannot tell, returns false, because the holder may be
/// alive.
pub(super) fn is_obtained(lock: &Result<(), TryLockError>) -> bool {
    match lock {
        Ok(()) => true,
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
    }
}

fn remove_socket(path: &Path) {
    #[cfg(unix)]
    let is_socket = fs::symlink_metadata(path)
        .is_ok_and(|found| std::os::unix::fs::FileTypeExt::is_socket(&found.file_type()));
    #[cfg(not(unix))]
    let is_socket = true;
    if is_socket {
        let _ = fs::remove_file(path);
    }
}

#[cfg(unix)]
fn check_owner(found: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let denied = |why: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    if found.uid() != 0 && found.uid() != own_user()? {
        return denied(format!("it belongs to user {}, not to the user of this process", found.uid()));
    }
    if found.mode() & 0o022 != 0 {
        return denied(format!(
            "other users can write to it (mode {:03o}): chmod go-w",
            found.mode() & 0o777
        ));
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_owner(_: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Returns the user for which this process works.
#[cfg(unix)]
fn own_user() -> io::Result<u32> {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    use std::sync::OnceLock;
    if let Ok(found) = fs::metadata("/proc/self") {
        return Ok(found.uid());
    }
    // On systems without that folder: the owner of a newly created file.
    static OWN: OnceLock<u32> = OnceLock::new();
    if let Some(own) = OWN.get() {
        return Ok(*own);
    }
    let path = std::env::temp_dir().join(format!(".tautline-{}", new_id()));
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    let _ = fs::remove_file(&path);
    let own = file.metadata()?.uid();
    Ok(*OWN.get_or_init(|| own))
}

/// Returns an id that is practically unique among all hosts and that other users cannot guess.
pub(super) fn new_id() -> String {
    // std seeds its hashers with random numbers of the system, once for each thread. A forked child
    // inherits the seed.
    let random = RandomState::new().hash_one((std::process::id(), SystemTime::now()));
    format!("{:012x}", random & 0xffff_ffff_ffff)
}

fn is_id(text: &str) -> bool {
    text.len() == ID_DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
