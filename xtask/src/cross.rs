//! `cargo xtask cross TARGET [PART...]`: builds the library for another processor, another C library or an older glibc, and tests it on
//! this machine. Programs of other processors run under qemu-user, programs for Windows under wine.
//!
//! | part | |
//! |---|---|
//! | build | `target/cross/TARGET/libzmq.so` and `libzmq.a` (with debug information), for Windows `libzmq.dll` with `libzmq.dll.a`; exported, needed and versioned symbols |
//! | unit | the unit tests of `proto`, `io` and `core` |
//! | abi | the C programs of `tests/abi/c`; the whole suite if they run on glibc without an emulator |
//! | upstream | libzmq's own tests, for Windows (`tests/wire/upstream/windows.sh`) |
//! | interop | exchanges over tcp with this machine's libzmq 4.3.5, in both directions |
//! | addon | `target/cross/TARGET/tautline.PLATFORM.node`, the Node.js addon, for platforms of its packages |
//! | node | a Node.js of that system with that addon: exchanges by every pattern |
//! | module | `target/cross/TARGET/python/TAG/_native.so`, the Python module for each interpreter (`bindings/python/interpreters`) |
//! | taut | `target/cross/TARGET/taut`, the command line for any Linux of that processor, for musl targets: linked statically, and tried |
//!
//! By default, all parts run; `all` means every target. The command needs a Linux on x86-64 with Debian's packages and rustup. It installs
//! missing tools ([`tools`]), and ends with a table and `cross: N passed, N failed, N skipped`.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

mod addon;
mod module;
mod parts;
mod target;
mod taut;
mod tools;
mod windows;

use parts::{PARTS, Part};
use target::{TARGETS, Target};
use tools::Tools;

/// Returns the usage.
pub fn usage() -> String {
    let parts: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
    let targets: Vec<String> = TARGETS.iter().map(Target::name).collect();
    format!("cross TARGET|all [{}]..., a TARGET of\n    {}", parts.join("|"), targets.join("\n    "))
}

/// Runs the command. `out` is cargo's target folder.
pub fn run(root: &Path, out: &Path, arguments: &[&str]) -> ExitCode {
    let Some((wanted, parts)) = parse(arguments) else {
        eprintln!("usage: cargo xtask {}", usage());
        return ExitCode::from(2);
    };
    let out = out.join("cross");
    let mut sum = Counts::default();
    let mut rows = Vec::new();
    for target in wanted {
        let outcomes = cross(root, &out, target, &parts);
        outcomes.iter().flatten().for_each(|counts| sum += *counts);
        let cells =
            outcomes.iter().map(|outcome| outcome.map_or("-".to_owned(), |counts| counts.to_string()));
        rows.push(format!("| {} | {} |", target.name(), cells.collect::<Vec<_>>().join(" | ")));
    }
    println!(
        "\n| target | build | unit | abi | upstream | interop | addon | node | module | taut |\n|---|---|---|---|---|---|---|---|---|---|\n{}\n",
        rows.join("\n")
    );
    println!("cross: {} passed, {} failed, {} skipped", sum.passed, sum.failed, sum.skipped);
    if sum.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn parse(arguments: &[&str]) -> Option<(Vec<&'static Target>, Vec<&'static Part>)> {
    let (word, parts) = arguments.split_first()?;
    let targets = if *word == "all" { TARGETS.iter().collect() } else { vec![target::find(word)?] };
    let known = |name: &&str| PARTS.iter().find(|part| part.name == *name);
    let parts: Vec<_> = parts.iter().map(known).collect::<Option<_>>()?;
    Some((targets, if parts.is_empty() { PARTS.iter().collect() } else { parts }))
}

/// Runs the parts for one target. Returns a result for each requested part, `None` for the others.
fn cross(root: &Path, out: &Path, target: &'static Target, parts: &[&Part]) -> Vec<Option<Counts>> {
    let directory = out.join(target.name());
    let steps = Steps { root: root.to_owned(), name: target.name(), logs: directory.join("log") };
    let runs = parts.iter().any(|part| match part.name {
        "build" | "addon" | "module" => false,
        // The program is linked statically, so it runs here without an emulator.
        "taut" => target.emulator.is_some() && target.glibc.is_none(),
        _ => true,
    });
    let run =
        Tools::prepare(&steps, out, target, runs).map(|tools| Run { steps, out: directory, target, tools });
    let outcome = |part: &Part| match &run {
        Ok(run) => (part.run)(run).unwrap_or_else(failure),
        Err(error) => failure(error.clone()),
    };
    PARTS.iter().map(|part| parts.iter().any(|one| one.name == part.name).then(|| outcome(part))).collect()
}

fn failure(error: String) -> Counts {
    println!("FAILED {error}");
    Counts { failed: 1, ..Counts::default() }
}

/// State that the parts share.
struct Run {
    steps: Steps,
    /// Folder of the library and of all intermediate files.
    out: PathBuf,
    target: &'static Target,
    tools: Tools,
}

/// Runs commands, and prints their start and their result.
struct Steps {
    root: PathBuf,
    /// Name of the target.
    name: String,
    logs: PathBuf,
}

impl Steps {
    /// Runs `command` under `scripts/step.sh`. Returns its output. An error has been printed already.
    fn step(&self, what: &str, command: &mut Command) -> Result<String, String> {
        let title = format!("cross: {}, {what}", self.name);
        let log = self.logs.join(format!("{}.log", what.replace(' ', "-")));
        let mut step = Command::new(self.root.join("scripts/step.sh"));
        step.arg(&title)
            .arg(&log)
            .arg(command.get_program())
            .args(command.get_args())
            .current_dir(&self.root);
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => step.env(name, value),
                None => step.env_remove(name),
            };
        }
        let done = step.status().is_ok_and(|status| status.success());
        let text = fs::read(&log).map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default();
        if done { Ok(text) } else { Err(title) }
    }
}

/// Numbers of checks by result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Counts {
    passed: u32,
    failed: u32,
    skipped: u32,
}

impl Counts {
    const PASSED: Counts = Counts { passed: 1, failed: 0, skipped: 0 };

    /// Adds up the summary lines of cargo's tests and of our suites.
    fn of(text: &str) -> Self {
        let mut sum = Counts::default();
        for line in text.lines() {
            let mut words = line.split([' ', ',', ';', '.']).filter(|word| !word.is_empty());
            let words: Vec<&str> = words.by_ref().collect();
            let ours = words.get(2) == Some(&"passed") && words.get(4) == Some(&"failed");
            if ours || line.starts_with("test result: ") {
                let before = |name| {
                    let at = words.iter().position(|word| *word == name)?;
                    words.get(at.checked_sub(1)?)?.parse::<u32>().ok()
                };
                sum.passed += before("passed").unwrap_or(0);
                sum.failed += before("failed").unwrap_or(0);
                sum.skipped += before("skipped").or_else(|| before("ignored")).unwrap_or(0);
            }
        }
        sum
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { passed, failed, skipped } = self;
        write!(f, "{passed} of {}", passed + failed)?;
        if *skipped > 0 { write!(f, ", {skipped} skipped") } else { Ok(()) }
    }
}

/// Returns a command of a program and its arguments.
fn command<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Command {
    let mut words = words.into_iter();
    let mut command = Command::new(words.next().as_ref().map_or(OsStr::new(""), AsRef::as_ref));
    command.args(words);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suite_counts_are_added() {
        let text = "abi: 12 passed, 1 failed, 2 skipped\nnoise: 3\n\
                    test result: FAILED. 103 passed; 1 failed; 4 ignored; 0 measured; 9 filtered out; finished in 5.93s\n";
        assert_eq!(Counts::of(text), Counts { passed: 115, failed: 2, skipped: 6 });
        assert_eq!(Counts { passed: 3, failed: 1, skipped: 2 }.to_string(), "3 of 4, 2 skipped");
    }

    #[test]
    fn a_target_and_parts_are_asked_for() {
        let (targets, parts) = parse(&["aarch64-unknown-linux-musl", "abi"]).unwrap();
        assert_eq!((targets.len(), parts.len()), (1, 1));
        let (targets, parts) = parse(&["all"]).unwrap();
        assert_eq!((targets.len(), parts.len()), (TARGETS.len(), PARTS.len()));
        assert!(
            parse(&[]).is_none() && parse(&["all", "nothing"]).is_none() && parse(&["nowhere"]).is_none()
        );
    }
}
