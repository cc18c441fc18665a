//! Builds the command line as one file that runs on any Linux of its processor.

use std::fs;
use std::path::Path;

use super::{Counts, Run, command};

/// Builds `taut` with all features, for musl only. Checks that it needs no library, and runs it.
pub fn build(run: &Run) -> Result<Counts, String> {
    if run.target.glibc.is_some() || run.target.is_windows() {
        println!("skipped {}: taut is built for musl, and runs where glibc is", run.target.name());
        return Ok(Counts { skipped: 1, ..Counts::default() });
    }
    let built = run.out.join("cargo-static");
    let mut cargo = run.tools.cargo_for_program(run.target, "zigbuild");
    cargo
        .args(["--release", "-p", "tautline-cli", "--features", "bridge,tls"])
        .env("CARGO_TARGET_DIR", &built);
    run.steps.step("building taut", &mut cargo)?;
    let (from, taut) = (built.join(run.target.triple).join("release/taut"), run.out.join("taut"));
    fs::copy(&from, &taut).map_err(|error| format!("{}: {error}", from.display()))?;

    needs_nothing(&taut)?;
    let mut words = run.tools.emulator(run.target).unwrap_or_default();
    words.push(taut.display().to_string());
    let with =
        |arguments: &[&str]| command(words.iter().map(String::as_str).chain(arguments.iter().copied()));
    let said = run.steps.step("running taut --version", &mut with(&["--version"]))?;
    if !said.starts_with("taut ") {
        return Err(format!("{} says {said}", taut.display()));
    }
    let curve = ["bench", "tcp://127.0.0.1:*", "ipc://*", "--curve", "-n", "1000", "-r", "100"];
    run.steps.step("messages by taut", &mut with(&curve))?;
    Ok(Counts { passed: 3, ..Counts::default() })
}

/// Checks that the program has no interpreter, and so needs no library.
fn needs_nothing(taut: &Path) -> Result<(), String> {
    let output = command([Path::new("readelf"), Path::new("-lW"), taut]).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    match text {
        Ok(text) if text.contains(" LOAD ") && !text.contains(" INTERP ") => Ok(()),
        Ok(_) => Err(format!("{} is not linked statically", taut.display())),
        Err(error) => Err(format!("readelf: {error}")),
    }
}
