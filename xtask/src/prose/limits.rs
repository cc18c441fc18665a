//! Compares the folders with the goals, and with `xtask/prose.txt` where they do not meet them yet.

use std::collections::{BTreeMap, BTreeSet};

use super::files::{Prose, Sum};
use super::kinds::{KINDS, Kind};

pub const TABLE: &str = "xtask/prose.txt";

/// A folder with fewer sentences may have [`FEW`] places of each kind.
const SMALL: usize = 100;
const FEW: usize = 2;
/// Largest difference between a limit and the present figure. A higher limit must be lowered.
const SLACK: usize = 5;
/// Most sentences that may be exempt.
const EXEMPT: usize = 20;

const HEAD: &str = "\
# Folders whose prose does not meet the goals yet (`cargo xtask prose --help`): for each kind above its goal, a limit per
# 1,000 sentences. Limits may only fall; `cargo xtask prose --write` lowers them, and removes the lines of folders that
# meet the goals. A sentence that is right as it is: `exempt | sentence | reason`.
";

/// Limits of the folders that do not meet the goals.
type Limits = BTreeMap<String, BTreeMap<Kind, usize>>;

/// The contents of the table.
#[derive(Debug, Default)]
pub struct Table {
    limits: Limits,
    /// Sentences with their reasons.
    exempt: BTreeMap<String, String>,
}

impl Table {
    /// Reads the table. Returns the lines that it cannot read as findings.
    pub fn parse(text: &str) -> (Table, Vec<String>) {
        let mut table = Table::default();
        let mut findings = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(rest) = line.strip_prefix("exempt | ") {
                match rest.rsplit_once(" | ") {
                    Some((sentence, reason)) if !reason.trim().is_empty() => {
                        _ = table.exempt.insert(sentence.trim().to_owned(), reason.trim().to_owned());
                    }
                    _ => findings.push(format!("{TABLE}: `{line}` has no reason")),
                }
            } else if let Some((folder, limits)) = limits(line) {
                _ = table.limits.insert(folder, limits);
            } else {
                findings.push(format!("{TABLE}: cannot read `{line}`: folder, then kinds with limits"));
            }
        }
        if table.exempt.len() > EXEMPT {
            findings.push(format!("{TABLE}: {} exempt sentences (limit {EXEMPT})", table.exempt.len()));
        }
        (table, findings)
    }

    /// Compares the table with the measured files.
    pub fn compare(&self, files: &[Prose]) -> Vec<String> {
        let (folders, mut findings) = self.folders(files);
        for (folder, sum) in &folders {
            let limits = self.limits.get(folder);
            for kind in KINDS {
                let limit = limits.and_then(|limits| limits.get(&kind)).copied();
                findings.extend(compare(folder, kind, sum, limit));
            }
        }
        let unknown = self.limits.keys().filter(|folder| !folders.contains_key(*folder));
        findings.extend(unknown.map(|folder| format!("{TABLE}: no prose in {folder}: remove the line")));
        findings
    }

    /// Returns the text of the table with lower limits. `is_new`: the limits become the present figures.
    pub fn lowered(&self, files: &[Prose], is_new: bool) -> String {
        let (folders, _) = self.folders(files);
        let mut text = HEAD.to_owned();
        for (sentence, reason) in &self.exempt {
            text.push_str(&format!("exempt | {sentence} | {reason}\n"));
        }
        for (folder, sum) in &folders {
            let limit = |kind: Kind| {
                let old = self.limits.get(folder).and_then(|limits| limits.get(&kind)).copied();
                let rate = (!meets_goal(kind, sum)).then(|| rate(kind, sum))?;
                match old {
                    _ if is_new => Some(rate),
                    Some(old) => Some(old.min(rate)),
                    None => None,
                }
            };
            let limits: Vec<String> = KINDS
                .into_iter()
                .filter_map(|kind| limit(kind).map(|limit| format!("{} {limit}", kind.name())))
                .collect();
            if !limits.is_empty() {
                text.push_str(&format!("{folder} {}\n", limits.join(" ")));
            }
        }
        text
    }

    /// Adds up the folders, without the exempt sentences. Returns the exemptions without a sentence as findings.
    fn folders(&self, files: &[Prose]) -> (BTreeMap<String, Sum>, Vec<String>) {
        let mut folders: BTreeMap<String, Sum> = BTreeMap::new();
        let mut used = BTreeSet::new();
        for file in files {
            let mut file = file.clone();
            file.findings.retain(|finding| {
                let is_exempt = self.exempt.contains_key(&finding.text);
                if is_exempt {
                    used.insert(finding.text.clone());
                }
                !is_exempt
            });
            folders.entry(folder(&file.path)).or_default().add(&file);
        }
        let unused = self.exempt.keys().filter(|sentence| !used.contains(*sentence));
        let findings =
            unused.map(|sentence| format!("{TABLE}: no such sentence, or it needs no exemption: {sentence}"));
        (folders, findings.collect())
    }
}

fn limits(line: &str) -> Option<(String, BTreeMap<Kind, usize>)> {
    let mut words = line.split_whitespace();
    let folder = words.next()?.to_owned();
    let mut limits = BTreeMap::new();
    while let Some(name) = words.next() {
        let kind = KINDS.into_iter().find(|kind| kind.name() == name && kind.goal().is_some())?;
        limits.insert(kind, words.next()?.parse().ok()?);
    }
    (!limits.is_empty()).then_some((folder, limits))
}

/// Returns the folder that a file counts for: two levels, four in `crates`. Files at the top count for `.`.
pub fn folder(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    let levels = if parts[0] == "crates" { 4 } else { 2 };
    let levels = levels.min(parts.len() - 1);
    if levels == 0 { ".".to_owned() } else { parts[..levels].join("/") }
}

/// Returns the places per 1,000 sentences, rounded up.
fn rate(kind: Kind, sum: &Sum) -> usize {
    (1000 * sum.counts[kind.index()]).div_ceil(sum.sentences.max(1))
}

fn meets_goal(kind: Kind, sum: &Sum) -> bool {
    let Some(goal) = kind.goal() else { return true };
    let count = sum.counts[kind.index()];
    1000 * count <= goal * sum.sentences || (sum.sentences < SMALL && count <= FEW)
}

fn compare(folder: &str, kind: Kind, sum: &Sum, limit: Option<usize>) -> Option<String> {
    let (name, rate, goal) = (kind.name(), rate(kind, sum), kind.goal()?);
    match limit {
        None if !meets_goal(kind, sum) => Some(format!(
            "{folder}: {name} {rate} per 1,000 sentences (goal {goal}): cargo xtask prose --list {name} {folder}"
        )),
        Some(limit) if rate > limit => Some(format!(
            "{folder}: {name} {rate} per 1,000 sentences (limit {limit}): cargo xtask prose --list {name} {folder}"
        )),
        Some(_) if meets_goal(kind, sum) => {
            Some(format!("{TABLE}: {folder} meets the goal for {name}: cargo xtask prose --write"))
        }
        Some(limit) if rate + SLACK < limit => {
            Some(format!("{TABLE}: {folder}: {name} fell from {limit} to {rate}: cargo xtask prose --write"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prose::files::Finding;

    fn file(path: &str, sentences: usize, whats: usize) -> Prose {
        let finding = Finding { kind: Kind::What, count: 1, line: 1, text: "Keeps what is left.".into() };
        Prose { path: path.into(), sentences, findings: vec![finding; whats] }
    }

    fn compare(table: &str, files: &[Prose]) -> Vec<String> {
        let (table, mut findings) = Table::parse(table);
        findings.extend(table.compare(files));
        findings
    }

    #[test]
    fn files_count_for_their_folder() {
        assert_eq!(folder("README.md"), ".");
        assert_eq!(folder("docs/a.md"), "docs");
        assert_eq!(folder("tests/wire/interop/run.sh"), "tests/wire");
        assert_eq!(folder("crates/core/src/pipe/flush/a.rs"), "crates/core/src/pipe");
        assert_eq!(folder("crates/core/Cargo.toml"), "crates/core");
    }

    #[test]
    fn goals_hold_for_folders_without_a_limit() {
        assert!(compare("", &[file("a/b.md", 1000, 10)]).is_empty());
        assert_eq!(compare("", &[file("a/b.md", 1000, 11)]).len(), 1);
        assert!(compare("", &[file("a/b.md", 99, 2)]).is_empty(), "small folder");
        assert_eq!(compare("", &[file("a/b.md", 99, 3)]).len(), 1);
        assert_eq!(compare("", &[file("a/b.md", 100, 2)]).len(), 1);
    }

    #[test]
    fn limits_may_only_fall() {
        assert!(compare("a what 20\n", &[file("a/b.md", 1000, 20)]).is_empty());
        assert!(compare("a what 20\n", &[file("a/b.md", 1000, 21)])[0].contains("(limit 20)"));
        assert!(compare("a what 30\n", &[file("a/b.md", 1000, 20)])[0].contains("fell from 30 to 20"));
        assert!(compare("a what 20\n", &[file("a/b.md", 1000, 10)])[0].contains("meets the goal"));
        assert!(compare("c what 20\n", &[file("a/b.md", 1000, 1)])[0].contains("no prose in c"));
        assert!(compare("a pronoun 20\n", &[file("a/b.md", 1000, 1)])[0].contains("cannot read"));
    }

    #[test]
    fn writing_lowers_limits() {
        let lowered = |table: &str, whats, is_new| {
            Table::parse(table).0.lowered(&[file("a/b.md", 1000, whats)], is_new).replace(HEAD, "")
        };
        assert_eq!(lowered("a what 30\n", 20, false), "a what 20\n");
        assert_eq!(lowered("a what 30\n", 40, false), "a what 30\n");
        assert_eq!(lowered("a what 30\n", 10, false), "");
        assert_eq!(lowered("", 40, false), "");
        assert_eq!(lowered("", 40, true), "a what 40\n");
    }

    #[test]
    fn exempt_sentences_do_not_count() {
        let exempt = "exempt | Keeps what is left. | quoted from the manual\n";
        assert!(compare(exempt, &[file("a/b.md", 1000, 30)]).is_empty());
        assert!(compare(exempt, &[file("a/b.md", 1000, 0)])[0].contains("no such sentence"));
        assert!(compare("exempt | Keeps what is left.\n", &[])[0].contains("has no reason"));
    }
}
