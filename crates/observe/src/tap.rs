//! Protocol of the control socket beside the counters file (`PID.tap`), through which a tool gets
//! copies of messages. docs/reference/taps.md describes it.
//!
//! The tool connects, sends a [`Request`] as text, and receives one line as answer. After `OK`
//! frames follow. Each frame is a [message](Frame::Copy) or the number of [missed
//! messages](Frame::Missed). The stream ends when either end closes.

use std::io::{self, Read};

/// First line of a request.
pub const GREETING: &str = "TAP 1";
/// Answer to a valid request.
pub const OK: &str = "OK";
/// Maximum number of bytes of a request.
pub const LONGEST_REQUEST: usize = 4096;
/// Maximum number of bytes of a frame that the reader accepts.
pub const LONGEST_FRAME: usize = 64 << 20;

const MESSAGE: u8 = 1;
const MISSED: u8 = 2;
/// Bytes of a message frame before its parts.
const HEAD: usize = 30;
/// Replaces a peer's ID if the message went to all interested peers, if no peer got it, or if the
/// library does not know the peer.
pub const MANY: u64 = u64::MAX;

/// Direction of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The program received the message.
    In,
    /// The program sent the message.
    Out,
}

/// Filter for the copies that a tool wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Copies only messages of this socket, by [`Socket::id`](crate::Socket::id).
    pub socket: Option<u64>,
    /// Copies only messages to or from this peer, by [`Peer::id`](crate::Peer::id).
    pub peer: Option<u64>,
    /// Copies only messages in this direction.
    pub direction: Option<Direction>,
    /// Only messages whose first part starts with these bytes.
    pub prefix: Vec<u8>,
    /// Only messages with at least this many bytes in all parts.
    pub least: u64,
    /// Only messages with at most this many bytes in all parts.
    pub most: u64,
    /// Copies one message out of this many; 0 means 1.
    pub every: u64,
    /// Maximum number of bytes that are copied of each part.
    pub bytes: u64,
}

impl Default for Request {
    fn default() -> Self {
        Request {
            socket: None,
            peer: None,
            direction: None,
            prefix: Vec::new(),
            least: 0,
            most: u64::MAX,
            every: 1,
            bytes: u64::MAX,
        }
    }
}

impl Request {
    /// Returns the request as text: one line per field, then an empty line.
    pub fn to_text(&self) -> String {
        let mut text = format!("{GREETING}\n");
        let mut add = |name: &str, value: String| text.extend([name, "=", &value, "\n"]);
        if let Some(socket) = self.socket {
            add("socket", socket.to_string());
        }
        if let Some(peer) = self.peer {
            add("peer", peer.to_string());
        }
        match self.direction {
            Some(Direction::In) => add("direction", "in".to_owned()),
            Some(Direction::Out) => add("direction", "out".to_owned()),
            None => {}
        }
        if !self.prefix.is_empty() {
            add("prefix", self.prefix.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        for (name, value, default) in [
            ("least", self.least, 0),
            ("most", self.most, u64::MAX),
            ("every", self.every, 1),
            ("bytes", self.bytes, u64::MAX),
        ] {
            if value != default {
                add(name, value.to_string());
            }
        }
        text.push('\n');
        text
    }

    /// Parses the text of a request, without the empty line.
    ///
    /// # Errors
    ///
    /// A line of text that describes the error.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        if lines.next() != Some(GREETING) {
            return Err(format!("the first line must be {GREETING}"));
        }
        let mut request = Request::default();
        for line in lines.filter(|line| !line.is_empty()) {
            let (name, value) =
                line.split_once('=').ok_or_else(|| format!("the value is missing: {line}"))?;
            let number = || value.parse::<u64>().map_err(|_| format!("the value is not a number: {line}"));
            match name {
                "socket" => request.socket = Some(number()?),
                "peer" => request.peer = Some(number()?),
                "direction" => {
                    request.direction = Some(match value {
                        "in" => Direction::In,
                        "out" => Direction::Out,
                        _ => return Err(format!("the direction must be in or out: {line}")),
                    });
                }
                "prefix" => {
                    request.prefix =
                        unhex(value).ok_or_else(|| format!("the value is not hexadecimal: {line}"))?
                }
                "least" => request.least = number()?,
                "most" => request.most = number()?,
                "every" => request.every = number()?.max(1),
                "bytes" => request.bytes = number()?,
                _ => return Err(format!("unknown name: {line}")),
            }
        }
        Ok(request)
    }

    /// True if the filter accepts the message. Ignores `every`.
    pub fn accepts(&self, direction: Direction, peer: u64, first: &[u8], bytes: u64) -> bool {
        self.direction.is_none_or(|wanted| wanted == direction)
            && self.peer.is_none_or(|wanted| wanted == peer)
            && (self.least..=self.most).contains(&bytes)
            && first.starts_with(&self.prefix)
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.iter().all(u8::is_ascii_hexdigit) || !digits.len().is_multiple_of(2) {
        return None;
    }
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

/// A part of a copy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Part {
    /// Bytes of the original part.
    pub length: u64,
    /// Copied bytes, as many as the tool wants and the program has looked at.
    pub bytes: Vec<u8>,
}

/// A copy of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageCopy {
    /// Time of the message, in microseconds since 1970.
    pub at: u64,
    /// Socket that sent or received the message, by [`Socket::id`](crate::Socket::id).
    pub socket: u64,
    /// Peer that the message went to or came from, by [`Peer::id`](crate::Peer::id), or [`MANY`].
    pub peer: u64,
    /// Direction of the message.
    pub direction: Direction,
    /// Parts of the message.
    pub parts: Vec<Part>,
}

/// A frame after the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A message.
    Copy(MessageCopy),
    /// Messages missed since the last frame.
    Missed {
        /// Number of these messages.
        count: u64,
        /// Number of those that were too large to copy. The queue of the tool had no room for the
        /// others.
        too_large: u64,
    },
}

impl Frame {
    /// Returns the frame as bytes: length, kind, content.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        match self {
            Frame::Missed { count, too_large } => {
                bytes.push(MISSED);
                bytes.extend(count.to_le_bytes());
                bytes.extend(too_large.to_le_bytes());
            }
            Frame::Copy(copy) => {
                bytes.push(MESSAGE);
                bytes.extend(copy.at.to_le_bytes());
                bytes.extend(copy.socket.to_le_bytes());
                bytes.extend(copy.peer.to_le_bytes());
                bytes.push(u8::from(copy.direction == Direction::Out));
                bytes.extend((copy.parts.len() as u32).to_le_bytes());
                for part in &copy.parts {
                    bytes.extend(part.length.to_le_bytes());
                    bytes.extend((part.bytes.len() as u32).to_le_bytes());
                    bytes.extend(&part.bytes);
                }
            }
        }
        let length = (bytes.len() - 4) as u32;
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        bytes
    }

    /// Reads the next frame of a stream. Returns `None` at its end.
    ///
    /// # Errors
    ///
    /// Errors of the stream. `InvalidData` for an invalid frame.
    pub fn read(stream: &mut impl Read) -> io::Result<Option<Frame>> {
        loop {
            let mut length = [0; 4];
            match stream.read_exact(&mut length) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                read => read?,
            }
            let length = u32::from_le_bytes(length) as usize;
            if length > LONGEST_FRAME {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let mut body = Vec::new();
            stream.take(length as u64).read_to_end(&mut body)?;
            if body.len() < length {
                return Ok(None);
            }
            match body.first() {
                Some(&MESSAGE) => {
                    return Self::copy(&body).map(Some).ok_or(io::ErrorKind::InvalidData.into());
                }
                Some(&MISSED) => {
                    let number = |at: usize| Some(u64::from_le_bytes(body.get(at..at + 8)?.try_into().ok()?));
                    let count = number(1).ok_or(io::Error::from(io::ErrorKind::InvalidData))?;
                    let too_large = number(9).ok_or(io::Error::from(io::ErrorKind::InvalidData))?;
                    return Ok(Some(Frame::Missed { count, too_large }));
                }
                // A frame kind of a later library.
                Some(_) => {}
                None => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }

    fn copy(body: &[u8]) -> Option<Frame> {
        let (head, mut left) = body.split_at_checked(HEAD)?;
        let word = |at: usize| Some(u64::from_le_bytes(head.get(at..at + 8)?.try_into().ok()?));
        let direction = if head[25] == 0 { Direction::In } else { Direction::Out };
        let count = u32::from_le_bytes(head[26..30].try_into().ok()?);
        let mut parts = Vec::new();
        for _ in 0..count {
            let (length, behind) = left.split_first_chunk::<8>()?;
            let (copied, behind) = behind.split_first_chunk::<4>()?;
            let (bytes, behind) = behind.split_at_checked(u32::from_le_bytes(*copied) as usize)?;
            parts.push(Part { length: u64::from_le_bytes(*length), bytes: bytes.to_vec() });
            left = behind;
        }
        Some(Frame::Copy(MessageCopy { at: word(1)?, socket: word(9)?, peer: word(17)?, direction, parts }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tautline_testkit::XorShift;

    fn frames() -> [Frame; 3] {
        let part = |bytes: &[u8]| Part { length: 700, bytes: bytes.to_vec() };
        let copy = MessageCopy {
            at: 5,
            socket: 7,
            peer: 2,
            direction: Direction::Out,
            parts: vec![part(b"abc"), part(b"")],
        };
        let empty = MessageCopy { peer: MANY, direction: Direction::In, parts: Vec::new(), ..copy.clone() };
        [Frame::Copy(copy), Frame::Missed { count: 9, too_large: 2 }, Frame::Copy(empty)]
    }

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let request = Request {
            socket: Some(12),
            peer: Some(0),
            direction: Some(Direction::In),
            prefix: vec![0, 0xAB],
            least: 1,
            most: 100,
            every: 10,
            bytes: 64,
        };
        for request in [request, Request::default()] {
            let text = request.to_text();
            assert!(text.ends_with("\n\n") && text.len() < LONGEST_REQUEST);
            assert_eq!(Request::from_text(text.trim_end()), Ok(request));
        }
    }

    #[test]
    fn a_request_that_is_not_understood_is_told_why() {
        for (text, why) in [
            ("", "the first line must be TAP 1"),
            ("TAP 2", "the first line must be TAP 1"),
            ("TAP 1\nsocket", "the value is missing: socket"),
            ("TAP 1\nsocket=x", "the value is not a number: socket=x"),
            ("TAP 1\nprefix=abc", "the value is not hexadecimal: prefix=abc"),
            ("TAP 1\nprefix=+1", "the value is not hexadecimal: prefix=+1"),
            ("TAP 1\ndirection=up", "the direction must be in or out: direction=up"),
            ("TAP 1\ncolour=red", "unknown name: colour=red"),
        ] {
            assert_eq!(Request::from_text(text), Err(why.to_owned()));
        }
    }

    #[test]
    fn request_accepts_messages_that_match_all_filters() {
        let request = Request {
            peer: Some(3),
            direction: Some(Direction::Out),
            prefix: b"a".to_vec(),
            least: 2,
            most: 3,
            ..Request::default()
        };
        assert!(request.accepts(Direction::Out, 3, b"ab", 2));
        assert!(!request.accepts(Direction::Out, MANY, b"ab", 2));
        assert!(!request.accepts(Direction::In, 3, b"ab", 2));
        assert!(!request.accepts(Direction::Out, 3, b"b", 2));
        assert!(!request.accepts(Direction::Out, 3, b"a", 1));
        assert!(!request.accepts(Direction::Out, 3, b"abcd", 4));
    }

    #[test]
    fn frames_are_read_as_they_were_written() {
        let mut stream: Vec<u8> = frames().iter().flat_map(Frame::to_bytes).collect();
        // A frame of an unknown kind comes in between.
        stream.splice(0..0, [3, 0, 0, 0, 77, 1, 2]);
        let mut left = &stream[..];
        for frame in frames() {
            assert_eq!(Frame::read(&mut left).unwrap(), Some(frame));
        }
        assert_eq!(Frame::read(&mut left).unwrap(), None);
    }

    #[test]
    fn random_bytes_are_frames_or_refused() {
        let mut random = XorShift::new(32);
        let whole: Vec<u8> = frames().iter().flat_map(Frame::to_bytes).collect();
        for _ in 0..20_000 {
            let mut bytes = whole.clone();
            for _ in 0..=random.below(4) {
                let at = random.below(bytes.len());
                bytes[at] = random.next_u64() as u8;
            }
            bytes.truncate(random.below(bytes.len() + 1));
            let mut left = &bytes[..];
            while let Ok(Some(_)) = Frame::read(&mut left) {}
        }
    }
}
