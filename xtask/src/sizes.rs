//! Limits the size of files, so that each has one concept.

use std::path::Path;

use crate::scan;

/// Most lines of a source file without its tests; 80 to 350 are usual.
const LIMIT: usize = 600;

/// Returns files over [`LIMIT`].
pub fn check(root: &Path) -> Vec<String> {
    let mut findings = Vec::new();
    for folder in ["crates", "bench", "xtask", "tests"] {
        for source in scan::sources(&root.join(folder)) {
            let lines = source.lines().count();
            if lines > LIMIT {
                findings
                    .push(format!("{folder}/{}: {lines} lines without tests (limit {LIMIT})", source.path));
            }
        }
    }
    findings
}
