//! Checks that comments of the crates are at most 100 columns wide. rustfmt leaves comments alone.

use std::path::Path;

use crate::scan::{self, Source};

/// Most columns of a line that is only a comment.
const COLUMNS: usize = 100;

/// Returns the lines that are too wide.
pub fn check(root: &Path) -> Vec<String> {
    let sources = scan::sources(&root.join("crates"));
    sources.iter().filter(|source| source.path.contains("/src/")).flat_map(wide).collect()
}

/// Tables and addresses cannot be broken.
fn wide(source: &Source) -> Vec<String> {
    let mut is_example = false;
    let lines = source.text.lines().enumerate().filter_map(|(at, line)| {
        let comment = line.trim_start().strip_prefix("//")?.trim_start_matches(['/', '!']).trim_start();
        is_example ^= comment.starts_with("```");
        let columns = line.chars().count();
        let may_be_wide = is_example || comment.starts_with('|') || line.contains("://");
        (columns > COLUMNS && !may_be_wide)
            .then(|| format!("{}:{}: a comment of {columns} columns (limit {COLUMNS})", source.path, at + 1))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_comments_are_found_and_addresses_are_not() {
        let text = format!(
            "// {}\n/// https://{}\nlet a = 1; // {}\n/// ```\n/// {}\n/// ```\n",
            "a".repeat(98),
            "b".repeat(98),
            "c".repeat(98),
            "d".repeat(98)
        );
        let code = scan::blank(&text);
        let source = Source { path: "a.rs".into(), text, code, is_test: false, lines_before_tests: 0 };
        assert_eq!(wide(&source), ["a.rs:1: a comment of 101 columns (limit 100)"]);
    }
}
