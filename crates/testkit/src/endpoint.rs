//! Endpoints that nothing else uses, for tests that cannot bind to a wildcard.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// An address of the loopback for one test: on Linux, where the loopback has all of 127.0.0.0/8,
/// one that no other test uses.
///
/// A port of it that was free a moment ago, or was bound until then, still is: of 127.0.0.1 any
/// other program may have taken it, and be it for the near end of a connection.
pub fn loopback() -> Ipv4Addr {
    if !cfg!(target_os = "linux") {
        return Ipv4Addr::LOCALHOST;
    }
    let [.., high, low] = std::process::id().to_be_bytes();
    // 127.0.0.1 is not among them, nor is the broadcast address.
    Ipv4Addr::new(127, (next() % 254 + 1) as u8, high, low)
}

/// `tcp://ADDRESS:PORT` with a free port of a [`loopback`], for tests that connect before anything
/// binds.
pub fn tcp() -> String {
    let free = TcpListener::bind((loopback(), 0)).and_then(|listener| listener.local_addr());
    format!("tcp://{}", free.expect("the loopback has a free port"))
}

/// `inproc://NAME-N`, different at each call in this process.
pub fn inproc(name: &str) -> String {
    format!("inproc://{name}-{}", next())
}

/// A fresh directory for ipc endpoints and other files, removed with everything in it when dropped.
#[derive(Debug)]
pub struct TempDir {
    path: PathBuf,
}

impl TempDir {
    /// Makes the directory; its path is short, since a Unix socket address holds about 100 bytes.
    #[expect(clippy::new_without_default, reason = "making a directory is no default value")]
    pub fn new() -> Self {
        let path = std::env::temp_dir().join(format!("taut-{}-{}", std::process::id(), next()));
        std::fs::create_dir_all(&path).expect("the temporary directory is writable");
        Self { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `ipc://PATH/NAME` in this directory.
    pub fn ipc(&self, name: &str) -> String {
        format!("ipc://{}", self.path.join(name).display())
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // What is left behind lies in the system's temporary directory and does no harm.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// A number that this process has not used yet.
fn next() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Relaxed: only uniqueness matters, nothing is published with it.
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
