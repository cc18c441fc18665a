//! Identity of the user at the other end of a Unix domain connection, and the groups of that user.
//! The look-ups query the system's user database, which may be slow. Use them when a connection is
//! accepted, not on each message.

use std::ffi::{CStr, CString};
use std::io;

/// The process that created the other end of a connection, as the kernel recorded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Process id; 0 if the system does not report it.
    pub pid: i32,
    /// Effective user id.
    pub uid: u32,
    /// Effective group id.
    pub gid: u32,
}

/// True if the user database lists `uid` in the group `gid`, as primary or supplementary group.
pub fn user_in_group(uid: u32, gid: u32) -> bool {
    groups_of_user(uid).contains(&gid)
}

/// Returns all groups of a user from the user database, with the primary group first. Returns an
/// empty list if the user is unknown.
pub fn groups_of_user(uid: u32) -> Vec<u32> {
    match entry_of_user(uid) {
        Ok(Some((name, gid))) => groups_of(&name, gid),
        _ => Vec::new(),
    }
}

/// Returns the process at the other end of a Unix domain stream of the standard library.
///
/// # Errors
/// The error of the system call.
pub fn peer_credentials_of(stream: &std::os::unix::net::UnixStream) -> io::Result<Credentials> {
    super::os::peer_credentials(std::os::fd::AsFd::as_fd(stream))
}

/// Returns the effective user of this process.
pub fn own_user() -> u32 {
    // SAFETY: no arguments and no preconditions.
    unsafe { libc::geteuid() }
}

/// Returns the id of the user with this name.
pub fn user_id(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    let found = look_up(|buffer| {
        // SAFETY: passwd is a struct of integers and pointers, null here.
        let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
        let mut result = std::ptr::null_mut();
        // SAFETY: the name is terminated; entry, buffer (with its length) and result are exclusive.
        let status = unsafe {
            libc::getpwnam_r(name.as_ptr(), &mut entry, buffer.as_mut_ptr(), buffer.len(), &mut result)
        };
        (status, (!result.is_null()).then_some(entry.pw_uid))
    });
    found.ok().flatten()
}

/// Returns the id of the group with this name.
pub fn group_id(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    let found = look_up(|buffer| {
        // SAFETY: group is a struct of integers and pointers, null here.
        let mut entry: libc::group = unsafe { std::mem::zeroed() };
        let mut result = std::ptr::null_mut();
        // SAFETY: the name is terminated; entry, buffer (with its length) and result are exclusive.
        let status = unsafe {
            libc::getgrnam_r(name.as_ptr(), &mut entry, buffer.as_mut_ptr(), buffer.len(), &mut result)
        };
        (status, (!result.is_null()).then_some(entry.gr_gid))
    });
    found.ok().flatten()
}

/// Returns name and primary group of a user.
fn entry_of_user(uid: u32) -> io::Result<Option<(CString, u32)>> {
    look_up(|buffer| {
        // SAFETY: passwd is a struct of integers and pointers, null here.
        let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
        let mut result = std::ptr::null_mut();
        // SAFETY: entry, buffer (with its length) and result are exclusive.
        let status =
            unsafe { libc::getpwuid_r(uid, &mut entry, buffer.as_mut_ptr(), buffer.len(), &mut result) };
        if result.is_null() || entry.pw_name.is_null() {
            return (status, None);
        }
        // SAFETY: on success the name points to a terminated string in `buffer`.
        let name = unsafe { CStr::from_ptr(entry.pw_name) }.to_owned();
        (status, Some((name, entry.pw_gid)))
    })
}

#[allow(clippy::unnecessary_cast, reason = "the list is of ints on some systems")]
fn groups_of(name: &CStr, gid: u32) -> Vec<u32> {
    let mut capacity = 32;
    loop {
        let mut groups = vec![0; capacity];
        let mut count = capacity as libc::c_int;
        // SAFETY: the name is terminated; at most `count` numbers are written into the exclusive
        // vector.
        let outcome = unsafe { libc::getgrouplist(name.as_ptr(), gid as _, groups.as_mut_ptr(), &mut count) };
        let count = usize::try_from(count).unwrap_or(0);
        if outcome != -1 || capacity >= MOST_GROUPS {
            groups.truncate(count);
            return groups.into_iter().map(|group| group as u32).collect();
        }
        // Some systems return the needed number, others do not.
        capacity = count.max(capacity * 2).min(MOST_GROUPS);
    }
}

/// Runs a database call with a buffer that grows while the call returns ERANGE.
fn look_up<T>(
    mut call: impl FnMut(&mut [libc::c_char]) -> (libc::c_int, Option<T>),
) -> io::Result<Option<T>> {
    let mut length = 1024;
    loop {
        match call(&mut vec![0; length]) {
            (0, found) => return Ok(found),
            (libc::EINTR, _) => {}
            (libc::ERANGE, _) if length < LONGEST_ENTRY => length *= 2,
            (number, _) => return Err(io::Error::from_raw_os_error(number)),
        }
    }
}

/// Most groups that Linux allows a process.
const MOST_GROUPS: usize = 65536;

const LONGEST_ENTRY: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_superuser_is_in_the_first_group() {
        assert!(user_in_group(0, 0));
        assert_eq!(groups_of_user(0)[0], 0);
        assert_eq!(user_id("root"), Some(0));
    }

    #[test]
    fn unknown_users_and_groups_have_no_name() {
        assert_eq!(groups_of_user(u32::MAX - 7), []);
        assert!(!user_in_group(u32::MAX - 7, 0));
        assert!(!user_in_group(0, u32::MAX - 7));
        assert_eq!(user_id("no such user"), None);
        assert_eq!(group_id("no such group"), None);
        assert_eq!(group_id("zero\0"), None);
    }
}
