//! Systems without files of counters: nothing is written, and nothing is found.

use std::io;
use std::path::{Path, PathBuf};

use crate::{Fault, Image, Reading};

/// What names this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Its number.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// When it was started, in the system's ticks; 0 if that is not known.
    pub start_ticks: u64,
}

impl Identity {
    /// This process.
    ///
    /// # Errors
    /// `Unsupported`.
    pub fn own() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The file of counters of this process: there is none.
#[derive(Debug)]
pub enum Output {}

impl Output {
    /// Makes the file.
    ///
    /// # Errors
    /// `Unsupported`.
    pub fn create(_: &Identity) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        match *self {}
    }

    /// Writes the image of a look.
    ///
    /// # Errors
    /// None, as there is no file.
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
pub struct Found {
    /// Its number.
    pub pid: u32,
    /// Its file of counters.
    pub path: PathBuf,
    /// Whether it runs.
    pub runs: bool,
}

/// The observed processes of this user: none.
pub fn processes() -> Vec<Found> {
    Vec::new()
}

/// The same of one folder.
pub fn processes_in(_: &Path) -> Vec<Found> {
    Vec::new()
}

/// The folders that may have files of counters: none.
pub fn folders() -> Vec<PathBuf> {
    Vec::new()
}

/// Reads the file of counters at `path`.
///
/// # Errors
/// [`Fault::System`] with `Unsupported`.
pub fn read(_: &Path) -> Result<Reading, Fault> {
    Err(Fault::System(io::ErrorKind::Unsupported.into()))
}
