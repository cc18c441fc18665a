//! `taut top`: shows sockets and peers live, with sockets in trouble first.
//!
//! ```text
//!   sample   reads all processes, and makes rates of two readings
//!   rows     what is shown of a socket or peer, in which order
//!   screen   draws it, by ratatui
//! ```
//!
//! Threads wait for keys, window size changes and signals, and send them to the main thread. A
//! reading takes at most 1/30 of the time, however large the system is.

mod rows;
mod sample;
mod screen;

pub use rows::Order;

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use ratatui::crossterm::cursor::Hide;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::EnterAlternateScreen;
use ratatui::layout::Rect;
use ratatui::{DefaultTerminal, TerminalOptions, Viewport};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Signal, kill_current_process_group};
use terminal_size::{Height, Width, terminal_size_of};

use super::SocketSelection;
use crate::args::Top;
use crate::failure::{Failure, Result};
use crate::hangup;
use crate::signals::Signals;
use crate::sink::{broken, colours, is_dumb};
use rows::SocketKey;
use sample::Sample;

/// A reading takes at most 1/30 of the time.
const SHARE: u32 = 30;

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
    let failed = |error: io::Error| broken(&error);
    let inputs = inputs(Signals::watch()?).map_err(failed)?;
    let mut terminal = enter().map_err(failed)?;
    let outcome = TopState::new(args).work(&inputs, &mut terminal);
    leave(terminal);
    outcome.map_err(failed)
}

/// Switches to the alternate screen, in raw mode. A panic restores the terminal.
fn enter() -> io::Result<DefaultTerminal> {
    let terminal = ratatui::try_init_with_options(TerminalOptions { viewport: Viewport::Fixed(size()) })?;
    execute!(io::stdout(), EnterAlternateScreen, Hide)?;
    Ok(terminal)
}

/// Restores the terminal. Errors of a closed terminal do not matter.
fn leave(mut terminal: DefaultTerminal) {
    let _ = terminal.show_cursor();
    let _ = ratatui::try_restore();
}

/// Returns the size of the terminal at standard output, which need not be `/dev/tty`.
fn size() -> Rect {
    let size = terminal_size_of(io::stdout());
    let (width, height) = size.map_or((0, 0), |(Width(width), Height(height))| (width, height));
    // If the terminal does not know its size, assume 80 x 24.
    Rect::new(0, 0, if width == 0 { 80 } else { width }, if height == 0 { 24 } else { height })
}

/// Input of the main thread.
enum Input {
    Terminal(Event),
    /// A signal, or the end of the terminal.
    Stop,
}

/// Starts the threads that wait for the terminal and for signals.
fn inputs(signals: Signals) -> io::Result<Receiver<Input>> {
    let (sender, inputs) = channel();
    let out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let gone = hangup::hangup_descriptor(&out)?;
    let stop = sender.clone();
    thread::Builder::new().name("stop".to_owned()).spawn(move || {
        let mut items = vec![PollFd::from_borrowed_fd(signals.descriptor(), PollFlags::IN)];
        items.extend(gone.as_ref().map(|gone| PollFd::new(gone, PollFlags::IN)));
        while matches!(poll(&mut items, None), Err(Errno::INTR)) {}
        // If no receiver is left, the process is ending.
        let _ = stop.send(Input::Stop);
    })?;
    thread::Builder::new().name("keys".to_owned()).spawn(move || {
        while let Ok(event) = event::read() {
            if sender.send(Input::Terminal(event)).is_err() {
                return;
            }
        }
        let _ = sender.send(Input::Stop);
    })?;
    Ok(inputs)
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
    /// First visible line of the help, while it is shown.
    help: Option<u16>,
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
            help: None,
            chosen: None,
            at: 0,
            first: 0,
            interval: args.interval,
            colours: colours(&io::stdout()),
        }
    }

    fn work(&mut self, inputs: &Receiver<Input>, terminal: &mut DefaultTerminal) -> io::Result<()> {
        let mut next_look = Instant::now();
        loop {
            let now = Instant::now();
            if now >= next_look {
                if !self.paused {
                    let into = match &self.view {
                        View::Peers(socket) => Some(socket),
                        View::Sockets => None,
                    };
                    self.sample.refresh(self.which, into);
                }
                next_look = now + self.interval.max(now.elapsed() * SHARE);
            }
            if terminal.get_frame().area() != size() {
                terminal.resize(size())?;
            }
            terminal.draw(|frame| screen::draw(self, frame))?;
            match inputs.recv_timeout(next_look.saturating_duration_since(Instant::now())) {
                Ok(Input::Terminal(Event::Key(key))) => match control(key) {
                    Some('z') => suspend(terminal)?,
                    Some('c' | 'd') => return Ok(()),
                    Some(_) => {}
                    None if self.press(key.code) => return Ok(()),
                    None => {}
                },
                Ok(Input::Terminal(_)) | Err(RecvTimeoutError::Timeout) => {}
                Ok(Input::Stop) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    /// Handles a key. Returns true to quit.
    fn press(&mut self, key: KeyCode) -> bool {
        if self.typing {
            match key {
                KeyCode::Char(letter) => self.filter.push(letter),
                KeyCode::Backspace => drop(self.filter.pop()),
                KeyCode::Esc => {
                    self.filter.clear();
                    self.typing = false;
                }
                KeyCode::Enter => self.typing = false,
                _ => {}
            }
            return false;
        }
        if let Some(first) = self.help {
            self.help = match key {
                KeyCode::Down => Some(first + 1),
                KeyCode::Up => Some(first.saturating_sub(1)),
                _ => None,
            };
            return false;
        }
        match key {
            KeyCode::Char('q') => return true,
            KeyCode::Up | KeyCode::Char('k') => self.choose(self.at.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.choose(self.at + 1),
            KeyCode::PageUp => self.choose(self.at.saturating_sub(10)),
            KeyCode::PageDown => self.choose(self.at + 10),
            KeyCode::Home => self.choose(0),
            KeyCode::End => self.choose(usize::MAX),
            KeyCode::Enter | KeyCode::Right => {
                if let (View::Sockets, Some(socket)) = (&self.view, self.chosen.clone()) {
                    self.show(View::Peers(socket));
                }
            }
            KeyCode::Esc | KeyCode::Left | KeyCode::Backspace => self.show(View::Sockets),
            KeyCode::Char('s') => self.order = self.order.next(),
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Char('a') => self.which = SocketSelection::new(self.which == SocketSelection::OfProgram),
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Char('h' | '?') => self.help = Some(0),
            _ => {}
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

/// Returns the letter of a key that is pressed together with Ctrl.
fn control(key: KeyEvent) -> Option<char> {
    key.code.as_char().filter(|_| key.modifiers.contains(KeyModifiers::CONTROL))
}

/// Stops the process until it is continued, as Ctrl-Z does for other programs. Signals the whole
/// process group, because the shell waits for all of it.
fn suspend(terminal: &mut DefaultTerminal) -> io::Result<()> {
    terminal.show_cursor()?;
    ratatui::try_restore()?;
    kill_current_process_group(Signal::TSTP)?;
    // The shell has used the screen, and the size may have changed.
    *terminal = enter()?;
    Ok(())
}
