//! Checks that unsafe code is in allowed places only, has an argument, and is counted.
//!
//! `docs/develop/unsafe.md` lists every file with unsafe code and its reason. The check compares its counts with the sources,
//! so that new unsafe code shows up in a review. `--write` updates the counts and keeps the reasons.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use crate::scan::{self, Source};

/// Folders or prefixes of files, below the root, that may contain unsafe code.
const ALLOWED: [&str; 6] = [
    "crates/mem/",
    "crates/io/src/",
    "crates/abi/src/",
    "crates/sim/src/",
    "crates/queue/src/",
    "bench/peers/iceoryx2/",
];

/// Folders of the engine.
const ENGINE: [&str; 8] = [
    "crates/core/src/",
    "crates/queue/src/",
    "crates/timing/src/",
    "crates/config/src/",
    "crates/host/src/",
    "crates/proto/src/",
    "crates/io/src/",
    "crates/mem/src/",
];
/// Most lines of the engine that begin an unsafe block or impl, per 1,000 lines of code.
const MAX_SITES: usize = 20;
/// Most lines within an unsafe block or impl, per 1,000 lines of code.
const MAX_INSIDE: usize = 20;

/// Attributes that crate roots must have.
const ATTRIBUTES: [(&str, &str); 8] = [
    ("crates/observe/src/lib.rs", "#![forbid(unsafe_code)]"),
    ("crates/proto/src/lib.rs", "#![forbid(unsafe_code)]"),
    ("crates/core/src/lib.rs", "#![forbid(unsafe_code)]"),
    ("crates/config/src/lib.rs", "#![forbid(unsafe_code)]"),
    ("crates/timing/src/lib.rs", "#![forbid(unsafe_code)]"),
    ("crates/host/src/lib.rs", "#![forbid(unsafe_code)]"),
    ("crates/testkit/src/lib.rs", "#![forbid(unsafe_code)]"),
    ("xtask/src/main.rs", "#![forbid(unsafe_code)]"),
];

const DOCUMENT: &str = "docs/develop/unsafe.md";

const HEAD: &str = "\
# Unsafe code

For reviewers of unsafe code. This page lists every file with unsafe code and its reason for it.

The counts are checked by `cargo run -p xtask -- check`;
`cargo run -p xtask -- unsafe --write` brings them up to date, the reasons are written by hand. Each block carries a
`SAFETY` comment with the argument; tests are not counted.

| file | blocks | impls | functions | what for |
|---|---|---|---|---|
";

/// Unsafe code of a file outside its tests.
#[derive(Clone, Copy, Default, PartialEq)]
struct Count {
    blocks: usize,
    impls: usize,
    functions: usize,
}

/// Numbers of lines of code.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
struct Lines {
    all: usize,
    /// Lines that begin an unsafe block or impl.
    sites: usize,
    /// Lines within an unsafe block or impl, including its first and last line.
    inside: usize,
}

/// Returns unsafe code outside of the allowed places, missing attributes and arguments, and counts that differ.
pub fn check(root: &Path) -> Vec<String> {
    let sources = all_sources(root);
    let mut findings = Vec::new();
    for (path, attribute) in ATTRIBUTES {
        if !fs::read_to_string(root.join(path)).unwrap_or_default().contains(attribute) {
            findings.push(format!("{path}: must carry {attribute}"));
        }
    }
    for source in &sources {
        if count(source) != Count::default() && !ALLOWED.iter().any(|place| source.path.starts_with(place)) {
            findings.push(format!("{}: unsafe code is not allowed here", source.path));
        }
        findings.extend(
            unargued(source)
                .into_iter()
                .map(|line| format!("{}:{line}: no SAFETY comment above this unsafe code", source.path)),
        );
    }
    findings.extend(shares(&sources));
    let document = fs::read_to_string(root.join(DOCUMENT)).unwrap_or_default();
    if counts_in(&document) != counts_in(&table(&sources, &document)) {
        findings
            .push(format!("{DOCUMENT} differs from the sources: run `cargo run -p xtask -- unsafe --write`"));
    }
    findings
}

/// Rewrites the document. Keeps the reasons of files that still exist.
pub fn write(root: &Path) -> Vec<String> {
    let document = fs::read_to_string(root.join(DOCUMENT)).unwrap_or_default();
    let text = table(&all_sources(root), &document);
    let missing = text.matches("|  |").count();
    if missing > 0 {
        println!("{missing} file(s) without a reason: write it into the last column");
    }
    let written =
        fs::create_dir_all(root.join("docs/develop")).and_then(|()| fs::write(root.join(DOCUMENT), text));
    written.err().map(|error| format!("{DOCUMENT}: {error}")).into_iter().collect()
}

/// Returns the sources of the product, with paths from the root.
fn all_sources(root: &Path) -> Vec<Source> {
    let mut all = Vec::new();
    for folder in ["crates", "bench", "xtask"] {
        for mut source in scan::sources(&root.join(folder)) {
            source.path = format!("{folder}/{}", source.path);
            all.push(source);
        }
    }
    all
}

/// Returns the word after each `unsafe` outside of tests, with its line.
fn sites(source: &Source) -> Vec<(usize, String)> {
    let lines: Vec<_> = source.lines().collect();
    let mut found = Vec::new();
    for (index, (number, code, _)) in lines.iter().enumerate() {
        for (at, _) in code.match_indices("unsafe") {
            let before = code[..at].chars().next_back();
            let after = &code[at + "unsafe".len()..];
            // `unsafe_code` in an attribute and `#[unsafe(no_mangle)]` do not count.
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            if before.is_some_and(|c| is_word(c) || c == '[') || after.starts_with(|c| is_word(c) || c == '(')
            {
                continue;
            }
            let next_line = lines.get(index + 1).map_or("", |(_, code, _)| *code);
            let rest = if after.trim().is_empty() { next_line } else { after };
            let rest = rest.trim_start();
            let word = if rest.starts_with('{') { "{" } else { scan::words(rest).next().unwrap_or("") };
            found.push((*number, word.to_owned()));
        }
    }
    found
}

fn count(source: &Source) -> Count {
    let mut count = Count::default();
    for (number, word) in sites(source) {
        match word.as_str() {
            "{" => count.blocks += 1,
            "impl" => count.impls += 1,
            // Functions count, types of function pointers do not: `unsafe extern "C" fn(..)`.
            "fn" | "extern" | "trait" => {
                let code = source.code.lines().nth(number - 1).unwrap_or("");
                if !code.replace(' ', "").contains("fn(") {
                    count.functions += 1;
                }
            }
            _ => {}
        }
    }
    count
}

/// Counts the lines of a file outside its tests.
fn lines(source: &Source) -> Lines {
    // Lines of code: comments are blank here.
    let code: Vec<(usize, &str)> = source.lines().map(|(number, code, _)| (number, code)).collect();
    let code: Vec<_> = code.into_iter().filter(|(_, code)| !code.trim().is_empty()).collect();
    let sites = sites(source);
    let at: BTreeSet<usize> = sites
        .iter()
        .filter(|(_, word)| matches!(word.as_str(), "{" | "impl"))
        .map(|(number, _)| *number)
        .collect();
    let mut inside = at.clone();
    for block in blocks(&code) {
        inside.extend(code.iter().map(|(number, _)| *number).filter(|number| block.contains(number)));
    }
    Lines { all: code.len(), sites: at.len(), inside: inside.len() }
}

/// Returns a finding if too many lines of the engine are unsafe. Prints the shares of the engine and of all crates.
fn shares(sources: &[Source]) -> Vec<String> {
    let sum = |folders: &[&str]| {
        let chosen =
            sources.iter().filter(|source| folders.iter().any(|place| source.path.starts_with(place)));
        chosen.map(lines).fold(Lines::default(), |sum, lines| Lines {
            all: sum.all + lines.all,
            sites: sum.sites + lines.sites,
            inside: sum.inside + lines.inside,
        })
    };
    let per_mille = |lines: usize, of: &Lines| lines * 1000 / of.all.max(1);
    let tell = |lines: usize, of: &Lines| {
        let share = per_mille(lines, of);
        format!("{lines} of {} lines, {}.{} %", of.all, share / 10, share % 10)
    };
    let total = sum(&ENGINE);
    for (name, lines) in [("the engine", total), ("all crates", sum(&["crates/"]))] {
        println!(
            "unsafe code of {name}: {} with an unsafe block or impl; {} within one",
            tell(lines.sites, &lines),
            tell(lines.inside, &lines)
        );
    }
    [(total.sites, MAX_SITES), (total.inside, MAX_INSIDE)]
        .into_iter()
        .filter(|(lines, most)| per_mille(*lines, &total) >= *most)
        .map(|(lines, most)| {
            format!("too much unsafe code: {}, not below {}.{} %", tell(lines, &total), most / 10, most % 10)
        })
        .collect()
}

/// Returns the line numbers of each unsafe block.
fn blocks<'a>(code: &'a [(usize, &'a str)]) -> impl Iterator<Item = RangeInclusive<usize>> + 'a {
    code.iter().enumerate().flat_map(move |(index, (number, line))| {
        let starts = line.match_indices("unsafe").filter(move |(at, word)| {
            let (before, after) = (line[..*at].chars().next_back(), line[at + word.len()..].trim_start());
            let opens = after.starts_with('{') || {
                let next = code.get(index + 1).map_or("", |(_, next)| next.trim_start());
                after.is_empty() && next.starts_with('{')
            };
            opens && !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
        });
        starts.map(move |(at, _)| {
            let mut depth = 0;
            for (end, text) in &code[index..] {
                let from = if end == number { at } else { 0 };
                for c in text[from..].chars().filter(|c| matches!(c, '{' | '}')) {
                    depth += if c == '{' { 1 } else { -1 };
                    if depth == 0 {
                        return *number..=*end;
                    }
                }
            }
            *number..=*number
        })
    })
}

/// Returns the lines of unsafe blocks and impls without a SAFETY comment on the same line or above their statement.
fn unargued(source: &Source) -> Vec<usize> {
    let text: Vec<&str> = source.text.lines().collect();
    let code: Vec<&str> = source.code.lines().collect();
    let argued = |number: usize| {
        if text[number - 1].contains("SAFETY") {
            return true;
        }
        for index in (0..number - 1).rev() {
            let comment = text[index].trim_start().starts_with("//");
            if comment && text[index].contains("SAFETY") {
                return true;
            }
            let statement = code[index].trim_end();
            if !comment && (text[index].trim().is_empty() || statement.ends_with([';', '}', '{'])) {
                return false;
            }
        }
        false
    };
    sites(source)
        .into_iter()
        .filter(|(number, word)| matches!(word.as_str(), "{" | "impl") && !argued(*number))
        .map(|(number, _)| number)
        .collect()
}

fn table(sources: &[Source], old: &str) -> String {
    let reasons: BTreeMap<&str, &str> = rows(old).map(|cells| (cells[0], cells[4])).collect();
    let mut text = HEAD.to_owned();
    let mut total = Count::default();
    for source in sources {
        let Count { blocks, impls, functions } = count(source);
        if (blocks, impls, functions) == (0, 0, 0) {
            continue;
        }
        total = Count {
            blocks: total.blocks + blocks,
            impls: total.impls + impls,
            functions: total.functions + functions,
        };
        let reason = reasons.get(source.path.as_str()).unwrap_or(&"");
        text += &format!("| {} | {blocks} | {impls} | {functions} | {reason} |\n", source.path);
    }
    text + &format!("| all | {} | {} | {} | |\n", total.blocks, total.impls, total.functions)
}

/// Returns the five cells of each row that describes a file.
fn rows(document: &str) -> impl Iterator<Item = Vec<&str>> {
    document.lines().filter(|line| line.contains(".rs |")).filter_map(|line| {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        (cells.len() == 5).then_some(cells)
    })
}

fn counts_in(document: &str) -> Vec<[String; 4]> {
    rows(document).map(|cells| [0, 1, 2, 3].map(|i| cells[i].to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        let code = scan::blank(text);
        let lines_before_tests = code.lines().count();
        Source {
            path: "crates/io/src/x.rs".into(),
            text: text.into(),
            code,
            is_test: false,
            lines_before_tests,
        }
    }

    #[test]
    fn sites_are_counted_by_kind() {
        let text = "#![deny(unsafe_code)]\n#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn f() {\n unsafe { g() }\n}\n\
                    unsafe impl Send for X {}\ntype F = unsafe extern \"C\" fn(u8);\n// unsafe { }\nunsafe fn h() {}\n";
        let found = count(&source(text));
        assert_eq!((found.blocks, found.impls, found.functions), (1, 1, 2));
    }

    #[test]
    fn blocks_in_arguments_count() {
        let found = count(&source(
            "check(unsafe { f() })?;\n#[unsafe(no_mangle)]\n#![deny(unsafe_code)]\ng(unsafe { x }, 1);\n",
        ));
        assert_eq!((found.blocks, found.impls, found.functions), (2, 0, 0));
    }

    #[test]
    fn lines_are_counted_to_the_end_of_a_block() {
        let text = "fn f() {\n    // SAFETY: no\n    let x = unsafe {\n        if y { g() }\n\n        h()\n    };\n    unsafe { i() };\n}\n\
                    unsafe impl Send for X {}\n";
        assert_eq!(lines(&source(text)), Lines { all: 8, sites: 3, inside: 6 });
    }

    #[test]
    fn a_missing_argument_is_found() {
        let good = "// SAFETY: why\nlet x =\n    unsafe { f() };\n// SAFETY: too\n#[allow(x)]\nunsafe impl Send for X {}\n";
        assert!(unargued(&source(good)).is_empty());
        assert_eq!(unargued(&source("// SAFETY: other\nf();\nunsafe { g() };\n")), [3]);
        assert_eq!(unargued(&source("fn f() {\n    unsafe { g() };\n}\n")), [2]);
    }

    #[test]
    fn reasons_survive_a_rewrite() {
        let sources = [source("unsafe { f() }\n")];
        let old = "| crates/io/src/x.rs | 7 | 0 | 0 | system calls |\n";
        let new = table(&sources, old);
        assert!(new.contains("| crates/io/src/x.rs | 1 | 0 | 0 | system calls |"));
        assert_ne!(counts_in(old), counts_in(&new));
    }
}
