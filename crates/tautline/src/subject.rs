//! What an error is about.

use std::fmt;

/// What an error is about: an endpoint, an option, or nothing that the caller would not know.
///
/// [`Error::endpoint`](crate::Error::endpoint) tells the endpoint; the text of the error names
/// either. Behind one pointer, so that errors stay small.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Subject(Option<Box<About>>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum About {
    /// An endpoint, of a socket of this kind.
    Endpoint(Box<str>, &'static str),
    /// What is wrong with an argument.
    Sentence(Box<str>),
}

impl Subject {
    pub(crate) fn at(endpoint: &str, kind: &'static str) -> Self {
        Subject(Some(Box::new(About::Endpoint(endpoint.into(), kind))))
    }

    pub(crate) fn sentence(sentence: Box<str>) -> Self {
        Subject(Some(Box::new(About::Sentence(sentence))))
    }

    pub(crate) fn endpoint(&self) -> Option<&str> {
        match self.0.as_deref()? {
            About::Endpoint(endpoint, _) => Some(endpoint),
            About::Sentence(_) => None,
        }
    }

    /// The kind of the socket that the endpoint was given to.
    pub(crate) fn socket(&self) -> Option<&'static str> {
        match self.0.as_deref()? {
            About::Endpoint(_, kind) => Some(kind),
            About::Sentence(_) => None,
        }
    }

    pub(crate) fn as_sentence(&self) -> Option<&str> {
        match self.0.as_deref()? {
            About::Endpoint(..) => None,
            About::Sentence(sentence) => Some(sentence),
        }
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_deref() {
            Some(About::Endpoint(endpoint, _)) => endpoint.fmt(f),
            Some(About::Sentence(sentence)) => sentence.fmt(f),
            None => f.write_str("_"),
        }
    }
}

/// What a socket whose pattern sends and receives in turn expects first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Turn {
    /// REQ has asked, and awaits the answer. [`relaxed`](crate::Builder::relaxed) lets it ask
    /// again.
    ReceiveAnswer,
    /// REQ has not asked, or not sent the last part of its question.
    SendQuestion,
    /// REP has no question to answer, or not received the last part of it.
    ReceiveQuestion,
    /// REP has not answered the last question.
    SendAnswer,
    /// Something else.
    Other,
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Turn::ReceiveAnswer => "REQ must receive the answer to its last question first",
            Turn::SendQuestion => "REQ must send a question first",
            Turn::ReceiveQuestion => "REP must receive a question first",
            Turn::SendAnswer => "REP must answer the last question first",
            Turn::Other => "the pattern does not allow this now",
        })
    }
}
