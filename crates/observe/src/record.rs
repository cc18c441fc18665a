//! A record of an image: a head, numbers, texts. Readers take as many of them as they know, so that
//! a later library may append others.
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 4 | length of the record, a multiple of 8 |
//! | 4 | 1 | kind |
//! | 5 | 1 | how many texts there are |
//! | 6 | 2 | how many numbers there are |
//! | 8 | 8 each | the numbers |
//! | behind them | 2 + length each | the texts: length, bytes |

/// Bytes of a record head.
pub(crate) const HEAD: usize = 8;

/// Most bytes of a text. Longer texts are cut.
pub(crate) const LONGEST_TEXT: usize = 1024;

/// A field that is stored as a number.
pub(crate) trait Number {
    /// Returns the stored form.
    fn number(&self) -> u64;
    /// Converts from the stored form. Each number is valid.
    fn of(number: u64) -> Self;
}

impl Number for u64 {
    fn number(&self) -> u64 {
        *self
    }

    fn of(number: u64) -> Self {
        number
    }
}

impl Number for u32 {
    fn number(&self) -> u64 {
        u64::from(*self)
    }

    fn of(number: u64) -> Self {
        number as u32
    }
}

impl Number for i64 {
    fn number(&self) -> u64 {
        *self as u64
    }

    fn of(number: u64) -> Self {
        number as i64
    }
}

impl Number for bool {
    fn number(&self) -> u64 {
        u64::from(*self)
    }

    fn of(number: u64) -> Self {
        number != 0
    }
}

/// A field that is stored as a text.
pub(crate) trait Text {
    /// Returns the stored form.
    fn bytes(&self) -> &[u8];
    /// Converts from the stored form. All bytes are valid.
    fn of(bytes: &[u8]) -> Self;
}

impl Text for String {
    fn bytes(&self) -> &[u8] {
        self.as_bytes()
    }

    fn of(bytes: &[u8]) -> Self {
        String::from_utf8_lossy(bytes).into_owned()
    }
}

impl Text for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn of(bytes: &[u8]) -> Self {
        bytes.to_vec()
    }
}

/// A type that is stored as a record.
pub trait Record: Sized {
    /// Kind of its records.
    const KIND: u8;
    /// Names of its numbers, in order.
    const NUMBERS: &'static [&'static str];
    /// Names of its texts, in order.
    const TEXTS: &'static [&'static str];
    /// Passes its numbers and texts, in order, to `put`.
    fn store(&self, put: impl FnOnce(&[u64], &[&[u8]]));
    /// Converts from a stored record.
    fn load(stored: &Stored<'_>) -> Self;
}

/// A record in its stored form.
pub struct Stored<'a> {
    pub(crate) kind: u8,
    numbers: &'a [u8],
    texts: Vec<&'a [u8]>,
}

impl<'a> Stored<'a> {
    /// Takes the first record off `bytes`. Returns `None` if it is incomplete or contradicts
    /// itself.
    pub(crate) fn take(bytes: &mut &'a [u8]) -> Option<Self> {
        let head: [u8; HEAD] = *bytes.first_chunk()?;
        let [a, b, c, d, kind, texts, e, f] = head;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        let numbers = usize::from(u16::from_le_bytes([e, f]));
        if length < HEAD || !length.is_multiple_of(8) {
            return None;
        }
        let (record, behind) = bytes.split_at_checked(length)?;
        let (numbers, mut left) = record[HEAD..].split_at_checked(numbers * 8)?;
        let mut found = Vec::with_capacity(usize::from(texts));
        for _ in 0..texts {
            let (length, behind) = left.split_first_chunk::<2>()?;
            let (text, behind) = behind.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
            found.push(text);
            left = behind;
        }
        *bytes = behind;
        Some(Stored { kind, numbers, texts: found })
    }

    /// Returns the number at this index; 0 if the writer does not know the field.
    pub(crate) fn number<N: Number>(&self, at: usize) -> N {
        let bytes = self.numbers.chunks_exact(8).nth(at);
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok()).unwrap_or_default();
        N::of(u64::from_le_bytes(bytes))
    }

    /// Returns the text at this index; empty if the writer does not know the field.
    pub(crate) fn text<T: Text>(&self, at: usize) -> T {
        T::of(self.texts.get(at).copied().unwrap_or_default())
    }
}

/// Declares a type that is stored as a record: its kind, its numbers, its texts.
macro_rules! record {
    (
        $(#[$about:meta])*
        $name:ident = $kind:literal
        numbers { $( $(#[$about_number:meta])* $number:ident: $number_type:ty, )* }
        texts { $( $(#[$about_text:meta])* $text:ident: $text_type:ty, )* }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        #[non_exhaustive]
        pub struct $name {
            $( $(#[$about_number])* pub $number: $number_type, )*
            $( $(#[$about_text])* pub $text: $text_type, )*
        }

        impl $crate::record::Record for $name {
            const KIND: u8 = $kind;
            const NUMBERS: &'static [&'static str] = &[$( stringify!($number), )*];
            const TEXTS: &'static [&'static str] = &[$( stringify!($text), )*];

            fn store(&self, put: impl FnOnce(&[u64], &[&[u8]])) {
                put(
                    &[$( $crate::record::Number::number(&self.$number), )*],
                    &[$( $crate::record::Text::bytes(&self.$text), )*],
                );
            }

            fn load(stored: &$crate::record::Stored<'_>) -> Self {
                let mut loaded = $name::default();
                let mut place = 0;
                $( loaded.$number = stored.number(place); place += 1; )*
                place -= Self::NUMBERS.len();
                $( loaded.$text = stored.text(place); place += 1; )*
                debug_assert_eq!(place, Self::TEXTS.len());
                loaded
            }
        }
    };
}

pub(crate) use record;
