//! Cuts a block of text into sentences.

/// Lines of text that belong together, each with its number in the file.
pub type Block = Vec<(usize, String)>;

/// A sentence, with the number of the line where it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    pub line: usize,
    pub text: String,
}

/// Fewest words of a sentence. Shorter ones are headings or labels.
const FEWEST: usize = 3;

/// Returns the sentences of a block. Code in backticks becomes `X`, a link its text.
pub fn sentences(block: &Block) -> Vec<Sentence> {
    let mut sentences = Vec::new();
    let mut text = String::new();
    let mut first = 0;
    let mut shown = shown(block).into_iter().peekable();
    while let Some((line, c)) = shown.next() {
        if c.is_whitespace() {
            if !text.is_empty() && !text.ends_with(' ') {
                text.push(' ');
            }
            continue;
        }
        if text.is_empty() {
            first = line;
        }
        text.push(c);
        let ends_word = shown.peek().is_none_or(|(_, next)| next.is_whitespace());
        if matches!(c, '.' | '!' | '?' | ':' | ';') && ends_word {
            finish(&mut text, first, &mut sentences);
        }
    }
    finish(&mut text, first, &mut sentences);
    sentences
}

fn finish(text: &mut String, line: usize, sentences: &mut Vec<Sentence>) {
    let text = std::mem::take(text);
    let text = text.trim();
    if count_words(text) >= FEWEST {
        sentences.push(Sentence { line, text: text.to_owned() });
    }
}

/// Returns the number of words: letters, with hyphens and apostrophes inside.
pub fn count_words(text: &str) -> usize {
    let is_inside = |c: char| c.is_ascii_alphabetic() || c == '\'' || c == '-';
    let words = text.split(|c| !is_inside(c));
    words.filter(|word| word.contains(|c: char| c.is_ascii_alphabetic())).count()
}

/// Returns the characters that a reader sees, each with its line number.
fn shown(block: &Block) -> Vec<(usize, char)> {
    let all: Vec<(usize, char)> =
        block.iter().flat_map(|(line, text)| text.chars().chain([' ']).map(move |c| (*line, c))).collect();
    let mut shown = Vec::with_capacity(all.len());
    let mut open_links = 0;
    let mut at = 0;
    let find = |from: usize, c: char| all[from..].iter().position(|(_, other)| *other == c).map(|n| from + n);
    while let Some(&(line, c)) = all.get(at) {
        match c {
            '`' => {
                if let Some(end) = code_end(&all, at) {
                    shown.push((line, 'X'));
                    at = end;
                    continue;
                }
            }
            '[' if find(at, ']').is_some() => {
                open_links += 1;
                at += 1;
                continue;
            }
            ']' if open_links > 0 => {
                open_links -= 1;
                at += 1;
                let is_address = all.get(at).is_some_and(|(_, next)| *next == '(');
                if let Some(end) = find(at, ')').filter(|_| is_address) {
                    at = end + 1;
                }
                continue;
            }
            _ => {}
        }
        shown.push((line, c));
        at += 1;
    }
    shown
}

/// Returns the end of the code that the backticks at `at` begin. The same number of backticks ends it.
fn code_end(all: &[(usize, char)], at: usize) -> Option<usize> {
    let run = |from: usize| all[from..].iter().take_while(|(_, c)| *c == '`').count();
    let length = run(at);
    let mut i = at + length;
    while i < all.len() {
        match run(i) {
            0 => i += 1,
            found if found == length => return Some(i + found),
            found => i += found,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(lines: &[&str]) -> Vec<(usize, String)> {
        let block = lines.iter().enumerate().map(|(at, line)| (at + 1, (*line).to_owned())).collect();
        sentences(&block).into_iter().map(|sentence| (sentence.line, sentence.text)).collect()
    }

    #[test]
    fn sentences_span_lines() {
        let text = ["A first sentence is here. Its", "successor follows: with a part. Short one."];
        let expected = [
            (1, "A first sentence is here.".to_owned()),
            (1, "Its successor follows:".to_owned()),
            (2, "with a part.".to_owned()),
        ];
        assert_eq!(found(&text), expected);
    }

    #[test]
    fn code_and_addresses_are_hidden() {
        let text = ["See `a. b` and ``c `d` e``, [`Type`] and [the page](docs/a.md. b#c) now."];
        assert_eq!(found(&text), [(1, "See X and X, X and the page now.".to_owned())]);
    }
}
