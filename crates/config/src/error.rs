//! Errors of engine operations, and the table that maps them to `errno`.

pub use tautline_mem::reserve::{NoMemory, check_shortage};

/// Reason why a socket or context operation failed. Each variant stands for exactly one errno of
/// the man pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Error {
    /// The call would block: there is no message, or every peer is at its high-water mark (EAGAIN).
    Again,
    /// A parameter is out of range, unknown or of the wrong size (EINVAL).
    Invalid,
    /// The handle is not a socket, or the socket is closed (ENOTSOCK).
    NotSocket,
    /// The handle or pointer is invalid (EFAULT).
    Fault,
    /// The context was terminated (ETERM).
    Terminated,
    /// The socket type does not allow this call in its present state, for example a REQ that sends
    /// twice (EFSM).
    State,
    /// The transport is not compatible with the socket type (ENOCOMPATPROTO).
    IncompatibleProtocol,
    /// The transport is not supported (EPROTONOSUPPORT).
    ProtocolNotSupported,
    /// The operation is not supported by this socket type (ENOTSUP).
    NotSupported,
    /// The address is in use (EADDRINUSE).
    AddressInUse,
    /// The address is not local (EADDRNOTAVAIL).
    AddressNotAvailable,
    /// No such device: there is no interface or host of this name (ENODEV).
    NoDevice,
    /// No socket is bound to the inproc address (ECONNREFUSED).
    ConnectionRefused,
    /// ROUTER with ROUTER_MANDATORY: the peer is unknown (EHOSTUNREACH).
    HostUnreachable,
    /// The endpoint was not bound or connected (ENOENT).
    NoEntry,
    /// The limit of sockets or descriptors is reached (EMFILE).
    TooManyFiles,
    /// The message is too long for its kind (EMSGSIZE).
    MessageSize,
    /// A path or address is too long (ENAMETOOLONG).
    NameTooLong,
    /// Memory is exhausted (ENOMEM).
    NoMemory,
    /// A signal arrived while waiting (EINTR).
    Interrupted,
    /// No I/O thread is available (EMTHREAD).
    NoThread,
    /// Any other errno of the operating system.
    Os(i32),
}

/// Checks that there is memory for `bytes` now. Called before data of a size that peers choose goes
/// into collections that would abort the process without memory.
#[inline]
pub fn check_memory(bytes: usize) -> Result<(), NoMemory> {
    tautline_proto::check_available(bytes).map_err(|_| NoMemory)?;
    check_shortage()
}

impl From<NoMemory> for Error {
    #[inline]
    fn from(_: NoMemory) -> Self {
        Error::NoMemory
    }
}

/// First of ZeroMQ's own errno numbers, which are higher than those of every platform.
const ZMQ_HAUSNUMERO: i32 = 156_384_712;

impl Error {
    /// The errno of this error: the platform's number, or ZeroMQ's own for EFSM, ENOCOMPATPROTO,
    /// ETERM and EMTHREAD.
    pub fn errno(self) -> i32 {
        use tautline_io::errno as os;
        match self {
            Error::Again => os::EAGAIN,
            Error::Invalid => os::EINVAL,
            Error::NotSocket => os::ENOTSOCK,
            Error::Fault => os::EFAULT,
            Error::State => ZMQ_HAUSNUMERO + 51,
            Error::IncompatibleProtocol => ZMQ_HAUSNUMERO + 52,
            Error::Terminated => ZMQ_HAUSNUMERO + 53,
            Error::NoThread => ZMQ_HAUSNUMERO + 54,
            Error::ProtocolNotSupported => os::EPROTONOSUPPORT,
            Error::NotSupported => os::ENOTSUP,
            Error::AddressInUse => os::EADDRINUSE,
            Error::AddressNotAvailable => os::EADDRNOTAVAIL,
            Error::NoDevice => os::ENODEV,
            Error::ConnectionRefused => os::ECONNREFUSED,
            Error::HostUnreachable => os::EHOSTUNREACH,
            Error::NoEntry => os::ENOENT,
            Error::TooManyFiles => os::EMFILE,
            Error::MessageSize => os::EMSGSIZE,
            Error::NameTooLong => os::ENAMETOOLONG,
            Error::NoMemory => os::ENOMEM,
            Error::Interrupted => os::EINTR,
            Error::Os(errno) => errno,
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        use tautline_io::errno as os;
        match os::of(&error) {
            Some(e) if e == os::EAGAIN => Error::Again,
            Some(e) if e == os::EINVAL => Error::Invalid,
            Some(e) if e == os::EADDRINUSE => Error::AddressInUse,
            Some(e) if e == os::EADDRNOTAVAIL => Error::AddressNotAvailable,
            Some(e) if e == os::ENODEV => Error::NoDevice,
            Some(e) if e == os::EMFILE => Error::TooManyFiles,
            Some(e) if e == os::EINTR => Error::Interrupted,
            Some(e) if e == os::ENOMEM => Error::NoMemory,
            Some(e) if e == os::ENAMETOOLONG => Error::NameTooLong,
            Some(e) => Error::Os(e),
            None if error.kind() == std::io::ErrorKind::InvalidInput => Error::Invalid,
            None if error.kind() == std::io::ErrorKind::PermissionDenied => Error::Os(os::EACCES),
            None => Error::Os(os::EIO),
        }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = match self {
            Error::Again => "the operation would block",
            Error::Invalid => "invalid argument",
            Error::NotSocket => "not a socket",
            Error::Fault => "invalid handle or pointer",
            Error::Terminated => "the context was terminated",
            Error::State => "not possible in the socket's current state",
            Error::IncompatibleProtocol => "the transport is not compatible with the socket type",
            Error::ProtocolNotSupported => "transport not supported",
            Error::NotSupported => "operation not supported by this socket",
            Error::AddressInUse => "address in use",
            Error::AddressNotAvailable => "address not available",
            Error::NoDevice => "no such interface or host",
            Error::ConnectionRefused => "no socket is bound to this address",
            Error::HostUnreachable => "the peer is unknown",
            Error::NoEntry => "no such endpoint",
            Error::TooManyFiles => "too many sockets or descriptors",
            Error::MessageSize => "message too long",
            Error::NameTooLong => "name too long",
            Error::NoMemory => "out of memory",
            Error::Interrupted => "interrupted by a signal",
            Error::NoThread => "no I/O thread available",
            Error::Os(errno) => return write!(f, "system error {errno}"),
        };
        f.write_str(text)
    }
}

impl std::error::Error for Error {}
