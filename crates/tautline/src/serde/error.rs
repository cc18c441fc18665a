//! Errors: variant, subject and text.

use serde::{Deserialize, Serialize, Serializer};

use crate::curve::KeyError;
use crate::endpoint::EndpointError;
use crate::error::{Error, ExpectedStep};

#[derive(Serialize)]
struct ErrorForm<'a> {
    error: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<ExpectedStep>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    socket: Option<&'static str>,
    errno: i32,
    message: String,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Reason {
    Endpoint(EndpointError),
    Key(&'static str),
}

impl Serialize for Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let turn = match self {
            Error::WrongState(turn) => Some(*turn),
            _ => None,
        };
        let reason = match self {
            Error::MalformedEndpoint(reason, _) => Some(Reason::Endpoint(*reason)),
            Error::MalformedKey(KeyError::Length(_)) => Some(Reason::Key("length")),
            Error::MalformedKey(KeyError::NotZ85) => Some(Reason::Key("not_z85")),
            _ => None,
        };
        let form = ErrorForm {
            error: name(self),
            turn,
            reason,
            endpoint: self.endpoint(),
            socket: self.subject().and_then(|subject| subject.socket()),
            errno: self.errno(),
            message: self.to_string(),
        };
        form.serialize(serializer)
    }
}

fn name(error: &Error) -> &'static str {
    match error {
        Error::WouldBlock => "would_block",
        Error::TimedOut => "timed_out",
        Error::Terminated => "terminated",
        Error::Interrupted => "interrupted",
        Error::WrongState(_) => "wrong_state",
        Error::Unroutable => "unroutable",
        Error::Invalid(_) => "invalid",
        Error::MalformedEndpoint(..) => "malformed_endpoint",
        Error::MalformedKey(_) => "malformed_key",
        Error::UnknownTransport(_) => "unknown_transport",
        Error::WrongTransport(_) => "wrong_transport",
        Error::NotSupported(_) => "not_supported",
        Error::AddressInUse(_) => "address_in_use",
        Error::AddressNotAvailable(_) => "address_not_available",
        Error::NoSuchDevice(_) => "no_such_device",
        Error::ConnectionRefused(_) => "connection_refused",
        Error::NotFound(_) => "not_found",
        Error::TooManyOpen => "too_many",
        Error::MessageTooLong => "message_too_long",
        Error::NameTooLong(_) => "name_too_long",
        Error::OutOfMemory => "out_of_memory",
        Error::Os(..) => "os",
    }
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "error", rename_all = "snake_case")]
pub(crate) enum KeyErrorForm {
    Length { bytes: u32 },
    NotZ85,
}

impl From<KeyError> for KeyErrorForm {
    fn from(error: KeyError) -> Self {
        match error {
            KeyError::Length(bytes) => Self::Length { bytes },
            KeyError::NotZ85 => Self::NotZ85,
        }
    }
}

impl From<KeyErrorForm> for KeyError {
    fn from(form: KeyErrorForm) -> Self {
        match form {
            KeyErrorForm::Length { bytes } => Self::Length(bytes),
            KeyErrorForm::NotZ85 => Self::NotZ85,
        }
    }
}
