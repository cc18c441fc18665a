//! Checks the places of modules and tests. A module `name` is `name.rs`, with its inner modules in `name/`. Short tests are
//! at the end of their file, longer ones in `name/tests.rs`.

use std::path::Path;

use crate::scan::{self, Source};

/// Most lines of tests inside the file of a module.
const INLINE_TESTS: usize = 150;

/// Returns files named `mod.rs`, and files with too many lines of tests.
pub fn check(root: &Path) -> Vec<String> {
    let mut findings = Vec::new();
    for folder in ["crates", "bench", "fuzz", "xtask"] {
        for source in scan::sources(&root.join(folder)) {
            findings.extend(misplaced(&source).map(|fault| format!("{folder}/{}: {fault}", source.path)));
        }
    }
    findings
}

fn misplaced(source: &Source) -> Option<String> {
    let folder = source.path.strip_suffix("/mod.rs");
    // Cargo runs `tests/common.rs` as a test, but not `tests/common/mod.rs`.
    if let Some(folder) = folder.filter(|folder| !folder.ends_with("tests/common")) {
        return Some(format!("must be {}.rs", folder.rsplit('/').next().unwrap_or(folder)));
    }
    let tests = source.text.lines().count() - source.lines_before_tests;
    let is_too_long = !source.is_test && tests > INLINE_TESTS;
    is_too_long
        .then(|| format!("{tests} lines of tests (limit {INLINE_TESTS}): move them to a file tests.rs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(path: &str, lines_of_tests: usize) -> Option<String> {
        let text = format!("fn a() {{}}\n#[cfg(test)]\nmod tests {{\n{}}}\n", "\n".repeat(lines_of_tests));
        let (code, lines_before_tests) = (scan::blank(&text), 1);
        misplaced(&Source { path: path.into(), text, code, is_test: false, lines_before_tests })
    }

    #[test]
    fn module_has_the_name_of_its_folder() {
        assert_eq!(finding("core/src/conn/mod.rs", 1).unwrap(), "must be conn.rs");
        assert_eq!(finding("core/src/conn.rs", 1), None);
        assert_eq!(finding("core/tests/common/mod.rs", 1), None);
    }

    #[test]
    fn long_tests_have_a_file() {
        assert_eq!(finding("a.rs", INLINE_TESTS - 3), None);
        assert!(finding("a.rs", INLINE_TESTS).is_some());
    }
}
