//! Parser of recorded messages: a file of `taut`, which is a program without a library.

#[path = "../../crates/cli/src/format/decode.rs"]
mod decode;

pub use decode::{Decoder, split, unescape};

/// Formats of a message, as in `taut`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A line for each message.
    Text,
    /// A whole file is one message.
    Raw,
    /// A line for each message, in hexadecimal.
    Hex,
    /// A JSON value for each message.
    Jsonl,
    /// A value of MessagePack for each message.
    Msgpack,
}
