//! A copy of what the simulator is built from, in which sources may be changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What belongs to the workspace.
const PARTS: [&str; 5] = ["Cargo.toml", "Cargo.lock", "crates", "bench/harness", "xtask"];

pub(super) struct Scratch {
    root: PathBuf,
    /// The copy.
    pub(super) tree: PathBuf,
    /// Where it is built.
    target: PathBuf,
}

impl Scratch {
    /// A copy `name` below `target` of what lies below `root`.
    pub(super) fn new(root: &Path, target: &Path, name: &str) -> Self {
        let folder = target.join(name);
        Scratch { root: root.to_owned(), tree: folder.join("tree"), target: folder.join("target") }
    }

    /// Makes the copy equal to the original. A file that is the same already is not touched, so that
    /// only what differs is built again.
    pub(super) fn restore(&self) -> Result<(), String> {
        self.restore_but(|_| false)
    }

    /// The same but for some files, which the caller writes.
    pub(super) fn restore_but(&self, left_out: impl Fn(&str) -> bool) -> Result<(), String> {
        let output = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"])
            .args(PARTS)
            .current_dir(&self.root)
            .output()
            .map_err(|error| format!("git: {error}"))?;
        let names = String::from_utf8_lossy(&output.stdout);
        for name in names.split('\0').filter(|name| !name.is_empty() && !left_out(name)) {
            let Ok(bytes) = fs::read(self.root.join(name)) else { continue };
            self.write(name, &bytes)?;
        }
        Ok(())
    }

    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        let path = self.tree.join(name);
        if fs::read(&path).is_ok_and(|before| before == bytes) {
            return Ok(());
        }
        let folder = path.parent().unwrap_or(&self.tree);
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, bytes));
        written.map_err(|error| format!("{}: {error}", path.display()))
    }

    pub(super) fn apply(&self, patch: &Path) -> Result<(), String> {
        let output = Command::new("git")
            .args(["apply", "--whitespace=nowarn"])
            .arg(patch)
            .current_dir(&self.tree)
            // The copy may lie within a repository, of which it is no part.
            .env("GIT_CEILING_DIRECTORIES", self.target.parent().unwrap_or(&self.target))
            .output()
            .map_err(|error| format!("git: {error}"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        }
    }

    /// The simulator of the copy, or what the compiler says.
    pub(super) fn build(&self) -> Result<PathBuf, String> {
        super::build(&self.tree, &self.target, super::FLAGS)
    }
}
