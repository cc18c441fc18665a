//! Draws the screen of `taut top`: two header lines, the rows, and a line of keys.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use unicode_width::UnicodeWidthStr;

use super::rows::{self, PeerRow, Severity, SocketRow};
use super::{TopState, View};
use crate::format::escaped;
use crate::inspect::HOW;
use crate::inspect::units::{count, many, now, rate, span};

/// Number of lines besides rows: two header lines, the column names, the keys.
const FRAME: u16 = 4;
const KEYS: &str = "↑↓ choose  ⏎ peers  s sort  / filter  p pause  h help  q quit";
const KEYS_OF_PEERS: &str = "↑↓ choose  ← back  p pause  h help  q quit";
/// Keys for a narrow terminal.
const NARROW_KEYS: &str = "⏎ peers  ← back  h help  q quit";
/// Minimum width of the notes, which say what is wrong. Other columns make room for them.
const NOTE: u16 = 12;
const HELP: [&str; 15] = [
    "↑ ↓ PgUp PgDn Home End   choose a row (also j and k)",
    "⏎ or →                   show the peers of the socket",
    "← or Esc                 back to the sockets",
    "s                        sort: trouble, out, in, queued, peers, pid",
    "/                        show rows with this text in any column",
    "a                        show or hide the sockets that carry monitor events",
    "p or space               pause or continue",
    "q, Ctrl-Z                quit, suspend",
    "",
    "OUT/s, IN/s   messages handed to the peers' queues, and taken from them",
    "QUEUED        messages queued for sending or for the program",
    "FULL          how full the fullest queue is",
    "loses N/s     dropped at the high-water mark, unroutable or disconnected",
    "full for T    a queue is full: the peer receives too slowly",
    "press any key to return",
];

/// Column: its header, its width, true if it is aligned to the right, and its rank. A narrow
/// terminal hides the columns with the highest rank first. Columns with rank 0 are always visible.
type Column = (&'static str, u16, bool, u8);

const SOCKETS: [Column; 8] = [
    ("PID", 7, true, 4),
    ("PROGRAM", 10, false, 0),
    ("SOCKET", 10, false, 0),
    ("PEERS", 5, true, 5),
    ("OUT/s", 6, true, 1),
    ("IN/s", 6, true, 2),
    ("QUEUED", 6, true, 3),
    ("FULL", 4, true, 0),
];

const PEERS: [Column; 6] = [
    ("PEER", 5, true, 4),
    ("ADDRESS OR NAME", 24, false, 0),
    ("OUT/s", 6, true, 2),
    ("IN/s", 6, true, 3),
    ("WAITING", 9, true, 1),
    ("TRIP", 6, true, 5),
];

/// Draws the screen.
pub fn draw(state: &mut TopState, frame: &mut Frame<'_>) {
    let area = frame.area();
    let mut canvas = Canvas { buffer: frame.buffer_mut(), area, colours: state.colours };
    if state.help {
        canvas.line(0, "taut top", Modifier::BOLD, None);
        for (at, line) in HELP.iter().enumerate() {
            canvas.line(at as u16 + 2, line, Modifier::empty(), None);
        }
        return;
    }
    head(state, &mut canvas);
    let room = usize::from(area.height.saturating_sub(FRAME));
    match state.view.clone() {
        View::Sockets => sockets(state, &mut canvas, room),
        View::Peers(key) => {
            let Some((process, socket)) = state
                .sample
                .process(&key)
                .and_then(|process| Some((process, process.reading.socket(key.socket)?)))
            else {
                canvas.line(2, "the socket is closed", Modifier::empty(), None);
                canvas.keys(KEYS_OF_PEERS);
                return;
            };
            let title = format!(
                "{} ({}), socket {} {}, {}   counters {} old",
                escaped(process.reading.process.program.as_bytes()),
                process.reading.name(),
                socket.id,
                socket.type_name,
                many(process.reading.peers_of(socket.id).count(), "peer"),
                span(process.reading.process.written, now())
            );
            canvas.line(1, &title, Modifier::empty(), None);
            let rows = rows::peers(process, key.socket);
            let (at, first) = place(state.at, state.first, rows.len(), room);
            canvas.columns(&PEERS);
            for (line, row) in rows.iter().enumerate().skip(first).take(room) {
                canvas.row(
                    (line - first) as u16 + 3,
                    &PEERS,
                    &peer_cells(row),
                    &row.note,
                    row.trouble,
                    line == at,
                );
            }
            if rows.is_empty() {
                canvas.line(4, "no peers", Modifier::empty(), None);
            }
            (state.at, state.first) = (at, first);
            canvas.keys(KEYS_OF_PEERS);
        }
    }
}

fn head(state: &TopState, canvas: &mut Canvas<'_>) {
    let totals = rows::totals(&state.sample);
    let places =
        [many(totals.processes, "process"), many(totals.sockets, "socket"), many(totals.peers, "peer")];
    let text = format!(
        "taut top  {}   out {}/s in {}/s lost {}/s",
        places.join(", "),
        rate(totals.rates.sent),
        rate(totals.rates.received),
        rate(totals.rates.lost)
    );
    canvas.line(0, &text, Modifier::BOLD, None);
    let mut second = format!("by {}", state.order.name());
    if let Some(oldest) = totals.oldest {
        second += &format!("   counters {} old", span(oldest, now()));
    }
    if totals.ended > 0 {
        second += &format!("   {} ended", many(totals.ended, "process"));
    }
    if state.typing || !state.filter.is_empty() {
        second += &format!(
            "   filter: {}{}",
            escaped(state.filter.as_bytes()),
            if state.typing { "_" } else { "" }
        );
    }
    if state.paused {
        second += "   held";
    }
    if let Some(fault) = state.sample.faults.first() {
        let others = state.sample.faults.len() - 1;
        let others = if others == 0 { String::new() } else { format!(" (and {others} more)") };
        second += &format!("   {fault}{others}");
    }
    if state.view == View::Sockets {
        canvas.line(1, &second, Modifier::empty(), None);
    }
}

fn sockets(state: &mut TopState, canvas: &mut Canvas<'_>, room: usize) {
    let rows = rows::sockets(&state.sample, state.order, &state.filter);
    // Keep the chosen socket, even if its row has moved.
    let chosen = state.chosen.as_ref().and_then(|key| rows.iter().position(|row| row.key() == *key));
    let (at, first) = place(chosen.unwrap_or(state.at), state.first, rows.len(), room);
    canvas.columns(&SOCKETS);
    for (line, row) in rows.iter().enumerate().skip(first).take(room) {
        canvas.row(
            (line - first) as u16 + 3,
            &SOCKETS,
            &socket_cells(row),
            &row.note,
            row.trouble,
            line == at,
        );
    }
    if rows.is_empty() {
        if state.filter.is_empty() {
            canvas.line(4, "no process of this user is observed", Modifier::empty(), None);
            canvas.line(5, HOW, Modifier::empty(), None);
        } else {
            canvas.line(4, "no row contains this text", Modifier::empty(), None);
        }
    }
    let chosen = rows.get(at).map(SocketRow::key);
    (state.at, state.first, state.chosen) = (at, first, chosen);
    canvas.keys(KEYS);
}

/// Returns the index of the chosen row, and the index of the first visible row so that the chosen
/// one is visible.
fn place(at: usize, first: usize, rows: usize, room: usize) -> (usize, usize) {
    let at = at.min(rows.saturating_sub(1));
    let first = first.min(at).max((at + 1).saturating_sub(room));
    (at, first.min(rows.saturating_sub(room)))
}

fn socket_cells(row: &SocketRow<'_>) -> [String; 8] {
    [
        row.process.reading.name(),
        escaped(row.process.reading.process.program.as_bytes()),
        format!("{} {}", row.socket.id, row.socket.type_name),
        count(row.socket.peers),
        rate(row.rates.sent),
        rate(row.rates.received),
        count(row.queued),
        if row.fill_per_mille == 0 { String::new() } else { format!("{}%", (row.fill_per_mille + 5) / 10) },
    ]
}

fn peer_cells(row: &PeerRow<'_>) -> [String; 6] {
    [
        row.peer.id.to_string(),
        row.name.clone(),
        rate(row.rates.sent),
        rate(row.rates.received),
        row.queued.clone(),
        row.round_trip.clone(),
    ]
}

/// Returns the lowest rank of the columns that are hidden on a terminal of this width.
fn least_hidden(columns: &[Column], width: u16) -> u8 {
    let taken = |least: u8| {
        columns.iter().filter(|column| column.3 < least).map(|column| column.1 + 1).sum::<u16>() + NOTE
    };
    (1..=u8::MAX).rev().find(|least| taken(*least) <= width).unwrap_or(1)
}

/// Drawing area.
struct Canvas<'a> {
    buffer: &'a mut Buffer,
    area: Rect,
    colours: bool,
}

impl Canvas<'_> {
    fn style(&self, modifier: Modifier, colour: Option<Color>) -> Style {
        let style = Style::default().add_modifier(modifier);
        colour.filter(|_| self.colours).map_or(style, |colour| style.fg(colour))
    }

    fn put(&mut self, x: u16, y: u16, text: &str, width: u16, style: Style) {
        if y < self.area.height && x < self.area.width {
            self.buffer.set_stringn(x, y, text, usize::from(width.min(self.area.width - x)), style);
        }
    }

    fn line(&mut self, y: u16, text: &str, modifier: Modifier, colour: Option<Color>) {
        let style = self.style(modifier, colour);
        self.put(0, y, text, self.area.width, style);
    }

    fn columns(&mut self, columns: &[Column]) {
        let heads: Vec<String> = columns.iter().map(|column| column.0.to_owned()).collect();
        let style = self.style(Modifier::UNDERLINED, None);
        self.cells(2, columns, &heads, "NOTE", style, style);
    }

    fn row(
        &mut self,
        y: u16,
        columns: &[Column],
        cells: &[String],
        note: &str,
        trouble: Severity,
        chosen: bool,
    ) {
        let modifier = if chosen { Modifier::REVERSED } else { Modifier::empty() };
        let colour = match trouble {
            Severity::None => None,
            Severity::Warning => Some(Color::Yellow),
            Severity::Critical => Some(Color::Red),
        };
        let (plain, noted) = (self.style(modifier, None), self.style(modifier, colour));
        if chosen {
            let all = " ".repeat(usize::from(self.area.width));
            self.put(0, y, &all, self.area.width, plain);
        }
        self.cells(y, columns, cells, note, plain, noted);
    }

    fn cells(
        &mut self,
        y: u16,
        columns: &[Column],
        cells: &[String],
        note: &str,
        plain: Style,
        noted: Style,
    ) {
        let mut x = 0;
        let least = least_hidden(columns, self.area.width);
        for ((_, width, at_right, hides), cell) in columns.iter().zip(cells) {
            if *hides >= least {
                continue;
            }
            let wide = cell.width().min(usize::from(u16::MAX)) as u16;
            let indent = if *at_right { width.saturating_sub(wide) } else { 0 };
            self.put(x + indent, y, cell, width - indent, plain);
            x += width + 1;
        }
        let rest = self.area.width.saturating_sub(x);
        self.put(x, y, note, rest, noted);
    }

    fn keys(&mut self, keys: &str) {
        let fits = keys.chars().count() <= usize::from(self.area.width);
        let keys = if fits { keys } else { NARROW_KEYS };
        let style = self.style(Modifier::DIM, None);
        self.put(0, self.area.height.saturating_sub(1), keys, self.area.width, style);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_terminal_hides_columns_and_keeps_the_notes() {
        let shown = |columns: &'static [Column], width| -> Vec<&str> {
            let least = least_hidden(columns, width);
            columns.iter().filter(|column| column.3 < least).map(|column| column.0).collect()
        };
        assert_eq!((shown(&SOCKETS, 80).len(), shown(&PEERS, 80).len()), (8, 6));
        assert_eq!(shown(&SOCKETS, 60), ["PROGRAM", "SOCKET", "OUT/s", "IN/s", "QUEUED", "FULL"]);
        assert_eq!(shown(&SOCKETS, 40), ["PROGRAM", "SOCKET", "FULL"]);
        assert_eq!(shown(&SOCKETS, 1), ["PROGRAM", "SOCKET", "FULL"]);
        assert_eq!(shown(&PEERS, 40), ["ADDRESS OR NAME"]);
    }

    #[test]
    fn help_and_keys_fit_the_terminal() {
        let is_within = |text: &str, width| text.chars().count() <= width;
        assert!(HELP.len() + 2 <= 24 && HELP.iter().all(|line| is_within(line, 80)));
        assert!(is_within(KEYS, 80) && is_within(KEYS_OF_PEERS, 80) && is_within(NARROW_KEYS, 40));
    }

    #[test]
    fn the_chosen_row_is_on_the_screen() {
        assert_eq!(place(0, 0, 0, 20), (0, 0));
        assert_eq!(place(usize::MAX, 0, 100, 20), (99, 80));
        assert_eq!(place(50, 80, 100, 20), (50, 50));
        assert_eq!(place(60, 50, 100, 20), (60, 50));
        assert_eq!(place(90, 85, 30, 20), (29, 10), "there are fewer now");
        assert_eq!(place(3, 0, 5, 0).0, 3, "no room");
    }
}
