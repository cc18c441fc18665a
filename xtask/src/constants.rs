//! Shows which tests hold each constant of the timing rules: `cargo xtask constants [--write] [NAME...]`.
//!
//! For each constant of `crates/timing`, the command divides its value by [`FACTOR`] in a copy of the sources, runs the tests of the crate,
//! and does the same with the product. A constant is *held* if a test fails with one of the two values. The table
//! `xtask/constants.txt` names one failing test for each value; `--write` rewrites it. The command fails if a constant is not held.
//!
//! [`check`] is the quick part: each constant of the sources has a line in the table, and each line a constant.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::report;
use crate::scan;
use crate::simulate::scratch::Scratch;

/// The value is divided by this number, and multiplied by it. (The product of a `u8` must stay below 256.)
const FACTOR: &str = "4";
const FACTOR_OF_U8: &str = "2";
/// Seconds after which the tests are stopped. They take less than one.
const WATCHDOG: &str = "120";
/// Exit code of `timeout` for a program that it has stopped.
const STOPPED: i32 = 124;
/// Folder of the constants.
const FOLDER: &str = "crates/timing/src";
const TABLE: &str = "xtask/constants.txt";
const HEAD: &str = "\
# Constants of the timing rules (crates/timing), written by `cargo xtask constants --write`.
#
#   constant: a test that fails if the value is a quarter of its own (u8: half) | a test that fails if it is four times its own (u8: twice)
#
# - means that no test fails.
";

/// A constant of the sources.
struct Constant {
    name: String,
    /// Path below the root.
    path: String,
    /// Text of the value, without the semicolon.
    value: String,
    is_u8: bool,
}

/// Returns constants without a line in the table, and lines without a constant.
pub fn check(root: &Path) -> Vec<String> {
    let table = fs::read_to_string(root.join(TABLE)).unwrap_or_default();
    let lines: BTreeSet<&str> = names(&table).collect();
    let constants = constants(root);
    let known: BTreeSet<&str> = constants.iter().map(|constant| constant.name.as_str()).collect();
    let mut findings: Vec<String> = Vec::new();
    findings.extend(known.difference(&lines).map(|name| format!("{TABLE}: no line for {name}")));
    findings.extend(lines.difference(&known).map(|name| format!("{TABLE}: there is no constant {name}")));
    findings
}

fn names(table: &str) -> impl Iterator<Item = &str> {
    table.lines().filter(|line| !line.starts_with('#')).filter_map(|line| Some(line.split_once(':')?.0))
}

/// Tries the named constants, by default all. Ends with `constants: N passed, N failed, 0 skipped`.
pub fn run(root: &Path, target: &Path, arguments: &[&str]) -> ExitCode {
    let writes = arguments.contains(&"--write");
    let wanted: Vec<&str> = arguments.iter().copied().filter(|word| *word != "--write").collect();
    let scratch = Scratch::new(root, target, "constants");
    let table = fs::read_to_string(root.join(TABLE)).unwrap_or_default();
    let (mut text, mut held, mut failed) = (HEAD.to_owned(), 0, 0);
    if let Err(error) = scratch.restore() {
        return report("constants", &[error]);
    }
    for constant in constants(root) {
        if !wanted.is_empty() && !wanted.contains(&constant.name.as_str()) {
            let before = table.lines().find(|line| line.starts_with(&format!("{}:", constant.name)));
            text.extend(before.into_iter().flat_map(|line| [line, "\n"]));
            continue;
        }
        let tests = ["/", "*"].map(|operator| failing_test(root, &scratch, target, &constant, operator));
        let [smaller, larger] = match tests {
            [Ok(smaller), Ok(larger)] => [smaller, larger],
            [Err(error), _] | [_, Err(error)] => {
                println!("FAILED {error}");
                failed += 1;
                continue;
            }
        };
        let line = format!("{}: {} | {}", constant.name, shown(&smaller), shown(&larger));
        println!("{line}");
        text.push_str(&line);
        text.push('\n');
        if smaller.or(larger).is_some() {
            held += 1;
        } else {
            println!("FAILED {}: no test holds {}", constant.path, constant.name);
            failed += 1;
        }
    }
    if writes && let Err(error) = fs::write(root.join(TABLE), text) {
        println!("FAILED {TABLE}: {error}");
        failed += 1;
    }
    println!("constants: {held} passed, {failed} failed, 0 skipped");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn shown(test: &Option<String>) -> &str {
    test.as_deref().unwrap_or("-")
}

/// Returns a test that fails if the constant is divided (`/`) or multiplied (`*`) by [`FACTOR`]. A value that does not compile is an error.
fn failing_test(
    root: &Path,
    scratch: &Scratch,
    target: &Path,
    constant: &Constant,
    operator: &str,
) -> Result<Option<String>, String> {
    let text = fs::read_to_string(root.join(&constant.path)).map_err(|error| error.to_string())?;
    let declared = format!("const {}: ", constant.name);
    let value = format!(" = {};", constant.value);
    let factor = if constant.is_u8 { FACTOR_OF_U8 } else { FACTOR };
    let new_value = format!(" = ({}) {operator} {factor};", constant.value);
    let change = |line: &str| match line.contains(&declared) {
        true => line.replacen(&value, &new_value, 1),
        false => line.to_owned(),
    };
    let changed: Vec<String> = text.lines().map(change).collect();
    scratch.write(&constant.path, changed.join("\n").as_bytes())?;
    let result = run_tests(scratch, target, &format!("{} {operator} {factor}", constant.name));
    scratch.write(&constant.path, text.as_bytes())?;
    result
}

/// Runs the tests of the copy, which contains `change`. Returns a test that fails.
fn run_tests(scratch: &Scratch, target: &Path, change: &str) -> Result<Option<String>, String> {
    let cargo = |command: &mut Command, options: &[&str]| {
        command
            .args(["test", "--package", "tautline-timing", "--lib"])
            .args(options)
            .current_dir(&scratch.tree)
            .env("CARGO_TARGET_DIR", target.join("constants/target"))
            // The tests simulate long times.
            .env("CARGO_PROFILE_TEST_OPT_LEVEL", "2")
            .env_remove("RUSTFLAGS")
            .output()
            .map_err(|error| format!("cargo: {error}"))
    };
    let built = cargo(&mut Command::new("cargo"), &["--no-run"])?;
    if !built.status.success() {
        let errors = String::from_utf8_lossy(&built.stderr).into_owned();
        return Err(format!("{change} does not compile:\n{errors}"));
    }
    let output = cargo(Command::new("timeout").args([WATCHDOG, "cargo"]), &[])?;
    if output.status.code() == Some(STOPPED) {
        return Ok(Some("a test that does not end".to_owned()));
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    let failed = |line: &str| Some(line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?.to_owned());
    Ok(printed.lines().filter_map(failed).min())
}

/// Returns the constants outside of tests, in the order of the files.
fn constants(root: &Path) -> Vec<Constant> {
    let mut found = Vec::new();
    for source in scan::sources(&root.join(FOLDER)) {
        // The constants of the simulation belong to the tests.
        if source.is_test || source.path == "sim.rs" {
            continue;
        }
        for (_, code, _) in source.lines() {
            let Some((_, rest)) = code.split_once("const ") else { continue };
            let Some((name, rest)) = rest.split_once(": ") else { continue };
            let Some((kind, value)) = rest.trim_end().split_once(" = ") else { continue };
            let is_name = name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
            let Some(value) = value.strip_suffix(';').filter(|_| is_name) else { continue };
            if value.contains(|c: char| "{[&".contains(c)) {
                continue;
            }
            let path = format!("{FOLDER}/{}", source.path);
            let (name, value) = (name.to_owned(), value.to_owned());
            found.push(Constant { name, path, value, is_u8: kind == "u8" });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_of_the_sources_are_found() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let found = constants(root);
        let wake = found.iter().find(|constant| constant.name == "WAKE").unwrap();
        assert_eq!((wake.path.as_str(), wake.value.as_str()), ("crates/timing/src/lib.rs", "20_000"));
        assert!(!found.iter().any(|constant| constant.name == "NAMES"));
    }

    #[test]
    fn lines_of_the_table_have_a_name() {
        assert_eq!(names("# WAKE: a\nSLICE: b | -\n").collect::<Vec<_>>(), ["SLICE"]);
    }
}
