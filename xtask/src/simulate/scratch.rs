//! A copy of the sources of the simulator, for changes.

use std::fs;
use std::path::{Path, PathBuf};

use super::faults::Fault;

/// Parts of the workspace.
const PARTS: [&str; 8] = [
    "Cargo.toml",
    "Cargo.lock",
    "crates",
    "bench/harness",
    "xtask",
    "fuzz",
    "bindings/node",
    "bindings/python",
];

/// A copy of the sources below the target folder.
pub struct Scratch {
    root: PathBuf,
    /// Folder of the copy.
    pub tree: PathBuf,
    /// Folder of its build.
    target: PathBuf,
}

impl Scratch {
    /// Returns a copy `name` below `target` of the sources below `root`.
    pub fn new(root: &Path, target: &Path, name: &str) -> Self {
        let folder = target.join(name);
        Scratch { root: root.to_owned(), tree: folder.join("tree"), target: folder.join("target") }
    }

    /// Makes the copy equal to the original. Equal files stay untouched, so that only changed code is
    /// rebuilt.
    pub(super) fn restore(&self) -> Result<(), String> {
        self.restore_except(|_| false)
    }

    /// Does the same, except for some files that the caller writes.
    pub fn restore_except(&self, left_out: impl Fn(&str) -> bool) -> Result<(), String> {
        for name in crate::git_files(&self.root, &PARTS)?.iter().filter(|name| !left_out(name)) {
            let Ok(bytes) = fs::read(self.root.join(name)) else { continue };
            self.write(name, &bytes)?;
        }
        Ok(())
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        let path = self.tree.join(name);
        if fs::read(&path).is_ok_and(|before| before == bytes) {
            return Ok(());
        }
        let folder = path.parent().unwrap_or(&self.tree);
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, bytes));
        written.map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Puts a fault into the copy, which must be equal to the original.
    pub(super) fn apply(&self, fault: &Fault) -> Result<(), String> {
        // The copy may still contain a file that was renamed in the original, so read the original.
        fault.applied(&self.root)?.iter().try_for_each(|(path, text)| self.write(path, text.as_bytes()))
    }

    /// Builds the simulator of the copy. An error has the messages of the compiler.
    pub(super) fn build(&self) -> Result<PathBuf, String> {
        super::build(&self.tree, &self.target, super::FLAGS)
    }
}
