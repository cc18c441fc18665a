//! Finds out from `/proc` which ZeroMQ library a program runs on.
//!
//! Both libraries use the thread names of libzmq, but only libzmq has a `ZMQbg/Reaper` thread. A
//! process with Tautline's file mapped, an I/O thread and no reaper runs on Tautline. A process
//! with a reaper runs on a libzmq that could not be replaced.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::library::Library;
use super::program::contains_libzmq;

/// Pause between the first checks (`FIRST`), and maximum pause between two checks (`LONGEST`).
const FIRST: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_secs(5);
/// Maximum number of reported processes without `--verbose`.
const TOLD: usize = 3;

/// True after a process was seen to use ZeroMQ.
pub struct LibraryCheck(Arc<AtomicBool>);

/// ZeroMQ library of a process.
#[derive(Debug, PartialEq, Eq)]
enum LoadedLibrary {
    OnTautline,
    /// Another library, with its file if it was found.
    OnAnother(Option<PathBuf>),
}

impl LibraryCheck {
    /// Starts a thread that checks the process and its children.
    pub fn begin(process: u32, library: &Library, quiet: bool, verbose: bool) -> LibraryCheck {
        let proof = Arc::new(AtomicBool::new(false));
        let (seen, path) = (proof.clone(), library.path.clone());
        thread::spawn(move || {
            let mut known = HashSet::new();
            let mut pause = FIRST;
            while verbose || known.len() < TOLD {
                thread::sleep(pause);
                pause = (pause * 5 / 4).min(LONGEST);
                for process in tree(process) {
                    let Some(runs) = (!known.contains(&process)).then(|| look(process, &path)).flatten()
                    else {
                        continue;
                    };
                    known.insert(process);
                    seen.store(true, Ordering::SeqCst);
                    if !quiet {
                        tell(process, &runs, &path);
                    }
                }
            }
        });
        LibraryCheck(proof)
    }

    /// True if a process was seen to use ZeroMQ.
    pub fn has_seen_zeromq(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

fn tell(process: u32, runs: &LoadedLibrary, library: &Path) {
    let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    let name = name.trim_end();
    match runs {
        LoadedLibrary::OnTautline => {
            notice!("taut: {name} ({process}) runs on Tautline, {}", library.display())
        }
        LoadedLibrary::OnAnother(file) => {
            let file = file.as_ref().map_or("one of its files".to_owned(), |file| file.display().to_string());
            notice!(
                "taut: {name} ({process}) does NOT run on Tautline: {file} contains a separate copy of libzmq"
            );
            notice!("  calls to that copy cannot be redirected; see docs/operate/taut-programs.md");
        }
    }
}

/// Returns the library that a process uses, or `None` if it does not use ZeroMQ.
fn look(process: u32, library: &Path) -> Option<LoadedLibrary> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let names = tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    let names: Vec<String> = names.collect();
    let has = |part: &str| names.iter().any(|name| name.contains(part));
    if has("ZMQbg/Reaper") {
        let own = mapped(process).into_iter().find(|file| file != library && contains_libzmq(file));
        return Some(LoadedLibrary::OnAnother(own));
    }
    (has("ZMQbg/IO") && maps(process, library)).then_some(LoadedLibrary::OnTautline)
}

/// True if a process has mapped the file, even under another name.
fn maps(process: u32, library: &Path) -> bool {
    let Ok(data) = fs::metadata(library) else { return false };
    mapped(process).iter().any(|file| {
        file == library
            || fs::metadata(file).is_ok_and(|one| (one.dev(), one.ino()) == (data.dev(), data.ino()))
    })
}

/// Returns the files whose code is mapped.
fn mapped(process: u32) -> Vec<PathBuf> {
    let text = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    let files = text.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        let is_code = fields.nth(1).is_some_and(|rights| rights.contains('x'));
        // The name follows the inode and may contain spaces.
        let name = line.find('/').filter(|_| is_code).map(|at| &line[at..]);
        name.map(PathBuf::from)
    });
    let files: HashSet<PathBuf> = files.collect();
    files.into_iter().collect()
}

/// Returns a process and all its descendants.
fn tree(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some(parent) = parent(process) {
            children.entry(parent).or_default().push(process);
        }
    }
    let mut all = vec![root];
    let mut at = 0;
    while let Some(process) = all.get(at) {
        all.extend(children.remove(process).unwrap_or_default());
        at += 1;
    }
    all
}

fn parent(process: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before it may contain any character, even a parenthesis.
    text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_below_its_parent_and_maps_its_own_code() {
        let own = std::process::id();
        let above = parent(own).unwrap();
        assert!(tree(above).contains(&own) && tree(own).contains(&own) && !tree(own).contains(&above));
        let code = std::env::current_exe().unwrap();
        assert!(maps(own, &code), "{:?}", mapped(own));
        assert!(!maps(own, Path::new("/bin/sh")));
    }
}
