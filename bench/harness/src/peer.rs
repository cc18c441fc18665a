//! Peer files (`bench/peers/*.toml`): a messaging library, and the program that drives it.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: String,
    program: String,
    library: Option<String>,
    /// Arguments before those of the run: the mode of a program that has several.
    #[serde(default)]
    arguments: Vec<String>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    /// The crate and its features that `bench/peers/build.sh` builds it from.
    #[serde(default)]
    build: Option<String>,
    #[serde(default)]
    features: Option<String>,
}

/// A peer that is ready to run: its program exists, and so does the library it must run on.
pub(crate) struct Peer {
    /// The file's name, and the `library` in results.
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) program: PathBuf,
    /// For a program that the loader gives its libzmq: the directory, and the real path of what must be loaded.
    pub(crate) library: Option<(PathBuf, PathBuf)>,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: BTreeMap<String, String>,
}

impl Peer {
    /// Reads the peer file `name` and finds its program and library.
    pub(crate) fn read(
        directory: &Path,
        name: &str,
        programs: &Path,
        libraries: &BTreeMap<String, PathBuf>,
    ) -> Result<Self, String> {
        let path = directory.join(format!("{name}.toml"));
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let file: File = toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        if file.features.is_some() && file.build.is_none() {
            return Err(format!("{}: features of nothing that is built", path.display()));
        }
        let program = programs.join(&file.program);
        let program = program.canonicalize().map_err(|_| {
            // What could not be built left its reason behind.
            std::fs::read_to_string(programs.join(format!("{}.failed", file.program))).unwrap_or_else(|_| {
                format!(
                    "{} is missing: compile it with bench/peers/c/build.sh, or run `make run`",
                    program.display()
                )
            })
        })?;
        let library = match &file.library {
            None => None,
            Some(which) => Some(find_library(which, libraries, programs)?),
        };
        Ok(Self {
            name: name.to_owned(),
            title: file.title,
            program,
            library,
            arguments: file.arguments,
            environment: file.environment,
        })
    }
}

fn find_library(
    which: &str,
    libraries: &BTreeMap<String, PathBuf>,
    programs: &Path,
) -> Result<(PathBuf, PathBuf), String> {
    let hint = match which {
        "ours" => "build Tautline with `cargo build --release -p tautline-libzmq`, or run `make run`",
        "baseline" => "build it with scripts/libzmq-baseline.sh, or run `make run`",
        _ => "build it with bench/peers/build.sh, or run `make bench`",
    };
    if let Ok(reason) = std::fs::read_to_string(programs.join(format!("{which}.failed"))) {
        return Err(reason);
    }
    let directory = libraries.get(which).ok_or_else(|| format!("--library {which}=DIR is needed: {hint}"))?;
    let missing = |_| format!("no libzmq.so.5 in {}: {hint}", directory.display());
    let library = directory.join("libzmq.so.5").canonicalize().map_err(missing)?;
    Ok((directory.canonicalize().map_err(missing)?, library))
}
