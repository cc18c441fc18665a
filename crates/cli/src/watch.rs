//! `sub --watch`: shows one line per topic and updates it in place.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use ratatui::crossterm::cursor::{Hide, MoveTo, Show};
use ratatui::crossterm::queue;
use ratatui::crossterm::style::Stylize;
use ratatui::crossterm::terminal::{Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen};
use tautline::Message;
use terminal_size::{Height, Width, terminal_size_of};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::format::escaped;
use crate::inspect::units::many;

/// Minimum pause between two updates of the table.
const PAUSE: Duration = Duration::from_millis(100);
/// Pause between updates of ages and rates while no message arrives.
const QUIET: Duration = Duration::from_secs(1);
/// Maximum number of topics. Messages of further topics are only counted.
const TOPICS: usize = 10_000;
/// Approximate length of the time window for rates.
const WINDOW: Duration = Duration::from_secs(2);
/// Number of lines besides topics: the header and the total.
const FRAME: usize = 2;

/// Received messages by topic.
pub struct Watch {
    rows: BTreeMap<Vec<u8>, Row>,
    messages: u64,
    beyond: u64,
    drawn: Option<Instant>,
    /// Number of messages in the last drawn table.
    shown: u64,
    entered: bool,
    colours: bool,
}

struct Row {
    body: Vec<u8>,
    count: u64,
    last: Instant,
    /// Messages since `since`, and the rate per second before.
    recent: u64,
    since: Instant,
    rate: f64,
}

impl Watch {
    /// Creates an empty table.
    pub fn new(colours: bool) -> Self {
        Watch {
            rows: BTreeMap::new(),
            messages: 0,
            beyond: 0,
            drawn: None,
            shown: 0,
            entered: false,
            colours,
        }
    }

    /// Adds a message. Its topic is the first part, or the first word of a message with one part.
    pub fn put(&mut self, parts: &[Message]) {
        self.messages += 1;
        let (topic, body): (&[u8], &[u8]) = match parts {
            [] => (&[], &[]),
            [only] => only.split_at(only.iter().position(|byte| *byte == b' ').unwrap_or(only.len())),
            [topic, .., body] => (topic, body),
        };
        let body = if parts.len() == 1 { body.get(1..).unwrap_or_default() } else { body };
        let now = Instant::now();
        if self.rows.len() >= TOPICS && !self.rows.contains_key(topic) {
            self.beyond += 1;
            return;
        }
        let fresh = || Row { body: Vec::new(), count: 0, last: now, recent: 0, since: now, rate: 0.0 };
        let row = self.rows.entry(topic.to_vec()).or_insert_with(fresh);
        row.body.clear();
        row.body.extend_from_slice(&body[..body.len().min(1024)]);
        row.count += 1;
        row.recent += 1;
        row.last = now;
    }

    /// Returns the time until the next update is due. Returns `None` if the drawn table is empty.
    pub fn due(&self, now: Instant) -> Option<Duration> {
        let Some(drawn) = self.drawn else { return Some(Duration::ZERO) };
        let pause = match (self.messages > self.shown, self.rows.is_empty()) {
            (true, _) => PAUSE,
            (false, false) => QUIET,
            (false, true) => return None,
        };
        Some((drawn + pause).saturating_duration_since(now))
    }

    /// Draws the table if it is due.
    pub fn draw_if_due(&mut self, out: &mut (impl Write + AsFd)) -> io::Result<()> {
        let now = Instant::now();
        if !self.due(now).is_some_and(|time| time.is_zero()) {
            return Ok(());
        }
        let (width, height) = size(out);
        // Write the table in one piece, so that a partial table is never visible.
        let mut screen = Vec::new();
        if !self.entered {
            self.entered = true;
            queue!(screen, EnterAlternateScreen, Hide)?;
        }
        (self.drawn, self.shown) = (Some(now), self.messages);
        queue!(screen, MoveTo(0, 0))?;
        for line in self.lines(now, width, height) {
            write!(screen, "{line}{}\r\n", Clear(ClearType::UntilNewLine))?;
        }
        queue!(screen, Clear(ClearType::FromCursorDown))?;
        out.write_all(&screen)
    }

    /// Restores the terminal and leaves the last table on it.
    pub fn end(&mut self, out: &mut (impl Write + AsFd)) -> io::Result<()> {
        let mut screen = Vec::new();
        if self.entered {
            queue!(screen, Show, LeaveAlternateScreen)?;
        }
        let (width, height) = size(out);
        for line in self.lines(Instant::now(), width, height) {
            write!(screen, "{line}\r\n")?;
        }
        out.write_all(&screen)
    }

    /// Returns the lines of the table that fit on the screen.
    fn lines(&mut self, now: Instant, width: usize, height: usize) -> Vec<String> {
        let room = height.saturating_sub(FRAME + 1).max(1);
        let shown = self.rows.len().min(room);
        let longest = self.rows.keys().map(|topic| columns(&escaped(topic))).max().unwrap_or(0);
        let topic_width = longest.clamp(5, (width / 3).max(5));
        let fixed = topic_width + 1 + 9 + 1 + 8 + 1 + 6 + 1;
        let body_width = width.saturating_sub(fixed + 1).max(4);
        let head =
            format!("{:topic_width$} {:>9} {:>8} {:>6} {}", "topic", "messages", "per s", "age", "last");
        let head = cut(&head, width.saturating_sub(1));
        let mut lines = vec![if self.colours { head.bold().to_string() } else { head }];
        for (topic, row) in self.rows.iter_mut().take(shown) {
            row.measure(now);
            let age = age(now.saturating_duration_since(row.last));
            let topic = pad(&cut(&escaped(topic), topic_width), topic_width);
            let body = cut(&escaped(&row.body), body_width);
            let line = format!("{topic} {:>9} {:>8.1} {age:>6} {body}", row.count, row.rate);
            lines.push(cut(&line, width.saturating_sub(1)));
        }
        let hidden = self.rows.len() - shown;
        let messages =
            if self.messages == 1 { "1 message".to_owned() } else { format!("{} messages", self.messages) };
        let mut sum = format!("{messages}, {}", many(self.rows.len(), "topic"));
        if hidden > 0 {
            sum += &format!(", {hidden} not shown");
        }
        if self.beyond > 0 {
            sum += &format!(", {} messages of topics that are not shown", self.beyond);
        }
        lines.push(cut(&sum, width.saturating_sub(1)));
        lines
    }
}

impl Row {
    fn measure(&mut self, now: Instant) {
        let time = now.saturating_duration_since(self.since);
        if time >= WINDOW {
            self.rate = self.recent as f64 / time.as_secs_f64();
            (self.recent, self.since) = (0, now);
        } else if self.rate == 0.0 && self.recent > 1 {
            // Before the first window is over, use the messages so far.
            self.rate = self.recent as f64 / time.as_secs_f64().max(0.5);
        }
    }
}

fn size(out: &impl AsFd) -> (usize, usize) {
    let (width, height) =
        terminal_size_of(out).map_or((0, 0), |(Width(width), Height(height))| (width, height));
    // If the terminal does not know its size, assume 80 x 24.
    (if width == 0 { 80 } else { width.into() }, if height == 0 { 24 } else { height.into() })
}

fn age(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{:.1}s", time.as_secs_f64()),
        seconds @ ..60 => format!("{seconds}s"),
        seconds @ ..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        seconds => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

fn columns(text: &str) -> usize {
    text.width()
}

/// Shortens a text to this number of columns.
fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let (mut cut, mut room) = (String::new(), width.saturating_sub(1));
    for letter in text.chars() {
        let taken = letter.width().unwrap_or(0);
        if taken > room {
            break;
        }
        room -= taken;
        cut.push(letter);
    }
    cut + "…"
}

fn pad(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(columns(text));
    format!("{text}{}", " ".repeat(missing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_has_one_line() {
        let mut watch = Watch::new(false);
        for parts in [&["b", "1"][..], &["a.long.topic", "x"], &["b", "2\x1b[H"], &["word and more"]] {
            let parts: Vec<Message> = parts.iter().map(|part| Message::from(*part)).collect();
            watch.put(&parts);
        }
        let lines = watch.lines(Instant::now(), 80, 24);
        let start = |at: usize| lines[at].split_whitespace().take(2).collect::<Vec<_>>().join(" ");
        assert_eq!([start(1), start(2), start(3)], ["a.long.topic 1", "b 2", "word 1"]);
        assert!(lines[2].ends_with("2\\x1b[H") && lines[3].ends_with(" and more"), "{lines:?}");
        assert_eq!(lines[4], "4 messages, 3 topics");
    }

    #[test]
    fn a_small_terminal_shows_what_fits() {
        let mut watch = Watch::new(false);
        for n in 0..100 {
            watch.put(&[Message::from(format!("topic-{n:03}")), Message::from("x".repeat(500))]);
        }
        let lines = watch.lines(Instant::now(), 40, 10);
        assert_eq!(lines.len(), 9);
        assert!(lines.iter().all(|line| columns(line) < 40), "{lines:?}");
        assert!(lines[8].contains("93 not shown"), "{lines:?}");
    }

    #[test]
    fn wide_characters_do_not_shift_the_columns() {
        let mut watch = Watch::new(false);
        for (topic, body) in [("天気", "晴れ".repeat(30)), ("wind", "calm".to_owned())] {
            watch.put(&[Message::from(topic), Message::from(body)]);
        }
        let lines = watch.lines(Instant::now(), 40, 10);
        assert!(lines.iter().all(|line| columns(line) < 40), "{lines:?}");
        let before = |line: &str, body: &str| columns(&line[..line.find(body).unwrap()]);
        assert_eq!(before(&lines[1], "calm"), before(&lines[2], "晴れ"), "{lines:?}");
        assert_eq!([cut("天気", 4), cut("天気図", 4), cut("天気図", 5)], ["天気", "天…", "天気…"]);
    }
}
