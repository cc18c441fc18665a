//! Measures the effect of each rule of the engine's timing: `cargo run -p xtask -- ablate [RULE...] [OPTION...]`.
//!
//! A library built with the feature `ablation` leaves out the rules that `TAUT_WITHOUT` names. A test of the engine prints the
//! names; `scripts/run.sh ablate` builds the library and measures.

use std::path::Path;
use std::process::{Command, ExitCode};

/// Test that prints the names, one a line after [`MARK`].
const NAMES: [&str; 11] = [
    "test",
    "-q",
    "-p",
    "tautline-timing",
    "--features",
    "ablation",
    "--lib",
    "rules::tests::names",
    "--",
    "--exact",
    "--nocapture",
];
const MARK: &str = "rule: ";

/// Measures the rules named before the first option, by default all. `--list` prints the rules. The options are passed to
/// the benchmark: `--quick`, `--only environment=veth`, `--pairs N`, ...
pub fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    let first_option = arguments.iter().position(|word| word.starts_with('-')).unwrap_or(arguments.len());
    let (named, options) = arguments.split_at(first_option);
    let mut rules: Vec<String> = named.iter().map(|rule| (*rule).to_owned()).collect();
    if rules.is_empty() {
        rules = match names(root) {
            Ok(names) => names,
            Err(reason) => {
                eprintln!("ablate: {reason}");
                return ExitCode::FAILURE;
            }
        };
    }
    if options.contains(&"--list") {
        rules.iter().for_each(|rule| println!("{rule}"));
        return ExitCode::SUCCESS;
    }
    let script = root.join("scripts/run.sh");
    match Command::new(&script).arg("ablate").args(&rules).args(options).status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(status) => ExitCode::from(status.code().and_then(|code| code.try_into().ok()).unwrap_or(1)),
        Err(error) => {
            eprintln!("ablate: {}: {error}", script.display());
            ExitCode::FAILURE
        }
    }
}

fn names(root: &Path) -> Result<Vec<String>, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output =
        Command::new(cargo).args(NAMES).current_dir(root).output().map_err(|e| format!("cargo: {e}"))?;
    let names = names_in(&String::from_utf8_lossy(&output.stdout));
    if output.status.success() && !names.is_empty() {
        return Ok(names);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let why = if output.status.success() { "it names none" } else { said.trim() };
    Err(format!("`cargo {}`: {why}\nName the rules, or any VARIABLE=VALUE, instead.", NAMES.join(" ")))
}

/// Returns the names in the output of the test. The test runner may print other words before them on the line.
fn names_in(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| Some(line.split_once(MARK)?.1.trim().to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_behind_their_mark() {
        let text = "running 1 test\ntest timing::names ... rule: lull\nrule: hold\n.\nok\n";
        assert_eq!(names_in(text), ["lull", "hold"]);
    }
}
