//! What is known about the peer that a message came from: `zmq_msg_gets` and ZMQ_SRCFD.
//!
//! One object per connection, made after its handshake and shared by all messages received over it; never changed.

use crate::sync::Arc;
use std::ffi::CStr;

/// The properties of a peer, by name: those of its READY command, and `Peer-Address` and its like.
#[derive(Debug, Default)]
pub struct Metadata {
    /// Names and values in turn, each with a NUL behind it: all in one piece, as there may be thousands of peers.
    text: Box<[u8]>,
    source_fd: Option<i32>,
}

impl Metadata {
    /// Collects the properties; the first one of a name counts. A value ends at its first NUL, as a C caller sees it; a name with a NUL
    /// is one that no C caller can ask for, and is left out.
    pub fn new<N, V>(properties: impl IntoIterator<Item = (N, V)>, source_fd: Option<i32>) -> Self
    where
        N: AsRef<str>,
        V: AsRef<[u8]>,
    {
        let mut text = Vec::new();
        for (name, value) in properties {
            let (name, value) = (name.as_ref(), value.as_ref());
            if !name.contains('\0') {
                text.extend_from_slice(name.as_bytes());
                text.push(0);
                text.extend(value.iter().take_while(|&&byte| byte != 0));
                text.push(0);
            }
        }
        Metadata { text: text.into(), source_fd }
    }

    /// Whether nothing is known.
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
            let name = next(&mut rest)?;
            let value = next(&mut rest)?;
            Some((name.to_str().unwrap_or_default(), value))
        })
    }

    /// The descriptor of the connection (ZMQ_SRCFD), as it was when the message arrived.
    pub fn source_fd(&self) -> Option<i32> {
        self.source_fd
    }
}

/// Takes the first string.
fn next<'a>(text: &mut &'a [u8]) -> Option<&'a CStr> {
    let string = CStr::from_bytes_until_nul(text).ok()?;
    *text = text.get(string.count_bytes() + 1..)?;
    Some(string)
}

/// One thread keeps one reference of those that its messages have given up: who receives message after message into fresh objects takes it
/// out again, and two locked instructions a message are saved.
#[cfg(not(loom))]
mod kept {
    use super::{Arc, Metadata};
    use crate::sync::at_end;
    use std::cell::Cell;
    use std::mem::ManuallyDrop;

    type Reference = Option<Arc<Metadata>>;

    thread_local! {
        // Without a destructor: see `tautline_io::thread::at_end`.
        static KEPT: Cell<ManuallyDrop<Reference>> = const { Cell::new(ManuallyDrop::new(None)) };
        static KEEPS: Cell<Option<bool>> = const { Cell::new(None) };
    }

    /// Puts `reference` in the place of what was kept.
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
            let keeps = at_end(end);
            KEEPS.set(Some(keeps));
            keeps
        });
        drop(if keeps { swap(Some(metadata)) } else { Some(metadata) });
    }

    /// The thread ends.
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
