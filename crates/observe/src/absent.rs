//! Stubs for systems without counters files: writing fails, and a search finds no process.

use std::io;
use std::path::{Path, PathBuf};

use crate::{Image, ReadError, Reading};

/// Identity of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Process ID.
    pub pid: u32,
    /// User ID.
    pub uid: u32,
    /// Start time in system ticks; 0 if unknown.
    pub start_ticks: u64,
}

impl Identity {
    /// Returns the identity of this process.
    ///
    /// # Errors
    ///
    /// Always `Unsupported`.
    pub fn own() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Counters file of this process. Cannot be created on this system.
#[derive(Debug)]
pub enum Output {}

impl Output {
    /// Creates the file.
    ///
    /// # Errors
    ///
    /// Always `Unsupported`.
    pub fn create(_: &Identity, _: bool) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        match *self {}
    }

    /// Writes the image of one snapshot.
    ///
    /// # Errors
    ///
    /// Never called, because there is no file.
    pub fn write(&mut self, _: &Image) -> io::Result<()> {
        match *self {}
    }

    /// Removes the file.
    pub fn remove(self) {
        match self {}
    }
}

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
