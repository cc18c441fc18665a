//! Waits until a file is written.

use std::path::Path;

/// Watches a file for writes.
pub struct Writes {
    #[cfg(target_os = "linux")]
    queue: std::os::fd::OwnedFd,
}

#[cfg(target_os = "linux")]
impl Writes {
    pub fn of(path: &Path) -> Self {
        use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
        let queue = init(CreateFlags::CLOEXEC).unwrap();
        add_watch(&queue, path, WatchFlags::MODIFY).unwrap();
        Writes { queue }
    }

    /// Returns after a write since the last call, or since the creation of this value.
    pub fn wait(&self) {
        let mut events = [0; 4096];
        while rustix::io::read(&self.queue, &mut events) == Err(rustix::io::Errno::INTR) {}
    }
}

/// Polls, because this system cannot wait for the write.
#[cfg(not(target_os = "linux"))]
impl Writes {
    pub fn of(_path: &Path) -> Self {
        Writes {}
    }

    pub fn wait(&self) {
        std::thread::yield_now();
    }
}
