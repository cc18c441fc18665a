//! The two text formats of metrics: that of Prometheus (version 0.0.4), and OpenMetrics. They
//! differ in the names of types, in the heads of counters, in units and in the end.

use std::fmt::{Display, Write};

/// Text format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    Prometheus,
    OpenMetrics,
}

impl Syntax {
    /// Returns the format for a client with this Accept header. Clients without one, such as curl,
    /// get the format that every tool reads.
    pub fn wanted(accept: &str) -> Syntax {
        let asks = accept.to_ascii_lowercase().contains("application/openmetrics-text");
        if asks { Syntax::OpenMetrics } else { Syntax::Prometheus }
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Syntax::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Syntax::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Info,
    Counter,
    Gauge,
}

/// Metrics as text.
pub struct Exposition {
    syntax: Syntax,
    text: String,
    /// Name of the samples of the present metric.
    name: String,
}

impl Exposition {
    pub fn new(syntax: Syntax) -> Self {
        Exposition { syntax, text: String::new(), name: String::new() }
    }

    /// Starts a metric. Its samples follow.
    pub fn head(&mut self, name: &str, kind: Kind, unit: &str, help: &str) {
        let suffix = match kind {
            Kind::Info => "_info",
            Kind::Counter => "_total",
            Kind::Gauge => "",
        };
        self.name = format!("{name}{suffix}");
        let kind = match kind {
            Kind::Info if self.syntax == Syntax::OpenMetrics => "info",
            Kind::Counter => "counter",
            Kind::Info | Kind::Gauge => "gauge",
        };
        let (text, open) = (&mut self.text, self.syntax == Syntax::OpenMetrics);
        // OpenMetrics names the metric without the suffix of its samples.
        let name = if open { name } else { &*self.name };
        let _ = writeln!(text, "# TYPE {name} {kind}");
        if open && !unit.is_empty() {
            let _ = writeln!(text, "# UNIT {name} {unit}");
        }
        let _ = writeln!(text, "# HELP {name} {help}");
    }

    /// Adds a sample of the present metric.
    pub fn sample(&mut self, labels: &str, value: impl Display) {
        let _ = match labels {
            "" => writeln!(self.text, "{} {value}", self.name),
            labels => writeln!(self.text, "{}{{{labels}}} {value}", self.name),
        };
    }

    /// Returns the whole text.
    pub fn end(mut self) -> String {
        if self.syntax == Syntax::OpenMetrics {
            self.text += "# EOF\n";
        }
        self.text
    }
}

/// Escapes a text for the value of a label. Other control characters than the end of a line become
/// visible, because the text may be shown in a terminal: `\x1b`.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' => escaped.push_str("\\\\"),
            '"' => escaped.push_str("\\\""),
            '\n' => escaped.push_str("\\n"),
            _ if letter.is_control() => {
                let _ = write!(escaped, "\\\\x{:02x}", u32::from(letter));
            }
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(syntax: Syntax) -> String {
        let mut text = Exposition::new(syntax);
        text.head("one", Kind::Info, "", "About");
        text.sample("a=\"b\"", 1);
        text.head("two_bytes", Kind::Counter, "bytes", "Bytes");
        text.sample("", 7);
        text.head("three_seconds", Kind::Gauge, "seconds", "Time");
        text.sample("a=\"b\"", 0.5);
        text.end()
    }

    #[test]
    fn formats_differ_in_heads_and_agree_in_samples() {
        assert_eq!(
            text(Syntax::Prometheus),
            "# TYPE one_info gauge\n# HELP one_info About\none_info{a=\"b\"} 1\n\
             # TYPE two_bytes_total counter\n# HELP two_bytes_total Bytes\ntwo_bytes_total 7\n\
             # TYPE three_seconds gauge\n# HELP three_seconds Time\nthree_seconds{a=\"b\"} 0.5\n"
        );
        assert_eq!(
            text(Syntax::OpenMetrics),
            "# TYPE one info\n# HELP one About\none_info{a=\"b\"} 1\n\
             # TYPE two_bytes counter\n# UNIT two_bytes bytes\n# HELP two_bytes Bytes\ntwo_bytes_total 7\n\
             # TYPE three_seconds gauge\n# UNIT three_seconds seconds\n# HELP three_seconds Time\n\
             three_seconds{a=\"b\"} 0.5\n# EOF\n"
        );
    }

    #[test]
    fn labels_have_no_control_characters() {
        assert_eq!(escaped("a\"b\\c\nd\u{1b}[1m\u{9b}ö"), "a\\\"b\\\\c\\nd\\\\x1b[1m\\\\x9bö");
    }

    #[test]
    fn openmetrics_is_for_clients_that_ask_for_it() {
        for (accept, wanted) in [
            ("", Syntax::Prometheus),
            ("*/*", Syntax::Prometheus),
            ("text/plain;version=0.0.4", Syntax::Prometheus),
            ("application/OpenMetrics-Text;version=1.0.0;q=0.5,text/plain;q=0.2", Syntax::OpenMetrics),
        ] {
            assert_eq!(Syntax::wanted(accept), wanted, "{accept}");
        }
    }
}
