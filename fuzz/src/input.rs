//! Splits inputs: control bytes from the front, and streams cut into pieces.

use tautline_testkit::XorShift;

/// Reads the parameters of a target from the front of its input. An input that is too short reads as zeros.
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads `input` from its beginning.
    pub fn new(input: &'a [u8]) -> Self {
        Reader { rest: input }
    }

    /// Reads one octet.
    pub fn byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        byte
    }

    /// Reads two octets, big-endian.
    pub fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// Reads at most `len` octets.
    pub fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (bytes, rest) = self.rest.split_at(len.min(self.rest.len()));
        self.rest = rest;
        bytes
    }

    /// Selects one of these items.
    pub fn choice<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::from(self.byte()) % of.len()]
    }

    /// Returns the remaining input.
    pub fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// True if the input is used up.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

/// Returns the pieces of a stream. 0 leaves it whole, 1 cuts it into single octets, and each other number
/// cuts it at different places.
pub fn pieces(stream: &[u8], cut: u8) -> impl Iterator<Item = &[u8]> {
    let mut random = XorShift::new(u64::from(cut));
    let mut rest = stream;
    std::iter::from_fn(move || {
        let longest = match cut {
            0 => rest.len(),
            1 => 1,
            _ => {
                let order = random.below(10);
                1 + random.below(1 << order)
            }
        };
        let (piece, after) = rest.split_at(longest.min(rest.len()));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}
