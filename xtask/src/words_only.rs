//! Checks that a change touches words only: the code of each changed file has the same tokens as before, without comments.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::lex::{self, Kind, Language};

/// Texts and pictures, which have no code to compare.
const TEXTS: [&str; 8] = ["md", "txt", "patch", "html", "svg", "1", "3", "7"];

/// Token in place of a literal, with `--strings`.
const LITERAL: &str = "\"...\"";

/// Most characters of a difference that are shown.
const SHOWN: usize = 160;

pub fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    let (options, revisions): (Vec<&str>, Vec<&str>) =
        arguments.iter().partition(|argument| argument.starts_with('-'));
    let ignores_strings = options == ["--strings"];
    if revisions.len() > 1 || !(options.is_empty() || ignores_strings) {
        eprintln!("usage: cargo xtask words-only [--strings] [REVISION]");
        return ExitCode::from(2);
    }
    let revision = revisions.first().copied().unwrap_or("HEAD");
    match differences(root, revision, ignores_strings) {
        Ok(differences) => crate::report("same code apart from comments", &differences),
        Err(error) => {
            eprintln!("words-only: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the changed files whose code differs between the revision and the working tree.
fn differences(root: &Path, revision: &str, ignores_strings: bool) -> Result<Vec<String>, String> {
    let list = crate::git(root, &["diff", "--name-status", "--no-renames", "-z", revision, "--"])?;
    let list = String::from_utf8_lossy(&list);
    let mut fields = list.split('\0').filter(|field| !field.is_empty());
    let mut differences = Vec::new();
    while let (Some(status), Some(path)) = (fields.next(), fields.next()) {
        let extension = path.rsplit('/').next().unwrap_or(path).rsplit_once('.').map_or("", |(_, end)| end);
        if TEXTS.contains(&extension) {
            continue;
        }
        if status != "M" {
            let verb = if status == "A" { "added" } else { "removed or replaced" };
            differences.push(format!("{path}: {verb}"));
            continue;
        }
        let old = crate::git(root, &["show", &format!("{revision}:{path}")])?;
        let new = fs::read(root.join(path)).map_err(|error| format!("cannot read {path}: {error}"))?;
        let tokens = |bytes: &[u8]| tokens(path, &String::from_utf8_lossy(bytes), ignores_strings);
        match (tokens(&old), tokens(&new)) {
            (Ok(old), Ok(new)) => {
                differences
                    .extend(first_difference(&old, &new).map(|difference| format!("{path}: {difference}")));
            }
            (Err(error), _) | (_, Err(error)) => differences.push(format!("{path}: cannot be read: {error}")),
        }
    }
    Ok(differences)
}

fn first_difference(old: &[String], new: &[String]) -> Option<String> {
    if old == new {
        return None;
    }
    let equal = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    // A token of a shell script is a line.
    let part = |tokens: &[String]| {
        let end = tokens.len().min(equal + 8);
        let shown: Vec<String> = tokens[equal.saturating_sub(2).min(end)..end]
            .iter()
            .map(|token| token.chars().take(SHOWN).collect::<String>().replace('\n', "\\n"))
            .collect();
        shown.join(" ").chars().take(SHOWN).collect::<String>()
    };
    Some(format!("code differs:\n    - {}\n    + {}", part(old), part(new)))
}

/// Returns the tokens of a file without comments.
fn tokens(path: &str, text: &str, ignores_strings: bool) -> Result<Vec<String>, String> {
    let language = Language::of(path, text.lines().next().unwrap_or_default());
    let mut tokens = match language {
        // The text of an unknown language is one token.
        None | Some(Language::Markdown) => return Ok(vec![text.to_owned()]),
        Some(Language::Rust) => {
            let stream: TokenStream = text.parse().map_err(|error| format!("{error}"))?;
            let mut tokens = Vec::new();
            flatten(stream, ignores_strings, &mut tokens);
            tokens
        }
        Some(language @ (Language::Python | Language::Shell | Language::Settings)) => {
            return Ok(lines(text, language, ignores_strings));
        }
        Some(language) => words(text, language, ignores_strings),
    };
    // rustfmt adds and removes the comma before a closing bracket.
    let closes: Vec<bool> =
        tokens.iter().skip(1).map(|next| matches!(next.as_str(), ")" | "]" | "}")).collect();
    let mut closes = closes.into_iter();
    tokens.retain(|token| !(closes.next().unwrap_or(false) && token == ","));
    Ok(tokens)
}

/// Adds the tokens of a stream, without doc comments, which the parser turns into attributes.
fn flatten(stream: TokenStream, ignores_strings: bool, tokens: &mut Vec<String>) {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    let mut rest = trees.as_slice();
    while let [first, after @ ..] = rest {
        if let Some(after) = after_doc(rest) {
            rest = after;
            continue;
        }
        match first {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::None => ("", ""),
                };
                tokens.push(open.to_owned());
                flatten(group.stream(), ignores_strings, tokens);
                tokens.push(close.to_owned());
            }
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                let is_string = text.contains('"') && !text.starts_with('\'') && !text.starts_with("b'");
                tokens.push(if ignores_strings && is_string { LITERAL.to_owned() } else { unwrapped(&text) });
            }
            other => tokens.push(other.to_string()),
        }
        rest = after;
    }
}

/// Returns the trees after `#[doc = "..."]` or `#![doc = "..."]`, if `trees` starts with one.
fn after_doc(trees: &[TokenTree]) -> Option<&[TokenTree]> {
    let is = |tree: &TokenTree, c: char| matches!(tree, TokenTree::Punct(punct) if punct.as_char() == c);
    let (_, rest) = trees.split_first().filter(|(first, _)| is(first, '#'))?;
    let rest = match rest {
        [mark, rest @ ..] if is(mark, '!') => rest,
        _ => rest,
    };
    let (TokenTree::Group(group), rest) = rest.split_first()? else { return None };
    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
    let is_doc = matches!(&inner[..], [TokenTree::Ident(name), equals, TokenTree::Literal(_)]
        if *name == "doc" && is(equals, '='));
    (is_doc && group.delimiter() == Delimiter::Bracket).then_some(rest)
}

/// Joins the lines of a string literal that a backslash continues.
fn unwrapped(literal: &str) -> String {
    let mut parts = literal.split("\\\n");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |joined, part| joined + part.trim_start())
}

/// Returns the tokens of a program in a language that ignores line breaks.
fn words(text: &str, language: Language, ignores_strings: bool) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut at = 0;
    for piece in lex::pieces(text, language) {
        add_words(&text[at..piece.range.start], &mut tokens);
        at = piece.range.end;
        if piece.kind == Kind::Literal {
            let literal = &text[piece.range];
            tokens.push(if ignores_strings { LITERAL.to_owned() } else { unwrapped(literal) });
        }
    }
    add_words(&text[at..], &mut tokens);
    tokens
}

fn add_words(code: &str, tokens: &mut Vec<String>) {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let end =
            if is_word(first) { rest.find(|c| !is_word(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        tokens.push(rest[..end].to_owned());
        rest = rest[end..].trim_start();
    }
}

/// Returns the lines with code of a program whose language uses line breaks. Python also keeps the indentation.
fn lines(text: &str, language: Language, ignores_strings: bool) -> Vec<String> {
    let mut code = String::new();
    let mut at = 0;
    for piece in lex::pieces(text, language) {
        code.push_str(&text[at..piece.range.start]);
        at = piece.range.end;
        let literal = &text[piece.range.clone()];
        if piece.kind == Kind::Comment {
            // The first line names the interpreter.
            code.push_str(if literal.starts_with("#!") { literal } else { "" });
            continue;
        }
        let before = text[..piece.range.start].rsplit('\n').next().unwrap_or_default();
        let is_doc =
            language == Language::Python && lex::is_docstring(before, literal, &text[piece.range.end..]);
        code.push_str(if is_doc || ignores_strings { LITERAL } else { literal });
    }
    code.push_str(&text[at..]);
    let keeps_indent = language == Language::Python;
    let lines = code.lines().map(|line| if keeps_indent { line.trim_end() } else { line.trim() });
    lines.filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_same(path: &str, old: &str, new: &str) -> bool {
        tokens(path, old, false).unwrap() == tokens(path, new, false).unwrap()
    }

    #[test]
    fn comments_may_change() {
        let old = "//! A.\n/// B.\nfn a(b: u8) { /* c */ d(\"e\\\n   f\", 'g') // h\n}";
        let new = "//! X.\n//! Y.\nfn a(b: u8,) {\n d(\"ef\", 'g') }";
        assert!(is_same("a.rs", old, new));
        assert!(is_same("a.c", "int a; /* b */\n// c\n", "int a; // d\n"));
        assert!(is_same(
            "a.py",
            "def a():\n    \"\"\"B.\"\"\"\n    c()  # d\n",
            "def a():\n    '''X.'''\n\n    c()\n"
        ));
        assert!(is_same("a.sh", "#!/bin/sh\n# a\nb \"# c\" # d\n", "#!/bin/sh\nb \"# c\"\n"));
    }

    #[test]
    fn code_and_literals_may_not_change() {
        assert!(!is_same("a.rs", "/// A.\nfn a() {}", "/// A.\nfn b() {}"));
        assert!(!is_same("a.rs", "#[doc(hidden)]\nfn a() {}", "fn a() {}"));
        assert!(!is_same("a.rs", "a(\"// b\")", "a(\"// c\")"));
        assert!(!is_same("a.py", "if a:\n    b()\n", "if a:\n  b()\n"));
        assert!(!is_same("a.sh", "a <<E\n# b\nE\n", "a <<E\n# c\nE\n"));
        assert!(!is_same("a.json", "{}", "{ }"));
    }

    #[test]
    fn literals_may_change_with_the_option() {
        let same = |path, old, new| tokens(path, old, true).unwrap() == tokens(path, new, true).unwrap();
        assert!(same("a.rs", "a(\"b\", r#\"c\"#)", "a(\"d\", r#\"e\"#)"));
        assert!(!same("a.rs", "a('\"')", "a('b')"));
        assert!(same("a.js", "a('b')", "a('c')"));
        assert!(!same("a.js", "a('b')", "c('b')"));
    }
}
