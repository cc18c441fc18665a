//! Stubs for systems without counters files: a search finds no process.

use std::io;
use std::path::{Path, PathBuf};

use crate::{ProcessEnd, ReadError, Reading};

/// An observed process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObservedProcess {
    /// Process ID.
    pub pid: u32,
    /// Path of its counters file.
    pub path: PathBuf,
    /// True if the process is running.
    pub is_running: bool,
    /// Owner of the file.
    pub user: u32,
    /// Number of the copy of the library in the process; 0 for the first.
    pub copy: u32,
    /// Reason for the end of the process, if `taut run` recorded it.
    pub end: Option<ProcessEnd>,
}

/// Returns the observed processes of this user: always an empty list.
pub fn processes() -> Vec<ObservedProcess> {
    Vec::new()
}

/// Returns the observed processes of one folder: always an empty list.
pub fn processes_in(_: &Path) -> Vec<ObservedProcess> {
    Vec::new()
}

/// Returns the folders that may hold counters files: always an empty list.
pub fn folders() -> Vec<PathBuf> {
    Vec::new()
}

/// Returns the observed processes of another user: always an empty list.
pub fn processes_of(_: u32) -> Vec<ObservedProcess> {
    Vec::new()
}

/// Reads the counters file at `path`, which must be one of `user`.
///
/// # Errors
///
/// Always returns [`ReadError::Io`] with `Unsupported`.
pub fn read_of(path: &Path, _user: u32) -> Result<Reading, ReadError> {
    read(path)
}

/// Reads the counters file at `path`.
///
/// # Errors
///
/// Always returns [`ReadError::Io`] with `Unsupported`.
pub fn read(_: &Path) -> Result<Reading, ReadError> {
    Err(ReadError::Io(io::ErrorKind::Unsupported.into()))
}

/// Returns the observed processes that this user may see: always an empty list.
pub fn visible_processes() -> Vec<ObservedProcess> {
    Vec::new()
}

/// Returns the observed processes of one folder: always an empty list.
pub fn processes_of_folder(_: &Path) -> Vec<ObservedProcess> {
    Vec::new()
}

/// Reads the counters file of a process.
///
/// # Errors
///
/// Always returns [`ReadError::Io`] with `Unsupported`.
pub fn read_process(found: &ObservedProcess) -> Result<Reading, ReadError> {
    read(&found.path)
}

/// Records the end of a process: has no effect.
pub fn record_end(_: u32, _: u64, _: ProcessEnd) -> usize {
    0
}

/// Removes outdated files: has no effect.
pub fn remove_outdated() {}

/// Returns the start time of a process: always `None`.
pub fn start_ticks(_: u32) -> Option<u64> {
    None
}
