//! The end of a process, as `taut run` records it in the header of the counters file that a crash
//! has left. The process itself cannot write it.

use std::fmt;

use crate::HEADER;

/// Offset of the record in the header.
pub(crate) const END: usize = 128;
/// Bytes of the record: time, kind and value, check.
const LENGTH: usize = 24;

/// End of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessEnd {
    /// Time of the end, in microseconds since 1970.
    pub at: u64,
    /// Reason for the end.
    pub cause: EndCause,
}

/// Reason for the end of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndCause {
    /// The process exited with this status.
    Exited(u32),
    /// This signal killed the process.
    Killed(u32),
}

impl ProcessEnd {
    /// Returns the bytes for the header.
    pub(crate) fn store(self) -> [u8; LENGTH] {
        let (kind, value) = match self.cause {
            EndCause::Exited(status) => (1, status),
            EndCause::Killed(signal) => (2, signal),
        };
        let cause = kind | u64::from(value) << 32;
        let mut bytes = [0; LENGTH];
        let words = [self.at, cause, !(self.at ^ cause)];
        bytes
            .chunks_exact_mut(8)
            .zip(words)
            .for_each(|(place, word)| place.copy_from_slice(&word.to_le_bytes()));
        bytes
    }

    /// Returns the recorded end. `None` if no end or only a part of it was written.
    pub(crate) fn load(header: &[u8; HEADER]) -> Option<Self> {
        let word = |index: usize| {
            let bytes = header.get(END + 8 * index..END + 8 * index + 8)?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        let (at, cause, check) = (word(0)?, word(1)?, word(2)?);
        let value = (cause >> 32) as u32;
        let cause = match cause as u32 {
            _ if check != !(at ^ cause) => return None,
            1 => EndCause::Exited(value),
            2 => EndCause::Killed(value),
            _ => return None,
        };
        Some(ProcessEnd { at, cause })
    }
}

impl fmt::Display for EndCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EndCause::Exited(status) => write!(f, "exit status {status}"),
            EndCause::Killed(signal) => write!(f, "killed by signal {signal}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_loaded_as_stored() {
        for cause in [EndCause::Exited(0), EndCause::Exited(255), EndCause::Killed(9)] {
            let end = ProcessEnd { at: 1_700_000_000_000_000, cause };
            let mut header = [0; HEADER];
            assert_eq!(ProcessEnd::load(&header), None);
            header[END..END + LENGTH].copy_from_slice(&end.store());
            assert_eq!(ProcessEnd::load(&header), Some(end));
            header[END + 3] ^= 1;
            assert_eq!(ProcessEnd::load(&header), None);
        }
        assert_eq!(EndCause::Killed(9).to_string(), "killed by signal 9");
        assert_eq!(EndCause::Exited(3).to_string(), "exit status 3");
    }
}
