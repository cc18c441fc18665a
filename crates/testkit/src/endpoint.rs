//! Endpoints that nobody else uses, for tests that cannot bind to a wildcard.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A TCP port of the loopback that was free a moment ago.
///
/// Somebody else may take it before it is used: prefer `tcp://127.0.0.1:*` and ZMQ_LAST_ENDPOINT; this is for tests
/// that connect before anybody binds.
pub fn free_tcp_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .expect("the loopback has a free port")
        .port()
}

/// `tcp://127.0.0.1:PORT` with a [`free_tcp_port`].
pub fn tcp() -> String {
    format!("tcp://127.0.0.1:{}", free_tcp_port())
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
        assert_ne!(free_tcp_port(), 0);
        assert!(tcp().starts_with("tcp://127.0.0.1:"));
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
