//! Language descriptors (`bench/languages/NAME/language.toml`), and the rows of the benchmark that they
//! define.

use super::data::Table;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Method of selecting the library under a binding.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Swap {
    /// The binding asks the loader for `libzmq.so.5`: LD_LIBRARY_PATH.
    Loader,
    /// The binding brings a libzmq in a separate file: LD_PRELOAD puts both libraries before it.
    Preload,
    /// The binding has libzmq 4.3.5 compiled in, as its users get it: LD_PRELOAD puts Tautline before it.
    Bundled,
    /// The binding is an independent implementation.
    Own,
    /// The binding contains Tautline.
    BuiltIn,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: String,
    binding: String,
    swap: Swap,
    /// Divisor of the message count for throughput.
    #[serde(default = "one")]
    slow: u64,
    /// Divisor of the number of round trips for latency.
    #[serde(default = "one")]
    slow_rounds: u64,
    /// Table that shows the language.
    #[serde(default)]
    table: Table,
    /// A second table that shows it.
    also: Option<Table>,
}

fn one() -> u64 {
    1
}

/// One language with one binding.
#[derive(Clone, Debug)]
pub(crate) struct Language {
    /// Name of the folder.
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) binding: String,
    pub(crate) swap: Swap,
    pub(crate) slow: u64,
    pub(crate) slow_rounds: u64,
    pub(crate) table: Table,
    pub(crate) also: Option<Table>,
    /// Folder of its four programs.
    pub(crate) programs: PathBuf,
    /// Versions of compilers, runtimes and the binding, as reported by its build.
    pub(crate) versions: BTreeMap<String, String>,
}

impl Language {
    /// Reads the descriptor `name` and finds its programs. The inner error is the reason to skip the
    /// language.
    pub(crate) fn read(
        directory: &Path,
        name: &str,
        programs: &Path,
    ) -> Result<Result<Self, String>, String> {
        let path = directory.join(name).join("language.toml");
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let file: File = toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        let programs = programs.join(name);
        if let Ok(reason) = std::fs::read_to_string(programs.join("failed")) {
            return Ok(Err(reason.trim().to_owned()));
        }
        let Ok(versions) = std::fs::read_to_string(programs.join("versions.txt")) else {
            return Ok(Err(format!("{} is not built", programs.display())));
        };
        let versions = versions
            .lines()
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        Ok(Ok(Self {
            name: name.to_owned(),
            title: file.title,
            binding: file.binding,
            swap: file.swap,
            slow: file.slow.max(1),
            slow_rounds: file.slow_rounds.max(1),
            table: file.table,
            also: file.also,
            programs,
            versions,
        }))
    }

    /// Returns its libraries, in the order of the tables.
    pub(crate) fn libraries(&self) -> &'static [&'static str] {
        match self.swap {
            Swap::Loader | Swap::Preload | Swap::Bundled => &["libzmq", "tautline"],
            Swap::Own => &["own"],
            Swap::BuiltIn => &["tautline"],
        }
    }
}

/// Returns every folder with a descriptor, by name, the baseline first.
pub(crate) fn names(directory: &Path, baseline: &str) -> Result<Vec<String>, String> {
    let entries = std::fs::read_dir(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path().join("language.toml").is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort_by_key(|name| (name != baseline, name.clone()));
    Ok(names)
}
