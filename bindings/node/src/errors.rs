//! Errors go to JavaScript as negative errno numbers. The JavaScript code creates the exceptions.

use napi_derive::napi;
use tautline_core::Error;

/// Returns the number that a call reports for an error.
pub(crate) fn code(error: Error) -> i32 {
    -error.errno()
}

/// Returns 0, or the number that a call reports for the error.
pub(crate) fn outcome(result: Result<(), Error>) -> i32 {
    result.map_or_else(code, |()| 0)
}

/// Returns the system's text for an errno.
#[napi]
pub fn error_text(errno: i32) -> String {
    let text = std::io::Error::from_raw_os_error(errno).to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Returns the names and numbers of the errors that the system does not define.
#[napi]
pub fn error_codes() -> Vec<(String, i32)> {
    [
        ("EFSM", Error::State),
        ("ENOCOMPATPROTO", Error::IncompatibleProtocol),
        ("ETERM", Error::Terminated),
        ("EMTHREAD", Error::NoThread),
    ]
    .map(|(name, error)| (name.to_owned(), error.errno()))
    .to_vec()
}
