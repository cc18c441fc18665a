//! Properties of the peer that a message came from: `zmq_msg_gets` and ZMQ_SRCFD.
//!
//! There is one object per connection. The object is made after the handshake, shared by all
//! messages of the connection, and never changed.

use crate::sync::Arc;
use std::ffi::CStr;

/// Names of properties that nearly every peer has. In `Metadata::encoded`, each of these names is
/// one byte: its index plus `FIRST_KNOWN`. This is unambiguous, because no other name begins with
/// a control character.
const KNOWN: [&str; 6] = ["Peer-Address", "Routing-Id", "Socket-Type", "Identity", "User-Id", "Resource"];
const FIRST_KNOWN: u8 = 1;

/// The properties of a peer, by name: those of its READY command, and our own such as
/// `Peer-Address`.
#[derive(Debug, Default)]
pub struct Metadata {
    /// Names and values in turn, each with a NUL behind it unless it is a known name. One
    /// allocation, because there may be thousands of peers.
    encoded: Box<[u8]>,
    source_fd: Option<i32>,
}

impl Metadata {
    /// Collects the properties. If a name occurs twice, [`Metadata::get`] returns the first value.
    /// A value ends at its first NUL, as a C caller sees it. Drops a name with a NUL, because a C
    /// caller cannot ask for it. Also drops a name that begins with a control character: the
    /// protocol does not allow it, and it could be mistaken for a byte that stands for a known
    /// name.
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
        let mut encoded = Vec::with_capacity(length);
        for (name, value) in properties {
            put(name.as_ref(), value.as_ref(), |bytes| encoded.extend_from_slice(bytes));
        }
        Metadata { encoded: encoded.into(), source_fd }
    }

    /// True if there are no properties and no descriptor.
    pub fn is_empty(&self) -> bool {
        self.encoded.is_empty() && self.source_fd.is_none()
    }

    /// The value of a property.
    pub fn get(&self, name: &str) -> Option<&CStr> {
        self.iter().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// All properties, in the order given.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &CStr)> {
        let mut rest = &*self.encoded;
        std::iter::from_fn(move || {
            let name = match rest.split_first().and_then(|(&code, rest)| Some((interned_name(code)?, rest))) {
                Some((name, behind)) => {
                    rest = behind;
                    name
                }
                None => take_c_str(&mut rest)?.to_str().unwrap_or_default(),
            };
            Some((name, take_c_str(&mut rest)?))
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
const MAX_PEER_BYTES: usize = 8 * 1024;

/// Returns the peer's own properties that are kept. A property without room is dropped as a whole.
pub fn limit_properties<'a, I>(properties: I) -> impl Iterator<Item = (&'a str, &'a [u8])> + Clone
where
    I: Iterator<Item = (&'a str, &'a [u8])> + Clone,
{
    properties
        .scan(MAX_PEER_BYTES, |room, property| {
            let left = room.checked_sub(property.0.len() + property.1.len());
            *room = left.unwrap_or(*room);
            Some(left.map(|_| property))
        })
        .flatten()
}

/// Passes the parts of an encoded property to `out`, if its name is valid. Returns their number of
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

/// Returns the known name that this byte stands for.
fn interned_name(code: u8) -> Option<&'static str> {
    KNOWN.get(usize::from(code.checked_sub(FIRST_KNOWN)?)).copied()
}

/// Takes the first string, which ends with a NUL, off the bytes.
fn take_c_str<'a>(bytes: &mut &'a [u8]) -> Option<&'a CStr> {
    let string = CStr::from_bytes_until_nul(bytes).ok()?;
    *bytes = bytes.get(string.count_bytes() + 1..)?;
    Some(string)
}

/// Cache of one reference per thread: the last reference that one of the thread's messages has
/// released. If the next message comes from the same connection, it takes this reference. This
/// saves an atomic increment and an atomic decrement per message.
#[cfg(not(loom))]
mod reference_cache {
    use super::{Arc, Metadata};
    use crate::sync::on_exit;
    use std::cell::Cell;
    use std::mem::ManuallyDrop;

    type Reference = Option<Arc<Metadata>>;

    thread_local! {
        // Without a destructor: see `tautline_io::thread::on_exit`.
        static CACHED: Cell<ManuallyDrop<Reference>> = const { Cell::new(ManuallyDrop::new(None)) };
        /// True if `release_at_exit` will run. `None` before the first use.
        static IS_ENABLED: Cell<Option<bool>> = const { Cell::new(None) };
    }

    /// Replaces the cached reference by `reference`. Returns the previous reference.
    #[inline(always)]
    fn swap(reference: Reference) -> Reference {
        ManuallyDrop::into_inner(CACHED.replace(ManuallyDrop::new(reference)))
    }

    /// Returns the cached reference if it is one to this metadata, otherwise a new reference.
    #[inline(never)]
    pub(in super::super) fn acquire(metadata: &Arc<Metadata>) -> Arc<Metadata> {
        match swap(None) {
            Some(cached) if Arc::ptr_eq(&cached, metadata) => cached,
            other => {
                swap(other);
                metadata.clone()
            }
        }
    }

    /// Puts a reference into the cache and drops the previous one.
    #[inline(never)]
    pub(in super::super) fn release(metadata: Arc<Metadata>) {
        let is_enabled = IS_ENABLED.get().unwrap_or_else(|| {
            let is_enabled = on_exit(release_at_exit);
            IS_ENABLED.set(Some(is_enabled));
            is_enabled
        });
        drop(if is_enabled { swap(Some(metadata)) } else { Some(metadata) });
    }

    /// Drops the cached reference at the end of the thread.
    fn release_at_exit() {
        IS_ENABLED.set(Some(false));
        drop(swap(None));
    }
}

#[cfg(loom)]
mod reference_cache {
    use super::{Arc, Metadata};

    pub(in super::super) fn acquire(metadata: &Arc<Metadata>) -> Arc<Metadata> {
        metadata.clone()
    }

    pub(in super::super) fn release(_: Arc<Metadata>) {}
}

pub(super) use reference_cache::{acquire, release};

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_as_they_were_given() {
        let mut names: Vec<String> = KNOWN.map(String::from).to_vec();
        for (code, name) in (0..32).map(char::from).zip(KNOWN.iter().cycle()) {
            // Names with a control character after the first character, and changed known names.
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
    fn get_returns_the_first_of_duplicate_names() {
        let metadata =
            Metadata::new([("Identity", "me"), ("X", "1"), ("Identity", "not me"), ("X", "2")], None);
        assert_eq!((metadata.get("Identity"), metadata.get("X")), (Some(c"me"), Some(c"1")));
    }

    #[test]
    fn properties_over_the_limit_are_dropped() {
        let (long, most) = ([b'v'; MAX_PEER_BYTES], [b'v'; MAX_PEER_BYTES - 14]);
        let properties =
            [("Socket-Type", &b"REQ"[..]), ("Long", &long), ("X", &[]), ("Y", &most[1..]), ("Z", b"")];
        let kept: Vec<_> = limit_properties(properties.into_iter()).map(|(name, _)| name).collect();
        assert_eq!(kept, ["Socket-Type", "X", "Z"], "Y has one byte too many");
        let properties = [("Socket-Type", &b"REQ"[..]), ("Y", &most[1..]), ("Z", b"")];
        assert_eq!(
            limit_properties(properties.into_iter()).map(|(name, _)| name).collect::<Vec<_>>(),
            ["Socket-Type", "Y"]
        );
    }

    #[test]
    fn names_with_nul_or_leading_control_character_are_dropped() {
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
