//! Files that are read again when they change: policies, lists of clients, certificates, names.
//!
//! A state of the files counts as seen only after all of them were read in that state. If a read
//! fails for any reason, the value is unchanged, and the next check tries again.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crate::spare::Spare;
use tautline_core::{Error, is_memory_short};

/// Minimum time between two checks if a file has changed.
const LOOK: Duration = Duration::from_millis(100);
/// A file that changed more recently than this may change again without a new time stamp.
const SETTLED: Duration = Duration::from_millis(100);

/// A value that is read from some files.
#[derive(Debug)]
pub(crate) struct ReloadedValue<T> {
    value: T,
    /// Files, and folders with all their files.
    paths: Vec<PathBuf>,
    /// State of the files at the last complete read. `None`: they must be read again.
    seen: Option<FileState>,
    looked: Instant,
    /// Time of the first failed read since the last good one.
    failing: Option<Instant>,
    /// The fault that was reported last.
    reported_fault: String,
    spare: Arc<Spare>,
}

/// A value, and true if all files were read for it. If false, they are read again.
pub(crate) type Read<T> = Result<(T, bool), String>;

impl<T> ReloadedValue<T> {
    /// Reads the value from `paths`. The error describes the fault.
    pub(crate) fn open(paths: Vec<PathBuf>, read: impl FnOnce() -> Read<T>) -> Result<Self, String> {
        let spare = Spare::shared();
        let before = FileState::of(&paths, &spare);
        let (value, is_whole) = spare.lend(read)?;
        let seen = before.filter(|_| is_whole).and_then(|before| before.seen(&paths, &spare));
        let (looked, told) = (Instant::now(), String::new());
        Ok(ReloadedValue { value, paths, seen, looked, failing: None, reported_fault: told, spare })
    }

    /// The value of the last read.
    pub(crate) fn get(&self) -> &T {
        &self.value
    }

    /// Reads the value again if the files have changed. Returns true if it was read.
    ///
    /// # Errors
    /// The fault of the files, reported once for each fault. The value is unchanged.
    pub(crate) fn refresh(&mut self, read: impl FnOnce() -> Read<T>) -> Result<bool, String> {
        if self.looked.elapsed() < LOOK {
            return Ok(false);
        }
        self.looked = Instant::now();
        let before = FileState::of(&self.paths, &self.spare);
        if before.is_some() && self.seen == before {
            self.failing = None;
            self.spare.fill();
            return Ok(false);
        }
        let read = || if is_memory_short() { Err(Error::NoMemory.to_string()) } else { read() };
        match self.spare.lend(read) {
            Ok((value, is_whole)) => {
                self.value = value;
                let before = before.filter(|_| is_whole);
                self.seen = before.and_then(|before| before.seen(&self.paths, &self.spare));
                self.failing = None;
                self.reported_fault.clear();
                Ok(true)
            }
            Err(fault) => {
                self.failing.get_or_insert_with(Instant::now);
                if fault == self.reported_fault {
                    return Ok(false);
                }
                self.reported_fault.clone_from(&fault);
                Err(fault)
            }
        }
    }

    /// True if the files have changed and could not be read for this time.
    pub(crate) fn has_failed_for(&self, time: Duration) -> bool {
        self.failing.is_some_and(|since| since.elapsed() >= time)
    }

    /// Acts as if the last check and the first failed read were this much longer ago.
    #[cfg(test)]
    pub(crate) fn age(&mut self, time: Duration) {
        self.looked -= time;
        self.failing = self.failing.map(|since| since - time);
    }
}

/// State of some files. A change of a file changes the state.
#[derive(Debug, PartialEq, Eq)]
struct FileState(Vec<(PathBuf, Option<Stamp>)>);

/// Attributes of a file that change with its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
    /// Time of the last change of the file or of its attributes, in nanoseconds since 1970. A
    /// program cannot set it. 0 on systems without such a time.
    changed: i128,
    /// Inode number, on systems that have one. It differs if another file has replaced the file.
    inode: u64,
}

impl FileState {
    /// The current state of the files. `None` if it cannot be determined.
    fn of(paths: &[PathBuf], spare: &Spare) -> Option<Self> {
        let mut all = Vec::new();
        for path in paths {
            all.push((path.clone(), Stamp::of(path)));
            if path.is_dir() {
                let mut files = list(path).or_else(|_| spare.lend(|| list(path))).ok()?;
                files.sort();
                all.extend(files.into_iter().map(|file| {
                    let stamp = Stamp::of(&file);
                    (file, stamp)
                }));
            }
        }
        Some(FileState(all))
    }

    /// Returns itself if the files were read in this state, and if any later change will be
    /// visible.
    fn seen(self, paths: &[PathBuf], spare: &Spare) -> Option<Self> {
        let now = SystemTime::now();
        let is_settled = self.0.iter().all(|(_, stamp)| stamp.is_none_or(|stamp| stamp.is_settled(now)));
        (is_settled && FileState::of(paths, spare).as_ref() == Some(&self)).then_some(self)
    }
}

/// The entries of a folder.
fn list(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect()
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        #[cfg(unix)]
        let (inode, changed) = {
            use std::os::unix::fs::MetadataExt;
            (found.ino(), i128::from(found.ctime()) * 1_000_000_000 + i128::from(found.ctime_nsec()))
        };
        #[cfg(not(unix))]
        let (inode, changed) = (0, 0);
        Some(Stamp { length: found.len(), modified: found.modified().ok(), changed, inode })
    }

    /// False if the file has changed a moment ago. A time in the future is from another clock.
    fn is_settled(&self, now: SystemTime) -> bool {
        let changed = SystemTime::UNIX_EPOCH + Duration::from_nanos(u64::try_from(self.changed).unwrap_or(0));
        now.duration_since(changed).is_ok_and(|since| since >= SETTLED) || changed > now
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("tautline-{name}-{}", tautline_io::thread::process_id()))
    }

    fn text(path: &Path) -> Read<String> {
        fs::read_to_string(path).map(|text| (text, true)).map_err(|error| error.to_string())
    }

    /// Checks the file after it had time to settle.
    fn look(watched: &mut ReloadedValue<String>, path: &Path) -> Result<bool, String> {
        watched.age(LOOK);
        watched.refresh(|| text(path))
    }

    #[test]
    fn file_in_the_place_of_another_one_is_a_change() {
        let (file, other) = (path("stamp"), path("stamp-other"));
        fs::write(&file, "one").unwrap();
        fs::write(&other, "two").unwrap();
        let before = Stamp::of(&file).unwrap();
        // Same length and time.
        let open = fs::OpenOptions::new().write(true).open(&other).unwrap();
        open.set_modified(before.modified.unwrap()).unwrap();
        fs::rename(&other, &file).unwrap();
        let after = Stamp::of(&file).unwrap();
        fs::remove_file(&file).unwrap();
        assert_eq!((after.length, after.modified), (before.length, before.modified));
        assert!(after != before);
    }

    #[test]
    fn file_that_is_overwritten_in_place_is_a_change() {
        let file = path("in-place");
        fs::write(&file, "one").unwrap();
        let modified = fs::metadata(&file).unwrap().modified().unwrap();
        let mut watched = ReloadedValue::open(vec![file.clone()], || text(&file)).unwrap();
        // Same length, time and inode number.
        let mut open = fs::OpenOptions::new().write(true).open(&file).unwrap();
        std::io::Write::write_all(&mut open, b"two").unwrap();
        open.set_modified(modified).unwrap();
        assert_eq!(look(&mut watched, &file), Ok(true));
        assert_eq!(watched.get(), "two");
        fs::remove_file(&file).unwrap();
    }

    #[test]
    fn change_counts_as_seen_only_after_a_good_read() {
        let file = path("seen");
        fs::write(&file, "one").unwrap();
        let mut watched = ReloadedValue::open(vec![file.clone()], || text(&file)).unwrap();
        fs::write(&file, "three").unwrap();
        let mut fail = |fault: &str| {
            watched.age(LOOK);
            watched.refresh(|| Err(fault.to_owned()))
        };
        assert_eq!(fail("too many open files"), Err("too many open files".to_owned()));
        assert_eq!(fail("too many open files"), Ok(false), "it is reported once");
        assert_eq!(fail("something else"), Err("something else".to_owned()));
        assert!(watched.has_failed_for(LOOK) && !watched.has_failed_for(Duration::from_secs(3600)));
        assert_eq!(watched.get(), "one");
        assert_eq!(look(&mut watched, &file), Ok(true));
        assert_eq!(watched.get(), "three");
        assert!(!watched.has_failed_for(Duration::ZERO));
        // After a partial read, the missing files are read again.
        fs::write(&file, "four").unwrap();
        for _ in 0..2 {
            watched.age(LOOK);
            assert_eq!(watched.refresh(|| Ok(("part".to_owned(), false))), Ok(true));
        }
        fs::remove_file(&file).unwrap();
    }
}
