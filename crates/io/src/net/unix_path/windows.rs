//! The files of Unix domain sockets, which Windows has too.

use std::io;
use std::os::windows::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::fd::BorrowedFd;
use crate::libc;

/// The file that binding a socket has made.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// When it was made. Windows tells no number of a file by its path.
    made: u64,
}

impl SocketFile {
    /// The file of a socket that was bound to `path` a moment ago.
    pub fn at(path: &Path) -> io::Result<SocketFile> {
        // The process may change its directory.
        let path = std::path::absolute(path)?;
        let made = std::fs::symlink_metadata(&path)?.creation_time();
        Ok(SocketFile { path, made })
    }

    /// Removes it, unless something else is at its path by now.
    pub fn remove(&self) {
        if std::fs::symlink_metadata(&self.path).is_ok_and(|metadata| metadata.creation_time() == self.made) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// There are no permissions here.
pub(super) fn set_mode(_fd: BorrowedFd<'_>, _mode: u32) -> io::Result<bool> {
    Err(io::ErrorKind::Unsupported.into())
}

/// There are no permissions here.
pub fn set_path_mode(_path: &Path, _mode: u32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A path as the system writes it: in UTF-8.
pub(super) fn of_bytes(path: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(path).into_owned())
}

/// Removes what keeps a socket from being bound to `path`, if it holds nothing that could be
/// missed: a socket's file, which a process that was killed leaves behind, or an empty one, which
/// reserves a name. EADDRINUSE for everything else.
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

/// Makes a new directory in the user's place for temporary files. The caller removes it.
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
