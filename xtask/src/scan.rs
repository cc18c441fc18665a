//! Reads Rust sources for the checks: code without comments and literals, and the parts of it that are test code.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::lex::{self, Language};

/// One source file.
pub struct Source {
    /// Path relative to the folder that was scanned, `/` between the parts.
    pub path: String,
    /// The original text.
    pub text: String,
    /// The text with comments and literals blanked. Lines and columns (in bytes) are the same.
    pub code: String,
    /// True if the whole file is test code: declared by `#[cfg(test)] mod x;`, or in a folder `tests`.
    pub is_test: bool,
    /// Number of lines before the first inline `#[cfg(test)] mod x {`.
    pub lines_before_tests: usize,
}

impl Source {
    /// Returns the lines that are not test code, as (number from 1, code, text).
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str, &str)> {
        let count = if self.is_test { 0 } else { self.lines_before_tests };
        self.code
            .lines()
            .zip(self.text.lines())
            .enumerate()
            .take(count)
            .map(|(i, (code, text))| (i + 1, code, text))
    }
}

/// Returns all `.rs` files below `folder`, sorted by path. The result is empty if the folder does not exist.
pub fn sources(folder: &Path) -> Vec<Source> {
    let mut files = Vec::new();
    collect(folder, &mut files);
    files.sort();
    let mut sources: Vec<Source> = files
        .into_iter()
        .filter_map(|file| {
            let text = fs::read_to_string(&file).ok()?;
            let path = file.strip_prefix(folder).ok()?.to_string_lossy().replace('\\', "/");
            let code = blank(&text);
            let lines_before_tests = lines_before_tests(&code);
            Some(Source { path, text, code, is_test: false, lines_before_tests })
        })
        .collect();
    mark_tests(&mut sources);
    sources
}

/// Marks the files that are test code.
pub fn mark_tests(sources: &mut [Source]) {
    let declared: HashSet<String> = sources.iter().flat_map(test_modules).collect();
    for source in sources {
        let stem = source.path.trim_end_matches(".rs").trim_end_matches("/mod");
        source.is_test = stem.split('/').any(|part| part == "tests")
            || declared.iter().any(|module| stem == module || stem.starts_with(&format!("{module}/")));
    }
}

/// Returns the module path of a file relative to `src/`: `conn/flush.rs` is `["conn", "flush"]`, `lib.rs` is `[]`.
pub fn module_path(path: &str) -> Vec<&str> {
    let stem = path.trim_end_matches(".rs");
    stem.split('/').filter(|part| !matches!(*part, "lib" | "main" | "mod")).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// True for an attribute that keeps the next item out of the product: `cfg(test)`, `cfg(all(test, ..))`, and `cfg(tautline_bsd)`, which
/// is also only for tests.
fn is_test_attribute(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("#[cfg(")
        && !line.contains("not(test")
        && words(line).any(|word| word == "test" || word == "tautline_bsd")
}

/// Returns the modules that a file declares by `#[cfg(test)] mod x;`, as paths without `.rs`.
fn test_modules(source: &Source) -> Vec<String> {
    let folder = module_path(&source.path).join("/");
    let mut modules = Vec::new();
    let mut armed = false;
    for line in source.code.lines().map(str::trim) {
        if is_test_attribute(line) {
            armed = true;
        }
        let code = line.rsplit(']').next().unwrap_or_default().trim();
        if code.is_empty() {
            continue;
        }
        let is_module = armed && code.ends_with(';') && words(code).any(|word| word == "mod");
        if let Some(name) = words(code).last().filter(|_| is_module) {
            modules.push(if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") });
        }
        armed = false;
    }
    modules
}

/// Returns the number of lines before the first `#[cfg(test)]` of an inline module.
pub fn lines_before_tests(code: &str) -> usize {
    let lines: Vec<&str> = code.lines().map(str::trim).collect();
    for (number, line) in lines.iter().enumerate() {
        let follows = lines[number + 1..].iter().find(|next| !next.is_empty() && !next.starts_with("#["));
        if is_test_attribute(line)
            && follows.is_some_and(|next| next.starts_with("mod ") && next.ends_with('{'))
        {
            return number;
        }
    }
    lines.len()
}

/// Returns the identifiers and keywords of a piece of code, in order.
pub fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Replaces comments and the contents of string and character literals by spaces. Newlines stay.
pub fn blank(text: &str) -> String {
    let mut out = text.as_bytes().to_vec();
    for piece in lex::pieces(text, Language::Rust) {
        for byte in &mut out[piece.range] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        let code = blank(text);
        let lines_before_tests = lines_before_tests(&code);
        Source { path: path.into(), text: text.into(), code, is_test: false, lines_before_tests }
    }

    #[test]
    fn comments_and_literals_are_blanked() {
        let text = "a // crate::x\nb /* c /* d */ crate::y */ e \"crate::\\\"z\" 'f' '\\'' '\"' &'g str r#\"h\"i\"# br\"j\" r\nk";
        let code = blank(text);
        assert_eq!(code.len(), text.len());
        assert_eq!(words(&code).collect::<Vec<_>>(), ["a", "b", "e", "g", "str", "b", "r", "k"]);
    }

    #[test]
    fn inline_tests_are_cut() {
        let text = "fn a() {}\n#[cfg(test)]\n#[allow(x)]\nmod tests {\n}\n";
        assert_eq!(source("a.rs", text).lines().count(), 1);
        assert_eq!(source("a.rs", "#[cfg(not(test))]\nmod a {\n}\n").lines().count(), 3);
        assert_eq!(source("a.rs", "#[cfg(test)]\nmod tests;\nfn b() {}\n").lines().count(), 3);
    }

    #[test]
    fn test_modules_in_files_are_found() {
        let text =
            "#[cfg(all(test, loom))]\nmod loom_model;\n#[cfg(test)]\nuse x;\nmod a;\n#[cfg(test)] mod b;\n";
        assert_eq!(test_modules(&source("conn/mod.rs", text)), ["conn/loom_model", "conn/b"]);
        assert_eq!(test_modules(&source("lib.rs", text)), ["loom_model", "b"]);
    }

    #[test]
    fn module_paths() {
        assert_eq!(module_path("conn/flush.rs"), ["conn", "flush"]);
        assert_eq!(module_path("conn/mod.rs"), ["conn"]);
        assert!(module_path("lib.rs").is_empty());
    }
}
