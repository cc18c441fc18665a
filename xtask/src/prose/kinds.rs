//! The sentence shapes that make a text hard to read.

/// Kind of a sentence that is hard to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    What,
    Who,
    ThatClause,
    Pronoun,
    Negation,
    Inversion,
    Long,
}

/// All kinds, in the order of the table.
pub const KINDS: [Kind; 7] =
    [Kind::What, Kind::Who, Kind::ThatClause, Kind::Pronoun, Kind::Negation, Kind::Inversion, Kind::Long];

/// Most words of a sentence.
const LONGEST: usize = 35;

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::What => "what",
            Kind::Who => "who",
            Kind::ThatClause => "that-clause",
            Kind::Pronoun => "pronoun",
            Kind::Negation => "negation",
            Kind::Inversion => "inversion",
            Kind::Long => "long",
        }
    }

    /// Returns the limit per 1,000 sentences. `None` if the kind is only counted.
    pub fn goal(self) -> Option<usize> {
        match self {
            Kind::What => Some(10),
            Kind::Who => Some(1),
            Kind::ThatClause => Some(25),
            Kind::Pronoun => None,
            Kind::Negation => Some(15),
            Kind::Inversion => Some(6),
            Kind::Long => Some(5),
        }
    }

    /// Returns the advice that `--help` prints.
    pub fn advice(self) -> &'static str {
        match self {
            Kind::What => "name the thing: \"bytes that a flush left queued\", not \"what was left\"",
            Kind::Who => "a thread, a peer, a client or a user has a name: use it",
            Kind::ThatClause => {
                "a comment that is only a clause: start with a verb or a noun (\"Returns ...\", \"Time of ...\", \"True if ...\")"
            }
            Kind::Pronoun => "repeat the noun, so that the sentence can be read without the one before it",
            Kind::Negation => "say what happens, not what does not",
            Kind::Inversion => "subject, verb, object; the condition first or last",
            Kind::Long => "over 35 words: cut the sentence in two",
        }
    }

    pub fn index(self) -> usize {
        self as usize
    }
}

/// Returns the number of places of a kind in a sentence.
pub fn count(kind: Kind, sentence: &str) -> usize {
    match kind {
        Kind::What => words(sentence).filter(|word| is_headless_what(sentence, word)).count(),
        Kind::Who => words(sentence).filter(|word| is_person(sentence, word)).count(),
        Kind::ThatClause => usize::from(is_clause(sentence)),
        Kind::Pronoun => usize::from(starts_with_pronoun(sentence)),
        Kind::Negation => words(sentence).filter(|word| is_negation(sentence, word)).count(),
        Kind::Inversion => inversions(sentence),
        Kind::Long => usize::from(sentence.split_whitespace().count() > LONGEST),
    }
}

/// A word of a sentence and its position in bytes.
struct Word<'a> {
    text: &'a str,
    start: usize,
}

impl Word<'_> {
    fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

fn words(sentence: &str) -> impl Iterator<Item = Word<'_>> {
    sentence
        .split(|c: char| !is_word(c))
        .filter(|word| !word.is_empty())
        .map(|text| Word { text, start: text.as_ptr() as usize - sentence.as_ptr() as usize })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// True if `text` starts with `word` and the word ends there.
fn starts_with_word(text: &str, word: &str) -> bool {
    text.strip_prefix(word).is_some_and(|rest| !rest.starts_with(is_word))
}

/// True if the first of `ends` in the text is a question mark.
fn is_question(text: &str, ends: &[char]) -> bool {
    text.find(ends).is_some_and(|at| text[at..].starts_with('?'))
}

/// Words after which `what` begins an indirect question, which is good English. `about what` ends like `out what`.
const BEFORE_WHAT: [&str; 23] = [
    "say ",
    "says ",
    "said ",
    "show ",
    "shows ",
    "know ",
    "knows ",
    "see ",
    "decide ",
    "decides ",
    "describe ",
    "describes ",
    "explain ",
    "explains ",
    "tell ",
    "tells ",
    "ask ",
    "asks ",
    "matter ",
    "out ",
    "exactly ",
    "of ",
    "and ",
];

fn is_headless_what(sentence: &str, word: &Word<'_>) -> bool {
    if !matches!(word.text, "what" | "What") {
        return false;
    }
    let (before, after) = (&sentence[..word.start], &sentence[word.end()..]);
    let is_fixed = [" if", " it is", " it was", " it does", " time", " kind", " size"]
        .iter()
        .any(|next| after.starts_with(next))
        || starts_with_word(after, " to");
    !is_fixed
        && !BEFORE_WHAT.iter().any(|word| before.ends_with(word))
        && !is_question(after, &['.', ';', ':', '?'])
}

fn is_person(sentence: &str, word: &Word<'_>) -> bool {
    const VERBS: [&str; 12] = [
        " has",
        " is",
        " was",
        " does",
        " had",
        " wants",
        " comes",
        " gets",
        " knows",
        " reads",
        " asks",
        " subscribes",
    ];
    let after = &sentence[word.end()..];
    let is_person = match word.text {
        "Whoever" | "whoever" | "Whomever" | "whomever" | "Somebody" | "somebody" | "Nobody" | "nobody"
        | "Anybody" | "anybody" => true,
        "Who" | "who" => {
            let more = [" binds", " connects"];
            VERBS.iter().chain(&more).any(|verb| starts_with_word(after, verb))
        }
        _ => false,
    };
    is_person && !is_question(after, &['.', '?'])
}

fn is_clause(sentence: &str) -> bool {
    const STARTS: [&str; 14] = [
        "That",
        "Whether",
        "How",
        "Where",
        "When",
        "Until when",
        "Which",
        "Since when",
        "After how",
        "For how long",
        "So much",
        "So many",
        "So long",
        "So often",
    ];
    let start = STARTS.iter().find(|start| starts_with_word(sentence, start));
    start.is_some_and(|start| {
        let after = &sentence[start.len()..];
        !is_question(after, &['.', '?']) && !after.starts_with(',')
    })
}

fn starts_with_pronoun(sentence: &str) -> bool {
    const STARTS: [&str; 22] = [
        "The same",
        "The other",
        "The others",
        "The one",
        "The ones",
        "One that",
        "One of",
        "One more",
        "One which",
        "One for",
        "One who",
        "Those",
        "Such",
        "Another",
        "Other",
        "Others",
        "The rest",
        "The first",
        "None",
        "All of",
        "It",
        "They",
    ];
    /// "This module" names its noun.
    const NOUNS: [&str; 15] = [
        " is",
        " module",
        " type",
        " file",
        " function",
        " crate",
        " method",
        " trait",
        " struct",
        " test",
        " page",
        " table",
        " section",
        " program",
        " option",
    ];
    let is_this = starts_with_word(sentence, "This")
        && !NOUNS.iter().any(|noun| sentence["This".len()..].starts_with(noun));
    is_this || STARTS.iter().any(|start| starts_with_word(sentence, start))
}

fn is_negation(sentence: &str, word: &Word<'_>) -> bool {
    let after = &sentence[word.end()..];
    match word.text {
        "None" | "none" | "Nobody" | "nobody" | "Nothing" | "nothing" | "Nowhere" | "nowhere" => true,
        "no" => starts_with_word(after, " more"),
        "not" => starts_with_word(after, " any"),
        _ => false,
    }
}

fn inversions(sentence: &str) -> usize {
    const PHRASES: [&str; 10] = [
        " all the same",
        " as a rule",
        " for once",
        " at last",
        " meanwhile",
        " of its own",
        " as it is",
        " as it was",
        " as it likes",
        " by itself",
    ];
    let clauses = std::iter::once(0).chain(
        sentence
            .match_indices([';', ','])
            .map(|(at, _)| at + 1)
            .filter(|at| sentence[*at..].starts_with(' ')),
    );
    let inverted =
        clauses.filter(|at| is_inverted(sentence[*at..].strip_prefix(' ').unwrap_or(sentence))).count();
    let phrases =
        PHRASES.iter().flat_map(|phrase| sentence.match_indices(phrase).map(|(at, _)| at + phrase.len()));
    let phrases = phrases.filter(|end| !sentence[*end..].starts_with(is_word)).count();
    let too = sentence
        .match_indices(", too")
        .filter(|(at, too)| sentence[at + too.len()..].starts_with(['.', ';', ',']))
        .count();
    inverted + phrases + too
}

/// True for a clause whose verb or object comes before its subject: "so does ...", "of these ..., is ...".
fn is_inverted(clause: &str) -> bool {
    let (first, after) = clause.split_at(clause.find(|c| !is_word(c)).unwrap_or(clause.len()));
    let verb = |text: &str, verbs: &[&str]| verbs.iter().any(|verb| starts_with_word(text, verb));
    match first {
        "So" | "so" => verb(after, &[" does", " do", " is", " are", " has", " have", " was", " were"]),
        "Nor" | "nor" | "Neither" | "neither" => true,
        // "It is the peer that ..."
        "It" | "it" => after.strip_prefix(" is ").is_some_and(|rest| {
            rest.match_indices(" that").any(|(at, that)| {
                (3..=40).contains(&rest[..at].chars().count())
                    && !rest[at + that.len()..].starts_with(is_word)
            })
        }),
        "In" | "in" | "Of" | "of" | "To" | "to" | "With" | "with" | "From" | "from" | "By" | "by" | "At"
        | "at" => after.strip_prefix(' ').and_then(|rest| rest.split_once([',', '.'])).is_some_and(
            |(object, rest)| {
                let is_comma = after[1 + object.len()..].starts_with(',');
                is_comma
                    && (2..=40).contains(&object.chars().count())
                    && verb(rest, &[" is", " are", " was", " were"])
            },
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(sentence: &str) -> Vec<&'static str> {
        KINDS.iter().filter(|kind| count(**kind, sentence) > 0).map(|kind| kind.name()).collect()
    }

    #[test]
    fn hard_shapes_are_found() {
        for (sentence, expected) in [
            ("Keeps what was left.", "what"),
            ("For whoever waits for it.", "who"),
            ("A peer who comes late.", "who"),
            ("Whether it is closed.", "that-clause"),
            ("That a peer waits.", "that-clause"),
            ("The other has it.", "pronoun"),
            ("They wait for it.", "pronoun"),
            ("Returns nothing at all.", "negation"),
            ("Waits no more then.", "negation"),
            ("A peer waits, so does the owner.", "inversion"),
            ("The owner waits, too.", "inversion"),
            ("With the lock held, is the queue empty.", "inversion"),
            ("The owner waits meanwhile.", "inversion"),
        ] {
            assert_eq!(kinds(sentence), [expected], "{sentence}");
        }
        assert_eq!(kinds(&"word ".repeat(36)), ["long"]);
    }

    #[test]
    fn plain_sentences_are_not_found() {
        for sentence in [
            "Returns the number of queued bytes.",
            "The page shows what the peer sent.",
            "What does the owner do?",
            "Who has the lock?",
            "This module reads queues.",
            "True if the peer is muted.",
            "A peer that is somewhat late.",
            "The queue is full, so the caller waits.",
            "Whose queue it is.",
        ] {
            assert!(kinds(sentence).is_empty(), "{sentence}: {:?}", kinds(sentence));
        }
        assert!(kinds("word ".repeat(35).as_str()).is_empty());
    }

    #[test]
    fn each_place_counts() {
        assert_eq!(count(Kind::What, "Sends what is there and keeps what is not."), 2);
    }
}
