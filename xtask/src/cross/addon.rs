//! The Node.js addon for a target.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::target::Npm;
use super::{Counts, Run};
use crate::abi;

/// Builds the Node.js addon, if a package for the target exists.
pub fn build(run: &Run) -> Result<Counts, String> {
    let Some(npm) = &run.target.npm else { return Ok(no_package(run)) };
    let built = run.out.join("cargo");
    let mut cargo = run.tools.cargo(run.target, "zigbuild");
    cargo.args(["--profile", "addon", "-p", "tautline-node", "--locked"]);
    run.steps.step("building the Node.js addon", cargo.env("CARGO_TARGET_DIR", &built))?;
    let from = built.join(run.target.triple).join("addon/libtautline_node.so");
    let addon = place(run, npm);
    fs::copy(&from, &addon).map_err(|error| format!("{}: {error}", from.display()))?;
    let mut findings = match run.target.glibc {
        Some(glibc) => abi::too_new(&addon, glibc)?,
        None => Vec::new(),
    };
    // Symbols of Node.js itself have no versions.
    findings.retain(|finding| !finding.starts_with("napi_") && !finding.starts_with("uv_"));
    if findings.is_empty() {
        Ok(Counts::PASSED)
    } else {
        Err(format!("{}: {}", addon.display(), findings.join(", ")))
    }
}

/// Exchanges messages by every pattern with a Node.js of the target.
pub fn exchange(run: &Run) -> Result<Counts, String> {
    let Some(npm) = &run.target.npm else { return Ok(no_package(run)) };
    let addon = place(run, npm);
    if !addon.exists() {
        return Err(format!("{} is not built", addon.display()));
    }
    let words = run.tools.node(&run.steps, run.target, npm, &run.out.join("node"))?;
    let mut exchanges = Command::new(run.steps.root.join("tests/ship/cross/node.sh"));
    exchanges.arg(words.join(" ")).arg(npm.name).arg(&addon);
    Ok(Counts::of(&run.steps.step("exchanges by Node.js", &mut exchanges)?))
}

fn no_package(run: &Run) -> Counts {
    println!("skipped {}: there is no package of the addon for it", run.target.name());
    Counts { skipped: 1, ..Counts::default() }
}

fn place(run: &Run, npm: &Npm) -> PathBuf {
    run.out.join(format!("tautline.{}.node", npm.name))
}
