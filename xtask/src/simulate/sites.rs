//! Finds possible changes of lines of the engine. A call `mutated(N)` enables a change at run time,
//! so that one build contains many changes, and each run enables one.
//!
//! Lines are read as text, as in the checks of this package. Changes that do not compile are removed
//! later.

use std::path::Path;

use crate::scan::{self, Source};

/// Folders and files that are changed: the layers between a pattern and the system.
const PARTS: [(&str, &[&str]); 3] = [
    ("crates/core/src", &["conn/", "driver/", "pipe/", "pipe.rs"]),
    ("crates/timing/src", &[""]),
    // Not the messages and `sync`.
    (
        "crates/queue/src",
        &[
            "chain.rs",
            "consumer.rs",
            "drain.rs",
            "filler.rs",
            "handoff/",
            "latest.rs",
            "log.rs",
            "parcel.rs",
            "producer.rs",
            "reader.rs",
            "recycle.rs",
            "segment.rs",
            "writer.rs",
        ],
    ),
];
/// Placeholder for the number of the mutation.
const NUMBER: &str = "@NUMBER@";

/// Comparisons, with their replacements.
const COMPARISONS: [(&str, &str); 6] =
    [("<", "<="), ("<=", "<"), (">", ">="), (">=", ">"), ("==", "!="), ("!=", "==")];
/// Texts that end the operand of a comparison.
const ENDS: [&str; 16] = [
    "&&", "||", " = ", "=>", "..", " += ", " -= ", "return ", "if ", "while ", "match ", " in ", "else ",
    "let ", "break ", "! ",
];
/// Beginnings of statements that cannot be left out.
const KEPT: [&str; 14] = [
    "let ",
    "return",
    "break",
    "continue",
    "use ",
    "assert",
    "debug_assert",
    "type ",
    "const ",
    "static ",
    "mod ",
    "pub",
    "fn ",
    "unreachable",
];
/// Values that a function returns immediately, by its return type.
const RESULTS: [(&str, &str); 6] = [
    (" -> bool {", "true"),
    (" -> bool {", "false"),
    (" -> Option<", "None"),
    (" -> usize {", "0"),
    (" -> u64 {", "0"),
    (" -> u32 {", "0"),
];

/// A change of one line.
#[derive(Debug, Clone)]
pub(super) struct MutationSite {
    /// Path from the root.
    pub(super) path: String,
    /// Number of the line, from 1.
    pub(super) line: usize,
    /// Description of the change, with the original line.
    pub(super) what: String,
    changed: String,
}

impl MutationSite {
    /// Returns the line with the change as mutation number `number`.
    pub(super) fn changed(&self, number: usize) -> String {
        self.changed.replace(NUMBER, &number.to_string())
    }
}

/// Returns the folders of the sources that are changed.
pub(super) fn folders() -> impl Iterator<Item = &'static str> {
    PARTS.iter().map(|(folder, _)| *folder)
}

/// Returns all changes, in the order of the sources.
pub(super) fn all(root: &Path) -> Vec<MutationSite> {
    let of_part = |(folder, parts): &(&str, &[&str])| {
        let mut sources = scan::sources(&root.join(folder));
        sources.retain(|source| parts.iter().any(|part| source.path.starts_with(part)) && !source.is_test);
        let sites = sources.iter().flat_map(of_source);
        sites.map(|site| MutationSite { path: format!("{folder}/{}", site.path), ..site }).collect::<Vec<_>>()
    };
    PARTS.iter().flat_map(of_part).collect()
}

fn of_source(source: &Source) -> Vec<MutationSite> {
    let lines: Vec<(usize, &str, &str)> = source.lines().collect();
    let mut sites = Vec::new();
    for (at, (number, code, text)) in lines.iter().enumerate() {
        let before = lines[..at].iter().rev().map(|(_, code, _)| code.trim()).find(|code| !code.is_empty());
        let after = lines.get(at + 1).map(|(_, code, _)| code.trim()).unwrap_or_default();
        let context = (before.unwrap_or_default(), after);
        for (what, changed) in of_line(code, text, context) {
            let what = format!("{what}: `{}`", text.trim());
            sites.push(MutationSite { path: source.path.clone(), line: *number, what, changed });
        }
    }
    sites
}

/// Returns the changes of one line, from its code and the lines around it.
fn of_line(code: &str, text: &str, (before, after): (&str, &str)) -> Vec<(String, String)> {
    let mutated = format!("tautline_mem::mutated({NUMBER})");
    let mut changes = Vec::new();
    let trimmed = code.trim();
    let indent = code.len() - code.trim_start().len();
    let is_plain = !["#", "const ", "static ", "//", "where", "type ", "use "]
        .iter()
        .any(|start| trimmed.starts_with(start));
    if !is_plain || trimmed.contains("assert") || trimmed.contains("const fn") || before.starts_with("#[") {
        return changes;
    }
    if let Some((start, end)) = condition(code) {
        let changed = format!("{}{mutated} ^ ({}){}", &text[..start], &text[start..end], &text[end..]);
        changes.push(("the opposite".to_owned(), changed));
    }
    for (from, to) in COMPARISONS {
        let word = format!(" {from} ");
        for (at, _) in code.match_indices(&word) {
            let Some(range) = operands(code, at, at + word.len(), after) else { continue };
            let (left, right) = (&text[range.0..at], &text[at + word.len()..range.1]);
            let changed = format!(
                "{}(if {mutated} {{ {left} {to} {right} }} else {{ {left} {from} {right} }}){}",
                &text[..range.0],
                &text[range.1..]
            );
            changes.push((format!("`{to}` for `{from}`"), changed));
        }
    }
    let begins = before.is_empty() || before.ends_with([';', '{', '}']);
    if begins && is_statement(trimmed) {
        let changed = format!("{}if !{mutated} {{ {} }}", &text[..indent], text[indent..].trim_end());
        changes.push(("left out".to_owned(), changed));
        for (from, to) in [(" += ", " -= "), (" -= ", " += ")] {
            if trimmed.matches(from).count() == 1 {
                let line = text[indent..].trim_end();
                let other = line.replacen(from, to, 1);
                let changed = format!("{}if {mutated} {{ {other} }} else {{ {line} }}", &text[..indent]);
                changes.push((format!("`{}` for `{}`", to.trim(), from.trim()), changed));
            }
        }
    }
    let begins_function = trimmed.contains("fn ") || trimmed.starts_with(") ->") || trimmed == ") {";
    if begins_function && trimmed.ends_with('{') {
        for (result, value) in RESULTS {
            if trimmed.contains(result) {
                let changed = format!("{} if {mutated} {{ return {value}; }}", text.trim_end());
                changes.push((format!("returns {value}"), changed));
            }
        }
        if !trimmed.contains("->") && trimmed.ends_with(") {") {
            let changed = format!("{} if {mutated} {{ return; }}", text.trim_end());
            changes.push(("does nothing".to_owned(), changed));
        }
    }
    changes
}

/// Returns the range of the condition in a line `if CONDITION {`.
fn condition(code: &str) -> Option<(usize, usize)> {
    let trimmed = code.trim_start();
    let indent = code.len() - trimmed.len();
    let word = ["if ", "} else if ", "while "].into_iter().find(|word| trimmed.starts_with(word))?;
    let (start, end) = (indent + word.len(), code.trim_end().strip_suffix(" {")?.len());
    let inside = code.get(start..end)?;
    (!inside.contains("let ") && is_balanced(inside)).then_some((start, end))
}

/// True if the line is a whole call or assignment.
fn is_statement(trimmed: &str) -> bool {
    trimmed.ends_with(';')
        && trimmed.starts_with(|c: char| c.is_ascii_lowercase() || c == '*')
        && !KEPT.iter().any(|word| trimmed.starts_with(word))
        && (trimmed.ends_with(");") || [" = ", " += ", " -= "].iter().any(|word| trimmed.contains(word)))
        && !trimmed.contains("=>")
        && is_balanced(trimmed)
}

fn is_balanced(code: &str) -> bool {
    let mut open = Vec::new();
    for c in code.chars() {
        match c {
            '(' | '[' | '{' => open.push(c),
            ')' | ']' | '}' if open.pop().is_none() => return false,
            _ => {}
        }
    }
    open.is_empty()
}

/// Returns the beginning of the left operand and the end of the right operand of the comparison from
/// `start` to `end`.
fn operands(code: &str, start: usize, end: usize, after: &str) -> Option<(usize, usize)> {
    let bytes = code.as_bytes();
    let (mut left, mut depth) = (start, 0);
    while left > 0 {
        let byte = bytes[left - 1];
        let ends_word = ENDS.iter().any(|word| code[..left].ends_with(word));
        match byte {
            b')' | b']' | b'}' => depth += 1,
            b'(' | b'[' | b'{' if depth == 0 => break,
            b'(' | b'[' | b'{' => depth -= 1,
            b',' | b';' if depth == 0 => break,
            // A bar ends a closure's arguments. Between spaces, it is an operator.
            b'|' if depth == 0 && left >= 2 && bytes[left - 2] != b' ' => break,
            _ if depth == 0 && ends_word => break,
            _ => {}
        }
        left -= 1;
    }
    let (mut right, mut depth) = (end, 0);
    while right < bytes.len() {
        let begins_word = ENDS.iter().any(|word| code[right..].starts_with(word));
        match bytes[right] {
            b'(' | b'[' => depth += 1,
            b')' | b']' if depth == 0 => break,
            b')' | b']' => depth -= 1,
            b'{' | b'}' | b',' | b';' if depth == 0 => break,
            _ if depth == 0 && begins_word => break,
            _ => {}
        }
        right += 1;
    }
    let (before, behind) = (&code[left..start], &code[end..right]);
    let indent = code[left..].len() - code[left..].trim_start().len();
    let right = end + behind.trim_end().len();
    let at_the_end = right >= code.trim_end().len();
    let is_operator = after.starts_with(['.', '+', '-', '*', '|', '&']);
    let goes_on = at_the_end && is_operator && !after.starts_with("&&") && !after.starts_with("||");
    let is_whole = !before.trim().is_empty()
        && !before.trim_start().starts_with('.')
        && !behind.trim().is_empty()
        && is_balanced(before)
        && is_balanced(behind)
        && !goes_on;
    is_whole.then_some((left + indent, right))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(line: &str) -> Vec<String> {
        of_line(line, line, (";", ""))
            .into_iter()
            .map(|(_, changed)| changed.replace("tautline_mem::mutated(@NUMBER@)", "M"))
            .collect()
    }

    #[test]
    fn comparisons_end_where_others_begin() {
        assert_eq!(
            changes("    if self.at(a, b) < limit && more {"),
            [
                "    if M ^ (self.at(a, b) < limit && more) {",
                "    if (if M { self.at(a, b) <= limit } else { self.at(a, b) < limit }) && more {",
            ]
        );
        assert_eq!(
            changes("    all(|one| one.x == y)"),
            ["    all(|one| (if M { one.x != y } else { one.x == y }))"]
        );
        assert_eq!(changes("    .x == 3"), [""; 0]);
    }

    #[test]
    fn statements_can_be_left_out() {
        assert_eq!(changes("    self.wake(x);"), ["    if !M { self.wake(x); }"]);
        assert_eq!(
            changes("    self.count += 1;"),
            ["    if !M { self.count += 1; }", "    if M { self.count -= 1; } else { self.count += 1; }"]
        );
        assert_eq!(changes("    let x = f(y);"), [""; 0]);
        assert_eq!(changes("    assert!(x);"), [""; 0]);
    }

    #[test]
    fn functions_return_at_once() {
        assert_eq!(
            changes("fn f(&self) -> bool {"),
            ["fn f(&self) -> bool { if M { return true; }", "fn f(&self) -> bool { if M { return false; }"]
        );
        assert_eq!(changes("fn f(&self) {"), ["fn f(&self) { if M { return; }"]);
        assert_eq!(changes("const fn f() -> u32 {"), [""; 0]);
    }
}
