//! Starts `taut` and reads its output.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
pub use tautline_testkit::endpoint::TempDir;

/// Hundred times the run time of the slowest test.
const HANG: Duration = Duration::from_secs(120);

/// Runs a test under a watchdog.
pub fn test(name: &str, body: impl FnOnce()) {
    tautline_testkit::with_watchdog(HANG, name, body);
}

/// Returns a command for `taut` with these arguments and an environment without settings of the
/// user.
pub fn taut(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_taut"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in [
        "NO_COLOR",
        "TAUT_PLAIN_PASSWORD",
        "TAUT_LIBRARY",
        "OTEL_EXPORTER_OTLP_HEADERS",
        "TAUT_OBSERVE",
        "TAUT_NAME",
    ] {
        command.env_remove(name);
    }
    // Programs that others observe on this machine must not change a test.
    command.env("TAUT_COUNTERS", "/nonexistent");
    command.env("XDG_CONFIG_HOME", "/nonexistent").env("TERM", "xterm");
    command
}

/// Creates a file that only its owner can read. Returns its path.
pub fn private(folder: &TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Output and exit code of a command.
#[derive(Debug)]
pub struct Ended {
    /// Exit code, or `None` if a signal killed the command.
    pub code: Option<i32>,
    /// Standard output.
    pub out: Vec<u8>,
    /// Standard error.
    pub err: String,
}

impl Ended {
    /// Standard output.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }

    /// Returns the lines of standard output. Panics if the exit code is not 0.
    #[track_caller]
    pub fn lines(&self) -> Vec<String> {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.text().lines().map(str::to_owned).collect()
    }

    /// Asserts that the command failed with this code and printed these texts.
    #[track_caller]
    pub fn failed(&self, code: i32, texts: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        for text in texts {
            assert!(self.err.contains(text), "{text:?} is not in {:?}", self.err);
        }
    }
}

/// Runs a command to its end.
pub fn run(args: &[&str]) -> Ended {
    Running::start(taut(args)).end()
}

/// Runs a command to its end, with this standard input.
pub fn run_with(args: &[&str], input: &[u8]) -> Ended {
    let mut running = start_with_stdin(args);
    running.write(input);
    running.end()
}

/// Starts a command.
pub fn start(args: &[&str]) -> Running {
    Running::start(taut(args))
}

/// Starts a command whose standard input is written by the test.
pub fn start_with_stdin(args: &[&str]) -> Running {
    let mut command = taut(args);
    command.stdin(Stdio::piped());
    Running::start(command)
}

/// Running command. Killed when dropped.
pub struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    out: Receiver<Vec<u8>>,
    err: Receiver<Vec<u8>>,
}

impl Running {
    /// Starts a command.
    pub fn start(mut command: Command) -> Running {
        let mut child = command.spawn().expect("taut starts");
        let stdin = child.stdin.take();
        let out = child.stdout.take().map(lines).unwrap_or_else(|| mpsc::channel().1);
        let err = child.stderr.take().map(lines).unwrap_or_else(|| mpsc::channel().1);
        Running { child, stdin, out, err }
    }

    /// Writes to its standard input. Ignores the error if the command has ended.
    pub fn write(&mut self, input: &[u8]) {
        if let Some(stdin) = &mut self.stdin {
            let _ = stdin.write_all(input);
        }
    }

    /// Returns the next line of standard output without its line break.
    #[track_caller]
    pub fn line(&mut self) -> String {
        let line = self.out.recv().expect("a line");
        String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned()
    }

    /// Returns the next line of standard error that contains this text.
    #[track_caller]
    pub fn notice(&mut self, text: &str) -> String {
        loop {
            let line = self.err.recv().unwrap_or_else(|_| panic!("no notice {text:?}"));
            let line = String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned();
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Returns the endpoint to which it is bound.
    #[track_caller]
    pub fn bound(&mut self) -> String {
        self.notice("bound to ").trim_start_matches("bound to ").to_owned()
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it is there");
    }

    /// Sends a signal. Returns false if the process has ended. Checks that first, because a zombie
    /// still accepts signals.
    pub fn try_signal(&mut self, signal: Signal) -> bool {
        self.child.try_wait().expect("it is ours").is_none() && {
            self.signal(signal);
            true
        }
    }

    /// Waits for the end of the process.
    pub fn status(mut self) -> ExitStatus {
        self.child.wait().expect("it ends")
    }

    /// Closes the reading end of its standard output.
    pub fn close_output(&mut self) {
        self.out = mpsc::channel().1;
    }

    /// Closes its input and waits for its end.
    pub fn end(mut self) -> Ended {
        drop(self.stdin.take());
        self.end_with_open_input()
    }

    /// Waits for its end with its input open.
    pub fn end_with_open_input(mut self) -> Ended {
        let out = self.out.iter().collect::<Vec<_>>().concat();
        let err = self.err.iter().collect::<Vec<_>>().concat();
        let code = self.child.wait().expect("it ends").code();
        Ended { code, out, err: String::from_utf8_lossy(&err).into_owned() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The error of a process that has already ended does not matter.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the lines of a pipe, with their line breaks. Closes the pipe when the receiver is dropped.
fn lines(pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        loop {
            let mut line = Vec::new();
            match pipe.read_until(b'\n', &mut line) {
                Ok(1..) if sender.send(line).is_ok() => {}
                _ => return,
            }
        }
    });
    receiver
}
