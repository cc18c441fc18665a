//! Observed processes of all users, for root.
//!
//! Root finds a process in two ways: by its file in a folder of its user or service, and by its
//! open file, if the process has other mounts or another place for its file. An open file is read
//! through `/proc/PID/fd`, so no path of another user is followed.
//!
//! Other users can put anything into their folders. So a folder is opened without following a link,
//! and its owner must own the file. Before a file is opened for reading, a handle that cannot read
//! (O_PATH) proves that it is a plain file. The number of files of ended processes is limited.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::discovery::{
    find_in, folders, folders_of, is_own, open_of, open_plain, own_user, parse_name, processes, sort,
};
use crate::reader::{header, read_open};
use crate::{ObservedProcess, ReadError, Reading};

/// Maximum number of files that are examined in the folders of one other user.
const MOST_FILES: usize = 1024;
/// Maximum number of files of ended processes that are shown of one other user.
const MOST_ENDED: usize = 16;
/// Suffix of a link to an open file that was removed.
const REMOVED: &str = " (deleted)";

/// Returns the observed processes of this user. Root gets those of all users.
pub fn visible_processes() -> Vec<ObservedProcess> {
    let mut all = processes();
    if own_user().ok() != Some(0) {
        return all;
    }
    for user in other_users() {
        let found = folders_of(user, false).into_iter().flat_map(|folder| in_folder(&folder, user));
        all.extend(limited(found.collect()));
    }
    for (folder, user) in service_folders() {
        all.extend(limited(in_folder(&folder, user)));
    }
    let known: BTreeSet<u32> = all.iter().filter(|found| found.is_running).map(|found| found.pid).collect();
    let open = by_open_files(&known);
    // The process of a container looks ended here, because it has another number there.
    let open_files: Vec<_> = open.iter().filter_map(|found| file_of(&found.path)).collect();
    all.retain(|found| {
        found.is_running || !file_of(&found.path).is_some_and(|file| open_files.contains(&file))
    });
    all.extend(open);
    sort(&mut all);
    all
}

/// Returns the device and the number of a file.
fn file_of(path: &Path) -> Option<(u64, u64)> {
    let found = if is_open_file(path) { fs::metadata(path) } else { fs::symlink_metadata(path) };
    found.ok().map(|found| (found.dev(), found.ino()))
}

/// Returns the observed processes of one folder, which must belong to this user and be closed to
/// others. For root, the folder may belong to any user.
pub fn processes_of_folder(folder: &Path) -> Vec<ObservedProcess> {
    let (Ok(own), Ok(found)) = (own_user(), fs::symlink_metadata(folder)) else { return Vec::new() };
    let user = if own == 0 { found.uid() } else { own };
    let mut all = if is_own(folder, user) { in_folder(folder, user) } else { Vec::new() };
    sort(&mut all);
    all
}

/// Reads the counters file of a process. The owner of the file must be the user of the process.
///
/// # Errors
///
/// The [`ReadError`] that describes the problem with the file.
pub fn read_process(found: &ObservedProcess) -> Result<Reading, ReadError> {
    let file = match is_open_file(&found.path) {
        true => open_plain(&found.path, 0, found.user)?,
        false => open_of(&found.path, found.user)?,
    };
    let mut reading = read_open(&file)?;
    reading.copy = found.copy;
    // In another namespace, the process has other numbers. Other users can write any number.
    (reading.process.pid, reading.process.uid) = (found.pid, found.user);
    Ok(reading)
}

/// Returns the users that have a folder for counters files in one of the usual places.
fn other_users() -> BTreeSet<u32> {
    let folders = |place: &str, prefix: &'static str| {
        let entries = fs::read_dir(place).into_iter().flatten().flatten();
        entries.filter_map(move |entry| entry.file_name().to_str()?.strip_prefix(prefix)?.parse::<u32>().ok())
    };
    let mut users: BTreeSet<u32> = folders("/run/user", "").chain(folders("/tmp", "tautline-")).collect();
    users.remove(&0);
    users
}

/// Returns the folders for counters files, and their owners, in the folders that systemd makes for
/// services (`RuntimeDirectory=`): `/run/orders/tautline`.
fn service_folders() -> Vec<(PathBuf, u32)> {
    let own: Vec<PathBuf> = folders();
    let entries = |place: &str| fs::read_dir(place).into_iter().flatten().flatten();
    let places = entries("/run").chain(entries("/run/private"));
    let found =
        places.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).filter_map(|entry| {
            let folder = entry.path().join("tautline");
            let owner = fs::symlink_metadata(&folder).ok()?.uid();
            (!own.contains(&folder)).then_some((folder, owner))
        });
    found.collect()
}

/// Returns the processes of a folder of `user`, with the paths of the folder.
fn in_folder(folder: &Path, user: u32) -> Vec<ObservedProcess> {
    let flags = libc::O_NOFOLLOW | libc::O_DIRECTORY | libc::O_NONBLOCK;
    let Ok(opened) = OpenOptions::new().read(true).custom_flags(flags).open(folder) else {
        return Vec::new();
    };
    let is_closed = |found: &fs::Metadata| found.uid() == user && found.mode() & 0o077 == 0;
    if !opened.metadata().is_ok_and(|found| is_closed(&found)) {
        return Vec::new();
    }
    // The owner may replace the folder by a link now. This path names the folder that is open.
    let fixed = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
    let fixed = if fixed.exists() { fixed } else { folder.to_owned() };
    if fs::read_dir(&fixed).map_or(0, |entries| entries.take(MOST_FILES + 1).count()) > MOST_FILES {
        return Vec::new();
    }
    let mut all = find_in(&fixed, user);
    for found in &mut all {
        if let Some(name) = found.path.file_name() {
            found.path = folder.join(name);
        }
        // A user can write the number of any process into a file.
        found.is_running &= user == 0 || Status::of(found.pid).is_none_or(|status| status.user == user);
    }
    all
}

/// Removes all but the newest files of ended processes from a list.
fn limited(found: Vec<ObservedProcess>) -> Vec<ObservedProcess> {
    let (mut running, mut ended): (Vec<_>, Vec<_>) = found.into_iter().partition(|found| found.is_running);
    let written =
        |found: &ObservedProcess| fs::symlink_metadata(&found.path).and_then(|file| file.modified()).ok();
    ended.sort_by_cached_key(|found| std::cmp::Reverse(written(found)));
    running.extend(ended.into_iter().take(MOST_ENDED));
    running
}

/// Returns the processes that have a counters file open, except for the known ones.
fn by_open_files(known: &BTreeSet<u32>) -> Vec<ObservedProcess> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| !known.contains(pid)).flat_map(open_files_of).collect()
}

fn open_files_of(pid: u32) -> Vec<ObservedProcess> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| {
        let path = entry.path();
        let link = fs::read_link(&path).ok()?;
        let (own, copy) = counters_file(link.to_str()?)?;
        Some((path, own, copy))
    });
    let named: Vec<_> = named.take(MOST_ENDED).collect();
    let Some(status) = (!named.is_empty()).then(|| Status::of(pid)).flatten() else { return Vec::new() };
    let Status { user, own_pid } = status;
    let found = named.into_iter().filter(|(path, own, _)| {
        *own == own_pid && open_plain(path, 0, user).is_ok_and(|file| is_of(&file, own_pid))
    });
    let process = |(path, _, copy)| ObservedProcess { pid, path, is_running: true, user, copy, end: None };
    found.map(process).collect()
}

/// True if this is a counters file of the process.
fn is_of(file: &File, pid: u32) -> bool {
    header(file).is_ok_and(|header| header[..8] == crate::MAGIC && header[16..20] == pid.to_le_bytes())
}

/// Returns the process and the copy in the path of a counters file.
fn counters_file(path: &str) -> Option<(u32, u32)> {
    let (folder, name) = path.strip_suffix(REMOVED).unwrap_or(path).rsplit_once('/')?;
    let folder = folder.rsplit('/').next()?;
    let is_usual = folder == "tautline"
        || folder.strip_prefix("tautline-").is_some_and(|user| user.parse::<u32>().is_ok());
    is_usual.then(|| parse_name(name)).flatten()
}

/// True if this path names an open file of a process.
fn is_open_file(path: &Path) -> bool {
    path.starts_with("/proc") && path.parent().is_some_and(|folder| folder.ends_with("fd"))
}

/// User of a process, and its number in its own namespace.
struct Status {
    user: u32,
    own_pid: u32,
}

impl Status {
    fn of(pid: u32) -> Option<Status> {
        Status::parse(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
    }

    fn parse(text: &str) -> Option<Status> {
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        // The second number is the effective user.
        let user = field("Uid:")?.split_ascii_whitespace().nth(1)?.parse().ok()?;
        let inner = field("NSpid:").or_else(|| field("Pid:"))?;
        Some(Status { user, own_pid: inner.split_ascii_whitespace().last()?.parse().ok()? })
    }
}

#[cfg(test)]
mod tests;
