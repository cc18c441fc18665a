//! `taut top`: shows sockets and peers live, with sockets in trouble first.
//!
//! ```text
//!   sample   reads all processes, and makes rates of two readings
//!   rows     what is shown of a socket or peer, in which order
//!   screen   draws it, by ratatui
//!   keys     bytes of the terminal as keys
//! ```
//!
//! One thread waits for keys, signals, window size changes and the next reading. A reading takes at
//! most 1/30 of the time, however large the system is.

mod keys;
mod rows;
mod sample;
mod screen;

pub use rows::Order;

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{TerminalOptions, Viewport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, kill_current_process_group};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use terminal_size::{Height, Width, terminal_size_of};

use super::SocketSelection;
use crate::args::Top;
use crate::failure::{Failure, Result};
use crate::hangup;
use crate::signals::Signals;
use crate::sink::{broken, colours, is_dumb};
use keys::{Key, Keys};
use rows::SocketKey;
use sample::Sample;

/// A reading takes at most 1/30 of the time.
const SHARE: u32 = 30;
/// Time limit for the remaining bytes of a key.
const KEY: Duration = Duration::from_millis(50);
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l";
const LEAVE: &[u8] = b"\x1b[?25h\x1b[?1049l";

/// Runs until `q`, a signal, or the end of the terminal.
pub fn run(args: &Top) -> Result<()> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Failure::usage("top needs a terminal")
            .hint("programs can use taut ps --json, taut show PID --json and taut metrics"));
    }
    if is_dumb() {
        return Err(Failure::usage("top needs a terminal that can move its cursor, but TERM is dumb")
            .hint("taut ps and taut show PID print plain text"));
    }
    let mut signals = Signals::watch()?;
    let mut screen = Raw::enter().map_err(|error| broken(&error))?;
    let mut top = TopState::new(args);
    let outcome = top.work(&mut signals, &mut screen);
    screen.leave();
    outcome
}

/// Terminal in raw mode. Restored when dropped.
struct Raw {
    input: File,
    output: File,
    before: Termios,
}

impl Raw {
    fn enter() -> io::Result<Raw> {
        let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let before = tcgetattr(&input)?;
        let mut entered = Raw { input, output, before };
        entered.take()?;
        Ok(entered)
    }

    fn take(&mut self) -> io::Result<()> {
        let mut raw = self.before.clone();
        raw.make_raw();
        tcsetattr(&self.input, OptionalActions::Flush, &raw)?;
        self.output.write_all(ENTER)
    }

    /// Stops the process until it is continued, as Ctrl-Z does for other programs. Signals the
    /// whole process group, because the shell waits for all of it.
    fn suspend(&mut self) -> io::Result<()> {
        self.give_back();
        kill_current_process_group(Signal::TSTP)?;
        self.take()
    }

    fn leave(mut self) {
        self.give_back();
    }

    fn give_back(&mut self) {
        // Errors of a closed terminal do not matter.
        let _ = self.output.write_all(LEAVE);
        let _ = tcsetattr(&self.input, OptionalActions::Flush, &self.before);
    }

    fn size(&self) -> Rect {
        let (width, height) =
            terminal_size_of(&self.output).map_or((0, 0), |(Width(width), Height(height))| (width, height));
        // If the terminal does not know its size, assume 80 x 24.
        Rect::new(0, 0, if width == 0 { 80 } else { width }, if height == 0 { 24 } else { height })
    }
}

/// Current view.
#[derive(Debug, Clone, PartialEq, Eq)]
enum View {
    Sockets,
    /// Peers of a socket.
    Peers(SocketKey),
}

/// State of the screen: choices of the user and the current data.
struct TopState {
    sample: Sample,
    view: View,
    order: Order,
    which: SocketSelection,
    filter: String,
    /// True while the user types the filter.
    typing: bool,
    paused: bool,
    help: bool,
    /// Chosen row, as long as it exists.
    chosen: Option<SocketKey>,
    /// Index of the chosen row, and index of the first row on the screen.
    at: usize,
    first: usize,
    interval: Duration,
    colours: bool,
}

impl TopState {
    fn new(args: &Top) -> TopState {
        TopState {
            sample: Sample::default(),
            view: View::Sockets,
            order: args.sort,
            which: SocketSelection::new(args.all),
            filter: args.filter.clone().unwrap_or_default(),
            typing: false,
            paused: false,
            help: false,
            chosen: None,
            at: 0,
            first: 0,
            interval: args.interval,
            colours: colours(&io::stdout()),
        }
    }

    fn work(&mut self, signals: &mut Signals, raw: &mut Raw) -> Result<()> {
        let failed = |error: io::Error| broken(&error);
        let backend = CrosstermBackend::new(raw.output.try_clone().map_err(failed)?);
        let viewport = TerminalOptions { viewport: Viewport::Fixed(raw.size()) };
        let mut terminal = Terminal::with_options(backend, viewport).map_err(failed)?;
        let gone = hangup::hangup_descriptor(&raw.output).map_err(failed)?;
        let (resized, resize) = UnixStream::pair().map_err(failed)?;
        resized.set_nonblocking(true).map_err(failed)?;
        signal_hook::low_level::pipe::register(signal_hook::consts::SIGWINCH, resize).map_err(failed)?;
        let mut keys = Keys::default();
        let mut next_look = Instant::now();
        loop {
            let now = Instant::now();
            if now >= next_look {
                if !self.paused {
                    self.sample.refresh(
                        self.which,
                        match &self.view {
                            View::Peers(socket) => Some(socket),
                            View::Sockets => None,
                        },
                    );
                }
                next_look = now + self.interval.max(now.elapsed() * SHARE);
            }
            terminal.draw(|frame| screen::draw(self, frame)).map_err(failed)?;
            let pause =
                if keys.is_pending() { KEY } else { next_look.saturating_duration_since(Instant::now()) };
            let time = Timespec::try_from(pause).ok();
            let mut items = vec![
                PollFd::new(&raw.input, PollFlags::IN),
                PollFd::from_borrowed_fd(signals.descriptor(), PollFlags::IN),
                PollFd::new(&resized, PollFlags::IN),
            ];
            items.extend(gone.as_ref().map(|gone| PollFd::new(gone, PollFlags::IN)));
            match poll(&mut items, time.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(broken(&error.into())),
            }
            let ready: Vec<bool> = items.iter().map(|item| !item.revents().is_empty()).collect();
            if signals.stop().is_some() || ready.get(3) == Some(&true) {
                return Ok(());
            }
            if ready[2] {
                let _ = (&resized).read(&mut [0; 64]);
                terminal.resize(raw.size()).map_err(failed)?;
            }
            let mut bytes = [0; 256];
            let typed = if ready[0] {
                match (&raw.input).read(&mut bytes) {
                    // The terminal is closed.
                    Ok(0) => return Ok(()),
                    Ok(len) => keys.take(&bytes[..len]),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => Vec::new(),
                    Err(error) => return Err(broken(&error)),
                }
            } else {
                keys.give_up().into_iter().collect()
            };
            for key in typed {
                if key == Key::Suspend {
                    raw.suspend().map_err(failed)?;
                    // The shell has used the screen, and the size may have changed.
                    terminal.resize(raw.size()).map_err(failed)?;
                } else if self.press(key) {
                    return Ok(());
                }
            }
        }
    }

    /// Handles a key. Returns true to quit.
    fn press(&mut self, key: Key) -> bool {
        if self.typing {
            match key {
                Key::Letter(letter) => self.filter.push(letter),
                Key::Back => drop(self.filter.pop()),
                Key::Escape => {
                    self.filter.clear();
                    self.typing = false;
                }
                Key::Enter => self.typing = false,
                Key::Interrupt => return true,
                _ => {}
            }
            return false;
        }
        if self.help {
            self.help = false;
            return key == Key::Interrupt;
        }
        match key {
            Key::Interrupt | Key::Letter('q') => return true,
            Key::Up | Key::Letter('k') => self.choose(self.at.saturating_sub(1)),
            Key::Down | Key::Letter('j') => self.choose(self.at + 1),
            Key::PageUp => self.choose(self.at.saturating_sub(10)),
            Key::PageDown => self.choose(self.at + 10),
            Key::Home => self.choose(0),
            Key::End => self.choose(usize::MAX),
            Key::Enter | Key::Right => {
                if let (View::Sockets, Some(socket)) = (&self.view, self.chosen.clone()) {
                    self.show(View::Peers(socket));
                }
            }
            Key::Escape | Key::Left | Key::Back => self.show(View::Sockets),
            Key::Letter('s') => self.order = self.order.next(),
            Key::Letter('p' | ' ') => self.paused = !self.paused,
            Key::Letter('a') => self.which = SocketSelection::new(self.which == SocketSelection::OfProgram),
            Key::Letter('/') => self.typing = true,
            Key::Letter('h' | '?') => self.help = true,
            Key::Letter(_) | Key::Suspend => {}
        }
        false
    }

    /// Chooses the row at this index, or the last row.
    fn choose(&mut self, at: usize) {
        self.at = at;
        // The next drawing finds the socket of this row.
        self.chosen = None;
    }

    fn show(&mut self, view: View) {
        if self.view != view {
            self.view = view;
            (self.at, self.first) = (0, 0);
        }
    }
}
