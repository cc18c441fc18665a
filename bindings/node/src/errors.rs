//! Errors travel to JavaScript as negative errno numbers; the exceptions are made there. Their texts are the engine's.

use napi_derive::napi;
use tautline_core::Error;

/// What a call reports for an error.
pub(crate) fn code(error: Error) -> i32 {
    -error.errno()
}

/// 0, or what is reported for the error.
pub(crate) fn outcome(result: Result<(), Error>) -> i32 {
    result.map_or_else(code, |()| 0)
}

/// ZeroMQ's own errors and those with a meaning of their own in ZeroMQ.
const KNOWN: [Error; 21] = [
    Error::Again,
    Error::Invalid,
    Error::NotSocket,
    Error::Fault,
    Error::Terminated,
    Error::State,
    Error::IncompatibleProtocol,
    Error::ProtocolNotSupported,
    Error::NotSupported,
    Error::AddressInUse,
    Error::AddressNotAvailable,
    Error::NoDevice,
    Error::ConnectionRefused,
    Error::HostUnreachable,
    Error::NoEntry,
    Error::TooManyFiles,
    Error::MessageSize,
    Error::NameTooLong,
    Error::NoMemory,
    Error::Interrupted,
    Error::NoThread,
];

/// The text for an errno.
#[napi]
pub fn error_text(errno: i32) -> String {
    KNOWN
        .iter()
        .find(|error| error.errno() == errno)
        .map_or_else(|| std::io::Error::from_raw_os_error(errno).to_string(), Error::to_string)
}

/// The errno of an error by its name, for those that are not of the system.
#[napi]
pub fn own_errors() -> Vec<(String, i32)> {
    [
        ("EFSM", Error::State),
        ("ENOCOMPATPROTO", Error::IncompatibleProtocol),
        ("ETERM", Error::Terminated),
        ("EMTHREAD", Error::NoThread),
    ]
    .map(|(name, error)| (name.to_owned(), error.errno()))
    .to_vec()
}
