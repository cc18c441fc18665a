//! Patterns of topics.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// A glob of topics.
///
/// `.` and `/` divide a topic into tokens. In a pattern, `*` matches one token that is not empty.
/// `**` matches any number of tokens, including zero, and must be the first or the last token. All
/// other characters match themselves.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use tautline::topics::Pattern;
///
/// let one: Pattern = "sensors.*.heat".parse()?;
/// assert!(one.matches("sensors.lund.heat") && !one.matches("sensors.lund.attic.heat"));
/// let all: Pattern = "sensors.**".parse()?;
/// assert!(all.matches("sensors") && all.matches("sensors.lund.heat") && !all.matches("sensorship"));
/// let end: Pattern = "**/error".parse()?;
/// assert!(end.matches("error") && end.matches("shop/till/error"));
/// assert_eq!((one.prefix(), all.prefix(), end.prefix()), ("sensors.", "sensors", ""));
/// assert!("sens*".parse::<Pattern>().is_err());
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Pattern {
    text: Box<str>,
    /// Length in bytes of the literal text at the beginning.
    prefix: usize,
    /// True if the pattern begins with `**`.
    has_leading_wildcard: bool,
    steps: Box<[Step]>,
}

/// A token after its separator. The first token of a pattern has no separator.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Step {
    separator: Option<u8>,
    token: Token,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Token {
    Literal(Box<[u8]>),
    /// `*`.
    One,
    /// `**` as the last token.
    Any,
}

impl Pattern {
    /// True if the pattern matches this topic.
    pub fn matches(&self, topic: impl AsRef<[u8]>) -> bool {
        let topic = topic.as_ref();
        if !topic.starts_with(self.prefix().as_bytes()) {
            return false;
        }
        if matches_steps(&self.steps, topic, true) {
            return true;
        }
        let mut ends = topic.iter().enumerate().filter(|(_, byte)| is_separator(**byte));
        self.has_leading_wildcard && ends.any(|(at, _)| matches_steps(&self.steps, &topic[at..], false))
    }

    /// Returns the literal prefix of all matching topics. The publishers receive it as the
    /// subscription.
    pub fn prefix(&self) -> &str {
        &self.text[..self.prefix]
    }

    /// Returns the pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// True if the steps match `rest` completely. `first`: `rest` is the beginning of the topic.
fn matches_steps(steps: &[Step], rest: &[u8], first: bool) -> bool {
    let (mut rest, mut first) = (rest, first);
    for step in steps {
        let at_separator = rest.first().is_some_and(|byte| step.separator.is_none_or(|own| own == *byte));
        if step.token == Token::Any {
            return first || rest.is_empty() || at_separator;
        }
        if !first {
            if !at_separator {
                return false;
            }
            rest = &rest[1..];
        }
        first = false;
        let (token, others) = rest.split_at(token_length(rest));
        let fits = match &step.token {
            Token::Literal(literal) => **literal == *token,
            _ => !token.is_empty(),
        };
        if !fits {
            return false;
        }
        rest = others;
    }
    rest.is_empty()
}

fn is_separator(byte: u8) -> bool {
    matches!(byte, b'.' | b'/')
}

fn token_length(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| is_separator(*byte)).unwrap_or(bytes.len())
}

impl FromStr for Pattern {
    type Err = Error;

    /// # Errors
    /// Returns [`Error::Invalid`] for an empty pattern, `*` next to other characters in a token,
    /// and `**` between other tokens.
    fn from_str(text: &str) -> Result<Self> {
        if text.is_empty() {
            return Err(Error::invalid("a pattern must have at least one byte; use ** for all topics"));
        }
        let (mut steps, mut prefix, mut rest) = (Vec::new(), None, text.as_bytes());
        let (mut separator, mut floats) = (None, false);
        loop {
            let (token, others) = rest.split_at(token_length(rest));
            // Start of the token, including its separator.
            let begin = text.len() - rest.len();
            let outer = steps.is_empty() && !floats || others.is_empty();
            let token = match token {
                b"*" => Token::One,
                b"**" if outer => Token::Any,
                b"**" => {
                    let why = format!("{text}: ** must be at the beginning or at the end of a pattern");
                    return Err(Error::invalid(why));
                }
                token if token.contains(&b'*') => {
                    return Err(Error::invalid(format!("{text}: * must be a whole token")));
                }
                token => Token::Literal(token.into()),
            };
            match token {
                Token::Literal(_) => {}
                // It may match zero tokens, and then its separator is missing as well.
                Token::Any => _ = prefix.get_or_insert(begin.saturating_sub(1)),
                Token::One => _ = prefix.get_or_insert(begin),
            }
            if token == Token::Any && !others.is_empty() {
                floats = true;
            } else {
                steps.push(Step { separator, token });
            }
            let [divides, after @ ..] = others else { break };
            (separator, rest) = (Some(*divides), after);
        }
        let prefix = prefix.unwrap_or(text.len());
        Ok(Pattern { text: text.into(), prefix, has_leading_wildcard: floats, steps: steps.into() })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({:?})", self.text)
    }
}

/// Checks that a topic can be published: it is not empty and contains no `*`.
pub(super) fn check_topic(topic: &str) -> Result<()> {
    match topic {
        "" => Err(Error::invalid("a topic must have at least one byte")),
        _ if topic.contains('*') => {
            Err(Error::invalid(format!("{topic}: a topic must not contain *, which is for patterns")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn pattern_matches_its_topics_only() {
        for (text, prefix, fits, others) in [
            ("a", "a", &["a"][..], &["", "b", "ab", "a.b", "a.", "/a"][..]),
            ("a.b", "a.b", &["a.b"], &["a/b", "a.bc", "a.b.", "a", "a.b/"]),
            ("*", "", &["a", "abc"], &["", "a.b", ".", "a.", "/a"]),
            ("a.*", "a.", &["a.b"], &["a", "a.", "a.b.c", "a/b", "b.a", "a.b/c"]),
            ("a/*/c", "a/", &["a/b/c"], &["a//c", "a/b/d", "a/b.c", "a/b/c/d", "a/c"]),
            ("*.b", "", &["a.b", "b.b"], &["b", ".b", "a.a.b", "a/b"]),
            ("**", "", &["", "a", "a.b/c", "..", "*"], &[]),
            ("a.**", "a", &["a", "a.b", "a.b/c", "a."], &["ab", "a/b", "", "b.a"]),
            ("a.b/**", "a.b", &["a.b", "a.b/c", "a.b/c.d"], &["a", "a.bc", "a.b.c"]),
            ("**.a", "", &["a", "b.a", "b/c.a", ".a"], &["", "b", "ba", "a.b", "b/a"]),
            ("**.a.**", "", &["a", "b.a", "a.b", "x/y.a.z/w"], &["", "b", "ab", "b/a", "ba.b", "b.ab"]),
            ("**.a.*", "", &["a.b", "x.a.b", "a.a.b"], &["a", "a.b.c", "xa.b"]),
            ("a.*.**", "a.", &["a.b", "a.b.c", "a.b.c/d"], &["a", "a.", "a.b/c", "ab"]),
            ("**.**", "", &["", "a", "a.b"], &[]),
            ("/a/*", "/a/", &["/a/b"], &["a/b", "/a", "/a/b/"]),
            ("a..b", "a..b", &["a..b"], &["a.b", "a.x.b"]),
        ] {
            let own = pattern(text);
            assert_eq!(own.prefix(), prefix, "{text}");
            fits.iter().for_each(|topic| assert!(own.matches(topic), "{text} is {topic}"));
            others.iter().for_each(|topic| assert!(!own.matches(topic), "{text} is not {topic}"));
        }
    }

    #[test]
    fn whatever_matches_begins_with_the_prefix() {
        let tokens = ["a", "b", "*", "**", ""];
        let topics: Vec<String> = (0..6_usize.pow(4))
            .map(|n| (0..4).map(|place| ["a", "b", ".", "/", "", "*"][n / 6_usize.pow(place) % 6]).collect())
            .collect();
        for n in 0..tokens.len().pow(3) {
            let text = [n % 5, n / 5 % 5, n / 25].map(|token| tokens[token]).join(".");
            let Ok(own) = text.parse::<Pattern>() else { continue };
            for topic in topics.iter().filter(|topic| own.matches(topic)) {
                assert!(topic.starts_with(own.prefix()), "{text}: {topic}");
            }
        }
    }

    #[test]
    fn malformed_pattern_is_refused() {
        for text in ["", "a*", "*a.b", "***", "a.**.b", "**.a.**.b", "a.**b"] {
            assert!(text.parse::<Pattern>().is_err(), "{text}");
        }
        assert_eq!(
            "a.**.b".parse::<Pattern>().unwrap_err().to_string(),
            "a.**.b: ** must be at the beginning or at the end of a pattern"
        );
        assert!(check_topic("a.b").is_ok() && check_topic("").is_err() && check_topic("a.*").is_err());
    }
}
