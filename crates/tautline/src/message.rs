//! Messages: one part ([`Message`]), several parts ([`Multipart`]), and the argument of `send`
//! ([`Frame`]).

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::str::Utf8Error;

use tautline_core as core;

/// Minimum size in bytes from which sharing a body is cheaper than copying it.
#[cfg(feature = "bytes")]
const WORTH_SHARING: usize = 8 * 1024;

/// One message part: its bytes and the properties of the peer that sent it.
///
/// Bodies of up to 40 bytes are stored in the value itself. Clones share larger bodies.
///
/// ```
/// use tautline::Message;
///
/// let message = Message::from("hello");
/// assert_eq!(message.as_str(), Ok("hello"));
/// assert_eq!(message.len(), 5);
/// assert_eq!(Vec::from(message), b"hello");
/// ```
#[derive(Default)]
pub struct Message(pub(crate) core::Message);

/// ```
/// # fn main() -> tautline::Result<()> {
/// use tautline::{Context, Dealer, Message, Router};
///
/// let mut message = Message::from(b"\xFFmail");
/// message.as_mut_bytes()[1] = b'M';
/// assert_eq!((message.as_bytes(), message.as_str().is_err()), (&b"\xFFMail"[..], true));
/// assert_eq!(message.to_string_lossy(), "\u{FFFD}Mail");
/// assert_eq!(message.share(), message);
///
/// // A received message carries the properties of its sender.
/// let context = Context::new();
/// let mut pull = Dealer::new(&context)?;
/// let endpoint = pull.bind("tcp://127.0.0.1:*")?;
/// let mut push = Dealer::builder(&context).property("X-Shop", "Rome").connect(&endpoint)?;
/// push.send(message)?;
/// let received = pull.recv()?;
/// assert_eq!(received.peer_address(), Some("127.0.0.1"));
/// assert_eq!((received.property("X-Shop"), received.user_id()), (Some("Rome"), None));
/// assert!(received.properties().any(|(name, value)| (name, value) == ("Socket-Type", "DEALER")));
/// # Ok(()) }
/// ```
impl Message {
    /// Creates an empty message.
    pub const fn new() -> Self {
        Message(core::Message::new())
    }

    /// Returns the body.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_slice()
    }

    /// Returns the body as text.
    ///
    /// # Errors
    /// Returns an error if the body is not UTF-8.
    pub fn as_str(&self) -> std::result::Result<&str, Utf8Error> {
        std::str::from_utf8(self.as_bytes())
    }

    /// Returns the body as text; invalid UTF-8 is replaced.
    pub fn to_string_lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.as_bytes())
    }

    /// Returns the body for writing. A body that is shared with other messages is copied first.
    pub fn as_mut_bytes(&mut self) -> &mut [u8] {
        self.0.as_mut_slice()
    }

    /// True if more parts of the same message follow. Only set on received messages.
    pub fn has_more(&self) -> bool {
        self.0.more()
    }

    /// Returns a property of the peer that sent the message, as `zmq_msg_gets(3)`: `Socket-Type`,
    /// `Identity`, `Peer-Address`, `User-Id`, or a property that the peer added to its handshake.
    pub fn property(&self, name: &str) -> Option<&str> {
        self.0.property(name)?.to_str().ok()
    }

    /// Returns the name that the context's [`zap`](crate::zap) handler gave the peer: the property
    /// `User-Id`.
    pub fn user_id(&self) -> Option<&str> {
        self.property("User-Id")
    }

    /// Returns the address of the peer that sent the message, for example its IP address: the
    /// property `Peer-Address`.
    pub fn peer_address(&self) -> Option<&str> {
        self.property("Peer-Address")
    }

    /// Returns all properties of the peer that sent the message, as pairs of name and value.
    /// Properties that are not UTF-8 are omitted.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.0.metadata().into_iter().flat_map(|metadata| metadata.iter());
        all.filter_map(|(name, value)| Some((name, value.to_str().ok()?)))
    }

    /// Creates a message whose body is the bytes of `owner`, for example of a memory-mapped file. A
    /// large body is not copied. The owner is dropped with the last message that refers to it, on
    /// any thread.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tautline::Message;
    ///
    /// let table: Arc<[u8]> = vec![7; 100_000].into();
    /// let message = Message::from_owner(table.clone());
    /// assert_eq!(message.as_bytes().as_ptr(), table.as_ptr());
    /// ```
    pub fn from_owner(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Message(core::Message::from_owner(owner))
    }

    /// Creates a message of `size` bytes to write to, in memory that other processes can read in
    /// place. `ipc` peers of the same user then receive it without a copy. A short body, or one for
    /// which there is no such memory, is in ordinary memory. Its bytes are zeroes, or those of
    /// earlier bodies of this process.
    ///
    /// # Errors
    /// `OutOfMemory`.
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// let mut frame = tautline::Message::loan(3 * 1920 * 1080)?;
    /// frame.as_mut_bytes()[0] = 255;
    /// # Ok(()) }
    /// ```
    pub fn loan(size: usize) -> crate::Result<Self> {
        core::message::loan(size).map(Message).ok_or(crate::Error::OutOfMemory)
    }

    /// Creates a message with a constant body, which is not copied.
    pub const fn from_static(bytes: &'static [u8]) -> Self {
        Message(core::Message::from_static(bytes))
    }

    /// Returns another message with the same body, without a copy if the body is large. Cloning
    /// needs no `mut` but copies.
    #[must_use]
    pub fn share(&mut self) -> Message {
        Message(self.0.share())
    }
}

impl Clone for Message {
    fn clone(&self) -> Self {
        Message::from(self.as_bytes())
    }
}

impl Deref for Message {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl AsRef<[u8]> for Message {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 64;
        let bytes = self.as_bytes();
        let shown = &bytes[..bytes.len().min(SHOWN)];
        write!(f, "Message({} bytes, b\"{}\"", bytes.len(), shown.escape_ascii())?;
        f.write_str(if shown.len() < bytes.len() { "...)" } else { ")" })
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for Message {
    fn eq(&self, other: &T) -> bool {
        self.as_bytes() == other.as_ref()
    }
}

impl Eq for Message {}

/// Hashes like the byte slice.
impl std::hash::Hash for Message {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl From<&[u8]> for Message {
    fn from(bytes: &[u8]) -> Self {
        Message(core::Message::from_slice(bytes))
    }
}

impl<const N: usize> From<&[u8; N]> for Message {
    fn from(bytes: &[u8; N]) -> Self {
        Message::from(&bytes[..])
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Message::from(text.as_bytes())
    }
}

/// Does not copy.
impl From<Vec<u8>> for Message {
    fn from(bytes: Vec<u8>) -> Self {
        Message(core::Message::from_vec(bytes))
    }
}

/// Does not copy.
impl From<String> for Message {
    fn from(text: String) -> Self {
        Message::from(text.into_bytes())
    }
}

/// Copies once.
impl From<Message> for Vec<u8> {
    fn from(message: Message) -> Self {
        message.as_bytes().to_vec()
    }
}

/// Does not copy from 8 KiB on: the message keeps the `Bytes` alive instead.
#[cfg(feature = "bytes")]
impl From<bytes::Bytes> for Message {
    fn from(bytes: bytes::Bytes) -> Self {
        if bytes.len() < WORTH_SHARING { Message::from(&bytes[..]) } else { Message::from_owner(bytes) }
    }
}

/// Does not copy: the message itself becomes the owner.
#[cfg(feature = "bytes")]
impl From<Message> for bytes::Bytes {
    fn from(message: Message) -> Self {
        bytes::Bytes::from_owner(message)
    }
}

/// Argument of `send`: bytes that are copied directly into the socket's queue, or a message that is
/// moved.
///
/// Every type that converts into a `Frame` can be sent: `&[u8]`, `&str`, `Vec<u8>`, `String`,
/// [`Message`], ...
#[derive(Debug)]
pub enum Frame<'a> {
    /// Copied into the queue, without creating a message object.
    Borrowed(&'a [u8]),
    /// Moved. Large bodies are not copied.
    Owned(Message),
}

impl From<Frame<'_>> for Message {
    fn from(frame: Frame<'_>) -> Self {
        match frame {
            Frame::Borrowed(bytes) => bytes.into(),
            Frame::Owned(message) => message,
        }
    }
}

impl Frame<'_> {
    /// Returns the body.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Frame::Borrowed(bytes) => bytes,
            Frame::Owned(message) => message.as_bytes(),
        }
    }
}

impl<'a> From<&'a [u8]> for Frame<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Frame::Borrowed(bytes)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Frame<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Frame::Borrowed(bytes)
    }
}

impl<'a> From<&'a str> for Frame<'a> {
    fn from(text: &'a str) -> Self {
        Frame::Borrowed(text.as_bytes())
    }
}

/// For the elements of a slice of strings.
impl<'a> From<&&'a str> for Frame<'a> {
    fn from(text: &&'a str) -> Self {
        Frame::Borrowed(text.as_bytes())
    }
}

/// For the elements of a slice of byte slices.
impl<'a> From<&&'a [u8]> for Frame<'a> {
    fn from(bytes: &&'a [u8]) -> Self {
        Frame::Borrowed(bytes)
    }
}

impl<'a> From<&'a String> for Frame<'a> {
    fn from(text: &'a String) -> Self {
        Frame::Borrowed(text.as_bytes())
    }
}

impl<'a> From<&'a Vec<u8>> for Frame<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Frame::Borrowed(bytes)
    }
}

impl<'a> From<&'a Message> for Frame<'a> {
    fn from(message: &'a Message) -> Self {
        Frame::Borrowed(message.as_bytes())
    }
}

impl From<Vec<u8>> for Frame<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Frame::Owned(bytes.into())
    }
}

impl From<String> for Frame<'_> {
    fn from(text: String) -> Self {
        Frame::Owned(text.into())
    }
}

impl From<Message> for Frame<'_> {
    fn from(message: Message) -> Self {
        Frame::Owned(message)
    }
}

#[cfg(feature = "bytes")]
impl From<bytes::Bytes> for Frame<'_> {
    fn from(bytes: bytes::Bytes) -> Self {
        Frame::Owned(bytes.into())
    }
}

/// A whole message of one or more parts.
///
/// ```
/// use tautline::Multipart;
///
/// let message = Multipart::from(["to", "", "hello"]);
/// assert_eq!(message.len(), 3);
/// assert_eq!(message[2], "hello");
/// let [to, _, body]: [tautline::Message; 3] = message.try_into().unwrap();
/// assert_eq!((to.as_str(), body.as_str()), (Ok("to"), Ok("hello")));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Multipart(Vec<Message>);

/// ```
/// use tautline::{Message, Multipart};
///
/// let mut message = Multipart::new();
/// message.push("to");
/// message.push("body");
/// assert_eq!(message.pop_front(), Some(Message::from("to")));
/// assert_eq!(message.into_parts(), ["body"]);
/// ```
impl Multipart {
    /// Creates a message without parts. It cannot be sent until it has a part.
    pub const fn new() -> Self {
        Multipart(Vec::new())
    }

    /// Adds a part at the end.
    pub fn push(&mut self, part: impl Into<Message>) {
        self.0.push(part.into());
    }

    /// Removes and returns the first part, for example the routing id of a message from a ROUTER.
    pub fn pop_front(&mut self) -> Option<Message> {
        (!self.0.is_empty()).then(|| self.0.remove(0))
    }

    /// Collects the parts of a message to send.
    pub(crate) fn collect<'a, I>(parts: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<Frame<'a>>,
    {
        parts.into_iter().map(Into::into).collect()
    }

    /// Returns the parts.
    pub fn into_parts(self) -> Vec<Message> {
        self.0
    }
}

impl Deref for Multipart {
    type Target = [Message];

    fn deref(&self) -> &[Message] {
        &self.0
    }
}

impl<T: Into<Message>, const N: usize> From<[T; N]> for Multipart {
    fn from(parts: [T; N]) -> Self {
        parts.into_iter().collect()
    }
}

impl<T: Into<Message>> From<Vec<T>> for Multipart {
    fn from(parts: Vec<T>) -> Self {
        parts.into_iter().collect()
    }
}

impl From<Message> for Multipart {
    fn from(part: Message) -> Self {
        Multipart(vec![part])
    }
}

impl<T: Into<Message>> FromIterator<T> for Multipart {
    fn from_iter<I: IntoIterator<Item = T>>(parts: I) -> Self {
        Multipart(parts.into_iter().map(Into::into).collect())
    }
}

impl IntoIterator for Multipart {
    type Item = Message;
    type IntoIter = std::vec::IntoIter<Message>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Multipart {
    type Item = &'a Message;
    type IntoIter = std::slice::Iter<'a, Message>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<const N: usize> TryFrom<Multipart> for [Message; N] {
    type Error = Multipart;

    /// Returns the message unchanged if it does not have exactly this number of parts.
    fn try_from(message: Multipart) -> std::result::Result<Self, Multipart> {
        message.0.try_into().map_err(Multipart)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_shows_its_beginning_only() {
        assert_eq!(format!("{:?}", Message::from("a\n")), r#"Message(2 bytes, b"a\n")"#);
        let long = format!("{:?}", Message::from(vec![b'x'; 100]));
        assert!(long.starts_with("Message(100 bytes, b\"xxx") && long.ends_with("x\"...)"), "{long}");
    }

    #[test]
    fn parts_come_and_go_in_order() {
        let mut message: Multipart = ["a", "b"].into_iter().collect();
        message.push(vec![1, 2]);
        assert_eq!(message.pop_front(), Some(Message::from("a")));
        assert_eq!(message.iter().map(|part| part.len()).collect::<Vec<_>>(), [1, 2]);
        assert!(<[Message; 3]>::try_from(message).is_err());
    }

    #[test]
    fn a_shared_body_is_copied_before_it_changes() {
        let mut one = Message::from(vec![7; 1000]);
        let mut other = one.share();
        other.as_mut_bytes()[0] = 8;
        assert_eq!((one[0], other[0]), (7, 8));
    }

    #[cfg(feature = "bytes")]
    #[test]
    fn bytes_go_both_ways() {
        let bytes = bytes::Bytes::from(vec![3; 100_000]);
        let at = bytes.as_ptr();
        let message = Message::from(bytes);
        assert_eq!(message.as_bytes().as_ptr(), at);
        let shared = bytes::Bytes::from_owner(message);
        assert_eq!((shared.clone().as_ptr(), Message::from(shared.clone()).as_ptr()), (at, at));
        let message = Message::from(shared);
        assert_eq!(bytes::Bytes::from(message), vec![3; 100_000]);
    }
}
