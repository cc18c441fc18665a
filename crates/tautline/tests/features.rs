//! The tables of features in the documentation list each feature of Cargo.toml, and no other.

use std::collections::BTreeSet;

/// Returns the first column of the table of features, with `prefix` before each line.
fn documented(text: &str, prefix: &str) -> BTreeSet<String> {
    let rows = text.lines().filter_map(|line| line.strip_prefix(prefix));
    let after_head = rows.skip_while(|row| *row != "| feature | default | effect |").skip(2);
    after_head
        .map_while(|row| row.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name.to_owned())
        .collect()
}

#[test]
fn tables_list_every_feature() {
    let manifest = include_str!("../Cargo.toml");
    let lines = manifest.lines().skip_while(|line| *line != "[features]").skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    let names = lines.filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(" = "));
    let mut features: BTreeSet<String> = names.map(|(name, _)| name.to_owned()).collect();
    assert!(features.remove("default"));
    assert_eq!(documented(include_str!("../README.md"), ""), features, "README.md");
    assert_eq!(documented(include_str!("../src/lib.rs"), "//! "), features, "src/lib.rs");
}
