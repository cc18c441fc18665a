//! Expressions of `--filter`: conditions that a shown message must fulfil.
//!
//! ```text
//!   or    = and { "or" and }
//!   and   = not { "and" not }
//!   not   = "not" not | "(" or ")" | term
//!   term  = TEXT                                        some part has this in it
//!         | field ( "=" | "!=" | "~" | "!~" ) TEXT      the same bytes; a regular expression
//!         | number ( "=" | "!=" | "<" | "<=" | ">" | ">=" ) N
//!   field = "part" (any) | "topic" (first) | "body" (last) | "1" | "2" ... | "direction"
//!   number = "size" | "parts" | "socket" | "peer"
//! ```
//!
//! Regular expressions are those of the crate `regex`. Their run time is linear in the length of
//! the message.

use std::sync::Arc;

use regex::bytes::Regex;
use tautline_observe::tap::{Direction, MessageCopy};

/// Maximum nesting depth of parentheses and `not`.
const DEPTH: usize = 64;

/// Parsed expression.
#[derive(Debug, Clone)]
pub struct Filter(Arc<Node>);

#[derive(Debug)]
enum Node {
    Or(Vec<Node>),
    And(Vec<Node>),
    Not(Box<Node>),
    /// A part contains these bytes.
    Has(Vec<u8>),
    Equals(Field, Vec<u8>),
    Matches(Field, Regex),
    Compares(Number, Comparison, u64),
}

#[derive(Debug, Clone, Copy)]
enum Field {
    Any,
    Topic,
    Body,
    /// Index of a part, from 0.
    Nth(usize),
    Direction,
}

#[derive(Debug, Clone, Copy)]
enum Number {
    Size,
    Parts,
    Socket,
    Peer,
}

#[derive(Debug, Clone, Copy)]
enum Comparison {
    Equal,
    Less,
    Greater,
}

impl Filter {
    /// Parses an expression.
    ///
    /// # Errors
    ///
    /// A one-line description of the mistake.
    pub fn parse(text: &str) -> Result<Filter, String> {
        let mut parser = Parser { tokens: tokens(text)?, at: 0, depth: 0 };
        let node = parser.parse_or()?;
        match parser.next() {
            None => Ok(Filter(Arc::new(node))),
            Some(token) => Err(format!("unexpected {} at the end", token.quoted())),
        }
    }

    /// True if the message fulfils the expression.
    pub fn accepts(&self, copy: &MessageCopy) -> bool {
        self.0.accepts(copy)
    }
}

impl Node {
    fn accepts(&self, copy: &MessageCopy) -> bool {
        match self {
            Node::Or(nodes) => nodes.iter().any(|node| node.accepts(copy)),
            Node::And(nodes) => nodes.iter().all(|node| node.accepts(copy)),
            Node::Not(node) => !node.accepts(copy),
            Node::Has(text) => Field::Any.is(copy, |part| has(part, text)),
            Node::Equals(field, text) => field.is(copy, |part| part == text),
            Node::Matches(field, regex) => field.is(copy, |part| regex.is_match(part)),
            Node::Compares(number, comparison, value) => {
                let own = number.of(copy);
                match comparison {
                    Comparison::Equal => own == *value,
                    Comparison::Less => own < *value,
                    Comparison::Greater => own > *value,
                }
            }
        }
    }
}

impl Field {
    fn is(self, copy: &MessageCopy, true_of: impl Fn(&[u8]) -> bool) -> bool {
        let part = match self {
            Field::Any => return copy.parts.iter().any(|part| true_of(&part.bytes)),
            Field::Direction => return true_of(way(copy.direction).as_bytes()),
            Field::Topic => copy.parts.first(),
            Field::Body => copy.parts.last(),
            Field::Nth(at) => copy.parts.get(at),
        };
        part.is_some_and(|part| true_of(&part.bytes))
    }
}

impl Number {
    fn of(self, copy: &MessageCopy) -> u64 {
        match self {
            Number::Size => copy.parts.iter().fold(0, |sum, part| sum.saturating_add(part.length)),
            Number::Parts => copy.parts.len() as u64,
            Number::Socket => copy.socket,
            Number::Peer => copy.peer,
        }
    }
}

/// Returns the name of a direction.
pub fn way(direction: Direction) -> &'static str {
    match direction {
        Direction::In => "in",
        Direction::Out => "out",
    }
}

fn has(part: &[u8], text: &[u8]) -> bool {
    text.is_empty() || part.windows(text.len()).any(|window| window == text)
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// Text without quotes.
    Word(String),
    Quoted(String),
    Sign(&'static str),
}

impl Token {
    fn quoted(&self) -> String {
        match self {
            Token::Word(text) | Token::Quoted(text) => format!("{text:?}"),
            Token::Sign(sign) => format!("{sign:?}"),
        }
    }
}

const SIGNS: [&str; 10] = ["!=", "!~", "<=", ">=", "=", "~", "<", ">", "(", ")"];

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut left = text.trim_start();
    while let Some(first) = left.chars().next() {
        if let Some(sign) = SIGNS.into_iter().find(|sign| left.starts_with(sign)) {
            tokens.push(Token::Sign(sign));
            left = &left[sign.len()..];
        } else if matches!(first, '\'' | '"') {
            let (inner, behind) =
                left[1..].split_once(first).ok_or_else(|| format!("the closing quote is missing: {left}"))?;
            tokens.push(Token::Quoted(inner.to_owned()));
            left = behind;
        } else {
            let ends = |letter: char| letter.is_whitespace() || "=!~<>()'\"".contains(letter);
            let end = left.find(ends).unwrap_or(left.len());
            if end == 0 {
                return Err(format!("unexpected text: {left}"));
            }
            tokens.push(Token::Word(left[..end].to_owned()));
            left = &left[end..];
        }
        left = left.trim_start();
    }
    Ok(tokens)
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token
    }

    /// Consumes the next token if it equals `token`.
    fn consume(&mut self, token: &Token) -> bool {
        let comes = self.tokens.get(self.at) == Some(token);
        self.at += usize::from(comes);
        comes
    }

    fn parse_or(&mut self) -> Result<Node, String> {
        let mut nodes = vec![self.parse_and()?];
        while self.consume(&Token::Word("or".to_owned())) {
            nodes.push(self.parse_and()?);
        }
        Ok(Node::Or(nodes))
    }

    fn parse_and(&mut self) -> Result<Node, String> {
        let mut nodes = vec![self.parse_not()?];
        while self.consume(&Token::Word("and".to_owned())) {
            nodes.push(self.parse_not()?);
        }
        Ok(Node::And(nodes))
    }

    fn parse_not(&mut self) -> Result<Node, String> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err("too many nested parentheses".to_owned());
        }
        let node = if self.consume(&Token::Word("not".to_owned())) {
            Node::Not(Box::new(self.parse_not()?))
        } else if self.consume(&Token::Sign("(")) {
            let node = self.parse_or()?;
            if !self.consume(&Token::Sign(")")) {
                return Err("no \")\"".to_owned());
            }
            node
        } else {
            self.term()?
        };
        self.depth -= 1;
        Ok(node)
    }

    fn term(&mut self) -> Result<Node, String> {
        let name = match self.next() {
            Some(Token::Quoted(text)) => return Ok(Node::Has(text.into_bytes())),
            Some(Token::Word(word)) => word,
            Some(Token::Sign(sign)) => return Err(format!("unexpected {sign:?} in place of a condition")),
            None => return Err("a condition is missing".to_owned()),
        };
        let sign = match self.tokens.get(self.at) {
            Some(Token::Sign(sign @ ("=" | "!=" | "~" | "!~" | "<" | "<=" | ">" | ">="))) => *sign,
            _ => return Ok(Node::Has(name.into_bytes())),
        };
        self.at += 1;
        let value = match self.next() {
            Some(Token::Word(text) | Token::Quoted(text)) => text,
            _ => return Err(format!("the value after {name} {sign} is missing")),
        };
        let number = match &name[..] {
            "size" => Some(Number::Size),
            "parts" => Some(Number::Parts),
            "socket" => Some(Number::Socket),
            "peer" => Some(Number::Peer),
            _ => None,
        };
        match number {
            Some(number) => comparison(number, sign, &value),
            None => text_term(&name, sign, value),
        }
    }
}

fn comparison(number: Number, sign: &str, value: &str) -> Result<Node, String> {
    let value = value.parse().map_err(|_| format!("{value:?} is not a number"))?;
    let compares = |comparison| Node::Compares(number, comparison, value);
    let negated = |comparison| Node::Not(Box::new(compares(comparison)));
    Ok(match sign {
        "=" => compares(Comparison::Equal),
        "!=" => negated(Comparison::Equal),
        "<" => compares(Comparison::Less),
        ">" => compares(Comparison::Greater),
        "<=" => negated(Comparison::Greater),
        ">=" => negated(Comparison::Less),
        _ => return Err(format!("{sign:?} compares text, not numbers")),
    })
}

fn text_term(name: &str, sign: &str, value: String) -> Result<Node, String> {
    let field = match name {
        "part" => Field::Any,
        "topic" => Field::Topic,
        "body" => Field::Body,
        "direction" => Field::Direction,
        name => match name.parse::<usize>().ok().and_then(|number| number.checked_sub(1)) {
            Some(at) => Field::Nth(at),
            None => {
                return Err(format!(
                    "unknown name {name:?}: use part, topic, body, 1, 2, ..., direction, size, parts, socket, peer"
                ));
            }
        },
    };
    let node = match sign {
        "=" | "!=" => Node::Equals(field, value.into_bytes()),
        "~" | "!~" => {
            let regex = Regex::new(&value).map_err(|error| error.to_string())?;
            Node::Matches(field, regex)
        }
        _ => return Err(format!("{sign:?} compares numbers, not text")),
    };
    Ok(if sign.starts_with('!') { Node::Not(Box::new(node)) } else { node })
}

#[cfg(test)]
mod tests {
    use tautline_observe::tap::Part;
    use tautline_testkit::XorShift;

    use super::*;

    fn message(parts: &[&[u8]]) -> MessageCopy {
        let parts = parts.iter().map(|part| Part { length: part.len() as u64, bytes: part.to_vec() });
        MessageCopy { at: 0, socket: 3, peer: 1, direction: Direction::Out, parts: parts.collect() }
    }

    #[test]
    fn messages_are_described() {
        let copy = message(&[b"weather.lund", b"6 degrees", b"\xff\0"]);
        for (text, accepted) in [
            ("degrees", true),
            ("'6 deg'", true),
            ("rome", false),
            ("rome or degrees", true),
            ("rome or degrees and rome", false),
            ("(rome or degrees) and lund", true),
            ("not rome", true),
            ("not not rome", false),
            ("topic = weather.lund", true),
            ("topic=weather.lund", true),
            ("topic != weather.lund", false),
            ("2 = '6 degrees' and 4 != x", true),
            ("4 = x", false),
            ("topic ~ '^weather\\.(lund|rome)$'", true),
            ("topic !~ ^sports", true),
            ("body ~ '(?-u)^\\xff'", true),
            ("part ~ '(?i)DEGREES'", true),
            ("part = lund", false),
            ("size = 23 and size < 24 and size > 22 and size <= 23 and size >= 23", true),
            ("size != 23", false),
            ("parts > 3", false),
            ("socket = 3 and peer = 1 and direction = out", true),
            ("direction = in", false),
        ] {
            assert_eq!(Filter::parse(text).unwrap().accepts(&copy), accepted, "{text}");
        }
        assert!(!Filter::parse("topic = ''").unwrap().accepts(&message(&[])));
    }

    #[test]
    fn filter_errors_describe_the_mistake() {
        for (text, why) in [
            ("", "a condition is missing"),
            ("a b", "unexpected \"b\" at the end"),
            ("(a", "no \")\""),
            ("a or", "a condition is missing"),
            ("= a", "unexpected \"=\" in place of a condition"),
            ("topic =", "the value after topic = is missing"),
            ("topic < a", "\"<\" compares numbers, not text"),
            ("size ~ 1", "\"~\" compares text, not numbers"),
            ("size = a", "\"a\" is not a number"),
            ("colour = red", "unknown name \"colour\": use part, topic"),
            ("0 = a", "unknown name \"0\": use part, topic"),
            ("'a", "the closing quote is missing: 'a"),
            ("!a", "unexpected text: !a"),
            ("topic ~ '('", "regex parse error"),
            (&"not ".repeat(100), "too many nested parentheses"),
        ] {
            let error = Filter::parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn any_text_is_an_expression_or_none() {
        let words = ["a", "or", "and", "not", "(", ")", "=", "!~", "size", "topic", "'", "7", "<", "é", "~"];
        let mut random = XorShift::new(9);
        let copy = message(&[b"a", b"7"]);
        for _ in 0..20_000 {
            let text: Vec<&str> = (0..random.below(9)).map(|_| words[random.below(words.len())]).collect();
            if let Ok(filter) = Filter::parse(&text.join(" ")) {
                filter.accepts(&copy);
            }
        }
    }
}
