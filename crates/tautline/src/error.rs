//! Errors and how to react to them: [`Error`].

use std::fmt;

use tautline_core::{self as core, Flags};

use crate::curve::KeyError;
use crate::endpoint::{self, EndpointError};
pub use crate::error_subject::{ErrorSubject, ExpectedStep};

/// Reason why an operation failed.
///
/// The documentation of each variant says how a program can react. Every variant except
/// [`Error::Os`] stands for one errno of the `zmq_*` man pages, which [`Error::errno`] returns.
/// Variants with a [`ErrorSubject`] know the endpoint or option concerned, and their text names it.
///
/// ```
/// use tautline::{Context, Error, Pull};
///
/// let context = Context::new();
/// let mut first = Pull::builder(&context).bind("inproc://work").unwrap();
/// let error = Pull::builder(&context).bind("inproc://work").unwrap_err();
/// assert!(matches!(error, Error::AddressInUse(_)));
/// assert_eq!(error.endpoint(), Some("inproc://work"));
/// assert_eq!(error.to_string(), "inproc://work: the address is in use");
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
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Error {
    /// A call that never waits cannot succeed now: no message is queued, or every peer is at its
    /// high-water mark. Try again later.
    WouldBlock,
    /// A time limit has passed: the send or receive timeout of the socket, or the limit in the
    /// call. Try again, or give up. The C library returns the errno of [`Error::WouldBlock`].
    TimedOut,
    /// The context was terminated. Close the socket and end.
    Terminated,
    /// A signal arrived while waiting. Call again.
    Interrupted,
    /// The socket's pattern does not allow this call now, for example a second send by a REQ
    /// socket. Take the step in [`ExpectedStep`] first.
    WrongState(ExpectedStep),
    /// ROUTER with [`router_mandatory`](crate::Builder::router_mandatory): the routing id is
    /// unknown. Drop the message, or wait for the peer.
    Unroutable,
    /// A value is out of range, or conflicts with earlier settings. Correct the program or its
    /// configuration.
    Invalid(ErrorSubject),
    /// An endpoint cannot be parsed, or cannot be used in this way. [`EndpointError`] has the
    /// reason.
    MalformedEndpoint(EndpointError, ErrorSubject),
    /// A text is not a CURVE key. [`KeyError`] has the reason.
    MalformedKey(KeyError),
    /// The endpoint's transport is unknown or not built in. Correct the endpoint.
    UnknownTransport(ErrorSubject),
    /// The socket type does not support the endpoint's transport. Choose another transport.
    WrongTransport(ErrorSubject),
    /// The socket type does not support the operation or the option.
    NotSupported(ErrorSubject),
    /// The address is in use. Choose another address, or `*`.
    AddressInUse(ErrorSubject),
    /// The address does not belong to this machine.
    AddressNotAvailable(ErrorSubject),
    /// The network interface does not exist.
    NoSuchDevice(ErrorSubject),
    /// No socket is bound to the address.
    ConnectionRefused(ErrorSubject),
    /// This socket has not bound or connected the endpoint, or the file or directory does not
    /// exist.
    NotFound(ErrorSubject),
    /// Too many sockets or files are open. Close some, or raise the limit.
    TooManyOpen,
    /// The message is too long for its kind.
    MessageTooLong,
    /// A path or address is too long.
    NameTooLong(ErrorSubject),
    /// Memory is exhausted.
    OutOfMemory,
    /// Another error of the operating system, by its errno.
    Os(i32, ErrorSubject),
}

/// Beginning of an endpoint that is a name.
const NAME: &str = "name://";

/// Result of operations on sockets and contexts.
pub type Result<T> = std::result::Result<T, Error>;

/// ```
/// use tautline::error::ExpectedStep;
/// use tautline::{Context, Error, Req};
///
/// assert!(Error::TimedOut.is_temporary() && !Error::Terminated.is_temporary());
/// assert_eq!(Error::TimedOut.errno(), Error::WouldBlock.errno()); // EAGAIN
/// assert_eq!(std::io::Error::from(Error::TimedOut).kind(), std::io::ErrorKind::TimedOut);
/// let error = Req::new(&Context::new()).unwrap().try_recv().unwrap_err();
/// assert_eq!(error, Error::WrongState(ExpectedStep::SendQuestion));
/// assert_eq!(error.errno(), 156384763); // EFSM of the C library
/// assert_eq!(std::io::Error::from(Error::WouldBlock).kind(), std::io::ErrorKind::WouldBlock);
/// ```
impl Error {
    /// Returns the errno that the C library would set.
    pub fn errno(&self) -> i32 {
        use core::Error as Core;
        match self {
            Error::WouldBlock | Error::TimedOut => Core::Again,
            Error::Terminated => Core::Terminated,
            Error::Interrupted => Core::Interrupted,
            Error::WrongState(_) => Core::State,
            Error::Unroutable => Core::HostUnreachable,
            Error::Invalid(_) | Error::MalformedEndpoint(..) | Error::MalformedKey(_) => Core::Invalid,
            Error::UnknownTransport(_) => Core::ProtocolNotSupported,
            Error::WrongTransport(_) => Core::IncompatibleProtocol,
            Error::NotSupported(_) => Core::NotSupported,
            Error::AddressInUse(_) => Core::AddressInUse,
            Error::AddressNotAvailable(_) => Core::AddressNotAvailable,
            Error::NoSuchDevice(_) => Core::NoDevice,
            Error::ConnectionRefused(_) => Core::ConnectionRefused,
            Error::NotFound(_) => Core::NoEntry,
            Error::TooManyOpen => Core::TooManyFiles,
            Error::MessageTooLong => Core::MessageSize,
            Error::NameTooLong(_) => Core::NameTooLong,
            Error::OutOfMemory => Core::NoMemory,
            Error::Os(errno, _) => return *errno,
        }
        .errno()
    }

    /// True if the same call may succeed later without any change: [`Error::WouldBlock`],
    /// [`Error::TimedOut`] and [`Error::Interrupted`].
    pub fn is_temporary(&self) -> bool {
        matches!(self, Error::WouldBlock | Error::TimedOut | Error::Interrupted)
    }

    /// Returns the endpoint that caused the error, as passed to `bind`, `connect`, `unbind` or
    /// `disconnect`.
    pub fn endpoint(&self) -> Option<&str> {
        self.subject()?.endpoint()
    }

    pub(crate) fn subject(&self) -> Option<&ErrorSubject> {
        match self {
            Error::MalformedEndpoint(_, subject)
            | Error::Os(_, subject)
            | Error::Invalid(subject)
            | Error::UnknownTransport(subject)
            | Error::WrongTransport(subject)
            | Error::NotSupported(subject)
            | Error::AddressInUse(subject)
            | Error::AddressNotAvailable(subject)
            | Error::NoSuchDevice(subject)
            | Error::ConnectionRefused(subject)
            | Error::NotFound(subject)
            | Error::NameTooLong(subject) => Some(subject),
            _ => None,
        }
    }

    /// Adds the subject, if the variant has a field for it.
    #[cold]
    fn with_subject(error: core::Error, subject: ErrorSubject) -> Error {
        use core::Error as Core;
        match error {
            Core::Again => Error::WouldBlock,
            Core::Terminated => Error::Terminated,
            Core::Interrupted => Error::Interrupted,
            Core::State => Error::WrongState(ExpectedStep::Other),
            Core::HostUnreachable => Error::Unroutable,
            Core::Invalid => Error::Invalid(subject),
            Core::ProtocolNotSupported => Error::UnknownTransport(subject),
            Core::IncompatibleProtocol => Error::WrongTransport(subject),
            Core::NotSupported => Error::NotSupported(subject),
            Core::AddressInUse => Error::AddressInUse(subject),
            Core::AddressNotAvailable => Error::AddressNotAvailable(subject),
            Core::NoDevice => Error::NoSuchDevice(subject),
            Core::ConnectionRefused => Error::ConnectionRefused(subject),
            Core::NoEntry => Error::NotFound(subject),
            Core::TooManyFiles => Error::TooManyOpen,
            Core::MessageSize => Error::MessageTooLong,
            Core::NameTooLong => Error::NameTooLong(subject),
            Core::NoMemory => Error::OutOfMemory,
            other => Error::Os(other.errno(), subject),
        }
    }

    /// Creates the error for a wrong argument. `sentence` names the argument and the fault.
    #[cold]
    pub(crate) fn invalid(sentence: impl Into<Box<str>>) -> Error {
        Error::Invalid(ErrorSubject::sentence(sentence.into()))
    }

    /// Creates the error for a message without parts.
    #[cold]
    pub(crate) fn no_parts() -> Error {
        Error::invalid("a message must have at least one part")
    }

    /// Converts the error of a call with an endpoint. Finds the exact reason for "invalid".
    #[cold]
    pub(crate) fn for_endpoint(
        error: core::Error,
        socket: &core::Socket,
        endpoint: &str,
        connecting: bool,
    ) -> Error {
        let kind = socket.socket_type().name();
        let subject = ErrorSubject::at(endpoint, kind);
        match error {
            core::Error::Invalid => match (
                core::endpoint_fault(socket, endpoint, connecting),
                endpoint::reason(endpoint, connecting),
            ) {
                (Some(fault), _) => Error::Invalid(ErrorSubject::fault(endpoint, kind, &fault)),
                (None, Some(reason)) => Error::MalformedEndpoint(reason, subject),
                (None, None) => Error::Invalid(subject),
            },
            other => Error::with_subject(other, subject),
        }
    }

    /// Converts the error of setting an option.
    #[cold]
    pub(crate) fn option(error: core::Error, socket: &core::Socket, number: i32, value: &[u8]) -> Error {
        let fault = || core::option_fault(socket.socket_type(), number, value);
        if error == core::Error::Invalid { Error::invalid(fault()) } else { error.into() }
    }

    /// Converts the error of a call with these flags. A call that may wait fails with EAGAIN only
    /// after its time limit. `WouldBlock` is frequent and must stay cheap.
    #[inline]
    pub(crate) fn for_flags(error: core::Error, flags: Flags) -> Error {
        match error {
            core::Error::Again if flags.0 & Flags::DONTWAIT.0 == 0 => Error::TimedOut,
            other => other.into(),
        }
    }

    /// Converts the error of a call with a time limit.
    #[cold]
    pub(crate) fn for_limit(error: core::Error) -> Error {
        Error::for_flags(error, Flags::NONE)
    }

    /// Converts the error of a send with these flags.
    #[inline]
    pub(crate) fn for_send(error: core::Error, socket: &core::Socket, flags: Flags) -> Error {
        match error {
            core::Error::Again => Error::for_flags(error, flags),
            other => {
                Error::for_turn(other, socket, ExpectedStep::ReceiveAnswer, ExpectedStep::ReceiveQuestion)
            }
        }
    }

    /// Converts the error of a receive with these flags.
    #[inline]
    pub(crate) fn for_receive(error: core::Error, socket: &core::Socket, flags: Flags) -> Error {
        match error {
            core::Error::Again => Error::for_flags(error, flags),
            other => Error::for_turn(other, socket, ExpectedStep::SendQuestion, ExpectedStep::SendAnswer),
        }
    }

    #[cold]
    fn for_turn(error: core::Error, socket: &core::Socket, req: ExpectedStep, rep: ExpectedStep) -> Error {
        match (error, crate::kind::select_for_req_rep(socket.socket_type(), req, rep)) {
            (core::Error::State, Some(turn)) => Error::WrongState(turn),
            (error, _) => error.into(),
        }
    }
}

impl From<core::Error> for Error {
    #[inline]
    fn from(error: core::Error) -> Self {
        match error {
            core::Error::Again => Error::WouldBlock,
            other => Error::with_subject(other, ErrorSubject::default()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(endpoint) = self.endpoint() {
            write!(f, "{endpoint}: ")?;
        }
        f.write_str(match self {
            Error::WouldBlock => "no message to receive, or no room to send",
            Error::TimedOut => "the time limit has passed",
            Error::Terminated => "the context was terminated",
            Error::Interrupted => "interrupted by a signal",
            Error::WrongState(turn) => return turn.fmt(f),
            Error::Unroutable => "no peer has this routing id",
            Error::Invalid(subject) => {
                subject.as_sentence().unwrap_or("an argument is out of range, or conflicts with an option")
            }
            Error::MalformedEndpoint(reason, _) => return reason.fmt(f),
            Error::MalformedKey(reason) => return reason.fmt(f),
            Error::UnknownTransport(_) if self.endpoint().is_some_and(|at| at.starts_with(NAME)) => {
                if cfg!(feature = "names") {
                    "no names file is set: set TAUT_NAMES to the path of one"
                } else {
                    "the library was built without names (feature names)"
                }
            }
            Error::UnknownTransport(_) => {
                "the transport is not known, or not built in (wss and tls+tcp need the feature tls)"
            }
            Error::WrongTransport(subject) => match subject.socket() {
                Some(kind) => return write!(f, "{kind} sockets do not support this transport"),
                None => "the socket type does not support this transport",
            },
            Error::NotSupported(subject) => match subject.socket() {
                Some(kind) => return write!(f, "{kind} sockets do not support this"),
                None => "the socket type does not support this",
            },
            Error::AddressInUse(_) => "the address is in use",
            Error::AddressNotAvailable(_) => "the address does not belong to this machine",
            Error::NoSuchDevice(_) => "there is no network interface or host of this name",
            Error::ConnectionRefused(_) => "no socket is bound to the address",
            Error::NotFound(_) => "this socket has no such endpoint, or the file or directory does not exist",
            Error::TooManyOpen => "too many sockets or open files",
            Error::MessageTooLong => "the message is too long",
            Error::NameTooLong(_) => "the path or address is too long",
            Error::OutOfMemory => "out of memory",
            Error::Os(errno, _) => return tautline_core::system_error(*errno).fmt(f),
        })
    }
}

impl std::error::Error for Error {}

/// Wraps a system error with an endpoint, so that the endpoint stays in the text.
impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        use std::io::ErrorKind;
        let kind = match &error {
            Error::Os(errno, _) => {
                let plain = tautline_core::system_error(*errno);
                if error.endpoint().is_none() {
                    return plain;
                }
                plain.kind()
            }
            Error::WouldBlock => ErrorKind::WouldBlock,
            Error::TimedOut => ErrorKind::TimedOut,
            Error::Interrupted => ErrorKind::Interrupted,
            Error::Invalid(_) | Error::MalformedEndpoint(..) | Error::MalformedKey(_) => {
                ErrorKind::InvalidInput
            }
            Error::NotSupported(_) | Error::UnknownTransport(_) | Error::WrongTransport(_) => {
                ErrorKind::Unsupported
            }
            Error::AddressInUse(_) => ErrorKind::AddrInUse,
            Error::AddressNotAvailable(_) => ErrorKind::AddrNotAvailable,
            Error::ConnectionRefused(_) => ErrorKind::ConnectionRefused,
            Error::NotFound(_) => ErrorKind::NotFound,
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
    fn engine_errno_is_kept() {
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
            let named = Error::with_subject(core, ErrorSubject::at("ipc:///run/x", "PULL"));
            assert_eq!(named.errno(), core.errno(), "{core:?}");
            assert_eq!(
                named.endpoint().is_some(),
                named.to_string().starts_with("ipc:///run/x: "),
                "{named}"
            );
        }
    }

    /// The small size keeps results on the hot path cheap: an errno and a reason.
    #[test]
    fn an_error_is_two_words() {
        assert!(size_of::<Error>() <= 16);
        assert!(size_of::<Result<()>>() <= 16);
    }

    #[test]
    fn an_io_error_has_the_kind_and_the_endpoint() {
        use std::io::{Error as Io, ErrorKind};
        let plain = Io::from(Error::from(tautline_core::Error::Os(13)));
        assert_eq!((plain.kind(), plain.raw_os_error()), (ErrorKind::PermissionDenied, Some(13)));
        let named =
            Error::with_subject(tautline_core::Error::Os(13), ErrorSubject::at("ipc:///nobodys/x", "PULL"));
        let named = Io::from(named);
        assert_eq!(named.kind(), ErrorKind::PermissionDenied);
        assert!(named.to_string().starts_with("ipc:///nobodys/x: "), "{named}");
    }

    #[test]
    fn temporary_errors_become_their_io_kinds() {
        assert_eq!(std::io::Error::from(Error::WouldBlock).kind(), std::io::ErrorKind::WouldBlock);
        assert_eq!(std::io::Error::from(Error::TimedOut).kind(), std::io::ErrorKind::TimedOut);
        assert!(Error::WouldBlock.is_temporary() && !Error::Terminated.is_temporary());
    }
}
