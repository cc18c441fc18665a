//! Checks house rules that the compiler does not check (`cargo run -p xtask -- check`), builds for other systems ([`cross`]), and
//! runs the simulator ([`simulate`]).
//!
//! The checks read the text of the sources with a small scanner ([`scan`]), so that they take about a second. Each check returns
//! its findings. The process exits with 1 if there are any.

#![forbid(unsafe_code)]

mod abi;
mod ablate;
mod benches;
mod columns;
mod commit_subjects;
mod compat;
mod constants;
mod crates;
mod cross;
mod cycles;
mod layers;
mod lex;
mod link;
mod placement;
mod prose;
mod relaxed;
mod scan;
mod simulate;
mod sizes;
mod types;
mod unsafe_sites;
mod versions;
mod walk;
mod words_only;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "\
usage: cargo run -p xtask -- COMMAND
  check               checks layers and import cycles, sizes of files and types, branches outside of tables, unsafe code, relaxed
                      accesses, constants of timing, the names of zmq.h in docs/reference, versions, columns of comments, prose, commit subjects
  prose [--help]      counts hard sentences in comments, pages and texts for users, by kind and folder
  words-only [--strings] [REVISION]
                      compares the code of each changed file with a revision, without comments (and string literals)
  unsafe [--write]    compares docs/develop/unsafe.md with the sources, or writes it
  abi [LIBRARY]       checks the exported symbols and the soname of target/release/libzmq.so
  link TARGET         links the library for macOS or FreeBSD (`all`: for both) in target/link, and checks it
  dist [--here] [--twice] [library|taut|python|node|dotnet|systems|crates|sbom]...
                      makes the parts of a release in target/dist: scripts/dist.sh
  ablate [RULE]... [--list | options of the benchmark]
                      measures the effect of each rule of the engine's timing, in several environments: bench/README.md
  simulate [--seed N [--trace] | --seeds N | --minutes M]...
                      runs the engine in a simulated system, from seeds: docs/develop/simulation.md
  faults [--refresh]  checks that each planted fault of tests/sim/faults applies to the sources, or rewrites its context
  walk [--check | --write] [--library FILE] [CASE...]
                      counts the source files that a call of the library enters: xtask/src/walk.rs
  constants [--write] [NAME...]
                      shows which tests hold each constant of the timing rules: xtask/src/constants.rs
  benches             prints the results of `cargo bench -p tautline` as a table";

fn main() -> ExitCode {
    let root = root();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["check"] => check(&root),
        ["unsafe"] => report("unsafe code", &unsafe_sites::check(&root)),
        ["unsafe", "--write"] => report("docs/develop/unsafe.md", &unsafe_sites::write(&root)),
        ["abi"] => abi::run(&root, &default_library()),
        ["link", system] => link::run(&root, &target(), system),
        ["ablate", arguments @ ..] => ablate::run(&root, arguments),
        ["simulate", arguments @ ..] => simulate::run(&root, &target(), arguments),
        ["faults"] => report("planted faults", &simulate::faults::check(&root)),
        ["faults", "--refresh"] => report("planted faults", &simulate::faults::refresh(&root)),
        ["prose", arguments @ ..] => prose::run(&root, arguments),
        ["words-only", arguments @ ..] => words_only::run(&root, arguments),
        ["walk", arguments @ ..] => walk::run(&root, &target(), arguments),
        ["constants", arguments @ ..] => constants::run(&root, &target(), arguments),
        ["benches"] => benches::run(&target()),
        ["abi", library] => abi::run(&root, Path::new(library)),
        ["cross", arguments @ ..] => cross::run(&root, &target(), arguments),
        ["dist", arguments @ ..] => dist(&root, arguments),
        _ => {
            eprintln!("{USAGE}\n  {}", cross::usage());
            ExitCode::from(2)
        }
    }
}

/// Makes the parts of a release.
fn dist(root: &Path, arguments: &[&str]) -> ExitCode {
    match std::process::Command::new(root.join("scripts/dist.sh")).args(arguments).status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("dist: scripts/dist.sh: {error}");
            ExitCode::FAILURE
        }
    }
}

fn check(root: &Path) -> ExitCode {
    let results = [
        report("crate graph", &crates::check(root)),
        report("module layers", &layers::check(root)),
        report("file sizes", &sizes::check(root)),
        report("places of modules and tests", &placement::check(root)),
        report("type sizes and branches", &types::check(root)),
        report("unsafe code", &unsafe_sites::check(root)),
        report("relaxed accesses", &relaxed::check(root)),
        report("constants of timing", &constants::check(root)),
        report("compatibility page", &compat::check(root)),
        report("versions", &versions::check(root)),
        report("columns of comments", &columns::check(root)),
        report("prose", &prose::check(root)),
        report("commit subjects", &commit_subjects::check(root)),
    ];
    if results.iter().all(|result| *result == ExitCode::SUCCESS) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Prints the findings of one check.
fn report(name: &str, findings: &[String]) -> ExitCode {
    if findings.is_empty() {
        println!("{name}: ok");
        return ExitCode::SUCCESS;
    }
    println!("{name}: {} finding(s)", findings.len());
    for finding in findings {
        println!("  {finding}");
    }
    ExitCode::FAILURE
}

/// Returns the root of the repository, the parent folder of this package.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_owned()
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

fn default_library() -> PathBuf {
    target().join("release/libzmq.so")
}

/// Returns the output of a git command.
fn git(root: &Path, arguments: &[&str]) -> Result<Vec<u8>, String> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(root)
        .output()
        .map_err(|error| format!("cannot run git: {error}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(format!("git {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
}

/// Returns the files below `places` that Git knows or would add. No places: all files.
fn git_files(root: &Path, places: &[&str]) -> Result<Vec<String>, String> {
    let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"];
    let names = git(root, &[&list, places].concat())?;
    let names = String::from_utf8_lossy(&names);
    Ok(names.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
}
