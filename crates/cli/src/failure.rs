//! What ends a command before it is done: a sentence, what to do about it, and the exit code.

use std::fmt;
use std::io;

/// The exit codes, as the page of `taut` documents them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// It cannot be done: an address in use, a broken input, a refused peer.
    Failed = 1,
    /// The command line makes no sense, or names what does not exist.
    Usage = 2,
    /// The time of `--timeout` has passed.
    Timeout = 3,
    /// `taut doctor` or `taut audit` has found something.
    Trouble = 4,
    /// SIGHUP came before all was done.
    HungUp = 129,
    /// SIGINT came before all was done.
    Interrupted = 130,
    /// SIGTERM came before all was done.
    Terminated = 143,
}

/// Why a command ends early.
#[derive(Debug)]
pub struct Failure {
    /// What the process exits with.
    pub code: Code,
    /// One sentence; empty if there is nothing to say.
    pub what: String,
    /// What to do about it.
    pub hint: Option<String>,
    closed_output: bool,
}

/// What most functions here return.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// With a code of its own.
    pub fn new(code: Code, what: impl Into<String>) -> Self {
        Failure { code, what: what.into(), hint: None, closed_output: false }
    }

    /// Standard output was closed at its other end, or its terminal is gone: nothing more is to be
    /// said.
    pub fn closed_output() -> Self {
        Failure { closed_output: true, ..Failure::new(Code::Failed, "") }
    }

    /// Whether it is that.
    pub fn is_closed_output(&self) -> bool {
        self.closed_output
    }

    /// It cannot be done.
    pub fn failed(what: impl Into<String>) -> Self {
        Failure::new(Code::Failed, what)
    }

    /// The command line is wrong.
    pub fn usage(what: impl Into<String>) -> Self {
        Failure::new(Code::Usage, what)
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// An endpoint that cannot be bound or connected to.
    pub fn endpoint(address: &str, error: tautline::Error) -> Self {
        match error {
            tautline::Error::Invalid(_) if crate::tls::is_for(address) => Failure::failed(format!(
                "{address}: the certificates are not good, or the key is of another one"
            ))
            .hint("--tls-cert, --tls-key and --tls-trust name files in PEM"),
            error => error.into(),
        }
    }

    /// A file that cannot be read or written.
    pub fn file(path: &std::path::Path, error: &io::Error) -> Self {
        Failure::failed(format!("{}: {error}", path.display()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\n  {hint}"))
    }
}

impl From<tautline::Error> for Failure {
    fn from(error: tautline::Error) -> Self {
        use tautline::Error as E;
        let hint = match &error {
            E::AddressInUse(_) => {
                Some("another program has it: choose another port, or `*` for any free one")
            }
            E::AddressNotAvailable(_) => {
                Some("bind to an address of this machine, or connect to it with --connect")
            }
            E::WrongTransport(_) => {
                Some("udp goes with radio, dish and dgram; all others go with tcp and ipc")
            }
            E::UnknownTransport(_) | E::MalformedEndpoint(..) => {
                Some("for example tcp://127.0.0.1:5555 or ipc:///tmp/name")
            }
            E::NoSuchDevice(_) => Some("is the name of the host right?"),
            _ => None,
        };
        let code = match &error {
            E::UnknownTransport(_) | E::MalformedEndpoint(..) | E::WrongTransport(_) => Code::Usage,
            _ => Code::Failed,
        };
        Failure { hint: hint.map(str::to_owned), ..Failure::new(code, error.to_string()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_library_says_what_to_do() {
        let error = tautline::Push::new(&tautline::Context::new()).unwrap().connect("tcp:/x").unwrap_err();
        let failure = Failure::from(error);
        assert_eq!(failure.code, Code::Usage);
        assert!(failure.to_string().contains("\n  for example tcp://"), "{failure}");
    }
}
