//! Formats of messages in files, on pipes and on the terminal, for input and output.
//!
//! Each format can read its own output. Lines of text escape control characters, so that a message
//! cannot move the cursor or end its line.

mod decode;
mod encode;

pub use decode::{Decoder, split, unescape};
pub use encode::{Received, encode, escaped, object, part_value};

use clap::ValueEnum;

/// The forms of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// A line each; parts divided by the separator
    #[default]
    Text,
    /// The bytes as they are, nothing between messages; a whole input is one message
    Raw,
    /// A line each, in hexadecimal
    Hex,
    /// A JSON object each: {"parts": ["...", {"hex": "00ff"}], "time": "..."}
    Jsonl,
    /// An array of binary strings each
    Msgpack,
}
