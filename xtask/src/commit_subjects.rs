//! Checks the subjects of the commits that the main branch does not have yet.

use std::path::Path;

/// Most columns of a subject.
const COLUMNS: usize = 72;

/// Returns the subjects that are too long or name two changes. Checks no commits if Git or the main branch is missing.
pub fn check(root: &Path) -> Vec<String> {
    let branches = ["main", "origin/main"];
    let known: Vec<&str> = branches
        .into_iter()
        .filter(|branch| crate::git(root, &["rev-parse", "--verify", "--quiet", branch]).is_ok())
        .collect();
    if known.is_empty() {
        return Vec::new();
    }
    let arguments = [&["log", "--no-merges", "--format=%h %s", "HEAD", "--not"], known.as_slice()].concat();
    let log = crate::git(root, &arguments).unwrap_or_default();
    String::from_utf8_lossy(&log).lines().filter_map(fault).collect()
}

/// Returns the fault of a line `HASH SUBJECT`.
fn fault(line: &str) -> Option<String> {
    let (hash, subject) = line.split_once(' ')?;
    let columns = subject.chars().count();
    if columns > COLUMNS {
        Some(format!("{hash}: a subject of {columns} columns (limit {COLUMNS}): {subject}"))
    } else if subject.contains("; ") || subject.ends_with('.') {
        Some(format!("{hash}: the subject must not contain `;` or end with a full stop: {subject}"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_double_subjects_are_found() {
        assert!(fault("1234567 queue: count whole messages").is_none());
        assert!(fault(&format!("1234567 {}", "a".repeat(72))).is_none());
        assert!(fault(&format!("1234567 {}", "a".repeat(73))).unwrap().contains("73 columns"));
        assert!(fault("1234567 queue: count messages; pipe: flush").is_some());
        assert!(fault("1234567 queue: count messages.").is_some());
    }
}
