//! The names of a socket's peers, and the order in which they are addressed.
//!
//! Programs that send to many peers mostly send in the same order every time, and a server replies
//! to the peer that it has just heard. So we remember which peer came after which. Then a message
//! needs no hash table lookup, and the next peers' memory is prefetched while this one's message is
//! written.

use super::PipeId;
use crate::ablation::{Rule, without};

/// Longest name that its key represents completely.
pub(super) const WHOLE: usize = 16;

/// Part of a name that is compared: two words, which overlap in a short name, or one word; and the
/// length. 0 for a missing name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    first: u64,
    last: u64,
    length: usize,
}

impl Key {
    pub(super) const NONE: Key = Key { first: 0, last: 0, length: 0 };

    /// Builds the key with a few loads. A comparison of whole names would be a call of `memcmp`
    /// each.
    ///
    /// Short names are read byte by byte. A program has often just composed such a name from a byte
    /// and a number. A single load of both would have to wait until all earlier stores are in the
    /// cache.
    #[inline(always)]
    pub(super) fn of(name: &[u8]) -> Key {
        let (first, last) = match (name.first_chunk(), name.last_chunk()) {
            (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
            _ => (name.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)), 0),
        };
        Key { first, last, length: name.len() }
    }

    /// True if there is only one name with this key.
    #[inline(always)]
    pub(super) fn is_whole(&self) -> bool {
        self.length <= WHOLE
    }

    /// Returns the name, if the key represents it completely. `room` receives the bytes.
    #[inline]
    fn name<'a>(&self, room: &'a mut [u8; WHOLE]) -> Option<&'a [u8]> {
        let length = self.length;
        match length {
            1..8 => {
                room[..8].copy_from_slice(&self.first.to_be_bytes());
                room.get(8 - length..8)
            }
            8..=WHOLE => {
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
struct Place {
    /// Key of its name, if it has one.
    key: Key,
    /// The pipe that was addressed after it.
    next: PipeId,
}

impl Place {
    const VACANT: Place = Place { key: Key::NONE, next: NOBODY };
}

/// Number of a missing pipe: there are never that many pipes.
const NOBODY: PipeId = PipeId(u32::MAX);
/// Target of parts that are dropped.
const NOWHERE: PipeId = PipeId(u32::MAX - 1);

/// The names of some pipes, and the target of the message that was begun with a name.
#[derive(Debug)]
pub(crate) struct Names {
    /// By number of the pipe.
    places: Vec<Place>,
    /// The last used pipe. Most messages go to the pipe of the message before, or to the pipe that
    /// it came from.
    last: PipeId,
    /// A pipe that was found by its name twice in a row, and its key, which identifies the name
    /// uniquely.
    again: (Key, PipeId),
    /// Target of the other parts of the begun message.
    begun: PipeId,
}

/// A pipe that was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    /// The pipe.
    pub(super) pipe: PipeId,
    /// True if it was already the last used pipe.
    pub(super) again: bool,
}

impl Names {
    /// Returns a table without names.
    pub(super) fn new() -> Self {
        Names { places: Vec::new(), last: NOBODY, again: (Key::NONE, NOBODY), begun: NOBODY }
    }

    #[inline]
    fn place(&self, pipe: PipeId) -> Option<&Place> {
        self.places.get(pipe.0 as usize)
    }

    /// Returns the pipe of a name with this key, if it is the last used pipe, or the pipe that
    /// followed it the time before.
    #[inline(always)]
    pub(super) fn find(&mut self, key: Key) -> Option<Found> {
        if without(Rule::Names) {
            return None;
        }
        let last = self.place(self.last)?;
        if last.key == key {
            if key.is_whole() {
                self.again = (key, self.last);
            }
            return Some(Found { pipe: self.last, again: true });
        }
        let pipe = last.next;
        let found = self.place(pipe)?.key == key;
        found.then(|| {
            self.last = pipe;
            Found { pipe, again: false }
        })
    }

    /// Returns the pipe of the name with this key, if it is the pipe that was last found twice in a
    /// row.
    #[inline(always)]
    pub(super) fn known(&self, key: Key) -> Option<PipeId> {
        let (again, pipe) = self.again;
        (again == key).then_some(pipe)
    }

    /// Returns the second and the third pipe that will probably be addressed after this one.
    #[inline]
    pub(super) fn upcoming(&self, pipe: PipeId) -> Option<[PipeId; 2]> {
        let second = self.place(self.place(pipe)?.next)?.next;
        Some([second, self.place(second)?.next])
    }

    /// Notes that this pipe is addressed now. The next time, it is expected after the same pipe as
    /// now.
    pub(super) fn addressed(&mut self, pipe: PipeId) {
        if let Some(place) = self.places.get_mut(self.last.0 as usize) {
            place.next = pipe;
        }
        self.last = pipe;
    }

    /// Notes that a message came from this named pipe. The next message will probably go there.
    #[inline]
    pub(super) fn heard(&mut self, pipe: PipeId) {
        self.last = pipe;
    }

    /// Returns the name of a pipe without access to the pipe, if the name is short.
    #[inline]
    pub(super) fn get<'a>(&self, pipe: PipeId, room: &'a mut [u8; WHOLE]) -> Option<&'a [u8]> {
        self.place(pipe)?.key.name(room)
    }

    /// Names a pipe.
    pub(crate) fn insert(&mut self, pipe: PipeId, name: &[u8]) {
        let number = pipe.0 as usize;
        if number >= self.places.len() {
            self.places.resize(number + 1, Place::VACANT);
        }
        self.places[number] = Place { key: Key::of(name), ..Place::VACANT };
    }

    /// Removes the name of a pipe.
    pub(crate) fn remove(&mut self, pipe: PipeId) {
        if self.last == pipe {
            self.last = NOBODY;
        }
        self.again = (Key::NONE, NOBODY);
        if let Some(place) = self.places.get_mut(pipe.0 as usize) {
            *place = Place::VACANT;
        }
    }

    /// Notes that a message was begun and that its other parts go to this pipe. `None` if they are
    /// dropped.
    #[inline]
    pub(crate) fn begin(&mut self, to: Option<PipeId>) {
        self.begun = to.unwrap_or(NOWHERE);
    }

    /// Returns the target of the other parts of the begun message, if there is one.
    #[inline]
    pub(crate) fn begun(&self) -> Option<Option<PipeId>> {
        match self.begun {
            NOBODY => None,
            NOWHERE => Some(None),
            id => Some(Some(id)),
        }
    }

    /// Notes the end of the begun message.
    #[inline]
    pub(crate) fn finish(&mut self) {
        self.begun = NOBODY;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn found(names: &mut Names, name: &[u8]) -> Option<(u32, bool)> {
        names.find(Key::of(name)).map(|found| (found.pipe.0, found.again))
    }

    #[test]
    fn the_order_in_which_peers_are_addressed_is_remembered() {
        let mut names = Names::new();
        let name = |number: u32| vec![b'a'; number as usize];
        for number in 1..=27 {
            names.insert(PipeId(number), &name(number));
        }
        assert_eq!(found(&mut names, &name(1)), None, "the first lookup finds no pipe");
        for number in (1..=27).chain([1]) {
            names.addressed(PipeId(number));
        }
        for number in 2..=27 {
            assert_eq!(found(&mut names, &name(number)), Some((number, false)));
            assert_eq!(found(&mut names, &name(number)), Some((number, true)));
        }
        assert_eq!(found(&mut names, &name(2)), None, "out of order");
        assert_eq!(names.upcoming(PipeId(25)), Some([PipeId(27), PipeId(1)]));
        names.heard(PipeId(7));
        assert_eq!(found(&mut names, &name(7)), Some((7, true)));
    }

    #[test]
    fn the_keys_of_short_names_tell_them_apart() {
        for length in 1..=WHOLE {
            let name: Vec<u8> = (1..=length as u8).collect();
            assert!(Key::of(&name).is_whole());
            assert_eq!(Key::of(&name[..]).name(&mut [0; WHOLE]), Some(&name[..]));
            for place in 0..length {
                let mut other = name.clone();
                other[place] = 0;
                assert_ne!(Key::of(&name), Key::of(&other), "place {place} of {length}");
            }
            assert_ne!(Key::of(&vec![0; length]), Key::of(&vec![0; length + 1]));
        }
        assert!(!Key::of(&[0; WHOLE + 1]).is_whole());
    }

    #[test]
    fn a_name_that_was_taken_back_names_no_peer() {
        let mut names = Names::new();
        names.insert(PipeId(0), b"zero");
        names.insert(PipeId(3), b"three");
        names.addressed(PipeId(0));
        names.addressed(PipeId(3));
        names.heard(PipeId(0));
        names.remove(PipeId(3));
        assert_eq!(found(&mut names, b"three"), None);
        names.remove(PipeId(0));
        assert_eq!(found(&mut names, b"zero"), None);
    }
}
