//! Unused endpoints, for tests that cannot bind to a wildcard.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns a loopback address for one test. On Linux, the loopback is all of 127.0.0.0/8, and no
/// other test uses the returned address.
///
/// A port of this address that was free a moment ago, or was just released, is still free. On
/// 127.0.0.1, any other program may take the port, even for the local end of a connection.
pub fn loopback() -> Ipv4Addr {
    if !cfg!(target_os = "linux") {
        return Ipv4Addr::LOCALHOST;
    }
    let [.., high, low] = std::process::id().to_be_bytes();
    // Excludes 127.0.0.1 and the broadcast address.
    Ipv4Addr::new(127, (next_number() % 254 + 1) as u8, high, low)
}

/// Returns `tcp://ADDRESS:PORT` with a free port of a [`loopback`], for tests that connect before
/// any socket binds.
pub fn tcp() -> String {
    let free = TcpListener::bind((loopback(), 0)).and_then(|listener| listener.local_addr());
    format!("tcp://{}", free.expect("the loopback has a free port"))
}

/// Returns `inproc://NAME-N`, with a different number for each call in this process.
pub fn inproc(name: &str) -> String {
    format!("inproc://{name}-{}", next_number())
}

/// A new directory for ipc endpoints and other files. Dropping it deletes the directory and its
/// content.
#[derive(Debug)]
pub struct TempDir {
    path: PathBuf,
}

impl TempDir {
    /// Creates the directory. Its path is short, because a Unix socket address holds about 100
    /// bytes.
    #[expect(clippy::new_without_default, reason = "making a directory is no default value")]
    pub fn new() -> Self {
        let path = std::env::temp_dir().join(format!("taut-{}-{}", std::process::id(), next_number()));
        std::fs::create_dir_all(&path).expect("the temporary directory is writable");
        Self { path }
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns `ipc://PATH/NAME` in this directory.
    pub fn ipc(&self, name: &str) -> String {
        format!("ipc://{}", self.path.join(name).display())
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // If the deletion fails, the rest is harmless in the system's temporary directory.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Returns a number that is new in this process.
fn next_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Relaxed: only uniqueness matters, no other data is published with it.
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_differ() {
        assert_ne!(inproc("a"), inproc("a"));
        assert!(tcp().starts_with("tcp://127."));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn loopback_addresses_are_of_this_machine_and_differ() {
        let (one, other) = (loopback(), loopback());
        assert_ne!(one, other);
        let listener = TcpListener::bind((one, 0)).unwrap();
        TcpListener::bind((other, listener.local_addr().unwrap().port())).unwrap();
    }

    #[test]
    fn a_directory_is_removed_with_its_files() {
        let directory = TempDir::new();
        let path = directory.path().to_owned();
        assert!(directory.ipc("s").starts_with("ipc:///"));
        std::fs::write(path.join("file"), b"x").unwrap();
        drop(directory);
        assert!(!path.exists());
    }
}
