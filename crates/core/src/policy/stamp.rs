//! What shows that a file is another one.

use std::path::Path;
use std::time::SystemTime;

/// What of a file changes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
    /// Of a file that has taken another one's place by its name, another number; where there are
    /// such numbers.
    inode: u64,
}

/// How a file is now.
pub(crate) fn stamp(path: &Path) -> Option<Stamp> {
    let found = std::fs::metadata(path).ok()?;
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(&found);
    #[cfg(not(unix))]
    let inode = 0;
    Some(Stamp { length: found.len(), modified: found.modified().ok(), inode })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_in_the_place_of_another_one_is_a_change() {
        let folder = std::env::temp_dir();
        let paths = ["stamp", "stamp-other"]
            .map(|name| folder.join(format!("tautline-{name}-{}", tautline_io::thread::process_id())));
        let [file, other] = &paths;
        fs::write(file, "one").unwrap();
        fs::write(other, "two").unwrap();
        let before = stamp(file).unwrap();
        // Of the same length and time.
        let open = fs::OpenOptions::new().write(true).open(other).unwrap();
        open.set_modified(before.modified.unwrap()).unwrap();
        fs::rename(other, file).unwrap();
        let after = stamp(file).unwrap();
        fs::remove_file(file).unwrap();
        assert_eq!((after.length, after.modified), (before.length, before.modified));
        assert!(after != before);
    }
}
