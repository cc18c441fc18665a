//! Finds the prose of a file: its comments, the string literals that users see, and the text of Markdown.

use super::sentences::{Block, count_words};
use crate::lex::{self, Kind, Language, Piece};

/// Fewest words of a string literal that counts as prose.
const LITERAL: usize = 5;
/// Fewest words of a table cell.
const CELL: usize = 6;

/// Returns the blocks of prose in a file. String literals count up to the byte `literals_end`, because those of tests
/// are no texts for users.
pub fn blocks(text: &str, language: Language, literals_end: usize) -> Vec<Block> {
    if language == Language::Markdown {
        let mut blocks = Blocks { is_page: true, ..Blocks::default() };
        for (at, line) in text.lines().enumerate() {
            blocks.add(at + 1, line);
        }
        return blocks.end();
    }
    let pieces = lex::pieces(text, language);
    let mut blocks = comments(text, language, &pieces);
    if !matches!(language, Language::Shell | Language::Settings) {
        blocks.extend(literals(text, language, &pieces, literals_end));
    }
    blocks
}

/// Blocks under construction.
#[derive(Default)]
struct Blocks {
    done: Vec<Block>,
    run: Block,
    in_code: bool,
    in_item: bool,
    /// The line before is indented, as commands in a comment are.
    is_indented: bool,
    is_page: bool,
}

impl Blocks {
    /// Adds a line. An empty line, a list item, a table, code and an indented line end the block before them.
    fn add(&mut self, number: usize, line: &str) {
        let is_indented = !self.is_page && line.starts_with("   ") && !self.in_item;
        let was_indented = std::mem::replace(&mut self.is_indented, is_indented);
        if is_indented || was_indented {
            self.cut();
        }
        let line = line.trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            self.in_code = !self.in_code;
            self.cut();
            return;
        }
        let is_heading = if self.is_page { line.starts_with(['#', '<']) } else { line.starts_with("# ") };
        if self.in_code || line.is_empty() || is_heading || line.starts_with("![") {
            self.cut();
            return;
        }
        if let Some(row) = line.strip_prefix('|') {
            self.cut();
            let cells = row.split('|').map(str::trim).filter(|cell| cell.split_whitespace().count() >= CELL);
            self.done.extend(cells.map(|cell| vec![(number, cell.to_owned())]));
            return;
        }
        if let Some(item) = list_item(line) {
            self.cut();
            self.in_item = true;
            self.run.push((number, item.to_owned()));
        } else {
            let line = line.strip_prefix('>').map_or(line, str::trim_start);
            self.run.push((number, line.to_owned()));
        }
    }

    /// Adds a line of a doc comment of C#. Tags such as `<summary>` begin and end blocks; `<see>` and `<c>` are code.
    fn add_xml(&mut self, number: usize, line: &str) {
        let line = line.trim().replace("<c>", "`").replace("</c>", "`");
        let mut text = String::new();
        let mut rest = line.as_str();
        while let Some((before, tag)) = rest.split_once('<') {
            let Some((name, after)) = tag.split_once('>') else { break };
            text.push_str(before);
            if name.starts_with("see ") || name.starts_with("paramref") {
                text.push_str("`X`");
            } else {
                if !text.trim().is_empty() {
                    self.add(number, text.trim());
                }
                text.clear();
                self.cut();
            }
            rest = after;
        }
        text.push_str(rest);
        if !text.trim().is_empty() || line.is_empty() {
            self.add(number, text.trim());
        }
    }

    fn cut(&mut self) {
        self.in_item = false;
        if !self.run.is_empty() {
            self.done.push(std::mem::take(&mut self.run));
        }
    }

    /// Ends a comment. Code does not go on in the next one.
    fn cut_comment(&mut self) {
        self.cut();
        self.in_code = false;
    }

    fn end(mut self) -> Vec<Block> {
        self.cut();
        self.done
    }
}

/// Returns the text of a list item without its bullet or number.
fn list_item(line: &str) -> Option<&str> {
    let rest = match line.strip_prefix(['-', '*']) {
        Some(rest) => rest,
        None => line
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .strip_prefix('.')
            .filter(|_| line.starts_with(|c: char| c.is_ascii_digit()))?,
    };
    rest.strip_prefix(' ').map(str::trim_start)
}

/// Returns the blocks of all comments. Lines with the same marker below each other are one comment; one behind code
/// goes on in the next line only if it begins in the same column.
fn comments(text: &str, language: Language, pieces: &[Piece]) -> Vec<Block> {
    let mut blocks = Blocks::default();
    let mut lines = Lines::new(text);
    let mut previous: Option<(usize, usize, bool, &str)> = None;
    for piece in pieces.iter().filter(|piece| piece.kind == Kind::Comment) {
        let comment = &text[piece.range.clone()];
        let (number, column, before) = lines.position(piece.range.start);
        let is_trailing = !before.trim().is_empty();
        let marker = marker(comment, language);
        let goes_on = previous.is_some_and(|(line, start, was_trailing, other)| {
            line + 1 == number
                && other == marker
                && marker != "/*"
                && !is_trailing
                && (!was_trailing || start == column)
        });
        if !goes_on {
            blocks.cut_comment();
        }
        let was_trailing = goes_on && previous.is_some_and(|(_, _, was_trailing, _)| was_trailing);
        previous = Some((number, column, is_trailing || was_trailing, marker));
        if marker == "#!" {
            continue;
        }
        if marker == "/*" {
            let comment = comment.trim_end_matches("*/");
            for (at, line) in comment.lines().enumerate() {
                let line = if at == 0 { &line[2..] } else { line.trim() };
                let line = line.trim_start_matches(['*', '!']).trim_end_matches('*');
                blocks.add(number + at, line);
            }
        } else {
            let line = comment[marker.len()..].trim_start_matches(['/', '#']);
            if language == Language::CSharp { blocks.add_xml(number, line) } else { blocks.add(number, line) }
        }
    }
    blocks.end()
}

fn marker(comment: &str, language: Language) -> &'static str {
    let is_rust = language == Language::Rust;
    ["///", "//!", "//", "/*", "#!", "#"]
        .into_iter()
        .find(|marker| comment.starts_with(marker) && (is_rust || *marker != "//!"))
        .unwrap_or_default()
}

/// Finds line numbers. Positions are asked for in ascending order.
struct Lines<'a> {
    text: &'a str,
    number: usize,
    start: usize,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        Lines { text, number: 1, start: 0 }
    }

    /// Returns the line number, the column in bytes, and the text before the position in its line.
    fn position(&mut self, at: usize) -> (usize, usize, &'a str) {
        while let Some(length) = self.text[self.start..at].find('\n') {
            self.start += length + 1;
            self.number += 1;
        }
        (self.number, at - self.start, &self.text[self.start..at])
    }
}

/// Returns the string literals with enough words, each line of one as a block. Literals that the compiler joins are one.
fn literals(text: &str, language: Language, pieces: &[Piece], end: usize) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = Lines::new(text);
    let attributes = if language == Language::Rust { attributes(text, pieces) } else { Vec::new() };
    let mut joined: Vec<(usize, String)> = Vec::new();
    let mut previous = None;
    for piece in pieces.iter().filter(|piece| piece.kind == Kind::Literal && piece.range.start < end) {
        let start = piece.range.start;
        if attributes.iter().any(|range| range.contains(&start)) {
            continue;
        }
        let (number, _, before) = lines.position(start);
        let raw = &text[piece.range.clone()];
        if language == Language::Python && lex::is_docstring(before, raw, &text[piece.range.end..]) {
            let mut docs = Blocks::default();
            let body = raw.trim_matches(['"', '\'']);
            body.lines().enumerate().for_each(|(at, line)| docs.add(number + at, line));
            blocks.extend(docs.end());
            continue;
        }
        let between = previous.map(|end: usize| &text[end..start]);
        let is_joined = language != Language::Rust
            && between.is_some_and(|between| {
                let prefix = |c: char| c.is_whitespace() || matches!(c, '+' | 'f' | 'r' | 'b' | '$' | '@');
                !between.is_empty() && between.chars().all(prefix)
            });
        if !is_joined {
            finish(&mut joined, &mut blocks);
        }
        previous = Some(piece.range.end);
        let mut content = content(raw, before, number, language).into_iter();
        if is_joined && let (Some(last), Some(first)) = (joined.last_mut(), content.next()) {
            last.1.push_str(&first.1);
        }
        joined.extend(content);
    }
    finish(&mut joined, &mut blocks);
    blocks
}

fn finish(joined: &mut Vec<(usize, String)>, blocks: &mut Vec<Block>) {
    let joined = std::mem::take(joined);
    if joined.iter().map(|(_, line)| count_words(line)).sum::<usize>() >= LITERAL {
        blocks.extend(joined.into_iter().map(|line| vec![line]));
    }
}

/// Returns the text of a literal, cut at its line breaks, each part with its line number. A placeholder becomes `X`.
fn content(raw: &str, before: &str, number: usize, language: Language) -> Vec<(usize, String)> {
    let prefix = before.chars().next_back().unwrap_or(' ');
    let is_raw =
        raw.starts_with(['r', '`']) || (language != Language::Rust && matches!(prefix, 'r' | 'R' | '@'));
    let body = raw.trim_start_matches(['r', '#']).trim_end_matches('#');
    let body = body.trim_matches(['"', '\'', '`']);
    let mut parts = vec![(number, String::new())];
    let mut number = number;
    let mut chars = body.chars().peekable();
    while let Some(c) = chars.next() {
        let mut breaks = c == '\n';
        let mut shown = c;
        if c == '\\' && !is_raw {
            match chars.next() {
                Some('n') => breaks = true,
                Some('t' | 'r') => shown = ' ',
                Some('\n') => {
                    number += 1;
                    while chars.next_if(|c| c.is_whitespace() && *c != '\n').is_some() {}
                    continue;
                }
                Some(c) => shown = c,
                None => break,
            }
        } else if c == '\n' {
            number += 1;
        } else if c == '{' && language != Language::C && chars.peek().is_some_and(|next| *next != '{') {
            while chars.next_if(|c| *c != '}' && *c != '\n').is_some() {}
            chars.next_if_eq(&'}');
            shown = 'X';
        }
        if breaks {
            parts.push((number, String::new()));
        } else if let Some((_, part)) = parts.last_mut() {
            part.push(shown);
        }
    }
    parts
}

/// Returns the attributes of a Rust file, as ranges of bytes.
fn attributes(text: &str, pieces: &[Piece]) -> Vec<std::ops::Range<usize>> {
    let bytes = text.as_bytes();
    let mut attributes = Vec::new();
    let mut open: Option<(usize, i32)> = None;
    let starts = [0].into_iter().chain(pieces.iter().map(|piece| piece.range.end));
    let ends = pieces.iter().map(|piece| piece.range.start).chain([bytes.len()]);
    let code = starts.zip(ends).map(|(start, end)| start..end);
    for i in code.flatten() {
        match (bytes[i], &mut open) {
            (b'#', None) if matches!(bytes[i + 1..], [b'[', ..] | [b'!', b'[', ..]) => open = Some((i, 0)),
            (b'[', Some((_, depth))) => *depth += 1,
            (b']', Some((start, depth))) => {
                *depth -= 1;
                if *depth == 0 {
                    attributes.push(*start..i);
                    open = None;
                }
            }
            _ => {}
        }
    }
    attributes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, language: Language) -> Vec<String> {
        let blocks = blocks(text, language, text.len());
        blocks
            .iter()
            .map(|block| {
                let lines: Vec<&str> = block.iter().map(|(_, line)| line.as_str()).collect();
                format!("{}: {}", block[0].0, lines.join(" "))
            })
            .collect()
    }

    #[test]
    fn comments_are_blocks() {
        let rust = "//! One\n//! two.\n//!\n//! - three\n//!   four\n//! ```\n//! five\n//! ```\n/// six\nfn a() { // seven\n         // eight\n    // nine\n}\n/* ten\n * eleven */\n";
        assert_eq!(
            found(rust, Language::Rust),
            ["1: One two.", "4: three four", "9: six", "10: seven eight", "12: nine", "14: ten eleven"]
        );
        let csharp = "/// <summary>One <see cref=\"a\"/> two.</summary>\n/// <param name=\"b\">Three\n/// four.</param>\n";
        assert_eq!(found(csharp, Language::CSharp), ["1: One `X` two.", "2: Three four."]);
        let shell = "# One:\n#   two three\n#   four\n# five\n";
        assert_eq!(found(shell, Language::Shell), ["1: One:", "2: two three", "3: four", "4: five"]);
        let make = "#!/usr/bin/make\nall: ## a b\n# c\n# d\n";
        assert_eq!(found(make, Language::Settings), ["2: a b", "3: c d"]);
    }

    #[test]
    fn literals_are_blocks_if_they_are_long() {
        let rust = "#[doc = \"a b c d e f\"]\nconst A: &str = \"a b c d\";\nfn b() {\n    x(\"a {b} c \\\n    d\\ne f\");\n}\n";
        assert_eq!(found(rust, Language::Rust), ["4: a X c d", "5: e f"]);
        let c = "puts(\"a b c \" /* d */\n  \"e\");\nputs(\"a b c \"\n  \"d e f\");\n";
        assert_eq!(found(c, Language::C), ["1: d", "3: a b c d e f"]);
        let python = "def a():\n    \"\"\"Does b.\n\n    And c.\"\"\"\n    d(f\"a b c d {e} f\")\n";
        assert_eq!(found(python, Language::Python), ["2: Does b.", "4: And c.", "5: a b c d X f"]);
    }

    #[test]
    fn pages_are_blocks() {
        let page = "# Title\n\nA line\ngoes on.\n\n1. One\n2. Two\n\n| a | b b b b b b |\n|---|---|\n\n```\ncode\n```\n> Quote\n";
        assert_eq!(
            found(page, Language::Markdown),
            ["3: A line goes on.", "6: One", "7: Two", "9: b b b b b b", "15: Quote"]
        );
    }
}
