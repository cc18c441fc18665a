//! Peer files (`bench/peers/*.toml`): a messaging library, and the program that drives it. A scenario and the
//! command line name a peer, optionally followed by variables for its environment: `tautline TAUT_SPIN_US=0`.

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
    /// Crate and features from which `bench/peers/build.sh` builds it.
    #[serde(default)]
    build: Option<String>,
    #[serde(default)]
    features: Option<String>,
}

/// A peer that is ready to run: its program exists, and so does its library.
pub(crate) struct Peer {
    /// Name in the command, and the `library` in results.
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) program: PathBuf,
    /// If the loader selects the libzmq of the program: the directory, and the real path of the library that
    /// must be loaded.
    pub(crate) library: Option<(PathBuf, PathBuf)>,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: BTreeMap<String, String>,
}

impl Peer {
    /// Reads the peer file that the first word of `name` names, and finds its program and library. Further
    /// words are variables.
    pub(crate) fn read(
        directory: &Path,
        name: &str,
        programs: &Path,
        libraries: &BTreeMap<String, PathBuf>,
    ) -> Result<Self, String> {
        let (file, variables) = split(name)?;
        let path = directory.join(format!("{file}.toml"));
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let file: File = toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        if file.features.is_some() && file.build.is_none() {
            return Err(format!("{}: `features` needs `build`", path.display()));
        }
        let program = programs.join(&file.program);
        let program = program.canonicalize().map_err(|_| {
            // A failed build has left its reason.
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
        let mut title = file.title;
        if !variables.is_empty() {
            let all: Vec<String> = variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
            title += &format!(" ({})", all.join(", "));
        }
        let mut environment = file.environment;
        environment.extend(variables);
        Ok(Self { name: name.to_owned(), title, program, library, arguments: file.arguments, environment })
    }
}

/// Splits a name into the peer file's name and the variables.
fn split(name: &str) -> Result<(&str, BTreeMap<String, String>), String> {
    let mut words = name.split_whitespace();
    let file = words.next().ok_or("a peer without a name")?;
    let mut variables = BTreeMap::new();
    for word in words {
        let (variable, value) = word
            .split_once('=')
            .filter(|(variable, _)| !variable.is_empty())
            .ok_or_else(|| format!("peer `{name}`: {word} is not VARIABLE=VALUE"))?;
        variables.insert(variable.to_owned(), value.to_owned());
    }
    Ok((file, variables))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_one_side_stand_behind_its_name() {
        let split_of = |name| split(name).map(|(file, variables)| (file, Vec::from_iter(variables)));
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(split_of("tautline"), Ok(("tautline", vec![])));
        assert_eq!(split_of("tautline A=1 B="), Ok(("tautline", vec![pair("A", "1"), pair("B", "")])));
        assert!(split("tautline spin").unwrap_err().contains("spin"));
        assert!(split("tautline =1").is_err());
        assert!(split(" ").is_err());
    }

    #[test]
    fn a_peer_with_variables_adds_them_to_those_of_its_file() {
        let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../peers");
        let programs = std::env::temp_dir().join(format!("taut-bench-peer-{}", std::process::id()));
        std::fs::create_dir_all(&programs).unwrap();
        for file in ["zmq-bench", "libzmq.so.5"] {
            std::fs::write(programs.join(file), "").unwrap();
        }
        let libraries = BTreeMap::from([("ours".to_owned(), programs.clone())]);
        let peer = Peer::read(&peers, "tautline-nospin TAUT_IPC_MEMORY=0", &programs, &libraries).unwrap();
        std::fs::remove_dir_all(&programs).unwrap();
        let variables: Vec<_> = peer.environment.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(variables, [("TAUT_IPC_MEMORY", "0"), ("TAUT_SPIN_US", "0")]);
        assert_eq!(peer.title, "Tautline, no spin (TAUT_IPC_MEMORY=0)");
    }
}
