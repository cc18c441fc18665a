//! Finds the comments and the literals in a source file. Everything between them is code.
//!
//! The scanners know only as much of each language as that needs: its comments, its quotes and its escapes.

use std::ops::Range;

/// The languages that [`pieces`] can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Rust,
    /// C and C++.
    C,
    /// JavaScript and TypeScript.
    Script,
    CSharp,
    Go,
    Java,
    Python,
    Shell,
    /// TOML, YAML, make and CMake: comments begin with `#`.
    Settings,
    Markdown,
}

impl Language {
    /// Returns the language of a file. `first_line` tells it for programs without an extension.
    pub fn of(path: &str, first_line: &str) -> Option<Language> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        let language = match extension {
            "rs" => Language::Rust,
            "c" | "h" | "cc" | "cpp" | "hpp" => Language::C,
            "js" | "mjs" | "ts" | "mts" => Language::Script,
            "cs" => Language::CSharp,
            "go" => Language::Go,
            "java" => Language::Java,
            "py" => Language::Python,
            "sh" => Language::Shell,
            "toml" | "yaml" | "yml" | "cmake" | "mk" => Language::Settings,
            "md" => Language::Markdown,
            _ if matches!(name, "Makefile" | "CMakeLists.txt") => Language::Settings,
            _ if first_line.starts_with("#!") && first_line.contains("python") => Language::Python,
            _ if first_line.starts_with("#!") && first_line.trim_end().ends_with("sh") => Language::Shell,
            _ => return None,
        };
        Some(language)
    }
}

/// A comment or a literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub kind: Kind,
    /// Position in bytes, delimiters included.
    pub range: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Comment,
    /// A string or a character.
    Literal,
}

/// Returns the comments and literals of a text in order. Markdown has no pieces.
pub fn pieces(text: &str, language: Language) -> Vec<Piece> {
    let bytes = text.as_bytes();
    match language {
        Language::Markdown => Vec::new(),
        Language::Shell => shell(bytes),
        Language::Settings => settings(bytes),
        _ => program(bytes, language),
    }
}

fn program(bytes: &[u8], language: Language) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        // Most bytes begin no piece.
        let piece = match bytes[at] {
            b'/' | b'#' | b'"' | b'\'' | b'`' | b'r' => piece_at(bytes, at, language),
            _ => None,
        };
        let Some((kind, start, end)) = piece else {
            at += 1;
            continue;
        };
        let end = end.min(bytes.len());
        // A lifetime or a digit separator is a lone quote.
        if end > start + 1 {
            pieces.push(Piece { kind, range: start..end });
        }
        at = end;
    }
    pieces
}

/// Returns the comment or literal at `at`: its kind, its start (`at`) and its end.
fn piece_at(bytes: &[u8], at: usize, language: Language) -> Option<(Kind, usize, usize)> {
    use Language::{C, CSharp, Go, Java, Python, Rust, Script};
    let rest = &bytes[at..];
    let has_slashes = language != Python;
    let end = match bytes[at] {
        b'/' if has_slashes && rest.starts_with(b"//") => {
            return Some((Kind::Comment, at, line_end(bytes, at)));
        }
        b'/' if has_slashes && rest.starts_with(b"/*") => {
            return Some((Kind::Comment, at, comment_end(bytes, at, language == Rust)));
        }
        b'#' if language == Python => return Some((Kind::Comment, at, line_end(bytes, at))),
        b'/' if language == Script && starts_regex(bytes, at) => regex_end(bytes, at)?,
        b'"' if matches!(language, Python | CSharp | Java) && rest.starts_with(b"\"\"\"") => {
            until(bytes, at + 3, b"\"\"\"", language != CSharp)
        }
        b'\'' if language == Python && rest.starts_with(b"'''") => until(bytes, at + 3, b"'''", true),
        b'"' if language == CSharp && is_verbatim(bytes, at) => verbatim_end(bytes, at),
        b'"' if language == C && is_raw_cpp(bytes, at) => raw_cpp_end(bytes, at)?,
        // A raw string of Python escapes its quote too.
        b'"' => string_end(bytes, at, b'"'),
        b'r' if language == Rust && !follows_word(bytes, at) => raw_string_end(bytes, at)?,
        b'\'' if language == Rust => char_end(bytes, at),
        b'\'' if language == C && at > 0 && bytes[at - 1].is_ascii_hexdigit() => at + 1,
        b'\'' if matches!(language, Python | Script | C | CSharp | Java | Go) => string_end(bytes, at, b'\''),
        b'`' if language == Go => until(bytes, at + 1, b"`", false),
        b'`' if language == Script => template_end(bytes, at),
        _ => return None,
    };
    Some((Kind::Literal, at, end))
}

/// True if the byte at `at` is inside a word, unless a literal prefix (`br"..."`, `cr"..."`) ends before it.
fn follows_word(bytes: &[u8], at: usize) -> bool {
    match at.checked_sub(1).map(|before| bytes[before]) {
        Some(b'b' | b'c') => at >= 2 && is_word(bytes[at - 2]),
        Some(byte) => is_word(byte),
        None => false,
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |length| at + length)
}

fn comment_end(bytes: &[u8], at: usize, nests: bool) -> usize {
    let (mut depth, mut i) = (1, at + 2);
    while i < bytes.len() {
        if nests && bytes[i..].starts_with(b"/*") {
            depth += 1;
            i += 2;
        } else if bytes[i..].starts_with(b"*/") {
            depth -= 1;
            i += 2;
            if depth == 0 {
                return i;
            }
        } else {
            i += 1;
        }
    }
    bytes.len()
}

/// Returns the end of the text up to and including `close`. `escapes`: a backslash hides the next byte.
fn until(bytes: &[u8], from: usize, close: &[u8], escapes: bool) -> usize {
    let mut i = from;
    while i < bytes.len() {
        if bytes[i..].starts_with(close) {
            return i + close.len();
        }
        i += if escapes && bytes[i] == b'\\' { 2 } else { 1 };
    }
    bytes.len()
}

fn string_end(bytes: &[u8], at: usize, quote: u8) -> usize {
    until(bytes, at + 1, &[quote], true)
}

/// Returns the end of `r"..."` or `r#"..."#` at `at`, or `None` if it is not a raw string.
fn raw_string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let hashes = bytes[at + 1..].iter().take_while(|byte| **byte == b'#').count();
    let open = at + 1 + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let close = [b"\"".as_slice(), &vec![b'#'; hashes]].concat();
    Some(until(bytes, open + 1, &close, false))
}

/// Returns the end of a character literal at `at`, or the position after the quote of a lifetime.
fn char_end(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at + 1) {
        Some(b'\\') => {
            // The byte after the backslash may be a quote itself.
            let close = bytes.get(at + 3..).and_then(|rest| rest.iter().position(|byte| *byte == b'\''));
            close.map_or(bytes.len(), |length| at + 3 + length + 1)
        }
        Some(first) => {
            let width = match first {
                0..0x80 => 1,
                0x80..0xE0 => 2,
                0xE0..0xF0 => 3,
                _ => 4,
            };
            if bytes.get(at + 1 + width) == Some(&b'\'') { at + 2 + width } else { at + 1 }
        }
        None => bytes.len(),
    }
}

/// True for the quote of `@"..."`, `$@"..."` and `@$"..."`.
fn is_verbatim(bytes: &[u8], at: usize) -> bool {
    bytes[..at].iter().rev().take_while(|byte| matches!(byte, b'@' | b'$')).any(|byte| *byte == b'@')
}

/// Returns the end of a verbatim string, in which two quotes stand for one.
fn verbatim_end(bytes: &[u8], at: usize) -> usize {
    let mut i = at + 1;
    while i < bytes.len() {
        match (bytes[i], bytes.get(i + 1)) {
            (b'"', Some(b'"')) => i += 2,
            (b'"', _) => return i + 1,
            _ => i += 1,
        }
    }
    bytes.len()
}

fn is_raw_cpp(bytes: &[u8], at: usize) -> bool {
    at > 0
        && bytes[at - 1] == b'R'
        && (at < 2 || !is_word(bytes[at - 2]) || matches!(bytes[at - 2], b'u' | b'8'))
}

fn raw_cpp_end(bytes: &[u8], at: usize) -> Option<usize> {
    let length = bytes[at + 1..].iter().take(17).position(|byte| *byte == b'(')?;
    let close = [b")", &bytes[at + 1..at + 1 + length], b"\""].concat();
    Some(until(bytes, at + 2 + length, &close, false))
}

/// True if a slash begins a regular expression and is not a division: it follows an operator or a keyword.
fn starts_regex(bytes: &[u8], at: usize) -> bool {
    let before = bytes[..at].trim_ascii_end();
    match before.last() {
        None => true,
        Some(byte) if b"(,=:[!&|?{};+<>".contains(byte) => true,
        Some(_) => before.ends_with(b"return") || before.ends_with(b"typeof"),
    }
}

fn regex_end(bytes: &[u8], at: usize) -> Option<usize> {
    let (mut i, mut in_class) = (at + 1, false);
    while i < bytes.len() {
        match bytes[i] {
            b'\n' => return None,
            b'\\' => i += 1,
            b'[' => in_class = true,
            b']' => in_class = false,
            b'/' if !in_class => return Some(i + 1),
            _ => {}
        }
        i += 1;
    }
    None
}

/// Returns the end of a template string of JavaScript, which may contain others in its `${...}`.
fn template_end(bytes: &[u8], at: usize) -> usize {
    let mut i = at + 1;
    while i < bytes.len() {
        match bytes[i] {
            b'\\' => i += 2,
            b'`' => return i + 1,
            b'$' if bytes.get(i + 1) == Some(&b'{') => i = braces_end(bytes, i + 2),
            _ => i += 1,
        }
    }
    bytes.len()
}

fn braces_end(bytes: &[u8], from: usize) -> usize {
    let (mut i, mut depth) = (from, 1);
    while i < bytes.len() {
        match bytes[i] {
            quote @ (b'"' | b'\'') => i = string_end(bytes, i, quote),
            b'`' => i = template_end(bytes, i),
            byte => {
                depth += i32::from(byte == b'{') - i32::from(byte == b'}');
                i += 1;
                if depth == 0 {
                    return i;
                }
            }
        }
    }
    bytes.len()
}

/// Comments of files with settings. A quote opens a literal only where a value can begin, because plain text of YAML
/// and make contains apostrophes.
fn settings(bytes: &[u8]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let before = at.checked_sub(1).map_or(b'\n', |before| bytes[before]);
        let byte = bytes[at];
        let (kind, end) = if byte == b'#' && before.is_ascii_whitespace() {
            (Kind::Comment, line_end(bytes, at))
        } else if matches!(byte, b'"' | b'\'') && !is_word(before) && before != b'\\' {
            let triple = [byte; 3];
            let line = line_end(bytes, at);
            let end = if bytes[at..].starts_with(&triple) {
                until(bytes, at + 3, &triple, byte == b'"')
            } else {
                until(&bytes[..line], at + 1, &[byte], byte == b'"')
            };
            // An unclosed quote is a character of the text.
            let is_closed = end > at + 1 && end <= bytes.len() && bytes[end - 1] == byte;
            (Kind::Literal, if is_closed { end } else { at + 1 })
        } else {
            at += 1;
            continue;
        };
        if end > at + 1 || kind == Kind::Comment {
            pieces.push(Piece { kind, range: at..end });
        }
        at = end;
    }
    pieces
}

/// Comments and literals of a shell script. A here-document is a literal.
fn shell(bytes: &[u8]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    shell_code(bytes, 0, None, &mut pieces);
    pieces
}

/// Reads commands from `at` to the parenthesis or brace that closes them, or to the end. Returns that end.
fn shell_code(bytes: &[u8], mut at: usize, close: Option<u8>, pieces: &mut Vec<Piece>) -> usize {
    let mut depth = 0;
    let mut documents: Vec<(Vec<u8>, bool)> = Vec::new();
    while at < bytes.len() {
        let before = at.checked_sub(1).map_or(b'\n', |before| bytes[before]);
        match bytes[at] {
            b'\\' => at += 2,
            b'#' if (before.is_ascii_whitespace() || matches!(before, b';' | b'(' | b'|' | b'&'))
                && close != Some(b'}') =>
            {
                let end = line_end(bytes, at);
                pieces.push(Piece { kind: Kind::Comment, range: at..end });
                at = end;
            }
            b'\'' => {
                let end = until(bytes, at + 1, b"'", before == b'$');
                pieces.push(Piece { kind: Kind::Literal, range: at..end.min(bytes.len()) });
                at = end;
            }
            b'"' => {
                let end = shell_quoted(bytes, at + 1);
                pieces.push(Piece { kind: Kind::Literal, range: at..end.min(bytes.len()) });
                at = end;
            }
            b'$' if bytes.get(at + 1) == Some(&b'{') => at = shell_code(bytes, at + 2, Some(b'}'), pieces),
            b'<' if bytes[at..].starts_with(b"<<<") => at += 3,
            b'<' if bytes[at..].starts_with(b"<<") => {
                let (end, document) = here_document(bytes, at + 2);
                documents.extend(document);
                at = end;
            }
            b'\n' if !documents.is_empty() => {
                let start = at + 1;
                at = start;
                for (word, is_indented) in documents.drain(..) {
                    at = document_end(bytes, at, &word, is_indented);
                }
                pieces.push(Piece { kind: Kind::Literal, range: start..at.min(bytes.len()) });
            }
            byte => {
                at += 1;
                match close {
                    Some(end) if byte == end && depth == 0 => return at,
                    Some(b')') => depth += i32::from(byte == b'(') - i32::from(byte == b')'),
                    _ => {}
                }
            }
        }
    }
    bytes.len()
}

/// Returns the end of a text in double quotes, whose `$(...)` may contain quotes of their own.
fn shell_quoted(bytes: &[u8], mut at: usize) -> usize {
    let mut inside = Vec::new();
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            b'$' if bytes.get(at + 1) == Some(&b'(') => {
                at = shell_code(bytes, at + 2, Some(b')'), &mut inside)
            }
            b'$' if bytes.get(at + 1) == Some(&b'{') => {
                at = shell_code(bytes, at + 2, Some(b'}'), &mut inside)
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Reads the word after `<<`. Returns its end, and the word with whether tabs are stripped (`<<-`).
fn here_document(bytes: &[u8], at: usize) -> (usize, Option<(Vec<u8>, bool)>) {
    let is_indented = bytes.get(at) == Some(&b'-');
    let mut start = at + usize::from(is_indented);
    while matches!(bytes.get(start), Some(b' ' | b'\'' | b'"' | b'\\')) {
        start += 1;
    }
    let length = bytes[start.min(bytes.len())..].iter().take_while(|byte| is_word(**byte)).count();
    let word = &bytes[start.min(bytes.len())..][..length];
    // `1 << 3` is arithmetic.
    if word.first().is_none_or(u8::is_ascii_digit) {
        return (at, None);
    }
    let quote = usize::from(matches!(bytes.get(start + length), Some(b'\'' | b'"')));
    (start + length + quote, Some((word.to_vec(), is_indented)))
}

/// Returns the position after the line that ends a here-document.
fn document_end(bytes: &[u8], mut at: usize, word: &[u8], is_indented: bool) -> usize {
    while at < bytes.len() {
        let end = line_end(bytes, at);
        let line = &bytes[at..end];
        let line = if is_indented { line.trim_ascii_start() } else { line };
        if line == word {
            return end;
        }
        at = end + 1;
    }
    bytes.len()
}

/// True if a string literal of Python is a whole statement.
pub fn is_docstring(before: &str, raw: &str, after: &str) -> bool {
    raw.len() >= 6
        && (raw.starts_with("\"\"\"") || raw.starts_with("'''"))
        && before.trim().trim_matches(['r', 'R']).is_empty()
        && after.lines().next().unwrap_or_default().trim().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, language: Language) -> Vec<&str> {
        pieces(text, language).into_iter().map(|piece| &text[piece.range]).collect()
    }

    #[test]
    fn program_comments_and_literals_are_found() {
        let rust = "a<'b>(r#\"c \"d\"\"#, '\\'', b\"e // f\") // g\n/* h /* i */ j */";
        assert_eq!(
            found(rust, Language::Rust),
            ["r#\"c \"d\"\"#", "'\\''", "\"e // f\"", "// g", "/* h /* i */ j */"]
        );
        let c = "int a = 1'000; /* b /* c */ R\"x(d \" e)x\" \"f\\\"g\" '\"' // h";
        assert_eq!(found(c, Language::C), ["/* b /* c */", "\"x(d \" e)x\"", "\"f\\\"g\"", "'\"'", "// h"]);
        let script = "x = a / b; y = /\"[/]/.test(`c ${d + `e`} f`) // g";
        assert_eq!(found(script, Language::Script), ["/\"[/]/", "`c ${d + `e`} f`", "// g"]);
        assert_eq!(found("$@\"a\"\"b\\\" + \"c\"", Language::CSharp), ["\"a\"\"b\\\"", "\"c\""]);
        let python = "a = '''b # c'''  # d\ne = r'\\'' \"f\"";
        assert_eq!(found(python, Language::Python), ["'''b # c'''", "# d", "'\\''", "\"f\""]);
    }

    #[test]
    fn shell_quotes_and_documents_hide_comments() {
        let text = "a $# ${#b} \"$(c \"d # e\")\" 'f\n# g' # h\ncat <<'END' # i\n# j\nEND\nk=$((1 << 2)) # l";
        let comments: Vec<&str> = pieces(text, Language::Shell)
            .into_iter()
            .filter(|piece| piece.kind == Kind::Comment)
            .map(|piece| &text[piece.range])
            .collect();
        assert_eq!(comments, ["# h", "# i", "# l"]);
    }

    #[test]
    fn settings_have_comments_and_apostrophes() {
        let text = "# a\nb = \"# c\" # d\ne: don't # f\ng = '''h\n# i'''\nj: a#b";
        assert_eq!(found(text, Language::Settings), ["# a", "\"# c\"", "# d", "# f", "'''h\n# i'''"]);
    }

    #[test]
    fn languages_follow_from_the_name_or_the_first_line() {
        assert_eq!(Language::of("a/b.rs", ""), Some(Language::Rust));
        assert_eq!(Language::of("Makefile", ""), Some(Language::Settings));
        assert_eq!(Language::of(".ci/run", "#!/usr/bin/env bash\n"), Some(Language::Shell));
        assert_eq!(Language::of("LICENSE-MIT", "MIT"), None);
    }
}
