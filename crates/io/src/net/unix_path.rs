//! The files of Unix domain sockets.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::env;
#[cfg(linux_kernel)]
use crate::fd::AsRawFd;
use crate::fd::BorrowedFd;

/// The file that binding a socket created.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl SocketFile {
    /// Returns the file of a socket that was just bound to `path`. The system does not report which
    /// file a socket created, so a file that another process has put there since then is mistaken
    /// for it.
    pub fn at(path: &Path) -> io::Result<SocketFile> {
        // The process may change its working directory.
        let path = std::path::absolute(path)?;
        let metadata = std::fs::symlink_metadata(&path)?;
        Ok(SocketFile { path, device: metadata.dev(), inode: metadata.ino() })
    }

    /// Removes the file, unless its path now leads to another file. Call this while the socket is
    /// open, because its inode number is not reused before that. POSIX has no call that checks and
    /// removes in one step, so a file put there between the two steps is removed.
    pub fn remove(&self) {
        let is_it =
            |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino()) == (self.device, self.inode);
        if std::fs::symlink_metadata(&self.path).is_ok_and(is_it) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Gives the file of a Unix domain socket these permissions, minus the umask, as soon as the socket
/// is bound. Returns false if the system does not support that.
pub(super) fn set_mode(fd: BorrowedFd<'_>, mode: u32) -> io::Result<bool> {
    let socket = fs::File::from(fd.try_clone_to_owned()?);
    Ok(socket.set_permissions(Permissions::from_mode(mode)).is_ok())
}

/// Gives the file of a socket these permissions. Fails with EACCES if another user has replaced the
/// file, for example by a link to another file, and leaves the replacement unchanged.
pub fn set_path_mode(path: &Path, mode: u32) -> io::Result<()> {
    let is_good = |found: &fs::Metadata| found.file_type().is_socket() && found.mode() & 0o777 == mode;
    // Usually the file was created with these permissions.
    if is_good(&fs::symlink_metadata(path)?) {
        return Ok(());
    }
    change_mode(path, mode)?;
    if is_good(&fs::symlink_metadata(path)?) { Ok(()) } else { Err(no_access()) }
}

/// Changes the file that was checked, even if its name now leads to another file.
#[cfg(linux_kernel)]
fn change_mode(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.file_type().is_socket() {
        return Err(no_access());
    }
    let itself = format!("/proc/self/fd/{}", file.as_raw_fd());
    fs::set_permissions(itself, Permissions::from_mode(mode))
}

#[cfg(not(linux_kernel))]
fn change_mode(path: &Path, mode: u32) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the path is terminated and outlives the call.
    let outcome = unsafe {
        libc::fchmodat(libc::AT_FDCWD, path.as_ptr(), mode as libc::mode_t, libc::AT_SYMLINK_NOFOLLOW)
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn no_access() -> io::Error {
    io::Error::from_raw_os_error(libc::EACCES)
}

/// Returns a path from the bytes of the system.
pub(super) fn of_bytes(path: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(path))
}

/// Removes a file that keeps a socket from being bound to `path`, if the file holds no data: the
/// socket file of a killed process, an empty file that reserves a name (mkstemp), a FIFO or a
/// symbolic link. Fails with EADDRINUSE for any other file.
pub fn clear_path(path: &Path) -> io::Result<()> {
    let metadata = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        outcome => outcome?,
    };
    let kind = metadata.file_type();
    let is_empty = kind.is_file() && metadata.len() == 0;
    if !(is_empty || kind.is_socket() || kind.is_fifo() || kind.is_symlink()) {
        return Err(io::Error::from_raw_os_error(libc::EADDRINUSE));
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Creates a directory that only this user can enter, in the place for temporary files. The place
/// is the first of TMPDIR, TEMPDIR and TMP that names a directory, otherwise the system's default.
/// The caller removes the directory.
pub fn temporary_directory() -> io::Result<PathBuf> {
    let mut template = ["TMPDIR", "TEMPDIR", "TMP"]
        .into_iter()
        .filter_map(env::var_os)
        .map(PathBuf::from)
        .find(|path| path.is_dir())
        .unwrap_or_else(|| if env::is_trusted() { std::env::temp_dir() } else { "/tmp".into() });
    template.push("tmpXXXXXX");
    let template = CString::new(template.into_os_string().as_bytes())?;
    let mut template = template.into_bytes_with_nul();
    // SAFETY: mkdtemp replaces the six characters before the terminating zero in the exclusive
    // buffer.
    if unsafe { libc::mkdtemp(template.as_mut_ptr().cast()) }.is_null() {
        return Err(io::Error::last_os_error());
    }
    template.pop();
    Ok(PathBuf::from(OsString::from_vec(template)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn permissions_are_those_of_the_socket_and_of_nothing_else() {
        let folder = std::env::temp_dir().join(format!("tautline-mode-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let mode_of = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        let path = folder.join("socket");
        let _listener = UnixListener::bind(&path).unwrap();
        for mode in [0o600, 0o777, 0o660] {
            set_path_mode(&path, mode).unwrap();
            assert_eq!(mode_of(&path), mode);
        }
        // Simulates a link that another user has put there.
        let (other, link) = (folder.join("other"), folder.join("link"));
        fs::write(&other, "").unwrap();
        fs::set_permissions(&other, Permissions::from_mode(0o600)).unwrap();
        for target in [&other, &path] {
            std::os::unix::fs::symlink(target, &link).unwrap();
            assert!(set_path_mode(&link, 0o666).is_err());
            fs::remove_file(&link).unwrap();
        }
        assert_eq!((mode_of(&other), mode_of(&path)), (0o600, 0o660));
        fs::remove_dir_all(&folder).unwrap();
    }
}
