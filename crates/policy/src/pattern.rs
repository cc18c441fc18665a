/// Transports whose endpoints may have a source address.
const TCP: [&str; 2] = ["tcp://", "tls+tcp://"];

/// A text in which `*` stands for any number of characters, including zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern(String);

impl Pattern {
    pub(crate) fn new(text: &str) -> Self {
        Pattern(text.to_owned())
    }

    /// Creates a pattern for the endpoints of a rule.
    ///
    /// # Errors
    /// The reason, if the pattern would match other endpoints than its author expects.
    pub(crate) fn of_endpoints(text: &str) -> Result<Self, &'static str> {
        let is_tcp = TCP.iter().any(|scheme| text.starts_with(scheme));
        if is_tcp && text.contains(';') {
            return Err("has a source address (`;`), which rules ignore");
        }
        let host = text.split_once("://").map_or("", |(_, address)| address);
        let before = host.split_once('*').map_or("", |(before, _)| before);
        let is_cut = match before.as_bytes().first() {
            Some(b'[') => !before.contains(']'),
            Some(b'0'..=b'9') => !before.contains([':', '/']),
            _ => false,
        };
        if is_cut {
            return Err("has a `*` in an address, which also matches host names (`10.0.0.evil.example`): \
                        use `address`, for example `address = \"10.0.0.0/24\"`");
        }
        Ok(Pattern::new(text))
    }

    /// True if an endpoint matches. Ignores its source address (`tcp://SOURCE;DESTINATION`).
    pub(crate) fn matches_endpoint(&self, endpoint: &str) -> bool {
        let is_of = |scheme: &&&str| endpoint.starts_with(**scheme);
        match (TCP.iter().find(is_of), endpoint.rsplit_once(';')) {
            (Some(scheme), Some((_, destination))) => self.matches(&format!("{scheme}{destination}")),
            _ => self.matches(endpoint),
        }
    }

    /// True if the whole `text` matches.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let Some((first, rest)) = self.0.split_once('*') else { return self.0 == text };
        let Some(mut text) = text.strip_prefix(first) else { return false };
        let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
        // The earliest match is sufficient, because a star follows.
        for piece in middle.split('*') {
            let Some(at) = text.find(piece) else { return false };
            text = &text[at + piece.len()..];
        }
        text.ends_with(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        let fits = |pattern: &str, text| Pattern::new(pattern).matches(text);
        for text in ["tcp://*:5555", "tcp://1.2.3.4:5555", "tcp://:5555"] {
            assert!(fits("tcp://*:5555", text), "{text}");
        }
        assert!(fits("*", "") && fits("*", "x") && fits("", "") && fits("**", "x") && fits("a*a", "aa"));
        assert!(fits("a*b*c", "a1b2c") && fits("a*b*c", "abbcc") && fits("*b*", "abc"));
        assert!(!fits("a*a", "a") && !fits("a*b*c", "acb") && !fits("tcp://*:5555", "tcp://*:55555"));
        assert!(!fits("", "x") && !fits("x", ""));
    }

    #[test]
    fn a_source_address_does_not_count() {
        let fits =
            |pattern: &str, endpoint| Pattern::of_endpoints(pattern).unwrap().matches_endpoint(endpoint);
        assert!(!fits("tcp://10.0.0.9:*", "tcp://10.0.0.9:1;8.8.8.8:5555"));
        assert!(fits("tcp://8.8.8.8:*", "tcp://10.0.0.9:1;8.8.8.8:5555"));
        assert!(fits("tls+tcp://8.8.8.8:*", "tls+tcp://10.0.0.9:1;8.8.8.8:5555"));
        assert!(fits("ipc:///run/a;b", "ipc:///run/a;b") && fits("ws://h:1/a;*", "ws://h:1/a;b"));
    }

    #[test]
    fn a_star_in_an_address_is_a_fault() {
        for text in
            ["tcp://10.0.0.*", "tcp://10.0.0.*:5555", "ws://1*", "wss://10.*:1/x", "tcp://[fd00::*]:1"]
        {
            assert!(Pattern::of_endpoints(text).unwrap_err().contains("`address`"), "{text}");
        }
        assert!(Pattern::of_endpoints("tcp://10.0.0.9:*;*").unwrap_err().contains("source"));
        for text in [
            "*",
            "tcp://*",
            "tcp://*:5555",
            "tcp://10.0.0.1:*",
            "tcp://[::1]:*",
            "ws://10.0.0.1/*",
            "ipc:///1*",
        ] {
            assert!(Pattern::of_endpoints(text).is_ok(), "{text}");
        }
    }
}
