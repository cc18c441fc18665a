//! The files of Unix domain sockets.

use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Removes a socket's file, left behind by a process that ended. Nothing there is fine; anything else than
/// a socket is left alone (EADDRINUSE).
pub fn remove_socket_file(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(io::Error::from_raw_os_error(libc::EADDRINUSE));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Makes a new directory that only this user can enter, in the system's place for temporary files
/// (`TMPDIR`). The caller removes it.
pub fn temporary_directory() -> io::Result<PathBuf> {
    let mut template = std::env::temp_dir();
    template.push("tmpXXXXXX");
    let template = CString::new(template.into_os_string().as_bytes())?;
    let mut template = template.into_bytes_with_nul();
    // SAFETY: mkdtemp replaces the six characters before the terminating zero in the exclusive buffer.
    if unsafe { libc::mkdtemp(template.as_mut_ptr().cast()) }.is_null() {
        return Err(io::Error::last_os_error());
    }
    template.pop();
    Ok(PathBuf::from(OsString::from_vec(template)))
}
