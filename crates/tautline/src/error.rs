//! What can go wrong, and what to do about it.

use std::fmt;

use crate::curve::KeyError;
use crate::endpoint::EndpointError;

/// Why an operation did not happen.
///
/// The documentation of each variant says what a program can do. Every variant but [`Error::Os`] stands for one errno of the
/// `zmq_*` man pages, which [`Error::errno`] returns.
///
/// ```
/// use tautline::{Context, Error, Pull};
///
/// fn next(pull: &mut Pull) -> tautline::Result<Option<tautline::Message>> {
///     loop {
///         match pull.try_recv() {
///             Err(Error::WouldBlock) => return Ok(None),
///             Err(Error::Interrupted) => {}
///             outcome => return outcome.map(Some),
///         }
///     }
/// }
/// assert_eq!(next(&mut Pull::new(&Context::new()).unwrap()), Ok(None));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Error {
    /// It cannot be done now: nothing to receive, or every peer is at its high-water mark; or a timeout has passed. Try again later.
    WouldBlock,
    /// The context was terminated. Close the socket and end.
    Terminated,
    /// A signal arrived while waiting. Call again.
    Interrupted,
    /// The socket's pattern does not allow this now, for example a REQ socket that sends twice. Do what the pattern expects first.
    WrongState,
    /// ROUTER with [`router_mandatory`](crate::Builder::router_mandatory): no peer has this routing id. Drop the message, or wait
    /// for the peer.
    Unroutable,
    /// A value is out of range, or does not go with what was set before. Correct the program or its configuration.
    Invalid,
    /// An endpoint cannot be parsed, or not be used so. Correct it as the [`EndpointError`] says.
    MalformedEndpoint(EndpointError),
    /// The text of a CURVE key is not one. Correct it as the [`KeyError`] says.
    MalformedKey(KeyError),
    /// The endpoint's transport is not known here. Correct the endpoint.
    UnknownTransport,
    /// The socket type does not go with the endpoint's transport. Choose another transport.
    WrongTransport,
    /// The socket type does not support the operation or the option.
    NotSupported,
    /// The address is taken. Choose another one, or `*`.
    AddressInUse,
    /// The address is not one of this machine.
    AddressNotAvailable,
    /// The network interface does not exist.
    NoSuchDevice,
    /// Nobody is bound to the address.
    ConnectionRefused,
    /// The endpoint was not bound or connected by this socket, or the file or directory does not exist.
    NotFound,
    /// There are too many sockets or open files. Close some, or raise the limit.
    TooMany,
    /// The message is too long for its kind.
    MessageTooLong,
    /// A path or address is too long.
    NameTooLong,
    /// Memory is exhausted.
    OutOfMemory,
    /// Any other error of the operating system, by its errno.
    Os(i32),
}

/// What operations on sockets and contexts return.
pub type Result<T> = std::result::Result<T, Error>;

/// ```
/// use tautline::Error;
///
/// assert!(Error::WouldBlock.is_temporary() && !Error::Terminated.is_temporary());
/// assert_eq!(Error::WrongState.errno(), 156384763); // EFSM of the C library
/// assert_eq!(std::io::Error::from(Error::AddressInUse).kind(), std::io::ErrorKind::AddrInUse);
/// ```
impl Error {
    /// The errno that the C library would set.
    pub fn errno(self) -> i32 {
        use tautline_core::Error as Core;
        match self {
            Error::WouldBlock => Core::Again,
            Error::Terminated => Core::Terminated,
            Error::Interrupted => Core::Interrupted,
            Error::WrongState => Core::State,
            Error::Unroutable => Core::HostUnreachable,
            Error::Invalid | Error::MalformedEndpoint(_) | Error::MalformedKey(_) => Core::Invalid,
            Error::UnknownTransport => Core::ProtocolNotSupported,
            Error::WrongTransport => Core::IncompatibleProtocol,
            Error::NotSupported => Core::NotSupported,
            Error::AddressInUse => Core::AddressInUse,
            Error::AddressNotAvailable => Core::AddressNotAvailable,
            Error::NoSuchDevice => Core::NoDevice,
            Error::ConnectionRefused => Core::ConnectionRefused,
            Error::NotFound => Core::NoEntry,
            Error::TooMany => Core::TooManyFiles,
            Error::MessageTooLong => Core::MessageSize,
            Error::NameTooLong => Core::NameTooLong,
            Error::OutOfMemory => Core::NoMemory,
            Error::Os(errno) => return errno,
        }
        .errno()
    }

    /// Whether the same call may succeed later without any change: [`Error::WouldBlock`] and [`Error::Interrupted`].
    pub fn is_temporary(self) -> bool {
        matches!(self, Error::WouldBlock | Error::Interrupted)
    }
}

impl From<tautline_core::Error> for Error {
    fn from(error: tautline_core::Error) -> Self {
        use tautline_core::Error as Core;
        match error {
            Core::Again => Error::WouldBlock,
            Core::Terminated => Error::Terminated,
            Core::Interrupted => Error::Interrupted,
            Core::State => Error::WrongState,
            Core::HostUnreachable => Error::Unroutable,
            Core::Invalid => Error::Invalid,
            Core::ProtocolNotSupported => Error::UnknownTransport,
            Core::IncompatibleProtocol => Error::WrongTransport,
            Core::NotSupported => Error::NotSupported,
            Core::AddressInUse => Error::AddressInUse,
            Core::AddressNotAvailable => Error::AddressNotAvailable,
            Core::NoDevice => Error::NoSuchDevice,
            Core::ConnectionRefused => Error::ConnectionRefused,
            Core::NoEntry => Error::NotFound,
            Core::TooManyFiles => Error::TooMany,
            Core::MessageSize => Error::MessageTooLong,
            Core::NameTooLong => Error::NameTooLong,
            Core::NoMemory => Error::OutOfMemory,
            other => Error::Os(other.errno()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::WouldBlock => {
                "there is nothing to receive, or no room to send, or the time limit has passed"
            }
            Error::Terminated => "the context was terminated",
            Error::Interrupted => "a signal arrived",
            Error::WrongState => "the pattern does not allow this now: REQ and REP send and receive in turn",
            Error::Unroutable => "no peer has this routing id",
            Error::Invalid => "an option's value is out of range, or does not go with another",
            Error::MalformedEndpoint(reason) => return reason.fmt(f),
            Error::MalformedKey(reason) => return reason.fmt(f),
            Error::UnknownTransport => "the transport is not known, or not built in (wss is a feature)",
            Error::WrongTransport => "the socket type does not go with the transport",
            Error::NotSupported => "the socket type does not support this",
            Error::AddressInUse => "the address is in use",
            Error::AddressNotAvailable => "the address is not one of this machine",
            Error::NoSuchDevice => "the network interface does not exist",
            Error::ConnectionRefused => "nobody is bound to the address",
            Error::NotFound => "this socket has no such endpoint, or there is no such file or folder",
            Error::TooMany => "too many sockets or open files",
            Error::MessageTooLong => "the message is too long",
            Error::NameTooLong => "the path or address is too long",
            Error::OutOfMemory => "memory is exhausted",
            Error::Os(errno) => return tautline_core::system_error(*errno).fmt(f),
        })
    }
}

impl std::error::Error for Error {}

impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        use std::io::ErrorKind;
        let kind = match error {
            Error::Os(errno) => return tautline_core::system_error(errno),
            Error::WouldBlock => ErrorKind::WouldBlock,
            Error::Interrupted => ErrorKind::Interrupted,
            Error::Invalid | Error::MalformedEndpoint(_) | Error::MalformedKey(_) => ErrorKind::InvalidInput,
            Error::NotSupported | Error::UnknownTransport | Error::WrongTransport => ErrorKind::Unsupported,
            Error::AddressInUse => ErrorKind::AddrInUse,
            Error::AddressNotAvailable => ErrorKind::AddrNotAvailable,
            Error::ConnectionRefused => ErrorKind::ConnectionRefused,
            Error::NotFound => ErrorKind::NotFound,
            Error::OutOfMemory => ErrorKind::OutOfMemory,
            _ => ErrorKind::Other,
        };
        std::io::Error::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errno_survives_the_way_from_the_engine() {
        use tautline_core::Error as Core;
        for core in [
            Core::Again,
            Core::Invalid,
            Core::NotSocket,
            Core::Fault,
            Core::Terminated,
            Core::State,
            Core::IncompatibleProtocol,
            Core::ProtocolNotSupported,
            Core::NotSupported,
            Core::AddressInUse,
            Core::AddressNotAvailable,
            Core::NoDevice,
            Core::ConnectionRefused,
            Core::HostUnreachable,
            Core::NoEntry,
            Core::TooManyFiles,
            Core::MessageSize,
            Core::NameTooLong,
            Core::NoMemory,
            Core::Interrupted,
            Core::NoThread,
            Core::Os(5),
        ] {
            assert_eq!(Error::from(core).errno(), core.errno(), "{core:?}");
        }
    }

    #[test]
    fn temporary_errors_become_their_io_kinds() {
        assert_eq!(std::io::Error::from(Error::WouldBlock).kind(), std::io::ErrorKind::WouldBlock);
        assert!(Error::WouldBlock.is_temporary() && !Error::Terminated.is_temporary());
    }
}
