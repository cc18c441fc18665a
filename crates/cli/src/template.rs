//! Texts with placeholders, for messages to send (`{n}`, `{time}`, ...) and for lines to print
//! (`{topic}`, `{body}`, ...). Unknown placeholders stay unchanged; `{{` is a brace.

use std::time::{SystemTime, UNIX_EPOCH};

/// Maximum number of bytes for all `{size:N}` of a message, as for `taut bench --size`.
pub const LONGEST: u64 = 1 << 30;

/// Parsed text with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Literal(Vec<u8>),
    Field { name: String, argument: String },
}

impl Template {
    /// Creates a template without placeholders.
    pub fn literal(bytes: &[u8]) -> Self {
        Template(vec![Piece::Literal(bytes.to_vec())])
    }

    /// Parses a text with the placeholders that `known` accepts.
    pub fn parse(text: &str, known: impl Fn(&str) -> bool) -> Self {
        let mut pieces = Vec::new();
        let mut literal = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            literal.extend_from_slice(&rest.as_bytes()[..at]);
            rest = &rest[at + 1..];
            if let Some(behind) = rest.strip_prefix('{') {
                literal.push(b'{');
                // `{{n}}` is the text `{n}`.
                rest = behind;
                if let Some((inner, behind)) = rest.split_once("}}").filter(|(inner, _)| !inner.contains('{'))
                {
                    literal.extend_from_slice(inner.as_bytes());
                    literal.push(b'}');
                    rest = behind;
                }
                continue;
            }
            let field = rest.split_once('}').and_then(|(inner, behind)| {
                let (name, argument) = inner.split_once(':').unwrap_or((inner, ""));
                known(name).then(|| (name.to_owned(), argument.to_owned(), behind))
            });
            match field {
                Some((name, argument, behind)) => {
                    if !literal.is_empty() {
                        pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                    }
                    pieces.push(Piece::Field { name, argument });
                    rest = behind;
                }
                None => literal.push(b'{'),
            }
        }
        literal.extend_from_slice(rest.as_bytes());
        if !literal.is_empty() || pieces.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Template(pieces)
    }

    /// Returns the total number of bytes that the placeholders `{size:N}` stand for.
    ///
    /// # Errors
    /// Returns the placeholder whose N is not a number, or exceeds [`LONGEST`].
    pub fn sizes(&self) -> Result<u64, String> {
        let mut total = 0_u64;
        for piece in &self.0 {
            let Piece::Field { name, argument } = piece else { continue };
            if name == "size" {
                let size = argument.parse().ok().filter(|size| *size <= LONGEST);
                total = total.saturating_add(size.ok_or_else(|| format!("{{size:{argument}}}"))?);
            }
        }
        Ok(total)
    }

    /// Returns the text with each placeholder filled by `field(name, argument, into)`.
    pub fn fill(&self, mut field: impl FnMut(&str, &str, &mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        for piece in &self.0 {
            match piece {
                Piece::Literal(bytes) => out.extend_from_slice(bytes),
                Piece::Field { name, argument } => field(name, argument, &mut out),
            }
        }
        out
    }
}

/// True for a placeholder of messages to send.
pub fn is_sendable(name: &str) -> bool {
    matches!(name, "n" | "time" | "unix_ms" | "unix_ns" | "random" | "size" | "pid" | "env")
}

/// Appends the value of a placeholder for the `n`th message to send.
pub fn put_sendable(name: &str, argument: &str, n: u64, out: &mut Vec<u8>) {
    match name {
        "n" => {
            let width: usize = argument.parse().unwrap_or(0);
            out.extend_from_slice(format!("{n:0width$}", width = width.min(64)).as_bytes());
        }
        "time" => out.extend_from_slice(now_text().as_bytes()),
        "unix_ms" => out.extend_from_slice(since_epoch().as_millis().to_string().as_bytes()),
        "unix_ns" => out.extend_from_slice(since_epoch().as_nanos().to_string().as_bytes()),
        "random" => out.extend_from_slice(format!("{:016x}", random(n)).as_bytes()),
        "size" => {
            let len: usize = argument.parse().unwrap_or(0);
            out.resize(out.len() + len, b'x');
        }
        "pid" => out.extend_from_slice(std::process::id().to_string().as_bytes()),
        "env" => out.extend_from_slice(std::env::var(argument).unwrap_or_default().as_bytes()),
        _ => {}
    }
}

/// Returns the current time as RFC 3339 in UTC with microseconds.
pub fn now_text() -> String {
    humantime::format_rfc3339_micros(SystemTime::now()).to_string()
}

/// Returns the time since 1970.
pub fn since_epoch() -> std::time::Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Returns a number that is unlikely to repeat. It is not suited for secrets.
fn random(n: u64) -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u64(n);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> String {
        let template = Template::parse(text, is_sendable);
        String::from_utf8(template.fill(|name, argument, out| put_sendable(name, argument, 7, out))).unwrap()
    }

    #[test]
    fn placeholders_are_filled_in() {
        assert_eq!(filled("tick {n}"), "tick 7");
        assert_eq!(filled("{n:4}/{n}"), "0007/7");
        assert_eq!(filled("{size:3}|"), "xxx|");
        assert_eq!(filled("{random}").len(), 16);
        assert!(filled("{time}").ends_with('Z'));
    }

    #[test]
    fn size_has_a_limit() {
        let sizes = |text| Template::parse(text, is_sendable).sizes();
        assert_eq!(sizes("{size:2}{n}{size:3}"), Ok(5));
        assert_eq!(sizes("{size:1073741824}"), Ok(LONGEST));
        for (text, wrong) in
            [("a{size:1073741825}", "{size:1073741825}"), ("{size:x}", "{size:x}"), ("{size}", "{size:}")]
        {
            assert_eq!(sizes(text), Err(wrong.to_owned()));
        }
    }

    #[test]
    fn text_that_is_no_placeholder_stays() {
        for text in ["", "{", "}", "{}", "{\"a\":1}", "a {b} c", "{n", "{N}"] {
            assert_eq!(filled(text), text);
        }
        assert_eq!(filled("{{n}} {n}"), "{n} 7");
        assert_eq!(filled("{{"), "{");
    }
}
