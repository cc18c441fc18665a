//! The planted faults of `tests/sim/faults`: old faults of the engine, and missing steps of its
//! protocols between threads. Each fault is a file:
//!
//! ```text
//!   Description of the fault.
//!
//!   found by: --late --only publish --seed 7     the seed that finds it, and the options of a search
//!   not found: WHY                               or: the reason why no seed finds it
//!   options: --late                              the options of a search, for a fault without a seed
//!
//!   --- crates/core/src/wait.rs
//!   @@
//!    a line of code before
//!   -a line to remove
//!   +a line to add
//!    a line of code after
//! ```
//!
//! Comments and white space are ignored. A renamed file is found by its code.
//! `cargo xtask faults --refresh` also takes the output of `git diff`, and writes it in this form.

use std::fs;
use std::path::{Path, PathBuf};

use super::hunk::{Code, Hunk, HunkMismatch, HunkPosition, Line, Sign, code};
use crate::scan::{self, Source};

const FOLDER: &str = "tests/sim/faults";
/// Most lines of context on each side that `--refresh` may replace.
const FUZZ: usize = 3;

pub(super) struct Fault {
    pub(super) name: String,
    path: PathBuf,
    /// Lines before the first change.
    head: String,
    /// Description of the fault.
    pub(super) title: String,
    /// Options of each seed.
    pub(super) options: Vec<String>,
    /// Seed that finds the fault.
    pub(super) seed: Option<u64>,
    pub(super) not_found: Option<String>,
    changes: Vec<Change>,
}

/// Changes of one source file.
struct Change {
    path: String,
    hunks: Vec<Hunk>,
}

/// Returns all faults, sorted by name.
pub(super) fn all(root: &Path) -> Result<Vec<Fault>, String> {
    let folder = root.join(FOLDER);
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "patch"));
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Fault::parse(path, &text)
    };
    paths.into_iter().map(read).collect()
}

/// Applies each fault to the present sources. Returns the faults that do not apply.
pub fn check(root: &Path) -> Vec<String> {
    each(root, |fault| {
        fault.applied(root)?;
        let text = fs::read_to_string(&fault.path).unwrap_or_default();
        match text == fault.text() {
            true => Ok(()),
            false => Err(format!("{}: not in its short form", fault.file())),
        }
    })
}

/// Rewrites each fault with the paths and the context of the present sources. Returns the failures.
pub fn refresh(root: &Path) -> Vec<String> {
    each(root, |fault| {
        fault.refresh(root)?;
        fs::write(&fault.path, fault.text()).map_err(|error| format!("{}: {error}", fault.file()))
    })
}

fn each(root: &Path, f: impl Fn(&mut Fault) -> Result<(), String>) -> Vec<String> {
    match all(root) {
        Ok(mut faults) => faults.iter_mut().filter_map(|fault| f(fault).err()).collect(),
        Err(words) => vec![words],
    }
}

impl Fault {
    pub(super) fn parse(path: PathBuf, text: &str) -> Result<Fault, String> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let is_head = |line: &&str| !line.starts_with("diff ") && !line.starts_with("--- ");
        let head: Vec<&str> = text.lines().take_while(is_head).collect();
        let value = |key: &str| head.iter().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let (found_by, not_found) = (value("found by:"), value("not found:"));
        let words = found_by.or(value("options:")).unwrap_or_default();
        let wanted = super::parse(&words.split_whitespace().collect::<Vec<_>>())
            .map_err(|reason| format!("{name}.patch: {reason}"))?;
        if found_by.is_some() == not_found.is_some() || found_by.is_some() != wanted.seed.is_some() {
            return Err(format!("{name}.patch: it needs `found by:` with a `--seed`, or `not found:`"));
        }
        Ok(Fault {
            name,
            title: head.first().copied().unwrap_or_default().to_owned(),
            options: wanted.rest,
            seed: wanted.seed,
            not_found: not_found.map(str::to_owned),
            changes: changes(text, head.len()),
            head: head.join("\n"),
            path,
        })
    }

    fn file(&self) -> String {
        format!("{FOLDER}/{}.patch", self.name)
    }

    /// Returns the text of its file.
    fn text(&self) -> String {
        let mut text = format!("{}\n\n", self.head.trim_end());
        for change in &self.changes {
            text.push_str(&format!("--- {}\n", change.path));
            for hunk in &change.hunks {
                text.push_str("@@\n");
                for line in &hunk.lines {
                    let sign = match line.sign {
                        Sign::Context => ' ',
                        Sign::Removed => '-',
                        Sign::Added => '+',
                    };
                    text.push_str(&format!("{sign}{}\n", line.text));
                }
            }
        }
        text
    }

    /// Returns the files below `tree` that the fault changes, with their new text.
    pub(super) fn applied(&self, tree: &Path) -> Result<Vec<(String, String)>, String> {
        let apply = |change: &Change| {
            let (path, text) = self.source(tree, change)?;
            let text = Code::new(&text).apply(&change.hunks).map_err(|miss| self.miss(&path, &miss))?;
            Ok((path, text))
        };
        self.changes.iter().map(apply).collect()
    }

    fn refresh(&mut self, tree: &Path) -> Result<(), String> {
        for at in 0..self.changes.len() {
            let change = &self.changes[at];
            let (path, text) = self.source(tree, change)?;
            let code = Code::new(&text);
            let places = (0..=FUZZ).find_map(|fuzz| change.places(&code, fuzz).ok());
            let places = places.map_or_else(|| change.places(&code, 0), Ok);
            let places = places.map_err(|miss| self.miss(&path, &miss))?;
            let hunks = change.hunks.iter().zip(&places).map(|(hunk, place)| hunk.refreshed(&code, place));
            self.changes[at] = Change { hunks: hunks.collect(), path };
        }
        Ok(())
    }

    /// Returns the path and the text of the changed file. If the file has been renamed, returns the
    /// file with the same lines of code.
    fn source(&self, tree: &Path, change: &Change) -> Result<(String, String), String> {
        if let Ok(text) = fs::read_to_string(tree.join(&change.path)) {
            return Ok((change.path.clone(), text));
        }
        let all = scan::sources(&tree.join("crates")).into_iter();
        let fits = |source: &Source| change.places(&Code::new(&source.text), 0).is_ok();
        let found: Vec<Source> = all.filter(fits).collect();
        match <[Source; 1]>::try_from(found) {
            Ok([source]) => Ok((format!("crates/{}", source.path), source.text)),
            Err(found) => {
                let (file, count) = (self.file(), found.len());
                Err(format!("{file}: {} does not exist, and {count} files have its code", change.path))
            }
        }
    }

    fn miss(&self, path: &str, miss: &HunkMismatch) -> String {
        let file = self.file();
        match miss {
            HunkMismatch::Nowhere { number, near } => {
                let lines = self.changes.iter().flat_map(|change| &change.hunks).flat_map(|hunk| &hunk.lines);
                let line = lines.into_iter().find(|line| line.number == *number);
                let text = line.map_or("", |line| line.text.trim());
                format!("{file}:{number}: {path} has no such lines; line {near} is not `{text}`")
            }
            HunkMismatch::Twice { number, lines: [first, second] } => {
                format!("{file}:{number}: {path} has these lines twice, at {first} and {second}")
            }
        }
    }
}

impl Change {
    fn places(&self, code: &Code<'_>, fuzz: usize) -> Result<Vec<HunkPosition>, HunkMismatch> {
        self.hunks.iter().map(|hunk| hunk.find(code, fuzz)).collect()
    }
}

/// Parses the changes in a fault, or in the output of `git diff`.
fn changes(text: &str, head: usize) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for (at, line) in text.lines().enumerate().skip(head) {
        if let Some(path) = line.strip_prefix("--- ") {
            let path = path.strip_prefix("a/").unwrap_or(path).to_owned();
            changes.push(Change { path, hunks: Vec::new() });
            continue;
        }
        let Some(change) = changes.last_mut() else { continue };
        if line.starts_with("@@") {
            change.hunks.push(Hunk { lines: Vec::new() });
        }
        let sign = match line.chars().next() {
            Some(' ') => Sign::Context,
            Some('-') => Sign::Removed,
            Some('+') => Sign::Added,
            _ => continue,
        };
        if let Some(hunk) = change.hunks.last_mut().filter(|_| !code(&line[1..]).is_empty()) {
            hunk.lines.push(Line { number: at + 1, sign, text: code(&line[1..]).to_owned() });
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
A bell is lost.

found by: --late --only pair --seed 7

--- crates/x.rs
@@
 before();
-ring();
 behind();
";

    fn fault(text: &str) -> Fault {
        Fault::parse("faults/bell.patch".into(), text).unwrap()
    }

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
    }

    /// Makes an empty folder.
    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("faults-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("crates")).unwrap();
        folder
    }

    fn lines_of_code(text: &str) -> Vec<&str> {
        text.lines().map(|line| code(line).trim()).filter(|line| !line.is_empty()).collect()
    }

    #[test]
    fn a_fault_says_what_it_is() {
        let one = fault(TEXT);
        assert_eq!((one.name.as_str(), one.title.as_str()), ("bell", "A bell is lost."));
        assert_eq!((one.options.len(), one.seed, &one.not_found), (3, Some(7), &None));
        assert_eq!(one.text(), TEXT);
        let one = fault(&TEXT.replace("found by: --late --only pair --seed 7", "not found: too late"));
        assert_eq!((one.options.len(), one.seed, one.not_found.as_deref()), (0, None, Some("too late")));
        for wrong in ["", "found by: --late", "found by: --seed 7\nnot found: x"] {
            let text = TEXT.replace("found by: --late --only pair --seed 7", wrong);
            assert!(Fault::parse("bell.patch".into(), &text).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_output_of_git_diff_is_shortened() {
        let diff = "A bell is lost.\n\nfound by: --late --only pair --seed 7\n\ndiff --git a/crates/x.rs b/crates/x.rs\n\
                    index 5ce8ce4..96f0598 100644\n--- a/crates/x.rs\n+++ b/crates/x.rs\n@@ -7,4 +7,3 @@ fn x() {\n \n \
                    // Why.\n before(); // now\n-ring();\n behind();\n";
        assert_eq!(fault(diff).text(), TEXT);
    }

    #[test]
    fn a_renamed_file_is_found_by_its_code() {
        let tree = folder("renamed");
        fs::write(tree.join("crates/other.rs"), "before();\n// Why.\nring();\nbehind();\n").unwrap();
        fs::write(tree.join("crates/more.rs"), "before();\nbehind();\n").unwrap();
        let expected = ("crates/other.rs".to_owned(), "before();\n// Why.\nbehind();\n".to_owned());
        assert_eq!(fault(TEXT).applied(&tree), Ok(vec![expected]));
        fs::copy(tree.join("crates/other.rs"), tree.join("crates/third.rs")).unwrap();
        let words = fault(TEXT).applied(&tree).unwrap_err();
        assert!(words.contains("bell.patch: crates/x.rs does not exist, and 2 files"), "{words}");
        fs::remove_dir_all(&tree).unwrap();
    }

    #[test]
    fn a_changed_line_is_reported_by_fault_and_line() {
        let tree = folder("changed");
        fs::write(tree.join("crates/x.rs"), "before();\nring(2);\nbehind();\n").unwrap();
        let words = fault(TEXT).applied(&tree).unwrap_err();
        assert_eq!(
            words,
            "tests/sim/faults/bell.patch:8: crates/x.rs has no such lines; line 2 is not `ring();`"
        );
        fs::remove_dir_all(&tree).unwrap();
    }

    #[test]
    fn all_faults_apply_whatever_the_comments_are() {
        let tree = folder("comments");
        let variants: [fn(&str) -> String; 2] = [
            |text| lines_of_code(text).join("\n"),
            |text| text.lines().map(|line| format!("// More \"words\".\n{line}\n\n")).collect(),
        ];
        for fault in all(root()).unwrap() {
            let expected = fault.applied(root()).unwrap();
            for variant in variants {
                for (path, _) in &expected {
                    let to = tree.join(path);
                    fs::create_dir_all(to.parent().unwrap()).unwrap();
                    fs::write(to, variant(&fs::read_to_string(root().join(path)).unwrap())).unwrap();
                }
                for ((_, expected), (_, text)) in expected.iter().zip(fault.applied(&tree).unwrap()) {
                    assert_eq!(lines_of_code(expected), lines_of_code(&text), "{}", fault.name);
                }
            }
        }
        fs::remove_dir_all(&tree).unwrap();
    }
}
