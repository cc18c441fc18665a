//! Formats of messages in files, on pipes and on the terminal, for input and output.
//!
//! Each format can read its own output. Lines of text escape control characters, so that a message
//! cannot move the cursor or end its line.

mod decode;
mod encode;

pub use decode::{Decoder, split, unescape};
pub use encode::{Received, encode, escaped, object, part_value};

use clap::ValueEnum;

/// Formats of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// A line per message; the separator divides its parts
    #[default]
    Text,
    /// Raw bytes without separators; a whole input is one message
    Raw,
    /// A line per message, in hexadecimal
    Hex,
    /// A JSON object per message: {"parts": ["...", {"hex": "00ff"}], "time": "..."}
    Jsonl,
    /// A MessagePack array of binary strings per message
    Msgpack,
}
