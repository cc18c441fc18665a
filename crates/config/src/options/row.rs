//! The row of the option table: converts between the bytes of zmq_setsockopt and zmq_getsockopt and
//! a field of [`Options`].
//!
//! The size rules are implemented once for each [`Form`]. A row only adds the range of its values
//! and the access to the field, in two closures.

use tautline_proto::SocketType;

use super::Options;
use crate::error::Error;
use tautline_proto::z85;

/// Reads a field.
pub(super) type Get<T> = for<'a> fn(&'a Options) -> T;
/// Writes a field, or refuses the value and leaves the field unchanged.
pub(super) type Set<T> = fn(&mut Options, T) -> Result<(), Error>;
/// Reads a field of bytes.
pub(super) type GetBytes = for<'a> fn(&'a Options) -> &'a [u8];
/// Writes a field of bytes.
pub(super) type SetBytes = for<'a> fn(&mut Options, &'a [u8]) -> Result<(), Error>;

/// A set of socket types, one bit for each code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Types(u32);

impl Types {
    /// Every socket type.
    pub(super) const ALL: Types = Types(u32::MAX);

    /// The set of these types.
    pub(super) const fn of(types: &[SocketType]) -> Types {
        let (mut bits, mut next) = (0, 0);
        while next < types.len() {
            bits |= 1 << types[next] as u32;
            next += 1;
        }
        Types(bits)
    }

    /// True if the set has this type.
    pub(super) fn contains(self, socket_type: SocketType) -> bool {
        self.0 & (1 << socket_type as u32) != 0
    }
}

/// The C form of an option's value. Without a closure the option is write-only or read-only.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// A C `int` of the platform, of exactly this size.
    Int(Option<Get<i32>>, Option<Set<i32>>),
    /// An `int64_t`.
    Int64(Get<i64>, Set<i64>),
    /// A `uint64_t`.
    Uint64(Get<u64>, Set<u64>),
    /// A character string, read back with a NUL that is included in its size.
    Text(Option<GetBytes>, SetBytes),
    /// Unchanged bytes.
    Binary(Option<GetBytes>, SetBytes),
    /// A CURVE key: 32 bytes, or 40 characters of Z85 with or without a NUL.
    Key(for<'a> fn(&'a Options) -> &'a [u8; 32], Set<[u8; 32]>),
}

/// One option.
#[derive(Clone, Copy)]
pub(super) struct Row {
    /// The number of the option in zmq.h.
    pub(super) code: i32,
    /// The name of the option in zmq.h.
    pub(super) name: &'static str,
    /// The socket types on which it can be set. It can be read on all types.
    pub(super) types: Types,
    /// The form of its value, and the access to it.
    pub(super) form: Form,
    /// Effect of a NULL value of size 0, if such a value is allowed.
    pub(super) null: Option<fn(&mut Options)>,
}

impl Row {
    /// Returns the same row with this effect of a NULL value of size 0.
    pub(super) const fn or_null(self, null: fn(&mut Options)) -> Row {
        Row { null: Some(null), ..self }
    }

    /// Sets the option from the bytes of a caller.
    pub(super) fn set(&self, options: &mut Options, value: &[u8]) -> Result<(), Error> {
        if !self.types.contains(options.socket_type) {
            return Err(Error::Invalid);
        }
        match self.form {
            Form::Int(_, Some(set)) => set(options, i32::from_ne_bytes(exactly(value)?)),
            Form::Int(_, None) => Err(Error::Invalid),
            Form::Int64(_, set) => set(options, i64::from_ne_bytes(exactly(value)?)),
            Form::Uint64(_, set) => set(options, u64::from_ne_bytes(exactly(value)?)),
            Form::Text(_, set) | Form::Binary(_, set) => set(options, value),
            Form::Key(_, set) => set(options, key_bytes(value)?),
        }
    }

    /// Resets the option.
    pub(super) fn set_null(&self, options: &mut Options) -> Result<(), Error> {
        match self.null {
            Some(null) if self.types.contains(options.socket_type) => {
                null(options);
                Ok(())
            }
            _ => Err(Error::Invalid),
        }
    }

    /// Writes the value to a caller's buffer and returns its size. Clears the remaining part of the
    /// buffer.
    pub(super) fn get(&self, options: &Options, out: &mut [u8]) -> Result<usize, Error> {
        match self.form {
            Form::Int(Some(get), _) => write_exactly(out, &get(options).to_ne_bytes()),
            Form::Int64(get, _) => write_exactly(out, &get(options).to_ne_bytes()),
            Form::Uint64(get, _) => write_exactly(out, &get(options).to_ne_bytes()),
            Form::Text(Some(get), _) => write(out, get(options), 1),
            Form::Binary(Some(get), _) => write(out, get(options), 0),
            Form::Key(get, _) if out.len() == 32 => write(out, get(options), 0),
            Form::Key(get, _) if out.len() == z85::KEY_LENGTH + 1 => {
                write(out, &z85::encode_key(get(options)), 1)
            }
            _ => Err(Error::Invalid),
        }
    }
}

const fn row(code: i32, name: &'static str, types: Types, form: Form) -> Row {
    Row { code, name, types, form, null: None }
}

/// An `int` that every socket type has.
pub(super) const fn int_row(code: i32, name: &'static str, get: Get<i32>, set: Set<i32>) -> Row {
    int_on(code, name, Types::ALL, get, set)
}

/// An `int` that can be set on some socket types.
pub(super) const fn int_on(code: i32, name: &'static str, types: Types, get: Get<i32>, set: Set<i32>) -> Row {
    row(code, name, types, Form::Int(Some(get), Some(set)))
}

/// An `int` that can only be read.
pub(super) const fn read_int(code: i32, name: &'static str, get: Get<i32>) -> Row {
    row(code, name, Types::ALL, Form::Int(Some(get), None))
}

/// An `int` that can only be set, on some socket types.
pub(super) const fn write_int(code: i32, name: &'static str, types: Types, set: Set<i32>) -> Row {
    row(code, name, types, Form::Int(None, Some(set)))
}

/// An `int64_t`.
pub(super) const fn int64(code: i32, name: &'static str, get: Get<i64>, set: Set<i64>) -> Row {
    row(code, name, Types::ALL, Form::Int64(get, set))
}

/// An `int64_t` that can be set on some socket types only.
pub(super) const fn int64_on(
    code: i32,
    name: &'static str,
    types: Types,
    get: Get<i64>,
    set: Set<i64>,
) -> Row {
    row(code, name, types, Form::Int64(get, set))
}

/// A `uint64_t`.
pub(super) const fn uint64(code: i32, name: &'static str, get: Get<u64>, set: Set<u64>) -> Row {
    row(code, name, Types::ALL, Form::Uint64(get, set))
}

/// A character string.
pub(super) const fn text(code: i32, name: &'static str, get: GetBytes, set: SetBytes) -> Row {
    row(code, name, Types::ALL, Form::Text(Some(get), set))
}

/// A character string that can only be set.
pub(super) const fn write_text(code: i32, name: &'static str, set: SetBytes) -> Row {
    row(code, name, Types::ALL, Form::Text(None, set))
}

/// Bytes.
pub(super) const fn binary(code: i32, name: &'static str, get: GetBytes, set: SetBytes) -> Row {
    row(code, name, Types::ALL, Form::Binary(Some(get), set))
}

/// Bytes that can only be set, on some socket types.
pub(super) const fn write_binary(code: i32, name: &'static str, types: Types, set: SetBytes) -> Row {
    row(code, name, types, Form::Binary(None, set))
}

/// A CURVE key.
pub(super) const fn key(
    code: i32,
    name: &'static str,
    get: for<'a> fn(&'a Options) -> &'a [u8; 32],
    set: Set<[u8; 32]>,
) -> Row {
    row(code, name, Types::ALL, Form::Key(get, set))
}

/// The value if it has the size of its type.
fn exactly<const N: usize>(value: &[u8]) -> Result<[u8; N], Error> {
    value.try_into().map_err(|_| Error::Invalid)
}

/// A CURVE key in either form.
fn key_bytes(value: &[u8]) -> Result<[u8; 32], Error> {
    let text = match value.len() {
        32 => return exactly(value),
        z85::KEY_LENGTH => value,
        _ => value.strip_suffix(&[0]).ok_or(Error::Invalid)?,
    };
    z85::decode_key(text).ok_or(Error::Invalid)
}

/// Writes a number to a buffer that must have its size.
fn write_exactly(out: &mut [u8], value: &[u8]) -> Result<usize, Error> {
    if out.len() != value.len() {
        return Err(Error::Invalid);
    }
    write(out, value, 0)
}

/// Writes bytes and `zeros` zero bytes to a buffer that must be large enough.
fn write(out: &mut [u8], value: &[u8], zeros: usize) -> Result<usize, Error> {
    let size = value.len() + zeros;
    if out.len() < size {
        return Err(Error::Invalid);
    }
    let (front, rest) = out.split_at_mut(value.len());
    front.copy_from_slice(value);
    rest.fill(0);
    Ok(size)
}
