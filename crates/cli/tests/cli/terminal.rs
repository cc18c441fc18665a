//! Tests in a pseudo-terminal: the table of `--watch`, colours, and other effects of a terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Stdio;

use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::support::{Running, TempDir, start, taut, test};

/// Returns both ends of a terminal with 60 columns and 8 lines: the end of the program first.
pub fn terminal() -> (File, File) {
    terminal_of(8, 60)
}

/// Returns both ends of a terminal with this size.
pub fn terminal_of(rows: u16, columns: u16) -> (File, File) {
    let test: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&test).unwrap();
    unlockpt(&test).unwrap();
    let name = ptsname(&test, Vec::new()).unwrap();
    let program = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    set_size(&program, rows, columns);
    (program, File::from(test))
}

/// Sets the size of a terminal.
pub fn set_size(terminal: &File, rows: u16, columns: u16) {
    tcsetwinsize(terminal, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
}

/// Displays the output of the program until the screen fulfils the condition. Returns all bytes so
/// far.
pub fn read_until(
    terminal: &mut File,
    screen: &mut vt100::Parser,
    wanted: impl Fn(&vt100::Screen) -> bool,
) -> Vec<u8> {
    let mut all = Vec::new();
    while !wanted(screen.screen()) {
        let mut bytes = [0; 4096];
        // Reading fails after the program has ended.
        let Ok(len @ 1..) = terminal.read(&mut bytes) else {
            panic!("not seen:\n{}", screen.screen().contents())
        };
        screen.process(&bytes[..len]);
        all.extend_from_slice(&bytes[..len]);
    }
    all
}

#[test]
fn a_topic_has_one_line_in_place() {
    test("a_topic_has_one_line_in_place", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let (program, mut terminal) = terminal();
        let mut command = taut(&["sub", &at, "--watch"]);
        command.env("NO_COLOR", "1").stdout(Stdio::from(program));
        let sub = Running::start(command);
        // Dropping the command closes our copy of its end of the terminal.
        let mut screen = vt100::Parser::new(8, 60, 0);
        let mut publisher = crate::support::start_with_stdin(&["pub", &at]);
        publisher.write(b"lund 6\nrome 17\nlund 7\nosl\xc3\xb6 \x1b[31m-3\n");
        let seen = read_until(&mut terminal, &mut screen, |screen| {
            screen.contents().contains("4 messages, 3 topics")
        });
        let lines: Vec<String> = screen.screen().rows(0, 60).collect();
        let row = |at: usize| lines[at].split_whitespace().collect::<Vec<_>>();
        assert_eq!(row(0), ["topic", "messages", "per", "s", "age", "last"]);
        assert_eq!((row(1)[0], row(1)[1], row(1)[4]), ("lund", "2", "7"));
        assert_eq!((row(2)[0], row(2)[4]), ("oslö", "\\x1b[31m-3"));
        assert_eq!((row(3)[0], row(3)[1], row(3)[4]), ("rome", "1", "17"));
        assert!(screen.screen().alternate_screen() && screen.screen().hide_cursor());
        assert!(!String::from_utf8_lossy(&seen).contains("\x1b[1m"), "NO_COLOR");

        for topic in 0..10 {
            publisher.write(format!("topic-{topic} x\n").as_bytes());
        }
        read_until(&mut terminal, &mut screen, |screen| screen.contents().contains("8 not shown"));
        sub.signal(Signal::INT);
        // The terminal is restored, and the last table stays.
        read_until(&mut terminal, &mut screen, |screen| {
            !screen.alternate_screen() && screen.contents().contains("8 not shown")
        });
        assert!(!screen.screen().hide_cursor());
        assert_eq!(sub.end().code, Some(0));
    });
}

#[test]
fn a_terminal_that_is_gone_ends_it() {
    test("a_terminal_that_is_gone_ends_it", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let (program, mut terminal) = terminal();
        let mut command = taut(&["sub", &at, "--watch"]);
        command.stdout(Stdio::from(program));
        let sub = Running::start(command);
        let _publisher = start(&["pub", &at, "a {n}", "-i", "10ms"]);
        let mut screen = vt100::Parser::new(8, 60, 0);
        read_until(&mut terminal, &mut screen, |screen| screen.contents().contains("topic"));
        drop(terminal);
        assert_eq!(sub.end().code, Some(0));
    });
}

#[test]
fn colours_are_for_terminals() {
    test("colours_are_for_terminals", || {
        for (plain, coloured) in [(false, true), (true, false)] {
            let (program, mut terminal) = terminal();
            let mut command = taut(&["push", "nonsense"]);
            if plain {
                command.env("NO_COLOR", "1");
            }
            command.stderr(Stdio::from(program));
            assert_eq!(Running::start(command).end().code, Some(2));
            let mut screen = vt100::Parser::new(8, 60, 0);
            let seen =
                read_until(&mut terminal, &mut screen, |screen| screen.contents().contains("saved context"));
            assert_eq!(seen.contains(&0x1b), coloured);
        }
    });
}

#[test]
fn a_terminal_is_told_what_is_waited_for() {
    test("a_terminal_is_told_what_is_waited_for", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let (program, mut terminal) = terminal();
        let mut command = taut(&["pub", &at]);
        command.stdin(Stdio::from(program.try_clone().unwrap())).stderr(Stdio::from(program));
        let publisher = Running::start(command);
        let mut screen = vt100::Parser::new(8, 60, 0);
        read_until(&mut terminal, &mut screen, |screen| {
            let text = screen.contents();
            text.contains("messages from the terminal") && text.contains("waiting for a subscriber")
        });
        let mut sub = start(&["sub", &at]);
        terminal.write_all(b"hello\n").unwrap();
        assert_eq!(sub.line(), "hello");
        // Ctrl-D at the start of a line ends the input.
        terminal.write_all(b"\x04").unwrap();
        assert_eq!(publisher.end().code, Some(0));
    });
}
