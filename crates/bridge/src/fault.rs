//! Reasons why a bridge cannot do as its file says.

use std::fmt;

/// A fault, with the line of the file that caused it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BridgeError {
    /// Line, counted from 1. 0 if no line caused the fault.
    pub line: usize,
    /// Description of the fault.
    pub what: String,
}

impl BridgeError {
    /// Creates a fault in a line.
    pub fn new(line: usize, what: impl Into<String>) -> Self {
        BridgeError { line, what: what.into() }
    }
}

impl fmt::Display for BridgeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 { f.write_str(&self.what) } else { write!(f, "line {}: {}", self.line, self.what) }
    }
}

impl std::error::Error for BridgeError {}
