//! Errors travel to JavaScript as negative errno numbers; the exceptions are made there.

use napi_derive::napi;
use tautline_core::Error;

/// Returns the number that a call reports for an error.
pub(crate) fn code(error: Error) -> i32 {
    -error.errno()
}

/// Returns 0, or the number that is reported for the error.
pub(crate) fn outcome(result: Result<(), Error>) -> i32 {
    result.map_or_else(code, |()| 0)
}

/// The system's text for an errno.
#[napi]
pub fn error_text(errno: i32) -> String {
    let text = std::io::Error::from_raw_os_error(errno).to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
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
