//! Limits the size of types, so that a reader can understand each as a whole. Also checks that only tables branch over the socket types
//! and mechanisms. The scanner expects the layout of rustfmt.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::scan::{self, Source};

const CRATES: [&str; 9] = ["mem", "proto", "io", "queue", "timing", "config", "core", "abi", "tautline"];
/// Most fields and methods of a type. Larger types are in [`TABLE`], and may only shrink.
const FIELDS: usize = 20;
const METHODS: usize = 30;
const TABLE: &str = "xtask/types.txt";

/// Enums over which only tables branch, with the files of these tables.
const SWITCHES: [(&str, &[&str]); 2] = [
    (
        "SocketType::",
        &[
            "proto/src/socket_type.rs",
            "config/src/options/type_info.rs",
            "config/src/options/table.rs",
            "core/src/pattern.rs",
            "tautline/src/kind.rs",
        ],
    ),
    ("Mechanism::", &["config/src/options.rs", "config/src/options/table.rs", "core/src/driver/security.rs"]),
];

/// Returns types that have grown, rows of the table that are out of date, and branches outside of tables.
pub fn check(root: &Path) -> Vec<String> {
    let table = fs::read_to_string(root.join(TABLE)).unwrap_or_default();
    let mut sizes = BTreeMap::new();
    let mut findings = Vec::new();
    for name in CRATES {
        let sources = scan::sources(&root.join(format!("crates/{name}/src")));
        findings.extend(sources.iter().flat_map(|source| switches(name, source)));
        sizes.extend(
            count(&sources).into_iter().map(|(type_name, size)| (format!("{name}::{type_name}"), size)),
        );
    }
    findings.extend(compare(&table, &sizes));
    findings
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Size {
    fields: usize,
    methods: usize,
}

/// Returns the types of a crate by name. Types that share a name are told apart by their files.
fn count(sources: &[Source]) -> BTreeMap<String, Size> {
    let mut homes: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| !source.is_test) {
        for (name, size, is_definition) in blocks(source) {
            *homes.entry(name.clone()).or_default() += usize::from(is_definition);
            found.push((source.path.as_str(), name, size));
        }
    }
    let mut sizes: BTreeMap<String, Size> = BTreeMap::new();
    for (path, name, size) in found {
        let key =
            if homes.get(&name).is_some_and(|homes| *homes > 1) { format!("{path}:{name}") } else { name };
        let sum = sizes.entry(key).or_default();
        sum.fields += size.fields;
        sum.methods += size.methods;
    }
    sizes
}

/// Returns the definitions and inherent methods in a file: type, size, and true for a definition.
fn blocks(source: &Source) -> Vec<(String, Size, bool)> {
    let lines: Vec<&str> = source.lines().map(|(_, code, _)| code).collect();
    let mut blocks = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let head = line
            .trim_start()
            .trim_start_matches("pub(crate) ")
            .trim_start_matches("pub(super) ")
            .trim_start_matches("pub ");
        let is_definition = head.starts_with("struct ") || head.starts_with("union ");
        let is_impl = head.starts_with("impl") && !line.contains(" for ");
        if !(is_definition || is_impl) || !line.trim_end().ends_with('{') {
            continue;
        }
        let Some(name) = type_name(head) else { continue };
        let end = format!("{:indent$}}}", "");
        let body = lines[at + 1..].iter().take_while(|line| line.trim_end() != end);
        let own =
            body.filter(|line| line.len() > indent + 4 && line.len() - line.trim_start().len() == indent + 4);
        let members = own.filter(|line| if is_definition { is_field(line) } else { is_method(line) }).count();
        let size = if is_definition {
            Size { fields: members, methods: 0 }
        } else {
            Size { fields: 0, methods: members }
        };
        blocks.push((name, size, is_definition));
    }
    blocks
}

/// Returns `Name` for `impl<'a, T> queue::Name<T> where ..` and `struct Name<T>`.
fn type_name(head: &str) -> Option<String> {
    let mut rest = head.trim_start_matches("impl").trim_start_matches("struct").trim_start_matches("union");
    if rest.starts_with('<') {
        let mut depth = 0;
        let end = rest.find(|c| {
            depth += i32::from(c == '<') - i32::from(c == '>');
            depth == 0
        })?;
        rest = &rest[end + 1..];
    }
    let path = rest.trim_start().split(['<', ' ', '{', '(']).next()?;
    let name = path.rsplit("::").next()?;
    (!name.is_empty()).then(|| name.to_owned())
}

fn is_field(line: &str) -> bool {
    let line = line.trim_start();
    let line =
        line.split_once(") ").filter(|(start, _)| start.starts_with("pub(")).map_or(line, |(_, rest)| rest);
    let name = line.trim_start_matches("pub ").split(':').next().unwrap_or_default();
    line.contains(": ")
        && !name.is_empty()
        && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '#')
}

fn is_method(line: &str) -> bool {
    line.split('(').next().is_some_and(|start| start.contains("fn "))
        || line.trim_start().starts_with("pub(") && line.contains(" fn ")
}

/// Returns types over the limit whose size differs from the table.
fn compare(table: &str, sizes: &BTreeMap<String, Size>) -> Vec<String> {
    let mut known = BTreeMap::new();
    let mut findings = Vec::new();
    for row in table.lines().filter(|row| !row.is_empty() && !row.starts_with('#')) {
        let mut words = row.split_whitespace();
        let (name, fields, methods) = (words.next(), words.next(), words.next());
        let numbers = fields.and_then(|n| n.parse().ok()).zip(methods.and_then(|n| n.parse().ok()));
        match (name, numbers, words.next()) {
            (Some(name), Some((fields, methods)), Some(_)) => {
                _ = known.insert(name, Size { fields, methods })
            }
            _ => findings.push(format!("{TABLE}: `{row}` is not: type, fields, methods, why")),
        }
    }
    for (name, size) in sizes {
        let is_large = size.fields > FIELDS || size.methods > METHODS;
        match known.remove(name.as_str()) {
            None if is_large => findings.push(format!(
                "{name}: {} fields (limit {FIELDS}), {} methods (limit {METHODS})",
                size.fields, size.methods
            )),
            Some(row) if row != *size => findings.push(format!(
                "{TABLE}: {name} has {} fields and {} methods: {}",
                size.fields,
                size.methods,
                if size.fields > row.fields || size.methods > row.methods {
                    "it may not grow"
                } else {
                    "write that"
                }
            )),
            _ => {}
        }
    }
    findings.extend(known.keys().map(|name| format!("{TABLE}: the type {name} does not exist")));
    findings
}

/// Returns branches over an enum with tables, outside of the tables.
fn switches(name: &str, source: &Source) -> Vec<String> {
    let path = format!("{name}/src/{}", source.path);
    let mut findings = Vec::new();
    for (value, tables) in SWITCHES {
        if tables.contains(&path.as_str()) {
            continue;
        }
        findings.extend(source.lines().filter(|(_, code, _)| branches(code, value)).map(
            |(number, code, _)| {
                format!(
                    "{path}:{number}: a branch over {} outside of its table: {}",
                    value.trim_end_matches("::"),
                    code.trim()
                )
            },
        ));
    }
    findings
}

/// True if a line compares with a value of the enum, or matches one.
fn branches(code: &str, value: &str) -> bool {
    code.match_indices(value).any(|(at, _)| {
        let before =
            code[..at].trim_end_matches(|c: char| c.is_alphanumeric() || c == '_' || c == ':').trim_end();
        let own = code[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric());
        let behind = code[at + value.len()..]
            .trim_start_matches(|c: char| c.is_alphanumeric() || c == '_')
            .trim_start();
        let imported = code.trim_start().starts_with("use ") && behind.starts_with('{');
        own && (imported
            || before.ends_with("==")
            || before.ends_with("!=")
            || before.ends_with('|')
            || behind.starts_with("=>")
            || behind.starts_with("==")
            || behind.starts_with("| ")
            || behind.starts_with(") =>")
            || code[..at].contains("matches!("))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        let code = scan::blank(text);
        Source {
            path: path.into(),
            text: text.into(),
            lines_before_tests: code.lines().count(),
            code,
            is_test: false,
        }
    }

    #[test]
    fn fields_and_methods_are_counted_over_all_files() {
        let one = "pub struct Pipe<T> {\n    /// The queue.\n    queue: Vec<T>,\n    pub(crate) name: Name<T>,\n}\n\nimpl<T: Copy> Pipe<T> {\n    pub(crate) fn a(&self) {\n        let x: u8 = 1;\n    }\n}\n";
        let two = "impl super::Pipe<u8> {\n    #[inline]\n    fn b() {}\n}\nimpl Drop for Pipe {\n    fn drop(&mut self) {}\n}\n";
        let sizes = count(&[source("a.rs", one), source("b.rs", two)]);
        assert_eq!(sizes["Pipe"], Size { fields: 2, methods: 2 });
        let state = "struct State {\n    a: u8,\n}\n";
        let sizes = count(&[source("a.rs", state), source("b.rs", state)]);
        assert_eq!(sizes["a.rs:State"], Size { fields: 1, methods: 0 });
    }

    #[test]
    fn types_may_shrink_and_not_grow() {
        let sizes = |fields, methods| BTreeMap::from([("core::Pipe".to_owned(), Size { fields, methods })]);
        let table = "# types\ncore::Pipe 24 90 the way to a peer\n";
        assert!(compare(table, &sizes(24, 90)).is_empty());
        assert!(compare(table, &sizes(24, 91))[0].ends_with("it may not grow"));
        assert!(compare(table, &sizes(23, 90))[0].ends_with("write that"));
        assert!(compare("", &sizes(FIELDS, METHODS)).is_empty());
        assert_eq!(compare("", &sizes(FIELDS + 1, 1)).len(), 1);
        assert_eq!(compare(table, &BTreeMap::new()), ["xtask/types.txt: the type core::Pipe does not exist"]);
        assert_eq!(compare("core::Pipe 24 90\n", &BTreeMap::new()).len(), 1, "why?");
    }

    #[test]
    fn branches_over_socket_types_are_found() {
        for code in [
            "if of == SocketType::Sub {",
            "matches!(of, SocketType::Sub | SocketType::Pub)",
            "core::SocketType::Sub => 1,",
            "        SocketType::Sub",
            "(Error::State, core::SocketType::Req) => 1,",
            "use SocketType::{Pub, Sub};",
        ] {
            let expected = code != "        SocketType::Sub";
            assert_eq!(branches(code, "SocketType::"), expected, "{code}");
        }
        assert!(!branches("open(SocketType::Sub)", "SocketType::"));
        assert!(!branches("match MySocketType::Sub => ", "SocketType::"));
    }
}
