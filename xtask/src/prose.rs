//! Counts the sentence shapes that make prose hard to read, in comments, pages and the texts that users see.
//!
//! CONTRIBUTING.md has the rules. The counter finds shapes, not faults: a sentence that it lists is a place to look at.

mod blocks;
mod files;
mod kinds;
mod limits;
mod sentences;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use files::{Prose, Sum};
use kinds::{KINDS, Kind};
use limits::{TABLE, Table};

const USAGE: &str = "\
usage: cargo xtask prose [PLACE]...               the table, by folder or for these folders and files
       cargo xtask prose --list KIND [PLACE]...   each sentence of a kind (`all`: of every kind)
       cargo xtask prose --check                  compares with the goals and xtask/prose.txt, as `make lint` does
       cargo xtask prose --write                  lowers the limits in xtask/prose.txt

It reads comments, Markdown, and string literals of five words or more outside of tests. The figures are per 1,000
sentences. `--check` adds up two levels of folders, in crates four (crates/core/src/pipe).";

/// Longest part of a sentence that `--list` prints.
const SHOWN: usize = 220;

pub fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    match arguments {
        ["--check"] => crate::report("prose", &check(root)),
        ["--write"] => crate::report(TABLE, &write(root)),
        ["--list", kind, places @ ..] if *kind == "all" || find_kind(kind).is_some() => {
            list(root, find_kind(kind), places);
            ExitCode::SUCCESS
        }
        [first, ..] if first.starts_with('-') => {
            println!("{USAGE}\n");
            for kind in KINDS {
                let goal = kind.goal().map_or(String::new(), |goal| format!("<= {goal}"));
                println!("  {:12} {goal:6} {}", kind.name(), kind.advice());
            }
            if *first == "--help" { ExitCode::SUCCESS } else { ExitCode::from(2) }
        }
        places => {
            table(root, places);
            ExitCode::SUCCESS
        }
    }
}

/// Returns the folders that exceed their limits, and the lines of the table that are out of date.
pub fn check(root: &Path) -> Vec<String> {
    let (table, mut findings) = Table::parse(&fs::read_to_string(root.join(TABLE)).unwrap_or_default());
    findings.extend(table.compare(&files::measure(root, &[])));
    findings
}

/// Lowers the limits. Writes the present figures if the table is missing.
fn write(root: &Path) -> Vec<String> {
    let old = fs::read_to_string(root.join(TABLE)).ok();
    let (table, mut findings) = Table::parse(old.as_deref().unwrap_or_default());
    if findings.is_empty() {
        let files = files::measure(root, &[]);
        let new = table.lowered(&files, old.is_none());
        if let Err(error) = fs::write(root.join(TABLE), &new) {
            return vec![format!("cannot write {TABLE}: {error}")];
        }
        findings.extend(Table::parse(&new).0.compare(&files));
    }
    findings
}

fn find_kind(name: &str) -> Option<Kind> {
    KINDS.into_iter().find(|kind| kind.name() == name)
}

fn list(root: &Path, kind: Option<Kind>, places: &[&str]) {
    for file in files::measure(root, places) {
        for finding in file.findings.iter().filter(|finding| kind.is_none_or(|kind| kind == finding.kind)) {
            let text: String = finding.text.chars().take(SHOWN).collect();
            println!("{}:{}: [{}] {text}", file.path, finding.line, finding.kind.name());
        }
    }
}

fn table(root: &Path, places: &[&str]) {
    let files = files::measure(root, places);
    let mut rows: BTreeMap<&str, Sum> = BTreeMap::new();
    for file in &files {
        rows.entry(group(file, places)).or_default().add(file);
    }
    let names: String = KINDS.iter().map(|kind| format!(" {:>11}", kind.name())).collect();
    println!("{:28} {:>7}{names}", "", "sent.");
    for (name, sum) in &rows {
        println!("{}", row(name, sum));
    }
    let mut all = Sum::default();
    files.iter().for_each(|file| all.add(file));
    println!("{}", row("all", &all));
    let goals: String = KINDS
        .iter()
        .map(|kind| format!(" {:>11}", kind.goal().map_or(String::new(), |goal| format!("<={goal}"))))
        .collect();
    println!("{:28} {:>7}{goals}", "goal", "");
    println!("per 1,000 sentences; --list KIND PLACE shows them, --help explains the kinds");
}

fn row(name: &str, sum: &Sum) -> String {
    let rates = sum.counts.iter().map(|count| {
        // Tenths, rounded.
        let tenths = (10_000 * count + sum.sentences / 2) / sum.sentences.max(1);
        format!(" {:>9}.{}", tenths / 10, tenths % 10)
    });
    format!("{name:28} {:7}{}", sum.sentences, rates.collect::<String>())
}

/// Returns the row of the table that a file belongs to: the place that was asked for, else its folder.
fn group<'a>(file: &'a Prose, places: &[&'a str]) -> &'a str {
    let is_inside = |place: &str| {
        let place = place.trim_end_matches('/');
        file.path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if let Some(place) = places.iter().find(|place| is_inside(place)) {
        return place;
    }
    let mut slashes = file.path.match_indices('/').map(|(at, _)| at);
    let is_split = ["crates/", "bindings/", "bench/"].iter().any(|folder| file.path.starts_with(folder));
    let levels = usize::from(is_split);
    let end = slashes.clone().nth(levels).or_else(|| slashes.next());
    &file.path[..end.unwrap_or(file.path.len())]
}
