//! Files in memory that can be sealed and handed to other processes.

mod resize;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;

use crate::sys::check;

/// Seals against a change of the length. Touching memory beyond the end would kill the process.
pub(crate) const FIXED_LENGTH: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;
/// MFD_NOEXEC_SEAL: the content is not executable, which a system may require (vm.memfd_noexec).
const NO_EXECUTION: libc::c_uint = 0x0008;

/// Creates a file of `length` bytes. Its pages are allocated when they are touched.
pub(crate) fn create(length: usize) -> io::Result<OwnedFd> {
    let fd = match create_empty(NO_EXECUTION) {
        // Linux before 6.3.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => create_empty(0),
        outcome => outcome,
    }?;
    resize::resize(fd.as_fd(), length)?;
    Ok(fd)
}

/// Returns the device and the inode of an open file, which no other open file has.
pub(crate) fn identity(file: &File) -> io::Result<(u64, u64)> {
    file.metadata().map(|attributes| (attributes.dev(), attributes.ino()))
}

/// Forbids operations on the file, for all processes and for ever.
pub(crate) fn seal(fd: &OwnedFd, seals: libc::c_int) -> io::Result<()> {
    // SAFETY: the descriptor is open; integers only.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, seals | libc::F_SEAL_SEAL) }).map(drop)
}

/// True if the file lies in ordinary memory. Huge pages belong to another file system, and mapping
/// its files takes a lock.
pub(crate) fn is_plain(fd: RawFd) -> io::Result<bool> {
    // SAFETY: a struct of integers, which the kernel fills in.
    let system = unsafe {
        let mut system: libc::statfs = std::mem::zeroed();
        check(libc::fstatfs(fd, &mut system))?;
        system
    };
    // The numbers of file systems have 32 bits, in types that differ between C libraries.
    Ok(system.f_type as u32 == libc::TMPFS_MAGIC as u32)
}

/// Creates an empty file.
pub(crate) fn create_empty(flags: libc::c_uint) -> io::Result<OwnedFd> {
    let flags = flags | libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // By number, because glibc before 2.27 has no function for it and cannot load a library that
    // imports one.
    // SAFETY: the name is a C string.
    let fd = unsafe { libc::syscall(libc::SYS_memfd_create, c"tautline-ipc".as_ptr(), flags) };
    let fd = check(fd as libc::c_int)?;
    // SAFETY: the descriptor is ours alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
