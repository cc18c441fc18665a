//! Finds the files with prose, and measures them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::blocks::blocks;
use super::kinds::{self, KINDS, Kind};
use super::sentences::sentences;
use crate::lex::Language;
use crate::scan::{self, Source};

/// Texts that others wrote, and pages that programs write.
const SKIPPED: [&str; 4] = ["docs/results/", "packaging/THIRD-PARTY", "LICENSE", "tests/sim/faults/"];
/// Folders whose string literals are parts of tests, and so no texts for users.
const TESTS: [&str; 5] = ["tests", "test", "benches", "examples", "fuzz"];

/// A sentence of one kind.
#[derive(Debug, Clone)]
pub struct Finding {
    pub kind: Kind,
    /// Number of places in the sentence.
    pub count: usize,
    pub line: usize,
    pub text: String,
}

/// The prose of one file.
#[derive(Debug, Clone)]
pub struct Prose {
    pub path: String,
    pub sentences: usize,
    pub findings: Vec<Finding>,
}

/// Sums over files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    pub sentences: usize,
    pub counts: [usize; KINDS.len()],
}

impl Sum {
    pub fn add(&mut self, prose: &Prose) {
        self.sentences += prose.sentences;
        for finding in &prose.findings {
            self.counts[finding.kind.index()] += finding.count;
        }
    }
}

/// Measures the files at `places`, by default all of the repository. The result is sorted by path.
pub fn measure(root: &Path, places: &[&str]) -> Vec<Prose> {
    let texts = texts(root, places);
    let ends = literal_ends(&texts);
    // Small files share a thread.
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let mut found: Vec<(usize, Prose)> = std::thread::scope(|scope| {
        let work = || {
            let mut found = Vec::new();
            loop {
                // SeqCst: partner is the same access in the other threads.
                let at = next.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                let Some((path, text, language)) = texts.get(at) else { return found };
                found.push((at, prose(path, text, *language, ends.get(path.as_str()).copied())));
            }
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    });
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, prose)| prose).collect()
}

/// Measures one file. String literals count up to `literals_end`, by default everywhere outside of folders with tests.
pub fn prose(path: &str, text: &str, language: Language, literals_end: Option<usize>) -> Prose {
    let is_test = path.split('/').any(|part| TESTS.contains(&part));
    let literals_end = literals_end.unwrap_or(if is_test { 0 } else { text.len() });
    let mut prose = Prose { path: path.to_owned(), sentences: 0, findings: Vec::new() };
    for sentence in blocks(text, language, literals_end).iter().flat_map(sentences) {
        prose.sentences += 1;
        for kind in KINDS {
            let count = kinds::count(kind, &sentence.text);
            if count > 0 {
                let text = sentence.text.clone();
                prose.findings.push(Finding { kind, count, line: sentence.line, text });
            }
        }
    }
    prose
}

/// Reads the files with prose.
fn texts(root: &Path, places: &[&str]) -> Vec<(String, String, Language)> {
    let mut paths = listed(root, places);
    paths.sort();
    paths.dedup();
    paths
        .into_iter()
        .filter(|path| !SKIPPED.iter().any(|skipped| path.contains(skipped)) && !path.ends_with(".lock"))
        .filter_map(|path| {
            // The name tells the language of nearly all files, so that others need not be read.
            let name = path.rsplit('/').next().unwrap_or(&path);
            if Language::of(&path, "").is_none() && name.contains('.') {
                return None;
            }
            let text = fs::read_to_string(root.join(&path)).ok()?;
            let language = Language::of(&path, text.lines().next().unwrap_or_default())?;
            Some((path, text, language))
        })
        .collect()
}

/// Returns the files that Git knows or would add. Without Git, all files outside of `target`.
fn listed(root: &Path, places: &[&str]) -> Vec<String> {
    crate::git_files(root, places).unwrap_or_else(|_| {
        let mut files = Vec::new();
        let places = if places.is_empty() { &["."] } else { places };
        places.iter().for_each(|place| walk(root, &root.join(place), &mut files));
        files
    })
}

fn walk(root: &Path, path: &Path, files: &mut Vec<String>) {
    let name = path.file_name().unwrap_or_default();
    if !path.is_dir() {
        let relative = path.strip_prefix(root).unwrap_or(path).to_string_lossy();
        files.push(relative.trim_start_matches("./").replace('\\', "/"));
    } else if name != "target" && name != ".git" && name != "node_modules" {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            walk(root, &entry.path(), files);
        }
    }
}

/// Returns, for each Rust file, the position where its tests begin.
fn literal_ends(texts: &[(String, String, Language)]) -> BTreeMap<&str, usize> {
    let rust: Vec<&(String, String, Language)> =
        texts.iter().filter(|(_, _, language)| *language == Language::Rust).collect();
    let mut sources: Vec<Source> = rust
        .iter()
        .map(|(path, text, _)| {
            let code = scan::blank(text);
            let lines_before_tests = scan::lines_before_tests(&code);
            Source { path: path.clone(), text: String::new(), code, is_test: false, lines_before_tests }
        })
        .collect();
    scan::mark_tests(&mut sources);
    let ends = rust.iter().zip(sources).map(|((path, text, _), source)| {
        let is_test = source.is_test || path.split('/').any(|part| TESTS.contains(&part));
        let lines = if is_test { 0 } else { source.lines_before_tests };
        (path.as_str(), text.split_inclusive('\n').take(lines).map(str::len).sum())
    });
    ends.collect()
}
