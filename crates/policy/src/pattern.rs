/// A text in which `*` stands for any characters, also for none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern(String);

impl Pattern {
    pub(crate) fn new(text: &str) -> Self {
        Pattern(text.to_owned())
    }

    /// Whether all of `text` fits.
    pub(crate) fn fits(&self, text: &str) -> bool {
        let Some((first, rest)) = self.0.split_once('*') else { return self.0 == text };
        let Some(mut text) = text.strip_prefix(first) else { return false };
        let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
        // The earliest place is as good as any: a star follows.
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
        let fits = |pattern: &str, text| Pattern::new(pattern).fits(text);
        for text in ["tcp://*:5555", "tcp://1.2.3.4:5555", "tcp://:5555"] {
            assert!(fits("tcp://*:5555", text), "{text}");
        }
        assert!(fits("*", "") && fits("*", "x") && fits("", "") && fits("**", "x") && fits("a*a", "aa"));
        assert!(fits("a*b*c", "a1b2c") && fits("a*b*c", "abbcc") && fits("*b*", "abc"));
        assert!(!fits("a*a", "a") && !fits("a*b*c", "acb") && !fits("tcp://*:5555", "tcp://*:55555"));
        assert!(!fits("", "x") && !fits("x", ""));
    }
}
