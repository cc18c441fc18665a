//! Reasons why a counters file cannot be read.

use std::fmt;
use std::io;

/// Reason why a counters file cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The file does not exist: the process is not observed, or has ended.
    Missing,
    /// The file is not a plain file of this user, or not a counters file.
    Foreign,
    /// The layout has another version. The library is newer or older than this tool.
    Version(u32),
    /// The file ends too early, or contradicts itself.
    Incomplete,
    /// The file was rewritten during each attempt to read it. Try again.
    Busy,
    /// The files of other users need too much memory in total.
    TooLarge,
    /// The system reports another error, such as a missing permission.
    Io(io::Error),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Missing => f.write_str("not observed: start the program with TAUT_OBSERVE=1"),
            ReadError::Foreign => f.write_str("not a file of counters of this user"),
            ReadError::Version(version) => write!(
                f,
                "the file has layout version {version}, but this program supports {}: use the tools of the same release as the observed program",
                crate::VERSION
            ),
            ReadError::Incomplete => f.write_str("the file of counters is truncated"),
            ReadError::Busy => f.write_str(
                "the program changed the file of counters during each attempt to read it: try again",
            ),
            ReadError::TooLarge => {
                f.write_str("not read, because the files of counters of other users need too much memory")
            }
            ReadError::Io(error) => write!(f, "the file of counters cannot be read: {error}"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReadError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => ReadError::Missing,
            io::ErrorKind::UnexpectedEof => ReadError::Incomplete,
            _ => ReadError::Io(error),
        }
    }
}
