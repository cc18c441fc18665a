//! The names of a socket's peers, and the order in which they are addressed.
//!
//! Programs that send to many peers mostly send in the same order every time, and a server replies
//! to the peer that it has just heard. So we remember which peer came after which. Then a message
//! needs no hash table lookup, and the next peers' memory is prefetched while this one's message is
//! written.

use super::PipeId;
use tautline_timing::rules::{Rule, is_disabled};

/// Longest name that its key represents completely.
pub(super) const MAX_EXACT: usize = 16;

/// Part of a name that is compared: two words, which overlap in a short name, or one word; and the
/// length. 0 for a missing name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IdKey {
    first: u64,
    last: u64,
    length: usize,
}

impl IdKey {
    pub(super) const NONE: IdKey = IdKey { first: 0, last: 0, length: 0 };

    /// Builds the key with a few loads. A comparison of whole names would be a call of `memcmp`
    /// each.
    ///
    /// Short names are read byte by byte. A program has often just composed such a name from a byte
    /// and a number. A single load of both would have to wait until all earlier stores are in the
    /// cache.
    #[inline(always)]
    pub(super) fn of(name: &[u8]) -> IdKey {
        let (first, last) = match (name.first_chunk(), name.last_chunk()) {
            (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
            _ => (name.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)), 0),
        };
        IdKey { first, last, length: name.len() }
    }

    /// True if there is only one name with this key.
    #[inline(always)]
    pub(super) fn is_exact(&self) -> bool {
        self.length <= MAX_EXACT
    }

    /// Returns the name, if the key represents it completely. `room` receives the bytes.
    #[inline]
    fn name<'a>(&self, room: &'a mut [u8; MAX_EXACT]) -> Option<&'a [u8]> {
        let length = self.length;
        match length {
            1..8 => {
                room[..8].copy_from_slice(&self.first.to_be_bytes());
                room.get(8 - length..8)
            }
            8..=MAX_EXACT => {
                room[..8].copy_from_slice(&self.first.to_le_bytes());
                room[length - 8..length].copy_from_slice(&self.last.to_le_bytes());
                room.get(..length)
            }
            _ => None,
        }
    }
}

/// Cached information about a pipe.
#[derive(Debug, Clone, Copy)]
struct CachedPipe {
    /// Key of its name, if it has one.
    key: IdKey,
    /// The pipe that was addressed after this one.
    next: PipeId,
}

impl CachedPipe {
    const VACANT: CachedPipe = CachedPipe { key: IdKey::NONE, next: NO_PIPE };
}

/// Number of a missing pipe: there are never that many pipes.
const NO_PIPE: PipeId = PipeId(u32::MAX);
/// Target of parts that are dropped.
const DROPPED: PipeId = PipeId(u32::MAX - 1);

/// The names of some pipes, and the target of the message that was begun with a name.
#[derive(Debug)]
pub(crate) struct AddressCache {
    /// Cached information of each pipe, indexed by the number of the pipe.
    places: Vec<CachedPipe>,
    /// The last used pipe. Most messages go to the pipe that the last message went to or came from.
    last: PipeId,
    /// A pipe that was found by its name twice in a row, and its key, which identifies the name
    /// uniquely.
    repeated: (IdKey, PipeId),
    /// Target of the other parts of the begun message.
    message_target: PipeId,
}

/// A pipe that was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct CacheHit {
    /// The pipe.
    pub(super) pipe: PipeId,
    /// True if it was already the last used pipe.
    pub(super) repeated: bool,
}

impl AddressCache {
    /// Returns a table without names.
    pub(super) fn new() -> Self {
        AddressCache {
            places: Vec::new(),
            last: NO_PIPE,
            repeated: (IdKey::NONE, NO_PIPE),
            message_target: NO_PIPE,
        }
    }

    #[inline]
    fn place(&self, pipe: PipeId) -> Option<&CachedPipe> {
        self.places.get(pipe.0 as usize)
    }

    /// Returns the pipe of a name with this key, if it is the last used pipe, or the pipe that
    /// followed it the time before.
    #[inline(always)]
    pub(super) fn find(&mut self, key: IdKey) -> Option<CacheHit> {
        if is_disabled(Rule::Routes) {
            return None;
        }
        let last = self.place(self.last)?;
        if last.key == key {
            if key.is_exact() {
                self.repeated = (key, self.last);
            }
            return Some(CacheHit { pipe: self.last, repeated: true });
        }
        let pipe = last.next;
        let found = self.place(pipe)?.key == key;
        found.then(|| {
            self.last = pipe;
            CacheHit { pipe, repeated: false }
        })
    }

    /// Returns the pipe of the name with this key, if it is the pipe that was last found twice in a
    /// row.
    #[inline(always)]
    pub(super) fn find_repeated(&self, key: IdKey) -> Option<PipeId> {
        let (again, pipe) = self.repeated;
        (again == key).then_some(pipe)
    }

    /// Returns the second and the third pipe that will probably be addressed after this one.
    #[inline]
    pub(super) fn predict_next(&self, pipe: PipeId) -> Option<[PipeId; 2]> {
        let second = self.place(self.place(pipe)?.next)?.next;
        Some([second, self.place(second)?.next])
    }

    /// Notes that this pipe is addressed now. The next time, it is expected after the same pipe as
    /// now.
    pub(super) fn record_addressed(&mut self, pipe: PipeId) {
        if let Some(place) = self.places.get_mut(self.last.0 as usize) {
            place.next = pipe;
        }
        self.last = pipe;
    }

    /// Notes that a message came from this named pipe. The next message will probably go there.
    #[inline]
    pub(super) fn record_received(&mut self, pipe: PipeId) {
        self.last = pipe;
    }

    /// Returns the name of a pipe without access to the pipe, if the name is short.
    #[inline]
    pub(super) fn get<'a>(&self, pipe: PipeId, room: &'a mut [u8; MAX_EXACT]) -> Option<&'a [u8]> {
        self.place(pipe)?.key.name(room)
    }

    /// Names a pipe.
    pub(crate) fn insert(&mut self, pipe: PipeId, name: &[u8]) {
        let number = pipe.0 as usize;
        if number >= self.places.len() {
            self.places.resize(number + 1, CachedPipe::VACANT);
        }
        self.places[number] = CachedPipe { key: IdKey::of(name), ..CachedPipe::VACANT };
    }

    /// Removes the name of a pipe.
    pub(crate) fn remove(&mut self, pipe: PipeId) {
        if self.last == pipe {
            self.last = NO_PIPE;
        }
        self.repeated = (IdKey::NONE, NO_PIPE);
        if let Some(place) = self.places.get_mut(pipe.0 as usize) {
            *place = CachedPipe::VACANT;
        }
    }

    /// Notes that a message was begun and that its other parts go to this pipe. `None` if they are
    /// dropped.
    #[inline]
    pub(crate) fn begin(&mut self, to: Option<PipeId>) {
        self.message_target = to.unwrap_or(DROPPED);
    }

    /// Returns the target of the other parts of the begun message, if there is one.
    #[inline]
    pub(crate) fn message_target(&self) -> Option<Option<PipeId>> {
        match self.message_target {
            NO_PIPE => None,
            DROPPED => Some(None),
            id => Some(Some(id)),
        }
    }

    /// Notes the end of the begun message.
    #[inline]
    pub(crate) fn finish(&mut self) {
        self.message_target = NO_PIPE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(names: &mut AddressCache, name: &[u8]) -> Option<(u32, bool)> {
        names.find(IdKey::of(name)).map(|found| (found.pipe.0, found.repeated))
    }

    #[test]
    fn address_order_is_predicted() {
        let mut names = AddressCache::new();
        let name = |number: u32| vec![b'a'; number as usize];
        for number in 1..=27 {
            names.insert(PipeId(number), &name(number));
        }
        assert_eq!(found(&mut names, &name(1)), None, "the first lookup finds no pipe");
        for number in (1..=27).chain([1]) {
            names.record_addressed(PipeId(number));
        }
        for number in 2..=27 {
            assert_eq!(found(&mut names, &name(number)), Some((number, false)));
            assert_eq!(found(&mut names, &name(number)), Some((number, true)));
        }
        assert_eq!(found(&mut names, &name(2)), None, "out of order");
        assert_eq!(names.predict_next(PipeId(25)), Some([PipeId(27), PipeId(1)]));
        names.record_received(PipeId(7));
        assert_eq!(found(&mut names, &name(7)), Some((7, true)));
    }

    #[test]
    fn short_ids_have_distinct_keys() {
        for length in 1..=MAX_EXACT {
            let name: Vec<u8> = (1..=length as u8).collect();
            assert!(IdKey::of(&name).is_exact());
            assert_eq!(IdKey::of(&name[..]).name(&mut [0; MAX_EXACT]), Some(&name[..]));
            for place in 0..length {
                let mut other = name.clone();
                other[place] = 0;
                assert_ne!(IdKey::of(&name), IdKey::of(&other), "place {place} of {length}");
            }
            assert_ne!(IdKey::of(&vec![0; length]), IdKey::of(&vec![0; length + 1]));
        }
        assert!(!IdKey::of(&[0; MAX_EXACT + 1]).is_exact());
    }

    #[test]
    fn removed_id_is_not_found() {
        let mut names = AddressCache::new();
        names.insert(PipeId(0), b"zero");
        names.insert(PipeId(3), b"three");
        names.record_addressed(PipeId(0));
        names.record_addressed(PipeId(3));
        names.record_received(PipeId(0));
        names.remove(PipeId(3));
        assert_eq!(found(&mut names, b"three"), None);
        names.remove(PipeId(0));
        assert_eq!(found(&mut names, b"zero"), None);
    }
}
