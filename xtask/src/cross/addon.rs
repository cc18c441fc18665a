//! The Node.js addon for a target.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::target::Npm;
use super::{Counts, Run};
use crate::abi;

/// Builds the Node.js addon, where there is a package for it.
pub fn build(run: &Run) -> Result<Counts, String> {
    let Some(npm) = &run.target.npm else { return Ok(no_package(run)) };
    let built = run.out.join("cargo");
    let workspace = run.out.join("addon");
    let describe = |error: io::Error| format!("{}: {error}", workspace.display());
    lay_workspace(&run.steps.root, &workspace).map_err(describe)?;
    let mut cargo = run.tools.cargo(run.target, "zigbuild");
    cargo.args(["--release", "-p", "tautline-node", "--manifest-path"]).arg(workspace.join("Cargo.toml"));
    // What the addon's own manifest says, which holds only where that is the workspace.
    cargo.env("CARGO_PROFILE_RELEASE_STRIP", "debuginfo").env("CARGO_PROFILE_RELEASE_DEBUG", "0");
    run.steps.step("building the Node.js addon", cargo.env("CARGO_TARGET_DIR", &built))?;
    let from = built.join(run.target.triple).join("release/libtautline_node.so");
    let addon = place(run, npm);
    fs::copy(&from, &addon).map_err(|error| format!("{}: {error}", from.display()))?;
    let mut findings = match run.target.glibc {
        Some(glibc) => abi::too_new(&addon, glibc)?,
        None => Vec::new(),
    };
    // What Node.js itself has, which gives it no versions.
    findings.retain(|finding| !finding.starts_with("napi_") && !finding.starts_with("uv_"));
    if findings.is_empty() {
        Ok(Counts::PASSED)
    } else {
        Err(format!("{}: {}", addon.display(), findings.join(", ")))
    }
}

/// Every pattern exchanged by a Node.js of the target.
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

/// A workspace in `folder` that the addon and the crates it is made of are within. Cargo gives crates names by where they are within the
/// workspace, and those outside by the whole path, which would be in each symbol: the addon's own workspace has only the addon.
fn lay_workspace(root: &Path, folder: &Path) -> io::Result<()> {
    let own = root.join("bindings/node");
    let addon = folder.join("bindings/node");
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(&addon)?;
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    fs::write(folder.join("Cargo.toml"), with_members(&manifest, "bindings/node"))?;
    let manifest = fs::read_to_string(own.join("Cargo.toml"))?;
    fs::write(addon.join("Cargo.toml"), manifest.replace("\n[workspace]\n", "\n"))?;
    fs::copy(own.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    symlink(root.join("crates"), folder.join("crates"))?;
    for name in ["src", "build.rs"] {
        symlink(own.join(name), addon.join(name))?;
    }
    Ok(())
}

/// The manifest of a workspace with another member in place of its own.
fn with_members(manifest: &str, member: &str) -> String {
    let (before, rest) = manifest.split_once("members = [").unwrap_or((manifest, ""));
    let after = rest.split_once(']').map_or("", |(_, after)| after);
    format!("{before}members = [\"{member}\"]{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_manifest_stays() {
        let manifest = "[workspace]\nmembers = [\n  \"a\",\n  \"b\",\n]\n\n[x]\ny = [1]\n";
        assert_eq!(with_members(manifest, "c"), "[workspace]\nmembers = [\"c\"]\n\n[x]\ny = [1]\n");
    }
}
