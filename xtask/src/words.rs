//! How comments read: no persons for threads, no phrases where a condition is meant, 100 columns.

use std::path::Path;

use crate::scan::{self, Source};

/// Columns of a line that is nothing but a comment.
const COLUMNS: usize = 100;

/// Words for persons. A thread, a peer or a socket is "it".
const PERSONS: [&str; 17] = [
    "who",
    "whoever",
    "whom",
    "whomever",
    "he",
    "him",
    "himself",
    "his",
    "she",
    "her",
    "somebody",
    "someone",
    "nobody",
    "anybody",
    "anyone",
    "everybody",
    "everyone",
];

/// What stands where a number or a condition is meant.
const PHRASES: [&str; 4] = ["as a rule", "for sure", "all the same", "so many"];

/// Findings in the comments of the crates, and in the names of their functions. Examples in the
/// documentation are code.
pub fn check(root: &Path) -> Vec<String> {
    let sources = scan::sources(&root.join("crates"));
    let comments = sources.iter().filter(|source| source.path.contains("/src/")).flat_map(faults);
    comments.chain(sources.iter().flat_map(names)).collect()
}

/// Functions with a person in their name.
fn names(source: &Source) -> Vec<String> {
    let functions = source.code.lines().enumerate().filter_map(|(at, code)| {
        let name = code.split_once("fn ")?.1.split(['(', '<']).next()?;
        let person = name.split('_').find(|word| PERSONS.contains(word))?;
        Some(format!("{}:{}: \"{person}\" in `{name}`", source.path, at + 1))
    });
    functions.collect()
}

/// What is wrong with the comments of one file.
fn faults(source: &Source) -> Vec<String> {
    let comments = comments(source);
    let mut faults = Vec::new();
    for (at, (number, comment)) in comments.iter().enumerate() {
        let place = format!("{}:{number}", source.path);
        let line = source.text.lines().nth(number - 1).unwrap_or_default();
        let columns = line.chars().count();
        let is_table = comment.trim_start().starts_with('|');
        if columns > COLUMNS && line.trim_start().starts_with("//") && !line.contains("://") && !is_table {
            faults.push(format!("{place}: a comment of {columns} columns (limit {COLUMNS})"));
        }
        let prose = without_code(comment).to_lowercase();
        faults.extend(
            words(&prose).filter(|word| PERSONS.contains(word)).map(|word| format!("{place}: \"{word}\"")),
        );
        // A phrase may go on in the next line.
        let next = comments.get(at + 1).filter(|(next, _)| *next == number + 1);
        let next = next.map(|(_, text)| without_code(text).to_lowercase()).unwrap_or_default();
        let both: Vec<&str> = words(&prose).chain(words(&next)).collect();
        let own = words(&prose).count();
        for phrase in PHRASES {
            let phrase: Vec<&str> = phrase.split(' ').collect();
            let mut found = both.windows(phrase.len()).take(own).filter(|window| *window == phrase);
            if found.next().is_some() {
                faults.push(format!("{place}: \"{}\"", phrase.join(" ")));
            }
        }
    }
    faults
}

/// The comments of a file but for examples, line by line: number from 1, and the text behind the
/// slashes.
fn comments(source: &Source) -> Vec<(usize, &str)> {
    let lines = source.text.lines().zip(source.code.lines()).enumerate();
    let mut example = false;
    lines
        .filter_map(|(number, (text, code))| {
            let is_comment = |at: &usize| {
                code.get(*at..).is_some_and(|code| code.trim().is_empty())
                    && (text[..*at].trim().is_empty() || text[..*at].ends_with(' '))
            };
            let at = text.match_indices("//").map(|(at, _)| at).find(is_comment)?;
            Some((number + 1, text[at..].trim_start_matches(['/', '!'])))
        })
        .filter(|(_, comment)| {
            let fence = comment.trim_start().starts_with("```");
            example ^= fence;
            !example && !fence
        })
        .collect()
}

/// The text without what stands between backticks.
fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let code = scan::blank(text);
        faults(&Source {
            path: "a.rs".into(),
            text: text.into(),
            code,
            is_test: false,
            lines_before_tests: 0,
        })
    }

    #[test]
    fn persons_and_phrases_in_comments_are_found() {
        let text =
            "//! Whoever has it.\nlet who = \"nobody // he\"; // as a\nlet x; // as a\n// rule, `for sure`\n";
        assert_eq!(found(text), ["a.rs:1: \"whoever\"", "a.rs:3: \"as a rule\""]);
    }

    #[test]
    fn long_comments_are_found_and_addresses_are_not() {
        let long = format!(
            "// {}\n/// https://{}\nlet a = 1; // {}\n",
            "a".repeat(98),
            "b".repeat(98),
            "c".repeat(98)
        );
        assert_eq!(found(&long), ["a.rs:1: a comment of 101 columns (limit 100)"]);
    }

    #[test]
    fn examples_are_code() {
        assert!(found("/// ```\n/// send(\"nobody\");\n/// ```\n/// A queue.\n").is_empty());
        assert_eq!(found("/// ```\n/// x\n/// ```\n/// Nobody.\n"), ["a.rs:4: \"nobody\""]);
    }

    #[test]
    fn persons_in_names_of_functions_are_found() {
        let text = "fn who_waits() {}\nfn what_whose<T>() {}\n// fn he()\n";
        let code = scan::blank(text);
        let source =
            Source { path: "a.rs".into(), text: text.into(), code, is_test: false, lines_before_tests: 0 };
        assert_eq!(names(&source), ["a.rs:1: \"who\" in `who_waits`"]);
    }

    #[test]
    fn what_is_whose_is_no_person() {
        assert!(found("/// A queue whose end is the owner's. It is there.\n").is_empty());
    }
}
