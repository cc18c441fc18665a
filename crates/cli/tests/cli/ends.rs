//! Every command ends after SIGINT, SIGTERM and SIGHUP, even if an output is closed or blocked. An
//! idle command uses no processor time.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::support::{Running, TempDir, run, start, taut, test};
use crate::terminal::{read_until, terminal};

/// Signals, and the exit codes of `taut` for them.
const SIGNALS: [(Signal, i32); 3] = [(Signal::HUP, 129), (Signal::INT, 130), (Signal::TERM, 143)];
const AT: &str = "tcp://127.0.0.1:*";

/// Commands that wait after `bound to` on standard error. True: the command has an end of its own,
/// so a signal interrupts it.
const WAITING: &[(&[&str], bool)] = &[
    (&["recv", AT], false),
    (&["pull", AT], false),
    (&["pull", AT, "-n", "3"], true),
    (&["push", "--bind", AT, "x"], true),
    (&["push", "--bind", AT], false),
    (&["send", "--bind", AT, "x"], true),
    (&["pub", AT, "x"], true),
    (&["pub", AT, "--wait", "0", "x", "-i", "1h"], false),
    (&["sub", "--bind", AT], false),
    (&["xpub", AT, "-i", "1h", "x"], false),
    (&["xsub", "--bind", AT], false),
    (&["req", "--bind", AT, "x"], true),
    (&["rep", AT, "--echo"], false),
    (&["rep", AT, "--through", "cat"], false),
    (&["dealer", "--bind", AT], false),
    (&["router", AT, "--echo"], false),
    (&["pair", "--bind", AT], false),
    (&["stream", "--bind", AT, "--echo"], false),
    (&["client", "--bind", AT, "x"], true),
    (&["server", AT, "--echo"], false),
    (&["radio", AT, "g\tx", "-i", "1h"], false),
    (&["dish", "--bind", AT, "--subscribe", "g"], false),
    (&["scatter", "--bind", AT, "x"], true),
    (&["gather", AT], false),
    (&["peer", "--bind", AT, "--echo"], false),
    (&["channel", "--bind", AT], false),
    (&["dgram", "udp://127.0.0.1:*"], false),
    (&["proxy", AT, AT], false),
    (&["proxy", AT, AT, "--capture", "-"], false),
];

/// Runs each command and ends it with each signal after it is bound.
fn each(mut arrange: impl FnMut(&mut Command), check: impl Fn(&[&str], Signal, Option<i32>, bool, i32)) {
    for (args, has_end) in WAITING {
        for (signal, code) in SIGNALS {
            let mut command = taut(args);
            command.stdin(Stdio::piped());
            arrange(&mut command);
            let mut running = Running::start(command);
            running.bound();
            running.signal(signal);
            let ended = running.end_with_open_input();
            check(args, signal, ended.code, *has_end, code);
        }
    }
}

#[test]
fn a_signal_ends_every_command() {
    test("a_signal_ends_every_command", || {
        each(
            |_| {},
            |args, signal, ended, has_end, code| {
                assert_eq!(ended, Some(if has_end { code } else { 0 }), "{args:?} {signal:?}");
            },
        );
    });
}

#[test]
fn a_signal_ends_every_command_on_a_terminal() {
    test("a_signal_ends_every_command_on_a_terminal", || {
        let mut ends = Vec::new();
        each(
            |command| {
                let (program, test) = terminal();
                command.stdout(Stdio::from(program));
                ends.push(test);
            },
            |args, signal, ended, has_end, code| {
                assert_eq!(ended, Some(if has_end { code } else { 0 }), "{args:?} {signal:?}");
            },
        );
    });
}

/// The terminal is closed before the command starts. Output to it is lost.
#[test]
fn a_signal_ends_every_command_whose_terminal_is_gone() {
    test("a_signal_ends_every_command_whose_terminal_is_gone", || {
        for (args, _) in WAITING {
            let (program, gone) = terminal();
            let mut command = taut(args);
            command.stdin(Stdio::from(program.try_clone().unwrap())).stdout(Stdio::from(program));
            drop(gone);
            let mut running = Running::start(command);
            running.try_signal(Signal::TERM);
            let ended = running.end_with_open_input();
            // The command may end normally, before its signal handler is installed, or after.
            let known = ended.code.is_none_or(|code| [0, 1, 143].contains(&code));
            assert!(known, "{args:?} {ended:?}");
        }
    });
}

fn is_ignored(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("0");
    u64::from_str_radix(mask.trim(), 16).unwrap() >> (signal.as_raw() - 1) & 1 == 1
}

#[test]
fn signals_kill_commands_that_need_no_cleanup() {
    test("signals_kill_commands_that_need_no_cleanup", || {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = format!("tcp://{}", silent.local_addr().unwrap());
        // A child process also ignores the signals that this process ignores, as a shell arranges
        // for background jobs.
        for (signal, code) in SIGNALS.into_iter().filter(|(signal, _)| !is_ignored(*signal)) {
            let ping = start(&["ping", &at, "-w", "1h"]);
            let (connection, _) = silent.accept().unwrap();
            ping.signal(signal);
            assert_eq!(ping.status().signal(), Some(code - 128));
            drop(connection);
            let mut bench = start(&["bench", AT, "--end", "receive"]);
            bench.bound();
            bench.signal(signal);
            assert_eq!(bench.status().signal(), Some(code - 128));
            for (args, begun) in [(&["web"][..], "http://"), (&["metrics", "--listen", "0"], "listening at")]
            {
                let mut server = start(args);
                let said = if args.len() == 1 { server.line() } else { server.notice(begun) };
                assert!(said.starts_with(begun), "{said}");
                server.signal(signal);
                assert_eq!(server.status().signal(), Some(code - 128), "{args:?}");
            }
        }
    });
}

/// Starts a `pull` that blocks in a write: the pipe is smaller than a message.
fn stuck(folder: &TempDir) -> (Running, std::io::PipeReader) {
    let at = folder.ipc("a");
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut command = taut(&["pull", &at]);
    command.stdout(Stdio::from(writer));
    let pull = Running::start(command);
    assert_eq!(run(&["push", &at, "{size:100000}"]).code, Some(0));
    reader.read_exact(&mut [0]).unwrap();
    (pull, reader)
}

#[test]
fn a_reader_that_has_stopped_does_not_hold_it() {
    test("a_reader_that_has_stopped_does_not_hold_it", || {
        for (signal, code) in SIGNALS {
            let folder = TempDir::new();
            let (pull, reader) = stuck(&folder);
            pull.signal(signal);
            assert_eq!(pull.end().code, Some(code));
            drop(reader);
        }
    });
}

#[test]
fn a_command_of_the_users_that_hangs_does_not_hold_it() {
    test("a_command_of_the_users_that_hangs_does_not_hold_it", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let fifo = folder.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let hangs = format!("exec cat {}", fifo.display());
        let pull = start(&["pull", &at, "--through", &hangs]);
        let push = run(&["push", &at, "x"]);
        assert_eq!(push.code, Some(0));
        // Opening the fifo proves that the command runs.
        let mut held = std::fs::OpenOptions::new().write(true).open(&fifo).unwrap();
        pull.signal(Signal::TERM);
        assert_eq!(pull.end().code, Some(143));
        assert!(held.write_all(b"x").is_err(), "the command has ended as well");
    });
}

#[test]
fn further_signals_end_it_as_well() {
    test("further_signals_end_it_as_well", || {
        let folder = TempDir::new();
        let (mut pull, reader) = stuck(&folder);
        while pull.try_signal(Signal::HUP) && pull.try_signal(Signal::TERM) {
            std::thread::yield_now();
        }
        let code = pull.end().code;
        assert!([Some(129), Some(143)].contains(&code), "{code:?}");
        drop(reader);
    });
}

#[test]
fn sighup_ignored_by_nohup_stays_ignored() {
    test("sighup_ignored_by_nohup_stays_ignored", || {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' HUP; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_taut"), "pull", AT]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut pull = Running::start(command);
        let at = pull.bound();
        pull.signal(Signal::HUP);
        assert_eq!(run(&["push", &at, "still here"]).code, Some(0));
        assert_eq!(pull.line(), "still here");
        pull.signal(Signal::TERM);
        assert_eq!(pull.end().code, Some(0));
    });
}

/// Simulates the closing of a terminal window: the terminal is the controlling terminal.
#[test]
fn a_terminal_window_that_is_closed_ends_everything_in_it() {
    test("a_terminal_window_that_is_closed_ends_everything_in_it", || {
        for args in [
            &["sub", "--bind", AT, "--watch"][..],
            &["sub", "--bind", AT],
            &["pull", AT],
            &["push", "--bind", AT],
            &["proxy", AT, AT, "--capture", "-"],
        ] {
            let (program, mut window) = terminal();
            let mut command = Command::new("setsid");
            command.args(["--ctty", "--wait", env!("CARGO_BIN_EXE_taut")]).args(args);
            command.stdin(Stdio::from(program.try_clone().unwrap()));
            command.stdout(Stdio::from(program.try_clone().unwrap())).stderr(Stdio::from(program));
            command.env("TERM", "xterm");
            let running = Running::start(command);
            let mut screen = vt100::Parser::new(8, 60, 0);
            let begun = if args.contains(&"--watch") { "0 messages" } else { "bound to" };
            read_until(&mut window, &mut screen, |screen| screen.contents().contains(begun));
            drop(window);
            let code = running.end().code;
            assert!([Some(0), Some(129)].contains(&code), "{args:?} {code:?}");
        }
    });
}

/// Returns the processor time in seconds of a command that runs for two seconds, measured by
/// `times` of the shell.
fn processor_time(args: &[&str], stdout: Stdio) -> f64 {
    let mut command = Command::new("bash");
    command.args(["-c", "\"$@\"; times >&2", "bash", env!("CARGO_BIN_EXE_taut")]);
    command.args(args).args(["--for", "2"]).env("TERM", "xterm").env("LC_ALL", "C");
    command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped());
    let ended = Running::start(command).end();
    // The second line has the times of the children: 0m0.004s 0m0.012s
    let mut lines = ended.err.lines().filter(|line| line.starts_with("0m"));
    let line = lines.nth(1).unwrap_or_else(|| panic!("no times in {ended:?}"));
    let seconds = |time: &str| time.trim_start_matches("0m").trim_end_matches('s').parse::<f64>().unwrap();
    line.split_whitespace().map(seconds).sum()
}

#[test]
fn waiting_takes_no_processor_time() {
    test("waiting_takes_no_processor_time", || {
        let commands: &[&[&str]] = &[
            &["pull", AT],
            &["rep", AT, "--echo"],
            &["sub", "--bind", AT],
            &["router", AT, "--echo"],
            &["push", "--bind", AT, "x", "-i", "1h"],
            &["stream", "--bind", AT, "--echo"],
            &["dish", "--bind", AT, "--subscribe", "g"],
        ];
        std::thread::scope(|scope| {
            for args in commands {
                scope.spawn(move || {
                    let used = processor_time(args, Stdio::null());
                    assert!(used < 0.5, "{args:?} took {used} s");
                    // Standard input is the same socket as the output, and it has unread data.
                    let (mut ours, theirs) = UnixStream::pair().unwrap();
                    ours.write_all(b"unwanted\n").unwrap();
                    let used = processor_time(args, Stdio::from(OwnedFd::from(theirs)));
                    assert!(used < 0.5, "{args:?} on a socket took {used} s");
                });
            }
            let (program, mut window) = terminal();
            scope.spawn(move || std::io::copy(&mut window, &mut std::io::sink()));
            let used = processor_time(&["sub", "--bind", AT, "--watch"], Stdio::from(program));
            assert!(used < 0.5, "--watch took {used} s");
        });
    });
}
