//! Checks the layers of the engine: a module uses only modules of lower layers.
//!
//! The table is `xtask/layers.txt`. Its layers are top-level modules, or single modules inside of one. The check finds these
//! references in the text: `crate::a::b`, `crate::{a, b}`, `super::` chains up to the crate root, and the other crates of the
//! workspace (`tautline_proto::`). Tests may use every module.
//!
//! It also checks the number of import cycles between files ([`cycles`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::cycles;
use crate::scan::{self, Source};

/// Crates that are layers below the engine, with their names in code.
const CRATES: [(&str, &str); 6] = [
    ("tautline_proto", "proto"),
    ("tautline_io", "io"),
    ("tautline_mem", "mem"),
    ("tautline_queue", "queue"),
    ("tautline_timing", "timing"),
    ("tautline_config", "config"),
];

/// Crates for tools and for the host. Only the layers whose lines name them may use them, not the layers above those.
const HOST_CRATES: [&str; 4] = ["tautline_observe", "tautline_policy", "tautline_names", "tautline_host"];

/// For each layer, the layers that it may use directly or through others.
type Table = BTreeMap<String, BTreeSet<String>>;

/// Returns references that the table does not allow, modules that it does not know, and cycles in it.
pub fn check(root: &Path) -> Vec<String> {
    let text = fs::read_to_string(root.join("xtask/layers.txt")).unwrap_or_default();
    let table = match parse(&text) {
        Ok(table) => table,
        Err(finding) => return vec![finding],
    };
    let sources = scan::sources(&root.join("crates/core/src"));
    let modules: BTreeSet<&str> =
        sources.iter().filter_map(|source| scan::module_path(&source.path).first().copied()).collect();
    let mut findings: Vec<String> = modules
        .iter()
        .filter(|module| !table.contains_key(**module))
        .map(|module| format!("crates/core/src/{module}: not in xtask/layers.txt"))
        .collect();
    let mut used = BTreeSet::new();
    for source in sources.iter().filter(|source| !source.is_test) {
        findings.extend(violations(source, &table));
        let from = layer(&scan::module_path(&source.path).join("/"), &table);
        used.extend(references(source).into_iter().map(|(_, to)| (from.clone(), to)));
    }
    for (from, to) in table.iter().flat_map(|(from, uses)| uses.iter().map(move |to| (from, to))) {
        if HOST_CRATES.contains(&to.as_str()) && !used.contains(&(Some(from.clone()), to.clone())) {
            findings.push(format!("xtask/layers.txt: {from} does not use {to}"));
        }
    }
    findings.extend(cycles::check(root, &text));
    findings
}

/// Returns the layer of a module path (`a/b/c`): `a/b` if the table has a line for it, else `a`.
fn layer(path: &str, table: &Table) -> Option<String> {
    let mut names = path.split('/');
    let top = names.next()?.to_owned();
    let inner = names.next().map(|name| format!("{top}/{name}"));
    inner.filter(|inner| table.contains_key(inner)).or(Some(top)).filter(|name| table.contains_key(name))
}

fn violations(source: &Source, table: &Table) -> Vec<String> {
    // The crate root joins all layers, and is outside of them.
    let Some(from) = layer(&scan::module_path(&source.path).join("/"), table) else { return Vec::new() };
    let allowed = &table[&from];
    let mut findings = Vec::new();
    for (line, path) in references(source) {
        let place = format!("crates/core/src/{}:{line}", source.path);
        match layer(&path, table) {
            // A re-export of the crate root would hide the layer.
            None => {
                findings.push(format!("{place}: name the module of `crate::{}`", path.replace('/', "::")))
            }
            Some(to) if to != from && !allowed.contains(&to) => {
                findings.push(format!("{place}: {from} may not use {to}"));
            }
            Some(_) => {}
        }
    }
    findings
}

/// Returns the modules that a file refers to, as `a/b` or `a`, each with its line.
fn references(source: &Source) -> Vec<(usize, String)> {
    let code: String = source.lines().flat_map(|(_, code, _)| [code, "\n"]).collect();
    let depth = scan::module_path(&source.path).len();
    let mut found = Vec::new();
    for (at, word) in word_positions(&code) {
        let line = code[..at].matches('\n').count() + 1;
        let after = &code[at + word.len()..];
        let mut add = |path: String| found.push((line, path));
        if let Some((_, layer)) = CRATES.iter().find(|(name, _)| *name == word) {
            add((*layer).to_owned());
        } else if HOST_CRATES.contains(&word) {
            add(word.to_owned());
        } else if word == "crate" && !code[..at].ends_with('$') {
            heads(after).into_iter().for_each(&mut add);
        } else if word == "super" && !code[..at].trim_end().ends_with("::") {
            // `super::super::x` from `a::b` is `crate::x`.
            let (mut rest, mut ups) = (after, 1);
            while let Some(next) = rest.trim_start().strip_prefix("::").map(str::trim_start) {
                let Some(further) = next.strip_prefix("super") else { break };
                rest = further;
                ups += 1;
            }
            if ups == depth {
                // Items of inline modules reach only their own file, so other names belong to them.
                heads(rest)
                    .into_iter()
                    .filter(|name| name.starts_with(char::is_lowercase))
                    .for_each(&mut add);
            }
        }
    }
    found
}

/// Returns the first two names of each path that follows `crate`: `::a::b::C` gives a/b, `::{a, b::{c, d}}` gives a and b/c.
/// Macros (`::name!`) and visibilities (`crate)`) are skipped.
fn heads(after: &str) -> Vec<String> {
    let Some(rest) = after.trim_start().strip_prefix("::").map(str::trim_start) else { return Vec::new() };
    let Some(group) = rest.strip_prefix('{') else { return head(rest).into_iter().collect() };
    let (mut depth, mut paths, mut at_head) = (0, Vec::new(), true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => at_head = true,
            c if at_head && depth == 0 && (c.is_alphanumeric() || c == '_') => {
                paths.extend(head(&group[at..]));
                at_head = false;
            }
            _ => {}
        }
    }
    paths
}

/// `a::b::C` gives a/b, `a::{b, c}` gives a/b, `a::B` gives a: types start with a capital.
fn head(path: &str) -> Option<String> {
    let first = scan::words(path).next()?;
    let rest = &path[first.len()..];
    if rest.starts_with('!') {
        return None;
    }
    let second = rest.strip_prefix("::").map(|rest| rest.trim_start_matches('{')).and_then(|rest| {
        scan::words(rest).next().filter(|word| rest.starts_with(word) && word.starts_with(char::is_lowercase))
    });
    Some(second.map_or_else(|| first.to_owned(), |second| format!("{first}/{second}")))
}

fn word_positions(code: &str) -> impl Iterator<Item = (usize, &str)> {
    scan::words(code).map(|word| (word.as_ptr() as usize - code.as_ptr() as usize, word))
}

/// Reads the table and adds the layers that each layer uses through others. An unknown layer or a cycle is an error.
fn parse(text: &str) -> Result<Table, String> {
    let mut direct: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut shared: Vec<String> = Vec::new();
    for line in text.lines().map(|line| line.split('#').next().unwrap_or("").trim()).filter(|l| !l.is_empty())
    {
        let Some((name, uses)) = line.split_once(':') else {
            return Err(format!("xtask/layers.txt: no colon in `{line}`"));
        };
        let uses: Vec<String> = uses.split_whitespace().map(str::to_owned).collect();
        if name == "everybody" {
            shared = uses;
        } else if name != "import-cycles" {
            direct.insert(name.trim().to_owned(), uses);
        }
    }
    for layer in CRATES.iter().map(|(_, layer)| layer).chain(&HOST_CRATES) {
        direct.entry((*layer).to_owned()).or_default();
    }
    let mut table = Table::new();
    for name in direct.keys() {
        let mut all = BTreeSet::new();
        below(name, &direct, &mut all)?;
        if all.contains(name) {
            return Err(format!("xtask/layers.txt: {name} lies below itself"));
        }
        all.retain(|layer| !HOST_CRATES.contains(&layer.as_str()) || direct[name].contains(layer));
        // Every layer may use a shared leaf, but not the layers that the leaf uses.
        if !shared.contains(name) {
            all.extend(shared.iter().cloned());
        }
        table.insert(name.clone(), all);
    }
    Ok(table)
}

/// Adds to `all` the layers that `name` uses, directly or through others.
fn below(
    name: &str,
    direct: &BTreeMap<String, Vec<String>>,
    all: &mut BTreeSet<String>,
) -> Result<(), String> {
    let uses = direct.get(name).ok_or_else(|| format!("xtask/layers.txt: no line for {name}"))?;
    for next in uses {
        if all.insert(next.clone()) {
            below(next, direct, all)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        let code = scan::blank(text);
        let lines_before_tests = code.lines().count();
        Source { path: path.into(), text: text.into(), code, is_test: false, lines_before_tests }
    }

    fn names(path: &str, text: &str) -> Vec<String> {
        references(&source(path, text)).into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn references_of_every_form() {
        assert_eq!(names("a.rs", "use crate::x::Y; // crate::no\nlet z = crate::w::v();"), ["x", "w/v"]);
        assert_eq!(names("a.rs", "use crate::{\n b::{self, c},\n d,\n};"), ["b/self", "d"]);
        assert_eq!(names("a/b.rs", "use super::c; use super::super::d::E;"), ["d"]);
        assert_eq!(names("a.rs", "use super::d::E; pub(crate) fn f() {} pub(super) x: u8"), ["d"]);
        assert_eq!(names("a.rs", "use tautline_io::net; crate::check!(x); $crate::y"), ["io"]);
        assert_eq!(names("a.rs", "use tautline_policy::Call;"), ["tautline_policy"]);
    }

    #[test]
    fn the_table_is_closed_downwards() {
        let table = parse("everybody: leaf\nleaf: proto\ntop: mid\nmid: io # comment\n").unwrap();
        assert_eq!(table["top"].iter().collect::<Vec<_>>(), ["io", "leaf", "mid"]);
        assert_eq!(table["leaf"].iter().collect::<Vec<_>>(), ["proto"]);
        assert!(parse("a: b\nb: a\n").is_err());
        assert!(parse("a: b\n").is_err());
    }

    #[test]
    fn violations_are_named() {
        let table = parse("top: low\nlow:\n").unwrap();
        let found = violations(&source("low.rs", "\nuse crate::top::X;"), &table);
        assert_eq!(found, ["crates/core/src/low.rs:2: low may not use top"]);
        assert!(violations(&source("top.rs", "use crate::low::X;"), &table).is_empty());
        assert_eq!(violations(&source("low.rs", "use crate::X;"), &table).len(), 1);
        assert!(violations(&source("lib.rs", "use crate::top::X;"), &table).is_empty());
    }

    #[test]
    fn crates_of_the_host_are_not_inherited() {
        let table = parse("top: mid\nmid: tautline_observe mem\n").unwrap();
        assert_eq!(table["mid"].iter().collect::<Vec<_>>(), ["mem", "tautline_observe"]);
        assert_eq!(table["top"].iter().collect::<Vec<_>>(), ["mem", "mid"]);
        let found = violations(&source("top.rs", "use tautline_observe::Peer;"), &table);
        assert_eq!(found, ["crates/core/src/top.rs:1: top may not use tautline_observe"]);
    }

    #[test]
    fn a_module_inside_may_be_a_layer_of_its_own() {
        let table = parse("a: \nb: a\na/c: b\n").unwrap();
        assert!(violations(&source("a/c.rs", "use crate::b::X;"), &table).is_empty());
        assert_eq!(violations(&source("a/d.rs", "use crate::b::X;"), &table).len(), 1);
        assert_eq!(violations(&source("b.rs", "use crate::a::c::X;"), &table).len(), 1);
        assert!(violations(&source("b.rs", "use crate::a::d::X;"), &table).is_empty());
    }
}
