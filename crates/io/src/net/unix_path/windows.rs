//! The files of Unix domain sockets on Windows.

use std::io;
use std::os::windows::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::fd::BorrowedFd;
use crate::libc;

/// The file that binding a socket created.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Creation time of the file. Windows has no call that returns a file number for a path.
    made: u64,
}

impl SocketFile {
    /// Returns the file of a socket that was just bound to `path`.
    pub fn at(path: &Path) -> io::Result<SocketFile> {
        // The process may change its working directory.
        let path = std::path::absolute(path)?;
        let made = std::fs::symlink_metadata(&path)?.creation_time();
        Ok(SocketFile { path, made })
    }

    /// Removes the file, unless its path now leads to another file.
    pub fn remove(&self) {
        if std::fs::symlink_metadata(&self.path).is_ok_and(|metadata| metadata.creation_time() == self.made) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Always fails: such files have no permissions on Windows.
pub(super) fn set_mode(_fd: BorrowedFd<'_>, _mode: u32) -> io::Result<bool> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Always fails: such files have no permissions on Windows.
pub fn set_path_mode(_path: &Path, _mode: u32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns a path from the bytes of the system, which are UTF-8.
pub(super) fn of_bytes(path: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(path).into_owned())
}

/// Removes a file that keeps a socket from being bound to `path`, if the file holds no data: the
/// socket file of a killed process, or an empty file that reserves a name. Fails with EADDRINUSE
/// for any other file.
pub fn clear_path(path: &Path) -> io::Result<()> {
    let metadata = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        outcome => outcome?,
    };
    if metadata.is_dir() || metadata.len() > 0 {
        return Err(io::Error::from_raw_os_error(libc::EADDRINUSE));
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Creates a directory in the user's place for temporary files. The caller removes it.
pub fn temporary_directory() -> io::Result<PathBuf> {
    loop {
        let mut number = [0_u8; 4];
        crate::random::fill(&mut number)?;
        let path = std::env::temp_dir().join(format!("tmp{:08x}", u32::from_ne_bytes(number)));
        match std::fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            outcome => return outcome.map(|()| path),
        }
    }
}
