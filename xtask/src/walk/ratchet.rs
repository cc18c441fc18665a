//! The table of the walks, and the comparison with it.

use std::collections::{BTreeMap, BTreeSet};

use super::count::{Counts, File};

/// The walk of each case.
pub type Rows = BTreeMap<String, Counts>;

const HEAD: &str = "\
# The files that a call enters: cargo xtask walk --write. xtask/src/walk.rs defines the counts. They must not grow.
#
#   case: the number of files entered, of files on the spine, and of returns
#   the files in the order of the walk, those on the spine with *
#   the returns: a call between two files of the spine, to one that the walk has entered before
";

/// Returns the row of a case.
pub fn row(case: &str, counts: &Counts) -> String {
    let numbers = numbers(counts);
    let mut text =
        format!("{case}: {} files, {} on the spine, {} returns\n", numbers[0].1, numbers[1].1, numbers[2].1);
    for file in &counts.files {
        text += &format!("  {} {}\n", if file.on_spine { '*' } else { ' ' }, file.name);
    }
    for (from, to) in &counts.returns {
        text += &format!("  {from} -> {to}\n");
    }
    text
}

/// Returns the table.
pub fn table(cases: &[&str], rows: &Rows) -> String {
    let rows = cases.iter().filter_map(|case| Some(format!("\n{}", row(case, rows.get(*case)?))));
    std::iter::once(HEAD.to_owned()).chain(rows).collect()
}

/// Reads the table.
pub fn read(text: &str) -> Rows {
    let mut rows = Rows::new();
    let mut case = String::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        if let Some((name, _)) = line.split_once(':').filter(|_| !line.starts_with(' ')) {
            case = name.to_owned();
        }
        let counts = rows.entry(case.clone()).or_default();
        if let Some((from, to)) = line.trim().split_once(" -> ") {
            counts.returns.push((from.to_owned(), to.to_owned()));
        } else if line.starts_with(' ') {
            let name = line.trim().trim_start_matches("* ").to_owned();
            counts.files.push(File { name, on_spine: line.contains('*') });
        }
    }
    rows
}

fn numbers(counts: &Counts) -> [(&'static str, usize); 3] {
    [
        ("files", counts.files.len()),
        ("files on the spine", counts.spine().len()),
        ("returns", counts.returns.len()),
    ]
}

/// Names the files and returns by which a walk has grown.
pub fn findings(case: &str, allowed: Option<&Counts>, counts: &Counts) -> Vec<String> {
    let Some(allowed) = allowed else { return vec![format!("{case}: not in the table: --write")] };
    let names = |counts: &Counts| -> [BTreeSet<String>; 3] {
        [
            counts.files.iter().map(|file| file.name.clone()).collect(),
            counts.spine().into_iter().map(str::to_owned).collect(),
            counts.returns.iter().map(|(from, to)| format!("{from} -> {to}")).collect(),
        ]
    };
    let (old, new) = (names(allowed), names(counts));
    let pairs = numbers(allowed).into_iter().zip(numbers(counts));
    pairs
        .zip(old.iter().zip(&new))
        .filter(|(((_, most), (_, number)), _)| number > most)
        .map(|(((what, most), (_, number)), (old, new))| {
            let added: Vec<&str> = new.difference(old).map(String::as_str).collect();
            format!("{case}: {number} {what}, more than {most}. New: {}", added.join(", "))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(files: &[(&str, bool)], returns: &[(&str, &str)]) -> Counts {
        let file = |(name, on_spine): &(&str, bool)| File { name: (*name).to_owned(), on_spine: *on_spine };
        let pair = |(from, to): &(&str, &str)| ((*from).to_owned(), (*to).to_owned());
        Counts { files: files.iter().map(file).collect(), returns: returns.iter().map(pair).collect() }
    }

    #[test]
    fn the_table_is_read_as_it_was_written() {
        let walk = counts(&[("a.rs", true), ("b.rs", false)], &[("b.rs", "a.rs")]);
        let rows = Rows::from([("send".to_owned(), walk)]);
        let text = table(&["recv", "send"], &rows);
        assert!(text.contains("\nsend: 2 files, 1 on the spine, 1 returns\n  * a.rs\n    b.rs\n"), "{text}");
        assert_eq!(read(&text), rows);
    }

    #[test]
    fn an_added_file_is_named() {
        let old = counts(&[("a.rs", true)], &[]);
        let new = counts(&[("a.rs", true), ("planted.rs", false)], &[]);
        assert_eq!(findings("send", Some(&old), &new), ["send: 2 files, more than 1. New: planted.rs"]);
        assert!(findings("send", Some(&new), &old).is_empty());
        assert_eq!(findings("send", None, &old).len(), 1);
    }

    #[test]
    fn an_added_return_is_named() {
        let old = counts(&[("a.rs", true), ("b.rs", false)], &[]);
        let new = counts(&[("a.rs", true), ("b.rs", true)], &[("b.rs", "a.rs")]);
        let found = findings("send", Some(&old), &new);
        assert_eq!(found.len(), 2);
        assert!(found[0].ends_with("New: b.rs") && found[1].ends_with("New: b.rs -> a.rs"), "{found:?}");
    }
}
