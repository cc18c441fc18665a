//! Checks that each relaxed access of the library has an argument: a comment `Relaxed: GROUP` at the declaration of the atomic or at the
//! access. The groups are the rows of the table in docs/develop/memory-ordering.md.

use std::path::Path;

use crate::scan::{self, Source};

const CRATES: [&str; 9] = ["mem", "proto", "io", "queue", "timing", "config", "core", "abi", "tautline"];
/// Word before the argument in a comment.
const MARK: &str = "Relaxed: ";
const METHODS: [&str; 6] = [".load(", ".store(", ".swap(", ".fetch_", ".compare_exchange", ".try_update("];

/// Returns relaxed accesses without an argument, and arguments with an unknown group.
pub fn check(root: &Path) -> Vec<String> {
    let page = std::fs::read_to_string(root.join("docs/develop/memory-ordering.md")).unwrap_or_default();
    let groups = groups(&page);
    if groups.is_empty() {
        return vec!["docs/develop/memory-ordering.md: no table of arguments".to_owned()];
    }
    let mut findings = Vec::new();
    for name in CRATES {
        let folder = format!("crates/{name}/src");
        let sources = scan::sources(&root.join(&folder));
        for source in &sources {
            let file = format!("{folder}/{}", source.path);
            findings.extend(unknown(source, &groups).map(|finding| format!("{file}:{finding}")));
            findings.extend(unargued(source, &sources).map(|finding| format!("{file}:{finding}")));
        }
    }
    findings
}

/// Returns the first column of the table: `| group | ...`.
fn groups(page: &str) -> Vec<&str> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    rows.map(str::trim).filter(|group| !group.is_empty()).collect()
}

/// Returns arguments that the page does not have.
fn unknown<'a>(source: &'a Source, groups: &'a [&str]) -> impl Iterator<Item = String> + 'a {
    source.lines().filter_map(|(number, _, text)| {
        let group = text.split_once(MARK)?.1.split([',', '.', ';', ':', ' ']).next()?;
        (!groups.contains(&group))
            .then(|| format!("{number}: `{MARK}{group}` is not in docs/develop/memory-ordering.md"))
    })
}

/// Returns relaxed accesses without an argument, in their own comment or at the declaration of the atomic.
fn unargued<'a>(source: &'a Source, all: &'a [Source]) -> impl Iterator<Item = String> + 'a {
    let lines: Vec<(usize, &str, &str)> = source.lines().collect();
    let mut findings = Vec::new();
    let mut first = 0;
    while first < lines.len() {
        let length = lines[first..]
            .iter()
            .position(|(_, code, _)| ends(code.trim()))
            .unwrap_or(lines.len() - 1 - first);
        let statement = &lines[first..=first + length];
        let code: String = statement.iter().flat_map(|(_, code, _)| [code.trim(), " "]).collect();
        let argued = statement.iter().any(|(_, _, text)| text.contains(MARK)) || is_argued(&lines, first);
        if !argued && !code.contains("use ") {
            for name in relaxed(&code) {
                let argued = declared(source, name)
                    .unwrap_or_else(|| all.iter().any(|other| declared(other, name) == Some(true)));
                if !argued {
                    findings.push(format!("{}: `{name}` has no argument for Relaxed", statement[0].0));
                }
            }
        }
        first += length + 1;
    }
    findings.into_iter()
}

/// True if a statement, an arm of a match or the head of a block ends with this line.
fn ends(code: &str) -> bool {
    code.is_empty() || code.ends_with([';', '{', '}']) || code.ends_with("=>")
}

/// True if the comment directly above a line has an argument. Attributes may be in between.
fn is_argued(lines: &[(usize, &str, &str)], index: usize) -> bool {
    lines[..index]
        .iter()
        .rev()
        .map(|(_, _, text)| text.trim())
        .take_while(|text| text.starts_with("//") || text.starts_with("#["))
        .any(|text| text.contains(MARK))
}

/// Returns the names of the atomics that a statement accesses with Relaxed.
fn relaxed(code: &str) -> Vec<&str> {
    let calls = METHODS.iter().flat_map(|method| code.match_indices(method).map(|(at, _)| at));
    let mut calls: Vec<usize> = calls.collect();
    calls.sort_unstable();
    calls.retain(|at| code[*at..].split_once('(').is_some_and(|(_, rest)| has_relaxed(rest)));
    calls.into_iter().filter_map(|at| receiver(&code[..at])).collect()
}

/// True if the arguments that begin here contain the word, outside of nested calls.
fn has_relaxed(arguments: &str) -> bool {
    let mut depth = 0;
    let own: String = arguments
        .chars()
        .take_while(|char| {
            depth += i32::from(*char == '(') - i32::from(*char == ')');
            depth >= 0
        })
        .collect();
    let mut depth = 0;
    let own: String = own
        .chars()
        .filter(|char| {
            depth += i32::from(*char == '(') - i32::from(*char == ')');
            depth == 0
        })
        .collect();
    scan::words(&own).any(|word| word == "Relaxed")
}

/// Returns the name before a method call. Skips an index, a call or a wrapper's `.0`.
fn receiver(code: &str) -> Option<&str> {
    let code = code.trim_end().trim_end_matches(".0");
    let code = match code.strip_suffix([']', ')']) {
        Some(inner) => &inner[..inner.rfind(['[', '('])?],
        None => code,
    };
    scan::words(code).last()
}

/// True if the declaration of an atomic of this name has an argument. `None` if the file has no such declaration.
fn declared(source: &Source, name: &str) -> Option<bool> {
    let lines: Vec<(usize, &str, &str)> = source.lines().collect();
    let is_declaration = |code: &str| {
        code.split_once("Atomic").is_some_and(|(before, _)| {
            let before = before.rsplit([',', '(']).next().unwrap_or(before);
            before.split_once(':').is_some_and(|(name_part, _)| scan::words(name_part).last() == Some(name))
        }) && !code.contains("::new(")
            || code.contains("static ")
                && scan::words(code).any(|word| word == name)
                && code.contains("Atomic")
    };
    // The only field of a tuple, accessed as `self.0`.
    let is_tuple = |code: &str| name == "self" && code.contains("struct ") && code.contains("(Atomic");
    let mut found = None;
    for (index, (_, code, text)) in lines.iter().enumerate() {
        if is_declaration(code) || is_tuple(code) || is_word(code, name) {
            let argued = text.contains(MARK) || is_argued(&lines, index);
            found = Some(found.unwrap_or(false) || argued);
        }
    }
    found
}

/// Field of one of our wrapper types around an atomic.
fn is_word(code: &str, name: &str) -> bool {
    code.split_once(": Word<").is_some_and(|(before, _)| scan::words(before).last() == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> Vec<String> {
        let folder =
            std::env::temp_dir().join(format!("xtask-relaxed-{}-{}", std::process::id(), text.len()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("a.rs"), text).unwrap();
        let sources = scan::sources(&folder);
        std::fs::remove_dir_all(&folder).unwrap();
        let groups = groups("| | the argument |\n|---|---|\n| own | x |\n| look | y |\n");
        unknown(&sources[0], &groups).chain(unargued(&sources[0], &sources)).collect()
    }

    #[test]
    fn an_argument_is_at_the_declaration_or_at_the_access() {
        let good = "struct S {\n    /// A place.\n    // Relaxed: own, it alone writes.\n    at: Padded<AtomicU64>,\n    #[x]\n    b: AtomicU8,\n}\n\
                    fn f(s: &S) {\n    s.at.0.store(1, Relaxed);\n    // Relaxed: look\n    s.b\n        .load(Ordering::Relaxed);\n    s.b.load(Relaxed); // Relaxed: look\n}\n";
        assert_eq!(findings(good), Vec::<String>::new());
    }

    #[test]
    fn access_without_reason_is_found() {
        let bare = "struct S {\n    at: AtomicU64,\n}\nfn f(s: &S) {\n    s.at.store(1, Relaxed);\n    x[s.at.load(Relaxed)];\n}\n";
        assert_eq!(
            findings(bare),
            ["5: `at` has no argument for Relaxed", "6: `at` has no argument for Relaxed"]
        );
        assert_eq!(
            findings(
                "// Relaxed: luck\nstatic A: AtomicU8 = AtomicU8::new(0);\nfn f() {\n    A.load(Relaxed);\n}\n"
            ),
            ["1: `Relaxed: luck` is not in docs/develop/memory-ordering.md"]
        );
    }

    #[test]
    fn names_are_found_through_indices_calls_and_wrappers() {
        for (code, names) in [
            ("self.a.b.load(Relaxed)", &["b"][..]),
            ("self.shared.tail.0 .load(Ordering::Relaxed)", &["tail"]),
            ("counts[class].fetch_add(f(1), Relaxed)", &["counts"]),
            ("self.x(1).compare_exchange(A, B, AcqRel, Relaxed)", &["x"]),
            ("a.store(b.load(Relaxed).wrapping_add(1), Release)", &["b"]),
            ("a.store(b.load(Acquire), Relaxed)", &["a"]),
            ("a.load(Relaxed) && b.swap(true, Relaxed)", &["a", "b"]),
        ] {
            assert_eq!(relaxed(code), names, "{code}");
        }
    }
}
