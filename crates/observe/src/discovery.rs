//! Location of counters files: a folder of the user, with one file for each process.
//!
//! The possible folders are, in this order:
//!
//! 1. `$XDG_RUNTIME_DIR/tautline`
//! 2. `/run/user/UID/tautline`
//! 3. `/tmp/tautline-UID`
//!
//! A process writes to the first folder that it can use. Readers read all of them. A folder that
//! does not belong to the user, or is open to others, is neither written nor read. Root also reads
//! the folders of other users: see `everyone`.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::process_end::{END, ProcessEnd};
use crate::reader::header;
use crate::{HEADER, ReadError};

/// Without `/proc`, a file that was not written for this time counts as left by an ended process.
const STALE: Duration = Duration::from_secs(60);

/// Time for which the file of an ended process is kept, for tools that ask how it ended.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);
/// Maximum number of files of ended processes in a folder. The newest files are kept.
const MOST_ENDED: usize = 16;

/// An observed process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObservedProcess {
    /// Process ID.
    pub pid: u32,
    /// Path of its counters file.
    pub path: PathBuf,
    /// True if the process runs. If false, it ended without removing its file.
    pub is_running: bool,
    /// Owner of the file.
    pub user: u32,
    /// Number of the copy of the library in the process; 0 for the first.
    pub copy: u32,
    /// Reason for the end of the process, if `taut run` recorded it.
    pub end: Option<ProcessEnd>,
}

/// Returns the observed processes of this user, sorted by process ID. Skips all other files.
pub fn processes() -> Vec<ObservedProcess> {
    own_user().map_or_else(|_| Vec::new(), |user| sorted(&folders_of(user, true), user))
}

/// Returns the observed processes of another user, as [`processes`] does, from the folders that do
/// not depend on the environment. Only root can read them.
pub fn processes_of(user: u32) -> Vec<ObservedProcess> {
    sorted(&folders_of(user, false), user)
}

fn sorted(folders: &[PathBuf], user: u32) -> Vec<ObservedProcess> {
    let mut all: Vec<ObservedProcess> = folders.iter().flat_map(|folder| find_in(folder, user)).collect();
    sort(&mut all);
    all
}

pub(crate) fn sort(all: &mut [ObservedProcess]) {
    all.sort_by(|a, b| a.pid.cmp(&b.pid).then_with(|| a.path.cmp(&b.path)));
}

/// Returns the observed processes of one folder, unsorted. Does not check if the folder is closed
/// to others.
pub fn processes_in(folder: &Path) -> Vec<ObservedProcess> {
    own_user().map_or_else(|_| Vec::new(), |user| find_in(folder, user))
}

pub(crate) fn find_in(folder: &Path, user: u32) -> Vec<ObservedProcess> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let found = entries.flatten().filter_map(|entry| {
        let (pid, copy) = parse_name(entry.file_name().to_str()?)?;
        entry.file_type().ok()?.is_file().then_some(())?;
        let path = entry.path();
        let header = open_of(&path, user).and_then(|file| header(&file)).ok();
        let is_running = is_running(pid, &path, header.as_ref());
        let end = header.filter(|_| !is_running).and_then(|header| ProcessEnd::load(&header));
        Some(ObservedProcess { pid, path, is_running, user, copy, end })
    });
    found.collect()
}

/// Returns the folders that may hold counters files of this user and that are closed to others.
pub fn folders() -> Vec<PathBuf> {
    own_user().map_or_else(|_| Vec::new(), |user| folders_of(user, true))
}

pub(crate) fn folders_of(user: u32, environment: bool) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = candidates(user, environment)
        .into_iter()
        .map(|(_, folder)| folder)
        .filter(|folder| is_own(folder, user))
        .collect();
    folders.dedup();
    folders
}

/// Returns the folder to write to. Creates it if it is missing. If `environment` is false, ignores
/// `$XDG_RUNTIME_DIR`, because a program may have more rights than the caller that set it.
pub(crate) fn own_folder(user: u32, environment: bool) -> io::Result<PathBuf> {
    let mut reasons = Vec::new();
    for (parent, folder) in candidates(user, environment) {
        if !parent.is_dir() {
            continue;
        }
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if is_own(&folder, user) {
                    return Ok(folder);
                }
                let reason = "must be a folder that only its user can enter, and belong to this user";
                reasons.push(format!("{} {reason}", folder.display()));
            }
            Err(error) => reasons.push(format!("{}: {error}", folder.display())),
        }
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, reasons.join("; ")))
}

/// Returns the possible folders, the best first, each with the parent that must exist.
fn candidates(user: u32, environment: bool) -> Vec<(PathBuf, PathBuf)> {
    let run = if environment { std::env::var_os("XDG_RUNTIME_DIR") } else { None };
    let run = run.map(PathBuf::from).filter(|run| run.is_absolute());
    let run = run.into_iter().chain([PathBuf::from(format!("/run/user/{user}"))]);
    let mut all: Vec<_> = run.map(|run| (run.clone(), run.join("tautline"))).collect();
    all.push(("/tmp".into(), format!("/tmp/tautline-{user}").into()));
    all
}

/// True if this is a folder of `user` and closed to others.
pub(crate) fn is_own(folder: &Path, user: u32) -> bool {
    fs::symlink_metadata(folder)
        .is_ok_and(|found| found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0)
}

/// Opens a counters file of this user for reading.
pub(crate) fn open(path: &Path) -> Result<File, ReadError> {
    open_of(path, own_user()?)
}

/// Opens a counters file of `user` for reading.
pub(crate) fn open_of(path: &Path, user: u32) -> Result<File, ReadError> {
    if own_user()? != user {
        return open_plain(path, libc::O_NOFOLLOW, user);
    }
    // O_NONBLOCK, because the path may be a pipe without a writer.
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    let file = match opened {
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => return Err(ReadError::Foreign),
        opened => opened?,
    };
    let found = file.metadata()?;
    if !found.is_file() || found.uid() != user {
        return Err(ReadError::Foreign);
    }
    Ok(file)
}

/// Opens a plain file of another user. Opening a device or a pipe could have an effect, so a handle
/// that cannot read (O_PATH) proves first that it is a plain file.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn open_plain(path: &Path, flags: i32, user: u32) -> Result<File, ReadError> {
    let handle = OpenOptions::new().read(true).custom_flags(libc::O_PATH | flags).open(path)?;
    let found = handle.metadata()?;
    if !found.is_file() || found.uid() != user {
        return Err(ReadError::Foreign);
    }
    let fixed = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&handle));
    // O_NONBLOCK, because the owner may hold a lease of the file.
    Ok(OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(fixed)?)
}

/// Other systems have no such handles: the files of other users cannot be read.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn open_plain(_: &Path, _: i32, _: u32) -> Result<File, ReadError> {
    Err(ReadError::Foreign)
}

/// Returns the process ID and the copy in a file name: `PID`, or `PID.COPY` for a further copy of
/// the library in the same process.
pub(crate) fn parse_name(name: &str) -> Option<(u32, u32)> {
    let (pid, copy) = name.split_once('.').unwrap_or((name, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(pid) && is_number(copy)).then(|| Some((pid.parse().ok()?, copy.parse().ok()?))).flatten()
}

fn pid_of(name: &str) -> Option<u32> {
    parse_name(name).map(|(pid, _)| pid)
}

/// Returns the number of the copy of the library that wrote this file; 0 for the first.
pub(crate) fn copy_of(path: &Path) -> u32 {
    path.file_name().and_then(|name| parse_name(name.to_str()?)).map_or(0, |(_, copy)| copy)
}

/// True if the process that wrote this file is running.
fn is_running(pid: u32, path: &Path, header: Option<&[u8; HEADER]>) -> bool {
    if !Path::new("/proc/self/stat").exists() {
        let written = fs::symlink_metadata(path).and_then(|found| found.modified());
        return written.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|time| time < STALE));
    }
    let Some((state, now)) = state_and_start(pid) else { return false };
    // A zombie has ended, but its parent has not asked for its exit status yet.
    if matches!(state, 'Z' | 'X') {
        return false;
    }
    // Another process may have reused the process ID.
    header.map(ticks_in).is_none_or(|then| then == 0 || then == now)
}

fn ticks_in(header: &[u8; HEADER]) -> u64 {
    u64::from_le_bytes(header[24..32].try_into().unwrap_or_default())
}

/// Removes the files of processes that ended more than a day ago, all but the newest files of other
/// ended processes, and control sockets without a counters file. Removes each file of an ended
/// process whose number is `reused`.
pub(crate) fn sweep(folder: &Path, reused: Option<u32>) {
    let now = SystemTime::now();
    let mut ended: Vec<(Duration, ObservedProcess)> = processes_in(folder)
        .into_iter()
        .filter(|found| !found.is_running)
        .filter_map(|found| {
            let written = fs::symlink_metadata(&found.path).and_then(|file| file.modified()).ok()?;
            // A file from the future counts as new.
            Some((now.duration_since(written).unwrap_or_default(), found))
        })
        .collect();
    ended.sort_by_key(|(age, _)| *age);
    for (index, (age, found)) in ended.iter().enumerate() {
        if *age >= KEPT || index >= MOST_ENDED || Some(found.pid) == reused {
            let _ = fs::remove_file(&found.path);
        }
    }
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        // Remove a control socket (`PID.tap`) whose process has ended.
        let name = entry.file_name();
        let Some(name) = name.to_str().and_then(|name| name.strip_suffix(".tap")) else { continue };
        let is_socket = entry.file_type().is_ok_and(|kind| kind.is_socket());
        let is_unused =
            !folder.join(name).exists() || ended.iter().any(|(_, found)| found.path.ends_with(name));
        if is_socket && pid_of(name).is_some() && is_unused {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Removes the files of processes of this user that ended more than a day ago.
pub fn remove_outdated() {
    folders().iter().for_each(|folder| sweep(folder, None));
}

/// Records the end of a process of this user in its counters files, which its crash has left.
/// `start_ticks` is the start of the process. Has no effect on files of another process with the
/// same number. Returns the number of files.
pub fn record_end(pid: u32, start_ticks: u64, end: ProcessEnd) -> usize {
    let record = |found: &ObservedProcess| -> Result<(), ReadError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let file = options.open(&found.path)?;
        let metadata = file.metadata()?;
        let header = header(&file)?;
        let is_same = ticks_in(&header) == start_ticks && header[16..20] == pid.to_le_bytes();
        if !metadata.is_file() || metadata.uid() != found.user || !is_same {
            return Err(ReadError::Foreign);
        }
        Ok(file.write_all_at(&end.store(), END as u64)?)
    };
    processes()
        .iter()
        .filter(|found| found.pid == pid && !found.is_running)
        .filter_map(|found| record(found).ok())
        .count()
}

/// Returns the start time of a process in ticks since boot, from Linux's `/proc`.
pub fn start_ticks(pid: u32) -> Option<u64> {
    Some(state_and_start(pid)?.1)
}

/// Returns the state of a process as a letter, and its start time in ticks since boot.
fn state_and_start(pid: u32) -> Option<(char, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program name may contain any character, including spaces and parentheses.
    let (_, behind) = stat.rsplit_once(')')?;
    let mut fields = behind.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

/// Returns the effective user of this process.
pub(crate) fn own_user() -> io::Result<u32> {
    if let Ok(found) = fs::metadata("/proc/self") {
        return Ok(found.uid());
    }
    // On systems without such a folder, use the owner of a new file.
    let path = std::env::temp_dir().join(format!(".tautline-{}", std::process::id()));
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    let _ = fs::remove_file(&path);
    Ok(file.metadata()?.uid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_numbers_of_processes() {
        assert_eq!(pid_of("123"), Some(123));
        assert_eq!(pid_of("123.2"), Some(123));
        for name in ["", "x", "12x", "1.", ".1", "1.tap", "-1", "99999999999", "1.2.3"] {
            assert_eq!(pid_of(name), None, "{name}");
        }
    }

    #[test]
    fn this_process_runs_since_some_tick() {
        let own = std::process::id();
        assert!(start_ticks(own).is_none_or(|ticks| ticks > 0));
        assert_eq!(start_ticks(own), start_ticks(own));
    }
}
