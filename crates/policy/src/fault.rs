use std::fmt;

/// Reason why a file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileError {
    /// Line of the fault, from 1; 0 if it has no line.
    pub line: usize,
    /// Description of the fault.
    pub what: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 { f.write_str(&self.what) } else { write!(f, "line {}: {}", self.line, self.what) }
    }
}

impl std::error::Error for FileError {}
