//! The object that an error concerns.

use std::fmt;

/// Object that an error concerns: an endpoint, an option, or empty if the call makes it obvious.
///
/// [`Error::endpoint`](crate::Error::endpoint) returns the endpoint. The text of the error names
/// the endpoint or the option. The content is behind one pointer, so that errors stay small.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct ErrorSubject(Option<Box<SubjectKind>>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum SubjectKind {
    /// An endpoint, and the kind of its socket.
    Endpoint(Box<str>, &'static str),
    /// A sentence about a wrong argument.
    Sentence(Box<str>),
    /// An endpoint, the kind of its socket, and a sentence about the fault.
    Fault(Box<str>, &'static str, Box<str>),
}

impl ErrorSubject {
    pub(crate) fn at(endpoint: &str, kind: &'static str) -> Self {
        ErrorSubject(Some(Box::new(SubjectKind::Endpoint(endpoint.into(), kind))))
    }

    pub(crate) fn sentence(sentence: Box<str>) -> Self {
        ErrorSubject(Some(Box::new(SubjectKind::Sentence(sentence))))
    }

    pub(crate) fn fault(endpoint: &str, kind: &'static str, sentence: &str) -> Self {
        ErrorSubject(Some(Box::new(SubjectKind::Fault(endpoint.into(), kind, sentence.into()))))
    }

    pub(crate) fn endpoint(&self) -> Option<&str> {
        match self.0.as_deref()? {
            SubjectKind::Endpoint(endpoint, _) | SubjectKind::Fault(endpoint, ..) => Some(endpoint),
            SubjectKind::Sentence(_) => None,
        }
    }

    /// Returns the kind of the socket that the endpoint was passed to.
    pub(crate) fn socket(&self) -> Option<&'static str> {
        match self.0.as_deref()? {
            SubjectKind::Endpoint(_, kind) | SubjectKind::Fault(_, kind, _) => Some(kind),
            SubjectKind::Sentence(_) => None,
        }
    }

    pub(crate) fn as_sentence(&self) -> Option<&str> {
        match self.0.as_deref()? {
            SubjectKind::Endpoint(..) => None,
            SubjectKind::Sentence(sentence) | SubjectKind::Fault(.., sentence) => Some(sentence),
        }
    }
}

impl fmt::Debug for ErrorSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_deref() {
            Some(SubjectKind::Endpoint(endpoint, _)) => endpoint.fmt(f),
            Some(SubjectKind::Sentence(sentence)) => sentence.fmt(f),
            Some(SubjectKind::Fault(endpoint, _, sentence)) => write!(f, "{endpoint:?}, {sentence:?}"),
            None => f.write_str("_"),
        }
    }
}

/// Step that a socket with fixed turns expects first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum ExpectedStep {
    /// REQ has sent a request and expects the reply. [`relaxed`](crate::Builder::relaxed) allows
    /// another request.
    ReceiveAnswer,
    /// REQ has not sent a request, or not the last part of it.
    SendQuestion,
    /// REP has no request to answer, or has not received its last part.
    ReceiveQuestion,
    /// REP has not answered the last request.
    SendAnswer,
    /// Another step.
    Other,
}

impl fmt::Display for ExpectedStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ExpectedStep::ReceiveAnswer => "REQ must receive the reply to its last request first",
            ExpectedStep::SendQuestion => "REQ must send a request first",
            ExpectedStep::ReceiveQuestion => "REP must receive a request first",
            ExpectedStep::SendAnswer => "REP must reply to the last request first",
            ExpectedStep::Other => "the pattern does not allow this now",
        })
    }
}
