//! Errors of the parser in [`format`](crate::format), in place of those of `taut`.

/// An error.
#[derive(Debug)]
pub struct Failure {
    /// Text of the error.
    pub what: String,
}

/// Result of the parser.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// Creates an error with this text.
    pub fn failed(what: impl Into<String>) -> Self {
        Failure { what: what.into() }
    }

    /// Ignores the advice.
    #[must_use]
    pub fn hint(self, _advice: &str) -> Self {
        self
    }
}
