//! Finds Tautline's libzmq.so.5.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::program::inspect;
use crate::config::expand;
use crate::failure::{Failure, Result};

/// Environment variable with the path of the library.
const VARIABLE: &str = "TAUT_LIBRARY";

/// C library that a file was built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    Glibc,
    Musl,
}

impl System {
    /// Returns the name of the C library.
    pub fn name(self) -> &'static str {
        match self {
            System::Glibc => "glibc",
            System::Musl => "musl",
        }
    }
}

/// Tautline library that was found.
#[derive(Debug)]
pub struct Library {
    /// Absolute path.
    pub path: PathBuf,
    /// Processor architecture.
    pub architecture: String,
    pub system: System,
}

impl Library {
    /// Returns the library at the given path. Otherwise returns the first installed one: beside
    /// `taut`, in the folders of its prefix, or in the folders of system packages.
    pub fn find(named: Option<&Path>) -> Result<Library> {
        let variable = env::var_os(VARIABLE).map(PathBuf::from);
        if let Some(path) = named.map(Path::to_owned).or(variable) {
            return Library::open(&expand(&path));
        }
        let mut prefixes = Vec::new();
        if let Ok(own) = env::current_exe().and_then(fs::canonicalize) {
            prefixes.extend(own.parent().map(Path::to_owned));
            prefixes.extend(own.parent().and_then(Path::parent).map(Path::to_owned));
        }
        prefixes.extend(["/usr/local", "/usr"].map(PathBuf::from));
        prefixes
            .iter()
            .flat_map(|prefix| places(prefix))
            .find_map(|path| Library::open(&path).ok())
            .ok_or_else(|| {
                Failure::failed(
                    "Tautline's libzmq.so.5 was not found beside taut or in the installation folders",
                )
                .hint(format!(
                    "name it with --library FILE or {VARIABLE}; `make build` creates target/release/libzmq.so"
                ))
            })
    }

    fn open(path: &Path) -> Result<Library> {
        let path = fs::canonicalize(path).map_err(|error| Failure::file(path, &error))?;
        let found = inspect(&path)?;
        match found.system {
            Some(system) if found.is_tautline => {
                Ok(Library { path, architecture: found.architecture, system })
            }
            _ => Err(Failure::failed(format!("{}: it is not Tautline's libzmq.so.5", path.display()))
                .hint("`make build` creates target/release/libzmq.so")),
        }
    }
}

/// Returns the possible paths of the library below a prefix.
fn places(prefix: &Path) -> Vec<PathBuf> {
    let mut folders = vec![prefix.to_owned()];
    for name in ["lib", "lib64"] {
        let folder = prefix.join(name);
        folders.extend([folder.join("tautline"), folder.clone()]);
        // For example lib/x86_64-linux-gnu/tautline. The triplet varies.
        let below = fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut below: Vec<PathBuf> = below.map(|entry| entry.path().join("tautline")).collect();
        below.retain(|folder| folder.is_dir());
        below.sort();
        folders.extend(below);
    }
    folders.iter().flat_map(|folder| ["libzmq.so.5", "libzmq.so"].map(|name| folder.join(name))).collect()
}
