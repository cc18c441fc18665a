//! Why a bridge cannot do what its file says.

use std::fmt;

/// Something wrong, with the line of the file that asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1; 0 if it is in none.
    pub line: usize,
    /// What is wrong, in words.
    pub what: String,
}

impl Fault {
    /// In a line.
    pub fn new(line: usize, what: impl Into<String>) -> Self {
        Fault { line, what: what.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 { f.write_str(&self.what) } else { write!(f, "line {}: {}", self.line, self.what) }
    }
}

impl std::error::Error for Fault {}
