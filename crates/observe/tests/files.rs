//! Counters files in the states that tools meet: complete, cut, foreign, left over, concurrently
//! written.

#![cfg(unix)]

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use tautline_observe::{Event, Identity, Image, Output, Process, ReadError, processes_in, read};
use tautline_testkit::with_watchdog;

const LIMIT: Duration = Duration::from_secs(60);

/// A folder that is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("observe-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        DirBuilder::new().mode(0o700).create(&path).unwrap();
        Folder(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns an image with this many events. Each event has the number of the snapshot.
fn image(look: u64, events: u64) -> Image {
    let mut image = Image::new();
    for _ in 0..events {
        let mut event = Event::default();
        event.value = look;
        event.name = "look".into();
        image.put(&event);
    }
    let mut process = Process::default();
    process.looks = look;
    image.finish(&mut process);
    image
}

#[test]
fn a_file_is_private_and_is_found_read_and_removed() {
    let folder = Folder::new("life");
    let own = Identity::own().unwrap();
    let mut output = Output::create_in(folder.path(), &own).unwrap();
    let path = output.path().to_owned();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(matches!(read(&path), Err(ReadError::Busy)), "before the first look");
    for look in 1..=5 {
        output.write(&image(look, 2)).unwrap();
        assert_eq!(read(&path).unwrap().process.looks, look);
    }
    let found = processes_in(folder.path());
    assert_eq!((found.len(), found[0].pid, found[0].is_running), (1, own.pid, true));
    // A second copy of the library in the same process.
    let mut second = Output::create_in(folder.path(), &own).unwrap();
    assert_ne!(second.path(), path);
    second.write(&image(1, 2)).unwrap();
    assert_eq!([&path, second.path()].map(|path| read(path).unwrap().copy), [0, 1]);
    assert_eq!(processes_in(folder.path()).len(), 2);
    second.remove();
    output.remove();
    assert_eq!(processes_in(folder.path()), []);
    assert!(matches!(read(&path), Err(ReadError::Missing)));
}

#[test]
fn files_of_dead_processes_are_readable_then_removed() {
    let folder = Folder::new("stale");
    let own = Identity::own().unwrap();
    // An earlier process had the same process ID.
    let before = Identity { start_ticks: own.start_ticks.wrapping_sub(1), ..own };
    let mut left = Output::create_in(folder.path(), &before).unwrap();
    left.write(&image(9, 1)).unwrap();
    let path = left.path().to_owned();
    drop(left);
    fs::write(folder.path().join("note.txt"), "not ours").unwrap();
    assert!(!processes_in(folder.path())[0].is_running);
    assert_eq!(read(&path).unwrap().process.looks, 9);
    let output = Output::create_in(folder.path(), &own).unwrap();
    assert_eq!(output.path(), path, "the place is free again");
    assert!(matches!(read(&path), Err(ReadError::Busy)));
    assert!(folder.path().join("note.txt").exists());
    output.remove();
}

#[test]
#[cfg(target_os = "linux")]
fn files_of_dead_processes_are_kept_for_a_day() {
    let folder = Folder::new("outdated");
    let own = Identity::own().unwrap();
    // No process has these numbers: they are above the largest one.
    let first = 1 << 23;
    let ended = |pid| Identity { pid, start_ticks: 1, ..own };
    let age = |path: &Path, hours: u64| {
        let at = SystemTime::now() - Duration::from_secs(hours * 3600);
        File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
    };
    let outputs = [first, first + 1].map(|pid| Output::create_in(folder.path(), &ended(pid)).unwrap());
    outputs.iter().zip([25, 23]).for_each(|(output, hours)| age(output.path(), hours));
    let numbers = || {
        let mut numbers: Vec<u32> =
            processes_in(folder.path()).iter().map(|found| found.pid - first).collect();
        numbers.sort_unstable();
        numbers
    };
    assert_eq!(numbers(), [0, 1]);
    // The control socket goes with its file, or before it.
    let socket = folder.path().join(format!("{}.tap", first + 1));
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let mine = Output::create_in(folder.path(), &own).unwrap();
    mine.remove();
    assert_eq!(numbers(), [1]);
    assert!(!socket.exists());
    // The newest sixteen are kept.
    age(&folder.path().join((first + 1).to_string()), 1);
    for pid in first + 2..first + 20 {
        age(Output::create_in(folder.path(), &ended(pid)).unwrap().path(), 22);
    }
    Output::create_in(folder.path(), &own).unwrap().remove();
    assert_eq!(numbers().len(), 16);
    assert!(numbers().contains(&1));
}

#[test]
#[cfg(target_os = "linux")]
fn a_zombie_counts_as_ended() {
    with_watchdog(LIMIT, "zombie", || {
        let folder = Folder::new("zombie");
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let identity = Identity { pid: child.id(), start_ticks: 0, ..Identity::own().unwrap() };
        let output = Output::create_in(folder.path(), &identity).unwrap();
        // The test does not wait for the child, so the child stays a zombie.
        while processes_in(folder.path())[0].is_running {
            std::thread::yield_now();
        }
        assert!(Path::new(&format!("/proc/{}/stat", child.id())).exists());
        child.wait().unwrap();
        output.remove();
    });
}

#[test]
fn files_without_counters_are_refused() {
    with_watchdog(LIMIT, "foreign", || {
        let folder = Folder::new("foreign");
        let place = |name: &str| folder.path().join(name);
        fs::write(place("1"), "").unwrap();
        assert!(matches!(read(&place("1")), Err(ReadError::Incomplete)));
        fs::write(place("2"), vec![7; 10_000]).unwrap();
        assert!(matches!(read(&place("2")), Err(ReadError::Foreign)));
        symlink(place("2"), place("3")).unwrap();
        assert!(matches!(read(&place("3")), Err(ReadError::Foreign)));
        fs::create_dir(place("4")).unwrap();
        assert!(matches!(read(&place("4")), Err(ReadError::Foreign)));
        let made = std::process::Command::new("mkfifo").arg(place("5")).status();
        if made.is_ok_and(|status| status.success()) {
            // The pipe has no writer, so a blocking read would never return.
            assert!(matches!(read(&place("5")), Err(ReadError::Foreign)));
        }
        let names: Vec<u32> = processes_in(folder.path()).into_iter().map(|found| found.pid).collect();
        assert!(names.iter().all(|pid| matches!(pid, 1 | 2)), "{names:?}");
    });
}

#[test]
fn a_file_that_is_cut_is_refused() {
    let folder = Folder::new("cut");
    let mut output = Output::create_in(folder.path(), &Identity::own().unwrap()).unwrap();
    output.write(&image(1, 100)).unwrap();
    let path = output.path().to_owned();
    let whole = fs::metadata(&path).unwrap().len();
    for length in [whole - 1, whole / 2, 4096, 4095, 100, 0] {
        File::options().write(true).open(&path).unwrap().set_len(length).unwrap();
        assert!(matches!(read(&path), Err(ReadError::Incomplete)), "{length} bytes");
    }
    output.remove();
}

/// Each reading is of one snapshot, even during concurrent writes.
#[test]
fn a_file_that_is_written_meanwhile_is_read_whole_or_not_at_all() {
    with_watchdog(LIMIT, "meanwhile", || {
        let folder = Folder::new("meanwhile");
        let mut output = Output::create_in(folder.path(), &Identity::own().unwrap()).unwrap();
        output.write(&image(1, 50)).unwrap();
        let path = output.path().to_owned();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut look = 1;
                while !stop.load(Ordering::Relaxed) {
                    look += 1;
                    output.write(&image(look, look % 97)).unwrap();
                }
            });
            let (mut whole, mut last) = (0, 0);
            while whole < 300 {
                match read(&path) {
                    Ok(reading) => {
                        let look = reading.process.looks;
                        assert!(look >= last, "a later look is not followed by an earlier one");
                        assert!(reading.events.iter().all(|event| event.value == look));
                        (whole, last) = (whole + 1, look);
                    }
                    Err(ReadError::Busy) => {}
                    Err(fault) => panic!("{fault}"),
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
    });
}
