//! Parses the bytes of a terminal as keys, with the widely supported sequences of xterm.

/// Key that the display understands. Function keys, such as F1, are not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Escape,
    /// Backspace.
    Back,
    /// Ctrl-C or Ctrl-D.
    Interrupt,
    /// Ctrl-Z.
    Suspend,
    /// Any other character, such as a letter, a digit or a space.
    Letter(char),
}

/// Parser of keys. It keeps the bytes of an incomplete key.
#[derive(Default)]
pub struct Keys {
    pending: Vec<u8>,
}

impl Keys {
    /// Returns the keys that these bytes complete.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.pending.extend_from_slice(bytes);
        let mut keys = Vec::new();
        while let Some((key, len)) = first(&self.pending) {
            keys.extend(key);
            self.pending.drain(..len);
        }
        keys
    }

    /// True if a key is incomplete.
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Drops an incomplete key. To be called if no byte follows it in time. Returns Escape if the
    /// dropped bytes begin with ESC, or `None` for a part of a character.
    pub fn give_up(&mut self) -> Option<Key> {
        let begun = std::mem::take(&mut self.pending);
        (begun.first() == Some(&0x1b)).then_some(Key::Escape)
    }
}

/// Returns the first key and its length in bytes, or `None` if it is incomplete. For bytes that are
/// no [`Key`], the key is `None` and the length is the number of bytes to skip.
fn first(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    Some(match bytes {
        [] | [0x1b] | [0x1b, b'[' | b'O'] => return None,
        [0x1b, b'[' | b'O', rest @ ..] => {
            let end = rest.iter().position(|byte| (0x40..=0x7e).contains(byte))?;
            let key = match (rest[end], &rest[..end]) {
                (b'A', _) => Some(Key::Up),
                (b'B', _) => Some(Key::Down),
                (b'C', _) => Some(Key::Right),
                (b'D', _) => Some(Key::Left),
                (b'H', _) | (b'~', b"1" | b"7") => Some(Key::Home),
                (b'F', _) | (b'~', b"4" | b"8") => Some(Key::End),
                (b'~', b"5") => Some(Key::PageUp),
                (b'~', b"6") => Some(Key::PageDown),
                _ => None,
            };
            (key, end + 3)
        }
        [0x1b, ..] => (Some(Key::Escape), 1),
        [0x1a, ..] => (Some(Key::Suspend), 1),
        [3 | 4, ..] => (Some(Key::Interrupt), 1),
        [b'\r' | b'\n', ..] => (Some(Key::Enter), 1),
        [8 | 0x7f, ..] => (Some(Key::Back), 1),
        [0..0x20, ..] => (None, 1),
        [letter @ ..0x80, ..] => (Some(Key::Letter(char::from(*letter))), 1),
        [lead, ..] => {
            let len = match lead {
                0xc2..0xe0 => 2,
                0xe0..0xf0 => 3,
                0xf0..0xf5 => 4,
                _ => 1,
            };
            let letter = std::str::from_utf8(bytes.get(..len)?).ok().and_then(|text| text.chars().next());
            (letter.map(Key::Letter), if letter.is_some() { len } else { 1 })
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_keys_however_they_are_cut() {
        let bytes = b"q\x1b[A\x1bOB\x1b[5~\x1b[1;5C\r\x7f\xc3\xb6\x03\x1a\x1b[99u";
        let wanted = [
            Key::Letter('q'),
            Key::Up,
            Key::Down,
            Key::PageUp,
            Key::Right,
            Key::Enter,
            Key::Back,
            Key::Letter('ö'),
            Key::Interrupt,
            Key::Suspend,
        ];
        for size in 1..bytes.len() {
            let mut keys = Keys::default();
            let all: Vec<Key> = bytes.chunks(size).flat_map(|piece| keys.take(piece)).collect();
            assert_eq!(all, wanted, "{size}");
            assert!(!keys.is_pending());
        }
    }

    #[test]
    fn an_escape_alone_is_one_when_nothing_follows() {
        let mut keys = Keys::default();
        assert_eq!(keys.take(b"\x1b"), []);
        assert!(keys.is_pending());
        assert_eq!(keys.give_up(), Some(Key::Escape));
        assert_eq!((keys.give_up(), keys.take(b"\x1bx")), (None, vec![Key::Escape, Key::Letter('x')]));
        assert_eq!(keys.take(&[0xff, b'a', 0, 0xc3, b'b']), [Key::Letter('a'), Key::Letter('b')]);
    }
}
