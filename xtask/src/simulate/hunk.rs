//! A change of a source file, independent of its comments: lines of code to find, to remove and to
//! add. Lines are compared without comments and white space, so that a hunk fails only after a change
//! of the code.

use std::collections::{BTreeMap, BTreeSet};

use crate::scan;

/// Fewest lines of code around a change in a new hunk.
const CONTEXT: usize = 2;

/// Adjacent lines of a file, with their changes.
pub(super) struct Hunk {
    pub(super) lines: Vec<Line>,
}

pub(super) struct Line {
    /// Number of the line in the file of the fault, from 1.
    pub(super) number: usize,
    pub(super) sign: Sign,
    pub(super) text: String,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Sign {
    Context,
    Removed,
    Added,
}

/// The code of a source file.
pub(super) struct Code<'a> {
    lines: Vec<&'a str>,
    /// Lines with code: index in `lines`, and the text to compare.
    keys: Vec<(usize, String)>,
}

/// Reason why a hunk cannot be applied.
#[derive(Debug, PartialEq)]
pub(super) enum HunkMismatch {
    /// At the best match: the first line of the fault that differs, and the line of the source.
    Nowhere { number: usize, near: usize },
    /// Lines of the source at which the hunk could begin.
    Twice { number: usize, lines: [usize; 2] },
}

/// Place of a hunk in a source.
pub(super) struct HunkPosition {
    /// Index in `Code::keys` of the first compared line.
    at: usize,
    /// Number of context lines at the beginning of the hunk that were not compared.
    skipped: usize,
}

/// Returns the code of a line, without a comment and without white space at its end.
pub(super) fn code(line: &str) -> &str {
    let blank = scan::blank(line);
    let begins = |at: usize| line[..at].chars().next_back().is_none_or(char::is_whitespace);
    let mut comments = line.match_indices("//").map(|(at, _)| at);
    let end = comments.find(|at| begins(*at) && blank[*at..].trim().is_empty());
    line[..end.unwrap_or(line.len())].trim_end()
}

fn key(line: &str) -> String {
    code(line).split_whitespace().collect()
}

impl<'a> Code<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let lines: Vec<&str> = text.lines().collect();
        let keys = lines.iter().enumerate().map(|(at, line)| (at, key(line)));
        let keys = keys.filter(|(_, key)| !key.is_empty()).collect();
        Code { lines, keys }
    }

    fn number(&self, at: usize) -> usize {
        self.keys.get(at).map_or(0, |(line, _)| line + 1)
    }

    /// Returns the file with these changes. Comments stay.
    pub(super) fn apply(&self, hunks: &[Hunk]) -> Result<String, HunkMismatch> {
        let mut removed = BTreeSet::new();
        let mut added: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for hunk in hunks {
            let start = hunk.find(self, 0)?.at;
            let mut at = start;
            for line in &hunk.lines {
                match line.sign {
                    Sign::Context => at += 1,
                    Sign::Removed => {
                        removed.insert(self.keys[at].0);
                        at += 1;
                    }
                    Sign::Added => {
                        let before = if at == start { self.keys[at].0 } else { self.keys[at - 1].0 + 1 };
                        added.entry(before).or_default().push(&line.text);
                    }
                }
            }
        }
        let mut text = String::new();
        for (at, line) in self.lines.iter().enumerate() {
            let kept = (!removed.contains(&at)).then_some(line);
            for line in added.get(&at).into_iter().flatten().chain(kept) {
                text.push_str(line);
                text.push('\n');
            }
        }
        Ok(text)
    }
}

impl Hunk {
    /// Returns the lines that the source contains: all except the added ones.
    fn old(&self) -> impl DoubleEndedIterator<Item = &Line> {
        self.lines.iter().filter(|line| line.sign != Sign::Added)
    }

    /// Finds the only place of this hunk, without its outermost `fuzz` lines of context.
    pub(super) fn find(&self, code: &Code<'_>, fuzz: usize) -> Result<HunkPosition, HunkMismatch> {
        let is_context = |line: &&Line| line.sign == Sign::Context;
        let skipped = self.lines.iter().take_while(is_context).take(fuzz).count();
        let behind = self.lines.iter().rev().take_while(is_context).take(fuzz).count();
        let old: Vec<&Line> = self.old().collect();
        let old = old.get(skipped..old.len() - behind).unwrap_or_default();
        let wanted: Vec<String> = old.iter().map(|line| key(&line.text)).collect();
        let number = self.lines.first().map_or(0, |line| line.number);
        if wanted.is_empty() {
            return Err(HunkMismatch::Twice { number, lines: [1, code.lines.len()] });
        }
        let fits = |at: usize| {
            let found = code.keys[at..].iter().map(|(_, key)| key);
            wanted.iter().zip(found).filter(|(wanted, found)| wanted == found).count()
        };
        let places: Vec<usize> = (0..code.keys.len()).filter(|at| fits(*at) == wanted.len()).collect();
        match places[..] {
            [at] => Ok(HunkPosition { at, skipped }),
            [first, second, ..] => {
                Err(HunkMismatch::Twice { number, lines: [code.number(first), code.number(second)] })
            }
            [] => {
                let best = (0..code.keys.len()).rev().max_by_key(|at| fits(*at)).unwrap_or(0);
                let found = code.keys.get(best..).unwrap_or_default().iter().map(|(_, key)| Some(key));
                let mut pairs = wanted.iter().zip(found.chain(std::iter::repeat(None)));
                let first = pairs.position(|(wanted, found)| Some(wanted) != found).unwrap_or(0);
                Err(HunkMismatch::Nowhere { number: old[first].number, near: code.number(best + first) })
            }
        }
    }

    /// Returns the same change with the context of the source at this place, with enough lines to
    /// make the place unique.
    pub(super) fn refreshed(&self, code: &Code<'_>, place: &HunkPosition) -> Hunk {
        let is_change = |line: &Line| line.sign != Sign::Context;
        let first = self.lines.iter().position(is_change).unwrap_or(0);
        let last = self.lines.iter().rposition(is_change).unwrap_or(0);
        let begin = place.at + first - place.skipped;
        let line = |sign, text: &str| Line { number: 0, sign, text: text.trim_end().to_owned() };
        let source = |sign, at: usize| line(sign, self::code(code.lines[code.keys[at].0]));
        let mut end = begin;
        let change: Vec<(Sign, &str, usize)> = self.lines[first..=last]
            .iter()
            .map(|line| {
                end += usize::from(line.sign != Sign::Added);
                (line.sign, line.text.as_str(), end)
            })
            .collect();
        let with = |context: usize| {
            let before = begin.saturating_sub(context)..begin;
            let behind = end..code.keys.len().min(end + context);
            let change = change.iter().map(|(sign, text, end)| match sign {
                Sign::Added => line(*sign, text),
                _ => source(*sign, end - 1),
            });
            let context = |at| source(Sign::Context, at);
            Hunk { lines: before.map(context).chain(change).chain(behind.map(context)).collect() }
        };
        let is_enough = |context: &usize| with(*context).find(code, 0).is_ok();
        with((CONTEXT..code.keys.len()).find(is_enough).unwrap_or(code.keys.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
fn first() {
    // Before the bell.
    ask();

    look(1); // again
    wait()
}

/// The second one.
fn second() {
    ask();
    look(2);
    wait()
}
";

    /// Lines that begin with their sign, numbered from 11.
    fn hunk(text: &str) -> Hunk {
        let line = |(at, line): (usize, &str)| {
            let sign = match &line[..1] {
                "-" => Sign::Removed,
                "+" => Sign::Added,
                _ => Sign::Context,
            };
            Line { number: 11 + at, sign, text: line[1..].to_owned() }
        };
        Hunk { lines: text.lines().enumerate().map(line).collect() }
    }

    fn shown(hunk: &Hunk) -> String {
        let sign = |sign| match sign {
            Sign::Context => ' ',
            Sign::Removed => '-',
            Sign::Added => '+',
        };
        hunk.lines.iter().map(|line| format!("{}{}\n", sign(line.sign), line.text)).collect()
    }

    const HUNK: &str = "     ask();\n-    look(1);\n+    forget();\n     wait()\n";

    fn applied(source: &str) -> Result<String, HunkMismatch> {
        Code::new(source).apply(&[hunk(HUNK)])
    }

    #[test]
    fn a_change_keeps_comments() {
        let expected = SOURCE.replace("    look(1); // again\n", "    forget();\n");
        assert_eq!(applied(SOURCE), Ok(expected));
    }

    #[test]
    fn comments_and_white_space_do_not_break_a_hunk() {
        let sources = [
            SOURCE.replace("    // Before the bell.\n", ""),
            SOURCE.replace("Before the bell.", "Other words: \"the\" bell."),
            SOURCE.replace("    wait()", "    // One.\n    // Two.\n\n    wait() // three"),
            SOURCE.replace(" // again", ""),
            SOURCE.replace("    ", "        ").replace("ask();", "ask(); // http://example.org"),
        ];
        for source in sources {
            let result = applied(&source).unwrap();
            assert!(result.contains("forget()") && !result.contains("look(1)"), "{result}");
        }
    }

    #[test]
    fn a_changed_line_of_code_is_reported_with_its_numbers() {
        let nowhere = |from: &str, to: &str| applied(&SOURCE.replace(from, to)).unwrap_err();
        assert_eq!(nowhere("look(1)", "look(3)"), HunkMismatch::Nowhere { number: 12, near: 5 });
        let source = SOURCE.replacen("wait()", "sleep()", 1);
        assert_eq!(applied(&source), Err(HunkMismatch::Nowhere { number: 14, near: 6 }));
        assert_eq!(applied(""), Err(HunkMismatch::Nowhere { number: 11, near: 0 }));
    }

    #[test]
    fn two_places_are_reported() {
        let result = Code::new(SOURCE).apply(&[hunk("     ask();\n+    forget();\n")]);
        assert_eq!(result, Err(HunkMismatch::Twice { number: 11, lines: [3, 11] }));
    }

    #[test]
    fn a_refreshed_hunk_has_the_context_of_the_source() {
        let source = SOURCE.replacen("wait()", "sleep()", 1);
        let code = Code::new(&source);
        let old = hunk(HUNK);
        let place = old.find(&code, 1).unwrap_or_else(|miss| panic!("{miss:?}"));
        let expected = " fn first() {\n     ask();\n-    look(1);\n+    forget();\n     sleep()\n }\n";
        assert_eq!(shown(&old.refreshed(&code, &place)), expected);
    }

    #[test]
    fn context_grows_until_the_place_is_the_only_one() {
        let source = "a();\nx();\nx();\nx();\nx();\nx();\n";
        let code = Code::new(source);
        let old = hunk(" a();\n x();\n x();\n+y();\n x();\n x();\n");
        let place = old.find(&code, 0).unwrap_or_else(|miss| panic!("{miss:?}"));
        assert_eq!(shown(&old.refreshed(&code, &place)), " a();\n x();\n x();\n+y();\n x();\n x();\n x();\n");
    }

    #[test]
    fn a_comment_is_no_code() {
        let codes =
            ["  // a", "  a(\"//\"); //b", "a(\"http://b\")", "/// c", "let x = 'a'; // \"d"].map(code);
        assert_eq!(codes, ["", "  a(\"//\");", "a(\"http://b\")", "", "let x = 'a';"]);
    }
}
