//! Properties of the peer that a message came from: `zmq_msg_gets` and ZMQ_SRCFD.
//!
//! There is one object per connection. The object is made after the handshake, shared by all
//! messages of the connection, and never changed.

use crate::sync::Arc;
use std::ffi::CStr;

/// Names of properties that nearly every peer has. In the text each is one byte, its place here
/// plus `FIRST_KNOWN`: other names never begin with a control character.
const KNOWN: [&str; 6] = ["Peer-Address", "Routing-Id", "Socket-Type", "Identity", "User-Id", "Resource"];
const FIRST_KNOWN: u8 = 1;

/// The properties of a peer, by name: those of its READY command, and our own such as
/// `Peer-Address`.
#[derive(Debug, Default)]
pub struct Metadata {
    /// Names and values in turn, each with a NUL behind it unless it is a known name. One
    /// allocation, because there may be thousands of peers.
    text: Box<[u8]>,
    source_fd: Option<i32>,
}

impl Metadata {
    /// Collects the properties. If a name occurs more than once, the first counts. A value ends at
    /// its first NUL, as a C caller sees it. A name with a NUL is dropped, because a C caller
    /// cannot ask for it. A name that begins with a control character is dropped too, because a
    /// peer cannot have it.
    pub fn new<N, V>(
        properties: impl IntoIterator<Item = (N, V), IntoIter: Clone>,
        source_fd: Option<i32>,
    ) -> Self
    where
        N: AsRef<str>,
        V: AsRef<[u8]>,
    {
        let properties = properties.into_iter();
        let length: usize =
            properties.clone().map(|(name, value)| put(name.as_ref(), value.as_ref(), |_| ())).sum();
        // Allocate the exact size, so that no memory is wasted.
        let mut text = Vec::with_capacity(length);
        for (name, value) in properties {
            put(name.as_ref(), value.as_ref(), |bytes| text.extend_from_slice(bytes));
        }
        Metadata { text: text.into(), source_fd }
    }

    /// True if there are no properties.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.source_fd.is_none()
    }

    /// The value of a property.
    pub fn get(&self, name: &str) -> Option<&CStr> {
        self.iter().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// All properties, in the order given.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &CStr)> {
        let mut rest = &*self.text;
        std::iter::from_fn(move || {
            let name = match rest.split_first().and_then(|(&code, rest)| Some((interned_name(code)?, rest))) {
                Some((name, behind)) => {
                    rest = behind;
                    name
                }
                None => next(&mut rest)?.to_str().unwrap_or_default(),
            };
            Some((name, next(&mut rest)?))
        })
    }

    /// The descriptor of the connection (ZMQ_SRCFD), at the time of the message's arrival.
    pub fn source_fd(&self) -> Option<i32> {
        self.source_fd
    }
}

/// Maximum number of bytes of names and values that are kept of a peer's own properties: the usual
/// limit of HTTP servers for a header. A peer can send any properties, and they are kept as long as
/// a message of the peer exists.
const MOST_TOLD: usize = 8 * 1024;

/// Returns the peer's own properties that are kept. A property without room is dropped as a whole.
pub(crate) fn limit_properties<'a, I>(told: I) -> impl Iterator<Item = (&'a str, &'a [u8])> + Clone
where
    I: Iterator<Item = (&'a str, &'a [u8])> + Clone,
{
    told.scan(MOST_TOLD, |room, property| {
        let left = room.checked_sub(property.0.len() + property.1.len());
        *room = left.unwrap_or(*room);
        Some(left.map(|_| property))
    })
    .flatten()
}

/// Passes the parts of a property's text to `out`, if its name is valid. Returns their number of
/// bytes.
fn put(name: &str, value: &[u8], mut out: impl FnMut(&[u8])) -> usize {
    if name.contains('\0') || name.starts_with(|first: char| first < ' ') {
        return 0;
    }
    let value = value.split(|&byte| byte == 0).next().unwrap_or_default();
    let code = KNOWN.iter().zip(FIRST_KNOWN..).find(|(known, _)| **known == name).map(|(_, code)| [code]);
    let parts = match &code {
        Some(code) => [&code[..], &[], value, &[0]],
        None => [name.as_bytes(), &[0], value, &[0]],
    };
    parts.iter().for_each(|part| out(part));
    parts.iter().map(|part| part.len()).sum()
}

/// The name that this byte of the text stands for.
fn interned_name(code: u8) -> Option<&'static str> {
    KNOWN.get(usize::from(code.checked_sub(FIRST_KNOWN)?)).copied()
}

/// Takes the first string.
fn next<'a>(text: &mut &'a [u8]) -> Option<&'a CStr> {
    let string = CStr::from_bytes_until_nul(text).ok()?;
    *text = text.get(string.count_bytes() + 1..)?;
    Some(string)
}

/// Each thread keeps one reference that its messages have released. A thread that receives many
/// messages into new objects reuses it, which saves two locked instructions per message.
#[cfg(not(loom))]
mod kept {
    use super::{Arc, Metadata};
    use crate::sync::on_exit;
    use std::cell::Cell;
    use std::mem::ManuallyDrop;

    type Reference = Option<Arc<Metadata>>;

    thread_local! {
        // Without a destructor: see `tautline_io::thread::on_exit`.
        static KEPT: Cell<ManuallyDrop<Reference>> = const { Cell::new(ManuallyDrop::new(None)) };
        static KEEPS: Cell<Option<bool>> = const { Cell::new(None) };
    }

    /// Replaces the kept reference by `reference`. Returns the former one.
    #[inline(always)]
    fn swap(reference: Reference) -> Reference {
        ManuallyDrop::into_inner(KEPT.replace(ManuallyDrop::new(reference)))
    }

    #[inline(never)]
    pub(in super::super) fn share(metadata: &Arc<Metadata>) -> Arc<Metadata> {
        match swap(None) {
            Some(kept) if Arc::ptr_eq(&kept, metadata) => kept,
            other => {
                swap(other);
                metadata.clone()
            }
        }
    }

    #[inline(never)]
    pub(in super::super) fn give_up(metadata: Arc<Metadata>) {
        let keeps = KEEPS.get().unwrap_or_else(|| {
            let keeps = on_exit(end);
            KEEPS.set(Some(keeps));
            keeps
        });
        drop(if keeps { swap(Some(metadata)) } else { Some(metadata) });
    }

    /// Releases the reference at the end of the thread.
    fn end() {
        KEEPS.set(Some(false));
        drop(swap(None));
    }
}

#[cfg(loom)]
mod kept {
    use super::{Arc, Metadata};

    pub(in super::super) fn share(metadata: &Arc<Metadata>) -> Arc<Metadata> {
        metadata.clone()
    }

    pub(in super::super) fn give_up(_: Arc<Metadata>) {}
}

pub(super) use kept::{give_up, share};

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_as_they_were_given() {
        let mut names: Vec<String> = KNOWN.map(String::from).to_vec();
        for (code, name) in (0..32).map(char::from).zip(KNOWN.iter().cycle()) {
            // Names with such a byte in any place but the first, and variants of a known name.
            names.extend([
                format!("a{code}b"),
                format!("{name}{code}"),
                name.to_lowercase(),
                format!("{name}s"),
            ]);
        }
        names.retain(|name| !name.contains('\0'));
        names.push(String::new());
        let value = |name: &str| format!("of {name}").into_bytes();
        let metadata = Metadata::new(names.iter().map(|name| (name, value(name))), None);
        for name in &names {
            assert_eq!(
                metadata.get(name).map(|found| found.to_bytes().to_vec()),
                Some(value(name)),
                "{name:?}"
            );
        }
        assert!(metadata.iter().map(|(name, _)| name).eq(names.iter().map(String::as_str)), "in their order");
    }

    #[test]
    fn the_first_one_of_a_name_counts() {
        let metadata =
            Metadata::new([("Identity", "me"), ("X", "1"), ("Identity", "not me"), ("X", "2")], None);
        assert_eq!((metadata.get("Identity"), metadata.get("X")), (Some(c"me"), Some(c"1")));
    }

    #[test]
    fn a_peer_is_believed_but_not_at_any_length() {
        let (long, most) = ([b'v'; MOST_TOLD], [b'v'; MOST_TOLD - 14]);
        let told = [("Socket-Type", &b"REQ"[..]), ("Long", &long), ("X", &[]), ("Y", &most[1..]), ("Z", b"")];
        let kept: Vec<_> = limit_properties(told.into_iter()).map(|(name, _)| name).collect();
        assert_eq!(kept, ["Socket-Type", "X", "Z"], "Y has one byte too many");
        let told = [("Socket-Type", &b"REQ"[..]), ("Y", &most[1..]), ("Z", b"")];
        assert_eq!(
            limit_properties(told.into_iter()).map(|(name, _)| name).collect::<Vec<_>>(),
            ["Socket-Type", "Y"]
        );
    }

    #[test]
    fn no_name_passes_for_another() {
        let looks_known = ["\u{3}", "\u{3}DEALER", "\u{4}\0", "a\0b", "\u{1f}"];
        let metadata = Metadata::new(looks_known.map(|name| (name, "forged")), None);
        assert_eq!(metadata.iter().count(), 0);
        assert!(metadata.is_empty() && metadata.get("Socket-Type").is_none());
        let metadata =
            Metadata::new([("\u{3}", "forged"), ("Socket-Type", "PUSH"), ("Odd", "\u{3}a\0b")], Some(3));
        assert_eq!((metadata.get("Socket-Type"), metadata.get("Odd")), (Some(c"PUSH"), Some(c"\u{3}a")));
        assert_eq!(metadata.iter().count(), 2);
    }
}
