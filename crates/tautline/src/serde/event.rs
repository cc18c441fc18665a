//! Kinds of events and handshake errors with named fields, for tagged maps.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::monitor::{EventKind, HandshakeError};

#[derive(Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum EventKindForm {
    Connected,
    ConnectDelayed,
    ConnectRetried { after_ms: u64 },
    Listening,
    BindFailed { errno: i32 },
    Accepted,
    AcceptFailed { errno: i32 },
    Closed,
    CloseFailed { errno: i32 },
    Disconnected,
    HandshakeSucceeded,
    HandshakeFailed(HandshakeError),
    TopicRefused,
    NameChanged,
    NameAway { errno: i32 },
    Stopped,
    Other { number: u64, values: Vec<u64> },
}

impl From<EventKind> for EventKindForm {
    fn from(kind: EventKind) -> Self {
        match kind {
            EventKind::Connected => Self::Connected,
            EventKind::ConnectDelayed => Self::ConnectDelayed,
            EventKind::ConnectRetried { after } => {
                Self::ConnectRetried { after_ms: after.as_millis().try_into().unwrap_or(u64::MAX) }
            }
            EventKind::Listening => Self::Listening,
            EventKind::BindFailed(errno) => Self::BindFailed { errno },
            EventKind::Accepted => Self::Accepted,
            EventKind::AcceptFailed(errno) => Self::AcceptFailed { errno },
            EventKind::Closed => Self::Closed,
            EventKind::CloseFailed(errno) => Self::CloseFailed { errno },
            EventKind::Disconnected => Self::Disconnected,
            EventKind::HandshakeSucceeded => Self::HandshakeSucceeded,
            EventKind::HandshakeFailed(error) => Self::HandshakeFailed(error),
            EventKind::TopicRefused => Self::TopicRefused,
            EventKind::NameChanged => Self::NameChanged,
            EventKind::ResolverFailed(errno) => Self::NameAway { errno },
            EventKind::Stopped => Self::Stopped,
            EventKind::Other { number, values } => Self::Other { number, values },
        }
    }
}

impl From<EventKindForm> for EventKind {
    fn from(form: EventKindForm) -> Self {
        use EventKindForm as Form;
        match form {
            Form::Connected => Self::Connected,
            Form::ConnectDelayed => Self::ConnectDelayed,
            Form::ConnectRetried { after_ms } => {
                Self::ConnectRetried { after: Duration::from_millis(after_ms) }
            }
            Form::Listening => Self::Listening,
            Form::BindFailed { errno } => Self::BindFailed(errno),
            Form::Accepted => Self::Accepted,
            Form::AcceptFailed { errno } => Self::AcceptFailed(errno),
            Form::Closed => Self::Closed,
            Form::CloseFailed { errno } => Self::CloseFailed(errno),
            Form::Disconnected => Self::Disconnected,
            Form::HandshakeSucceeded => Self::HandshakeSucceeded,
            Form::HandshakeFailed(error) => Self::HandshakeFailed(error),
            Form::TopicRefused => Self::TopicRefused,
            Form::NameChanged => Self::NameChanged,
            Form::NameAway { errno } => Self::ResolverFailed(errno),
            Form::Stopped => Self::Stopped,
            Form::Other { number, values } => Self::Other { number, values },
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "error", rename_all = "snake_case")]
pub(crate) enum HandshakeErrorForm {
    Io { errno: i32 },
    Protocol { code: u32 },
    Refused { status: u32 },
}

impl From<HandshakeError> for HandshakeErrorForm {
    fn from(error: HandshakeError) -> Self {
        match error {
            HandshakeError::Io(errno) => Self::Io { errno },
            HandshakeError::Protocol(code) => Self::Protocol { code },
            HandshakeError::Refused(status) => Self::Refused { status },
        }
    }
}

impl From<HandshakeErrorForm> for HandshakeError {
    fn from(form: HandshakeErrorForm) -> Self {
        match form {
            HandshakeErrorForm::Io { errno } => Self::Io(errno),
            HandshakeErrorForm::Protocol { code } => Self::Protocol(code),
            HandshakeErrorForm::Refused { status } => Self::Refused(status),
        }
    }
}
