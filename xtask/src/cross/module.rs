//! The Python module for a target.

use std::fs;
use std::path::Path;

use super::{Counts, Run};
use crate::abi;

/// Descriptions of the interpreters that the wheels are for, in PyO3's format. Each file name is the tag in the names of the wheels.
const INTERPRETERS: &str = "bindings/python/interpreters";

/// Builds the Python module for each interpreter, if there are wheels for the target: `python/TAG/_native.so`.
pub fn build(run: &Run) -> Result<Counts, String> {
    let mut counts = Counts::default();
    if !run.target.is_packaged() || run.target.is_windows() {
        println!("skipped {}: there is no wheel for it", run.target.name());
        counts.skipped = 1;
        return Ok(counts);
    }
    let built = run.out.join("cargo");
    for tag in tags(&run.steps.root)? {
        let mut cargo = run.tools.cargo(run.target, "zigbuild");
        cargo.args(["--release", "-p", "tautline-python", "--locked"]);
        cargo.env("PYO3_CONFIG_FILE", run.steps.root.join(INTERPRETERS).join(&tag));
        run.steps
            .step(&format!("building the Python module {tag}"), cargo.env("CARGO_TARGET_DIR", &built))?;
        let from = built.join(run.target.triple).join("release/lib_native.so");
        let folder = run.out.join("python").join(&tag);
        let module = folder.join("_native.so");
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        fs::copy(&from, &module).map_err(|error| format!("{}: {error}", from.display()))?;
        let mut findings = match run.target.glibc {
            Some(glibc) => abi::too_new(&module, glibc)?,
            None => Vec::new(),
        };
        // Symbols of Python itself have no versions.
        findings.retain(|finding| !finding.starts_with("Py") && !finding.starts_with("_Py"));
        if !findings.is_empty() {
            return Err(format!("{}: {}", module.display(), findings.join(", ")));
        }
        counts += Counts::PASSED;
    }
    Ok(counts)
}

/// Returns the tags of the interpreters, sorted.
fn tags(root: &Path) -> Result<Vec<String>, String> {
    let folder = root.join(INTERPRETERS);
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut tags: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    tags.sort();
    Ok(tags)
}
