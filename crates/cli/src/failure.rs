//! Error that ends a command early: a sentence, a hint and an exit code.

use std::fmt;
use std::io;

/// Exit codes, as documented in the manual page of `taut`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// The task failed: an address in use, a broken input, a refused peer.
    Failed = 1,
    /// The command line is invalid or names a missing object.
    Usage = 2,
    /// The time limit of `--timeout` has passed.
    Timeout = 3,
    /// `taut doctor` or `taut audit` reported a problem.
    Trouble = 4,
    /// SIGHUP arrived before the work was done.
    HungUp = 129,
    /// SIGINT arrived before the work was done.
    Interrupted = 130,
    /// SIGTERM arrived before the work was done.
    Terminated = 143,
}

/// Error that ends a command early.
#[derive(Debug)]
pub struct Failure {
    /// Exit code of the process.
    pub code: Code,
    /// Error text in one sentence. Empty: print no error.
    pub what: String,
    /// Advice for the user.
    pub hint: Option<String>,
    closed_output: bool,
}

/// Result of most functions of this program.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// Creates a failure with this exit code.
    pub fn new(code: Code, what: impl Into<String>) -> Self {
        Failure { code, what: what.into(), hint: None, closed_output: false }
    }

    /// Creates the silent failure for a closed standard output or a closed terminal.
    pub fn closed_output() -> Self {
        Failure { closed_output: true, ..Failure::new(Code::Failed, "") }
    }

    /// True if standard output was closed.
    pub fn is_closed_output(&self) -> bool {
        self.closed_output
    }

    /// Creates a failure of the task itself.
    pub fn failed(what: impl Into<String>) -> Self {
        Failure::new(Code::Failed, what)
    }

    /// Creates a failure for an invalid command line.
    pub fn usage(what: impl Into<String>) -> Self {
        Failure::new(Code::Usage, what)
    }

    /// Adds advice for the user.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Creates the failure for a file that cannot be read or written.
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
        let is_name = error.endpoint().is_some_and(|endpoint| endpoint.starts_with("name://"));
        let hint = match &error {
            E::AddressInUse(_) => {
                Some("another program uses it: choose another port, or `*` for any free port")
            }
            E::AddressNotAvailable(_) => {
                Some("bind to an address of this machine, or connect to it with --connect")
            }
            E::WrongTransport(_) => {
                Some("use udp with radio, dish and dgram; use tcp or ipc with all other types")
            }
            E::UnknownTransport(_) | E::MalformedEndpoint(..) if !is_name => {
                Some("for example tcp://127.0.0.1:5555 or ipc:///tmp/name")
            }
            E::NoSuchDevice(_) => Some("check the name of the host"),
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
