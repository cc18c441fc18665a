//! `top` in a pseudo-terminal with 80 columns and 24 lines.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, waitpid};

use crate::observed::{NOW, World, trouble};
use crate::support::{Running, taut, test};
use crate::terminal::{read_until, set_size, terminal_of};

/// `taut top` on a terminal, its screen, and the other end.
pub struct Session {
    top: Running,
    window: File,
    screen: vt100::Parser,
}

impl Session {
    pub fn new(world: &World, args: &[&str]) -> Session {
        let (program, window) = terminal_of(24, 80);
        let mut command = world.command(&[&["top"][..], args].concat());
        command.stdin(Stdio::from(program.try_clone().unwrap())).stdout(Stdio::from(program));
        Session { top: Running::start(command), window, screen: vt100::Parser::new(24, 80, 0) }
    }

    fn press(&mut self, keys: &str) {
        self.window.write_all(keys.as_bytes()).unwrap();
    }

    pub fn wait(&mut self, wanted: impl Fn(&str) -> bool) {
        read_until(&mut self.window, &mut self.screen, |screen| wanted(&screen.contents()));
    }

    /// Waits until the screen fulfils the condition, because a drawing may arrive in pieces.
    pub fn wait_for_rows(&mut self, wanted: impl Fn(&[String]) -> bool) {
        read_until(&mut self.window, &mut self.screen, |screen| {
            let rows: Vec<String> = screen.rows(0, 80).map(|row| row.trim_end().to_owned()).collect();
            wanted(&rows)
        });
    }
}

#[test]
fn the_screen_shows_the_ones_in_trouble_first() {
    test("the_screen_shows_the_ones_in_trouble_first", || {
        let world = World::new();
        let mut file = world.file(None);
        let mut told = trouble();
        told.socket(7, "REP");
        told.socket(90, "PAIR").monitor = true;
        told.write(&mut file);
        let mut session = Session::new(&world, &["--interval", "100ms"]);
        session.wait(|screen| screen.contains("q quit"));
        told.process.written = NOW + 2_000_000;
        told.sockets[0].messages_out += 3_000;
        told.sockets[0].dropped += 46;
        told.sockets[2].messages_in += 10;
        told.peers[0].dropped += 46;
        told.write(&mut file);
        let pid = format!("{:>7}", std::process::id());
        let wanted = [
            "taut top  1 process, 3 sockets, 2 peers   out 1.50k/s in 5.0/s lost 23/s".to_owned(),
            String::new(),
            "    PID PROGRAM    SOCKET     PEERS  OUT/s   IN/s QUEUED FULL NOTE".to_owned(),
            format!("{pid} news       3 PUB          2  1.50k      0  1.00k 100% loses 23/s: the re"),
            format!("{pid} news       5 PULL         0      0      0      0      Connection refused"),
            // The readings of this test are years old.
            format!("{pid} news       7 REP          0      0    5.0      0      no news for "),
        ];
        let about = format!("news ({}), 3 PUB; loses 23/s: the reader is slower; bound to", pid.trim());
        let keys = "↑↓ choose  ⏎ peers  s sort  / filter  p pause  h help  q quit";
        session.wait_for_rows(|rows| {
            let second = rows[1].starts_with("by trouble   counters ") && rows[1].ends_with(" old");
            second
                && rows[0] == wanted[0]
                && rows[2..5] == wanted[2..5]
                && rows[5].starts_with(&wanted[5])
                && rows[6..21].iter().all(String::is_empty)
                && rows[21..23].join(" ").starts_with(&format!("{about} tcp://127.0.0.1:5556; counters "))
                && rows[23] == keys
        });
        assert!(session.screen.screen().alternate_screen() && session.screen.screen().hide_cursor());

        session.press("\r");
        let title = format!("news ({}), socket 3 PUB, 2 peers", std::process::id());
        let words = |row: &String| row.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let slow = |time: &str| {
            ["1", "slow\\x1b", "0", "0", "1000/1000", "-", "full", "for", time].map(str::to_owned)
        };
        let fast =
            |rate: &str| ["2", "tcp://10.0.0.8:40000", rate, "0", "0/1000", "430µs"].map(str::to_owned);
        session.wait_for_rows(|rows| {
            rows[1].starts_with(&title)
                && rows[1].ends_with(" old")
                && rows[2] == " PEER ADDRESS OR NAME           OUT/s   IN/s   WAITING   TRIP NOTE"
                && words(&rows[3]).starts_with(&slow("9s:"))
                && words(&rows[4]) == fast("0")
                && rows[23].starts_with("↑↓ choose  ← back")
        });
        told.process.written += 1_000_000;
        told.peers[1].messages_out += 700;
        told.write(&mut file);
        session.wait_for_rows(|rows| {
            words(&rows[3]).starts_with(&slow("10s:")) && words(&rows[4]) == fast("700")
        });

        session.press("\x1b");
        session.wait(|screen| screen.contains("s sort"));
        session.press("s");
        session.wait(|screen| screen.contains("by out"));
        session.press("/pull\r");
        session.wait_for_rows(|rows| {
            rows[1].starts_with("by out ")
                && rows[1].ends_with("   filter: pull")
                && rows[3].contains("5 PULL")
                && rows[4].is_empty()
        });
        session.press("/\x7f\x7f\x7f\x7f\r");
        session.press("a");
        session.wait(|screen| screen.contains("90 PAIR") && screen.contains("monitor events"));
        session.press("a");
        session.wait(|screen| !screen.contains("90 PAIR") && screen.contains("7 REP"));
        session.press("h");
        session.wait(|screen| screen.contains("press any key to return"));
        session.press("x");
        session.wait(|screen| screen.contains("q quit"));
        session.press("q");
        read_until(&mut session.window, &mut session.screen, |screen| {
            !screen.alternate_screen() && !screen.hide_cursor()
        });
        assert_eq!(session.top.end_with_open_input().code, Some(0));
    });
}

#[test]
fn suspend_gives_the_terminal_back_until_the_process_continues() {
    test("suspend_gives_the_terminal_back_until_the_process_continues", || {
        let world = World::new();
        let (program, window) = terminal_of(24, 80);
        let mut command = world.command(&["top"]);
        // Use a separate group, because Ctrl-Z stops the whole process group.
        command.process_group(0);
        command.stdin(Stdio::from(program.try_clone().unwrap())).stdout(Stdio::from(program));
        let (top, screen) = (Running::start(command), vt100::Parser::new(24, 80, 0));
        let mut session = Session { top, window, screen };
        for _ in 0..2 {
            session.wait(|screen| screen.contains("q quit"));
            session.press("\x1a");
            let pid = Pid::from_raw(session.top.id() as i32);
            let status = loop {
                match waitpid(pid, WaitOptions::UNTRACED) {
                    Ok(Some((_, status))) => break status,
                    Ok(None) | Err(Errno::INTR) => {}
                    Err(error) => panic!("{error}"),
                }
            };
            assert!(status.stopped(), "{status:?}");
            read_until(&mut session.window, &mut session.screen, |screen| {
                !screen.alternate_screen() && !screen.hide_cursor()
            });
            session.top.signal(Signal::CONT);
            read_until(&mut session.window, &mut session.screen, vt100::Screen::alternate_screen);
        }
        session.press("q");
        assert_eq!(session.top.end_with_open_input().code, Some(0));
    });
}

#[test]
fn terminal_without_control_sequences_is_refused() {
    test("terminal_without_control_sequences_is_refused", || {
        let world = World::new();
        for (args, text) in
            [(&["top"][..], "top needs a terminal"), (&["sub", ":1", "--watch"], "--watch needs")]
        {
            let (program, _window) = terminal_of(24, 80);
            let mut command = world.command(args);
            command.env("TERM", "dumb").stderr(Stdio::piped());
            command.stdin(Stdio::from(program.try_clone().unwrap())).stdout(Stdio::from(program));
            Running::start(command).end().failed(2, &[text, "TERM is dumb"]);
        }
    });
}

#[test]
fn narrow_terminal_shows_the_notes() {
    test("narrow_terminal_shows_the_notes", || {
        let world = World::new();
        trouble().write(&mut world.file(None));
        let (program, mut window) = terminal_of(10, 40);
        let mut command = world.command(&["top"]);
        command.stdin(Stdio::from(program.try_clone().unwrap())).stdout(Stdio::from(program));
        let top = Running::start(command);
        let mut screen = vt100::Parser::new(10, 40, 0);
        read_until(&mut window, &mut screen, |screen| {
            let text = screen.contents();
            text.contains("PROGRAM    SOCKET     FULL NOTE")
                && text.contains("100% full for")
                && text.contains("q quit")
        });
        window.write_all(b"q").unwrap();
        assert_eq!(top.end_with_open_input().code, Some(0));
    });
}

#[test]
fn wide_terminal_shows_endpoints_and_whole_notes() {
    test("wide_terminal_shows_endpoints_and_whole_notes", || {
        let world = World::new();
        trouble().write(&mut world.file(None));
        let (program, mut window) = terminal_of(50, 200);
        let mut command = world.command(&["top"]);
        command.stdin(Stdio::from(program.try_clone().unwrap())).stdout(Stdio::from(program));
        let top = Running::start(command);
        let mut screen = vt100::Parser::new(50, 200, 0);
        read_until(&mut window, &mut screen, |screen| {
            let rows: Vec<String> = screen.rows(0, 200).collect();
            rows[2].contains("ENDPOINT")
                && rows[2].contains("AGE NOTE")
                && rows[3].contains(" tcp://127.0.0.1:5556 ")
                && rows[3].contains("full for 7s: the reader is slower")
                && rows[4].contains(" tcp://127.0.0.1:5999 ")
                && rows[4].contains("Connection refused for 12s")
        });
        // The window becomes small: the help fits, and can be scrolled.
        set_size(&window, 10, 40);
        screen = vt100::Parser::new(10, 40, 0);
        top.signal(Signal::WINCH);
        read_until(&mut window, &mut screen, |screen| screen.contents().contains("1 process   lost"));
        window.write_all(b"h").unwrap();
        read_until(&mut window, &mut screen, |screen| screen.contents().contains("choose a row"));
        window.write_all("\x1b[B".repeat(40).as_bytes()).unwrap();
        read_until(&mut window, &mut screen, |screen| screen.contents().contains("no processor"));
        window.write_all(b"xq").unwrap();
        assert_eq!(top.end_with_open_input().code, Some(0));
    });
}

#[test]
fn nothing_to_see_is_told() {
    test("nothing_to_see_is_told", || {
        let world = World::new();
        let mut session = Session::new(&world, &[]);
        session.wait(|screen| {
            screen.contains("no process of this user is observed") && screen.contains("taut run --observe")
        });
        session.top.signal(Signal::TERM);
        assert_eq!(session.top.end_with_open_input().code, Some(0));
    });
}

#[test]
fn a_small_terminal_and_one_that_is_gone() {
    test("a_small_terminal_and_one_that_is_gone", || {
        let world = World::new();
        trouble().write(&mut world.file(None));
        for (rows, columns) in [(1, 1), (3, 20), (6, 40), (100, 300)] {
            let (program, mut window) = terminal_of(rows, columns);
            let mut command = world.command(&["top"]);
            command.stdin(Stdio::from(program.try_clone().unwrap())).stdout(Stdio::from(program));
            let top = Running::start(command);
            let mut screen = vt100::Parser::new(rows, columns, 0);
            read_until(&mut window, &mut screen, |screen| screen.alternate_screen());
            drop(window);
            assert_eq!(top.end_with_open_input().code, Some(0));
        }
    });
}

#[test]
fn without_a_terminal_it_says_what_is_for_programs() {
    test("without_a_terminal_it_says_what_is_for_programs", || {
        Running::start(taut(&["top"])).end().failed(2, &["top needs a terminal", "taut metrics"]);
    });
}

/// Measures the cost of `top` with 500 processes, 5,000 sockets and 50,000 peers whose counters all
/// change. Prints the figures.
#[test]
#[ignore = "takes half a minute, and the machine for itself"]
fn the_cost_of_a_large_system() {
    test("the_cost_of_a_large_system", || {
        let world = World::new();
        let mut output = world.file(None);
        let path = output.path().to_owned();
        let mut told = crate::observed::Told::new("many");
        for socket in 1..=10 {
            told.socket(socket, "ROUTER");
            for peer in 1..=10 {
                told.peer(socket, peer, &format!("tcp://10.0.{socket}.{peer}:40000")).queued_out = peer;
            }
        }
        let folder = world.place();
        let mut rate = 0;
        let mut renew = || {
            told.process.written += 1_000_000;
            // Change the rate, so that there is a difference to draw.
            rate += 1000;
            told.sockets.iter_mut().for_each(|socket| socket.messages_out += rate);
            // Write twice, so that the file is short and starts with the last image.
            (0..2).for_each(|_| told.write(&mut output));
            let mut image = std::fs::File::open(&path).unwrap().take(1 << 20);
            let mut bytes = Vec::new();
            image.read_to_end(&mut bytes).unwrap();
            for copy in 1..500 {
                std::fs::write(folder.join(format!("{}.{copy}", std::process::id())), &bytes).unwrap();
            }
        };
        renew();
        let begun = Instant::now();
        let mut session = Session::new(&world, &[]);
        session.wait(|screen| screen.contains("500 processes, 5000 sockets, 50000 peers"));
        let first = begun.elapsed();
        let used = |session: &Session| {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", session.top.id())).unwrap();
            let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
            // In hundredths of a second.
            fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()
        };
        let (start, before) = (Instant::now(), used(&session));
        while start.elapsed() < Duration::from_secs(20) {
            renew();
            // Wait until `top` has drawn it.
            assert!(session.window.read(&mut [0; 65536]).unwrap() > 0);
        }
        let share = (used(&session) - before) / 100.0 / start.elapsed().as_secs_f64();
        println!("first screen after {first:?}, then {:.1} % of a core", share * 100.0);
        assert!(share < 0.05, "{share}");
    });
}
