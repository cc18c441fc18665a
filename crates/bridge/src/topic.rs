//! Conversion between topics and subjects.
//!
//! A topic is a byte string; a subject consists of tokens with dots between them. A [`Mapping`]
//! splits the topic at its separator. In each token it encodes the characters that NATS does not
//! accept, as `%` and two hexadecimal digits. An empty token becomes a single `%`. So every topic
//! has exactly one subject, and decoding restores it byte by byte.
//!
//! The subject of a route ends with `>` if the topics are visible in NATS (*open*). Otherwise, all
//! messages have that one subject, and the topic is an ordinary part of the message.

/// Length limit of a generated subject. Servers accept lines of 4096 bytes.
const SUBJECT_MAX: usize = 2048;

/// Mapping from the topics of a route to subjects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// Beginning of all subjects, or the only subject.
    subject: String,
    open: bool,
    /// Beginning of all topics, which the subject does not contain.
    topic: Vec<u8>,
    separator: u8,
    /// True if subscriptions end where a token ends.
    whole_tokens: bool,
}

impl Mapping {
    /// Creates a mapping from the subject in the file: `prices.eu`, or `prices.>`.
    ///
    /// # Errors
    /// A description, if it is not a subject.
    pub fn new(subject: &str, topic: &[u8], separator: u8, whole_tokens: bool) -> Result<Self, String> {
        let (subject, open) = match subject.strip_suffix(".>") {
            Some(before) => (before, true),
            None => (subject, false),
        };
        if subject == ">" || subject.is_empty() {
            return Err("a subject must have a token before `>`, such as `prices.>`".to_owned());
        }
        let is_token = |token: &str| {
            !token.is_empty()
                && token.bytes().all(|byte| byte > b' ' && byte != 0x7f && byte != b'*' && byte != b'>')
        };
        if subject.len() > SUBJECT_MAX / 2 || !subject.split('.').all(is_token) {
            return Err(
                "not a valid subject: use tokens with dots between them, and `>` only as the last token"
                    .to_owned(),
            );
        }
        if subject.starts_with('$') || subject.starts_with("_INBOX") {
            return Err("subjects that begin with `$` or `_INBOX` are reserved by NATS".to_owned());
        }
        if !open && !topic.is_empty() {
            return Err("`topic` needs a subject that ends with `.>`".to_owned());
        }
        Ok(Mapping { subject: subject.to_owned(), open, topic: topic.to_vec(), separator, whole_tokens })
    }

    /// True if the topics are visible in NATS.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Returns a filter that matches all subjects of the route.
    pub fn filter(&self) -> String {
        if self.open { format!("{}.>", self.subject) } else { self.subject.clone() }
    }

    /// Returns the subject of a message with this topic. `None` if the topic has no subject, or its
    /// subject is too long.
    pub fn subject(&self, topic: &[u8]) -> Option<String> {
        if !self.open {
            return Some(self.subject.clone());
        }
        let rest = topic.strip_prefix(self.topic.as_slice())?;
        let mut subject = self.subject.clone();
        for token in rest.split(|byte| *byte == self.separator) {
            subject.push('.');
            encode(token, &mut subject);
            if subject.len() > SUBJECT_MAX {
                return None;
            }
        }
        Some(subject)
    }

    /// Returns the topic of a subject, or `None` if the subject does not belong to this route.
    pub fn topic(&self, subject: &str) -> Option<Vec<u8>> {
        let mut topic = self.topic.clone();
        if !self.open {
            return (subject == self.subject).then_some(topic);
        }
        let rest = subject.strip_prefix(&self.subject)?.strip_prefix('.')?;
        for (at, token) in rest.split('.').enumerate() {
            if at > 0 {
                topic.push(self.separator);
            }
            decode(token, &mut topic);
        }
        Some(topic)
    }

    /// Returns the NATS subjects for a subscription to the topics with this prefix. They cover all
    /// topics that may match, and as few others as subjects allow.
    pub fn subscription_subjects(&self, prefix: &[u8]) -> Vec<String> {
        let all = || vec![self.filter()];
        if !self.open {
            return all();
        }
        let Some(rest) = prefix.strip_prefix(self.topic.as_slice()) else {
            // A shorter prefix matches the whole route; a different prefix matches no topic.
            return if self.topic.starts_with(prefix) { all() } else { Vec::new() };
        };
        let end = if self.whole_tokens && !rest.is_empty() && !rest.ends_with(&[self.separator]) {
            rest.len()
        } else {
            // The last token may be incomplete.
            match rest.iter().rposition(|byte| *byte == self.separator) {
                Some(end) => end,
                None => return all(),
            }
        };
        let mut subject = self.subject.clone();
        for token in rest[..end].split(|byte| *byte == self.separator) {
            subject.push('.');
            encode(token, &mut subject);
        }
        if subject.len() > SUBJECT_MAX {
            return Vec::new();
        }
        let below = format!("{subject}.>");
        if end == rest.len() { vec![subject, below] } else { vec![below] }
    }
}

/// Returns the filters of this bridge that match a NATS subject: for `a.b` these are `a.b` and
/// `a.>`.
pub fn filters(subject: &str) -> impl Iterator<Item = String> {
    let below = subject.match_indices('.').map(|(at, _)| format!("{}>", &subject[..=at]));
    std::iter::once(subject.to_owned()).chain(below)
}

/// True if a stream with this filter accepts a subject: `*` stands for one token, `>` for all
/// tokens that follow.
pub fn filter_matches(filter: &str, subject: &str) -> bool {
    let mut tokens = subject.split('.');
    for wanted in filter.split('.') {
        match tokens.next() {
            Some(_) if wanted == ">" => return true,
            Some(token) if wanted == "*" || wanted == token => {}
            _ => return false,
        }
    }
    tokens.next().is_none()
}

/// Appends an encoded token.
fn encode(token: &[u8], out: &mut String) {
    if token.is_empty() {
        out.push('%');
    }
    for byte in token {
        code(*byte, b".*>", out);
    }
}

/// Appends a byte, encoded unless it is a printable ASCII character other than `%` and `others`.
fn code(byte: u8, others: &[u8], out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    if byte.is_ascii_graphic() && byte != b'%' && !others.contains(&byte) {
        out.push(char::from(byte));
    } else {
        out.push('%');
        for digit in [byte >> 4, byte & 15] {
            out.push(char::from(DIGITS[usize::from(digit)]));
        }
    }
}

/// Appends the decoded bytes of a token. Text that [`encode`] did not encode stays unchanged.
fn decode(token: &str, out: &mut Vec<u8>) {
    if token == "%" {
        return;
    }
    let mut bytes = token.as_bytes();
    while let [first, rest @ ..] = bytes {
        bytes = rest;
        let digits = rest.first_chunk::<2>().and_then(|digits| std::str::from_utf8(digits).ok());
        let coded = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match coded.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if *first == b'%' => {
                out.push(byte);
                bytes = &rest[2..];
            }
            _ => out.push(*first),
        }
    }
}

/// Encodes any text as the value of a header, which is a line of printable characters.
pub fn header_value(text: &[u8]) -> String {
    let mut value = String::with_capacity(text.len());
    text.iter().for_each(|byte| code(*byte, b"", &mut value));
    value
}

/// Encodes any text as the value of a header. Encodes `:` too, so that a `:` can end the text.
pub fn name_value(text: &[u8]) -> String {
    let mut value = String::with_capacity(text.len());
    text.iter().for_each(|byte| code(*byte, b":", &mut value));
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_takes_the_subjects_of_its_filter() {
        for (filter, subject) in
            [("s.>", "s.a"), ("s.>", "s.a.b"), ("s.*", "s.a"), ("a.*.c", "a.b.c"), ("s", "s")]
        {
            assert!(filter_matches(filter, subject), "{filter} {subject}");
        }
        for (filter, subject) in
            [("s.>", "s"), ("s.>", "t.a"), ("s.*", "s.a.b"), ("a.*.c", "a.b.d"), ("s", "s.a")]
        {
            assert!(!filter_matches(filter, subject), "{filter} {subject}");
        }
    }

    fn open(separator: u8) -> Mapping {
        Mapping::new("p.>", b"", separator, false).unwrap()
    }

    #[test]
    fn every_topic_comes_back() {
        let mut topics: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        for topic in ["", "a/b", "//", "a//b", "/a", "a/", "%41", "a%", "a.b", "EUR USD", "é"] {
            topics.push(topic.as_bytes().to_vec());
        }
        for separator in [b'/', b'.', b':'] {
            let mapping = open(separator);
            let mut subjects = std::collections::HashSet::new();
            for topic in &topics {
                let subject = mapping.subject(topic).unwrap();
                assert!(subject.bytes().all(|byte| byte.is_ascii_graphic()), "{subject}");
                assert!(subject.split('.').all(|token| !token.is_empty() && token != "*" && token != ">"));
                assert_eq!(mapping.topic(&subject).as_ref(), Some(topic), "{subject}");
                assert!(filters(&subject).any(|filter| filter == mapping.filter()));
                assert!(subjects.insert(subject), "two topics with one subject: {topic:?}");
            }
        }
    }

    #[test]
    fn tokens_are_cut_at_the_separator() {
        assert_eq!(open(b'/').subject(b"EUR/USD").as_deref(), Some("p.EUR.USD"));
        assert_eq!(open(b'.').subject(b"EUR.USD").as_deref(), Some("p.EUR.USD"));
        assert_eq!(open(b'/').subject(b"EUR.USD").as_deref(), Some("p.EUR%2EUSD"));
        assert_eq!(open(b'/').topic("p.x%zz.%").as_deref(), Some(&b"x%zz/"[..]));
        assert_eq!(open(b'/').topic("q.x"), None);
        assert_eq!(open(b'/').subject(&[b'x'; 3000]), None);
    }

    #[test]
    fn a_prefix_of_all_topics_is_not_in_the_subject() {
        let mapping = Mapping::new("p.>", b"md/", b'/', false).unwrap();
        assert_eq!(mapping.subject(b"md/EUR").as_deref(), Some("p.EUR"));
        assert_eq!(mapping.topic("p.EUR").as_deref(), Some(&b"md/EUR"[..]));
        assert_eq!(mapping.subject(b"other"), None);
        assert_eq!(mapping.subscription_subjects(b"m"), ["p.>"]);
        assert_eq!(mapping.subscription_subjects(b"md/EUR/"), ["p.EUR.>"]);
        assert!(mapping.subscription_subjects(b"x").is_empty());
    }

    #[test]
    fn subscription_filters_cover_all_matching_topics() {
        let prefixes = ["", "a", "a/", "a/b", "a/b/", "/", "//", "a.b/c"];
        let topics = ["", "a", "ab", "a/", "a/b", "a/bc", "a/b/c", "/", "/x", "//", "a.b/c", "a.b/cd", "b"];
        let mapping = open(b'/');
        for prefix in prefixes {
            let wanted = mapping.subscription_subjects(prefix.as_bytes());
            for topic in topics.iter().filter(|topic| topic.starts_with(prefix)) {
                let subject = mapping.subject(topic.as_bytes()).unwrap();
                assert!(
                    filters(&subject).any(|filter| wanted.contains(&filter)),
                    "{prefix:?} {topic:?} {wanted:?}"
                );
            }
        }
        assert_eq!(mapping.subscription_subjects(b"a/b"), ["p.a.>"]);
        let tokens = Mapping::new("p.>", b"", b'/', true).unwrap();
        assert_eq!(tokens.subscription_subjects(b"a/b"), ["p.a.b", "p.a.b.>"]);
        assert_eq!(tokens.subscription_subjects(b"a/"), ["p.a.>"]);
        assert_eq!(tokens.subscription_subjects(b""), ["p.>"]);
    }

    #[test]
    fn invalid_subjects_are_refused() {
        for wrong in ["", ">", "a..b", "a.*", "*", "a b", "a.>.b", "$JS.API.>", "_INBOX.>", ".a", "a."] {
            assert!(Mapping::new(wrong, b"", b'.', false).is_err(), "{wrong}");
        }
        assert!(Mapping::new("a", b"t", b'.', false).is_err());
        assert_eq!(Mapping::new("a.b", b"", b'.', false).unwrap().subject(b"x").as_deref(), Some("a.b"));
    }
}
