//! Draws the screen of `taut top`: two header lines, the rows, more about the chosen row, and a
//! line of keys.

use std::cmp::Reverse;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::widgets::{Paragraph, Widget, Wrap};
use unicode_width::UnicodeWidthStr;

use super::rows::{self, PeerRow, Severity, SocketRow};
use super::{TopState, View};
use crate::format::escaped;
use crate::inspect::HOW;
use crate::inspect::units::{count, many, now, rate, span, time};

/// Number of lines besides rows: two header lines, the column names, the keys.
const FRAME: u16 = 4;
const KEYS: &str = "↑↓ choose  ⏎ peers  s sort  / filter  p pause  h help  q quit";
const KEYS_OF_PEERS: &str = "↑↓ choose  ← back  p pause  h help  q quit";
/// Keys for a narrow terminal.
const NARROW_KEYS: &str = "⏎ peers  ← back  h help  q quit";
/// Minimum width of the notes, which say what is wrong. Other columns make room for them.
const NOTE: u16 = 12;
/// Width of the notes from which the other columns become wider.
const WIDE_NOTE: u16 = 44;
/// Width below which the header is shorter.
const NARROW: u16 = 60;
const HELP_HEAD: &str = "taut top: press any key to return, ↓ for more";
const HELP: [&str; 14] = [
    "↑ ↓ PgUp PgDn Home End   choose a row (also j and k)",
    "⏎ or →                   show the peers of the socket",
    "← or Esc                 back to the sockets",
    "s                        sort: trouble, out, in, queued, peers, pid",
    "/                        show rows with this text in any column",
    "a                        show or hide the sockets that carry monitor events",
    "p or space               pause or continue",
    "q, Ctrl-Z                quit, suspend",
    "OUT/s, IN/s   messages handed to the peers' queues, and taken from them",
    "QUEUED        messages queued for sending or for the program",
    "FULL          how full the fullest queue is",
    "loses N/s     dropped at the high-water mark, unroutable or disconnected",
    "full for T    a queue is full: its reader is slower than its sender",
    "no news       the program is stopped, or gets no processor",
];

/// Column of the screen.
struct Column {
    head: &'static str,
    /// Least and greatest width. A wide terminal widens the columns.
    width: u16,
    most: u16,
    at_right: bool,
    /// A narrow terminal hides the columns with the highest rank first. Columns with rank 0 are
    /// always visible.
    rank: u8,
}

const fn text(head: &'static str, width: u16, most: u16, rank: u8) -> Column {
    Column { head, width, most, at_right: false, rank }
}

const fn number(head: &'static str, width: u16, rank: u8) -> Column {
    Column { head, width, most: width, at_right: true, rank }
}

const SOCKETS: [Column; 10] = [
    number("PID", 7, 4),
    text("PROGRAM", 10, 20, 0),
    text("SOCKET", 10, 10, 0),
    text("ENDPOINT", 22, 40, 6),
    number("PEERS", 5, 5),
    number("OUT/s", 6, 1),
    number("IN/s", 6, 2),
    number("QUEUED", 6, 3),
    number("FULL", 4, 0),
    number("AGE", 6, 7),
];

const PEERS: [Column; 6] = [
    number("PEER", 5, 4),
    text("ADDRESS OR NAME", 24, 60, 0),
    number("OUT/s", 6, 2),
    number("IN/s", 6, 3),
    number("WAITING", 9, 1),
    number("TRIP", 6, 5),
];

/// Draws the screen.
pub fn draw(state: &mut TopState, frame: &mut Frame<'_>) {
    let area = frame.area();
    let mut canvas = Canvas { buffer: frame.buffer_mut(), area, colours: state.colours };
    if let Some(first) = state.help {
        state.help = Some(canvas.help(first));
        return;
    }
    head(state, &mut canvas);
    let room = usize::from(area.height.saturating_sub(FRAME + about_lines(area)));
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
            let rows = rows::peers(&state.sample, process, key.socket);
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
            match rows.get(at) {
                Some(row) => canvas.about(&about_peer(row)),
                None => canvas.line(4, "no peers", Modifier::empty(), None),
            }
            (state.at, state.first) = (at, first);
            canvas.keys(KEYS_OF_PEERS);
        }
    }
}

fn head(state: &TopState, canvas: &mut Canvas<'_>) {
    let totals = rows::totals(&state.sample);
    let is_narrow = canvas.area.width < NARROW;
    let processes = many(totals.processes, "process");
    let [sent, received, lost] = [totals.rates.sent, totals.rates.received, totals.rates.lost]
        .map(|value| format!("{}/s", rate(value)));
    let text = if is_narrow {
        format!("{processes}   lost {lost}")
    } else {
        let [sockets, peers] = [many(totals.sockets, "socket"), many(totals.peers, "peer")];
        format!("taut top  {processes}, {sockets}, {peers}   out {sent} in {received} lost {lost}")
    };
    canvas.line(0, &text, Modifier::BOLD, None);
    let mut second = format!("by {}", state.order.name());
    if let Some(oldest) = totals.oldest {
        let counters = if is_narrow { "" } else { "counters " };
        second += &format!("   {counters}{} old", span(oldest, now()));
    }
    if totals.ended > 0 {
        let ended = if is_narrow { totals.ended.to_string() } else { many(totals.ended, "process") };
        second += &format!("   {ended} ended");
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
    if let Some(row) = rows.get(at) {
        canvas.about(&about_socket(row));
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

/// Returns the number of lines for more about the chosen row.
fn about_lines(area: Rect) -> u16 {
    match (area.height, area.width) {
        (..8, _) => 0,
        (_, 120..) => 1,
        _ => 2,
    }
}

/// Describes the chosen socket in full. Cells of the row may be cut or hidden.
fn about_socket(row: &SocketRow<'_>) -> String {
    let process = row.process;
    let name = escaped(process.reading.process.program.as_bytes());
    let socket = format!("{name} ({}), {} {}", process.reading.name(), row.socket.id, row.socket.type_name);
    let age = if process.found.is_running {
        format!("counters {} old", time(process.age()))
    } else {
        String::new()
    };
    let endpoints = rows::endpoint_states(process, row.socket.id);
    let parts = [socket, row.note.clone(), endpoints, age];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

/// Describes the chosen peer in full.
fn about_peer(row: &PeerRow<'_>) -> String {
    let address = escaped(row.peer.address.as_bytes());
    let endpoint = format!("by {}", escaped(row.peer.endpoint.as_bytes()));
    let place = if row.name.contains(&address) { String::new() } else { address };
    let parts = [row.name.clone(), row.note.clone(), place, endpoint];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

fn socket_cells(row: &SocketRow<'_>) -> [String; 10] {
    [
        row.process.reading.name(),
        escaped(row.process.reading.process.program.as_bytes()),
        format!("{} {}", row.socket.id, row.socket.type_name),
        row.places.clone(),
        count(row.socket.peers),
        rate(row.rates.sent),
        rate(row.rates.received),
        count(row.queued),
        if row.fill_per_mille < 10 { String::new() } else { format!("{}%", (row.fill_per_mille + 5) / 10) },
        time(row.process.age()),
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

/// Returns the columns that a terminal of this width shows, with their indices and widths. The
/// notes get the rest.
fn visible(columns: &[Column], width: u16) -> Vec<(usize, u16)> {
    let taken = |rank: u8| {
        columns.iter().filter(|column| column.rank < rank).map(|column| column.width + 1).sum::<u16>() + NOTE
    };
    let hidden = (1..=u8::MAX).rev().find(|rank| taken(*rank) <= width).unwrap_or(1);
    let mut room = width.saturating_sub(taken(hidden) - NOTE + WIDE_NOTE);
    let mut shown: Vec<(usize, u16)> = (0..).zip(columns.iter().map(|column| column.width)).collect();
    shown.retain(|(at, _)| columns[*at].rank < hidden);
    // The column that may grow most grows first: it holds addresses.
    let mut growing: Vec<&mut (usize, u16)> = shown.iter_mut().collect();
    growing.sort_by_key(|(at, _)| Reverse(columns[*at].most));
    for (at, width) in growing {
        let more = room.min(columns[*at].most - columns[*at].width);
        *width += more;
        room -= more;
    }
    shown
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

    /// Shows the help from this line on. Returns the first line that was shown.
    fn help(&mut self, first: u16) -> u16 {
        self.line(0, HELP_HEAD, Modifier::BOLD, None);
        let style = self.style(Modifier::empty(), None);
        let place = Rect { y: 2, height: self.area.height.saturating_sub(2), ..self.area };
        // A line that is wrapped between words takes at most one line more than its width needs.
        let width = usize::from(place.width.max(1));
        let wrapped = |line: &&str| line.width().div_ceil(width).max(1) + usize::from(line.width() > width);
        let lines: usize = HELP.iter().map(wrapped).sum();
        let most = lines.saturating_sub(place.height.into()).min(usize::from(u16::MAX)) as u16;
        let first = first.min(most);
        let text = Paragraph::new(HELP.join("\n")).style(style).wrap(Wrap { trim: false });
        text.scroll((first, 0)).render(place.intersection(self.area), self.buffer);
        first
    }

    fn columns(&mut self, columns: &[Column]) {
        let heads: Vec<String> = columns.iter().map(|column| column.head.to_owned()).collect();
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
        for (at, width) in visible(columns, self.area.width) {
            let cell = &cells[at];
            let wide = cell.width().min(usize::from(u16::MAX)) as u16;
            let indent = if columns[at].at_right { width.saturating_sub(wide) } else { 0 };
            self.put(x + indent, y, cell, width - indent, plain);
            x += width + 1;
        }
        let rest = self.area.width.saturating_sub(x);
        self.put(x, y, note, rest, noted);
    }

    /// Shows a text about the chosen row above the keys.
    fn about(&mut self, text: &str) {
        let lines = about_lines(self.area);
        let y = self.area.height.saturating_sub(1 + lines);
        let style = self.style(Modifier::empty(), None);
        let place = Rect::new(0, y, self.area.width, lines);
        Paragraph::new(text).style(style).wrap(Wrap { trim: true }).render(place, self.buffer);
    }

    fn keys(&mut self, keys: &str) {
        let fits = keys.width() <= usize::from(self.area.width);
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
            visible(columns, width).iter().map(|(at, _)| columns[*at].head).collect()
        };
        assert_eq!((shown(&SOCKETS, 80).len(), shown(&PEERS, 80).len()), (8, 6));
        assert_eq!((shown(&SOCKETS, 100).len(), shown(&SOCKETS, 110).len()), (9, 10));
        assert_eq!(shown(&SOCKETS, 60), ["PROGRAM", "SOCKET", "OUT/s", "IN/s", "QUEUED", "FULL"]);
        assert_eq!(shown(&SOCKETS, 40), ["PROGRAM", "SOCKET", "FULL"]);
        assert_eq!(shown(&SOCKETS, 1), ["PROGRAM", "SOCKET", "FULL"]);
        assert_eq!(shown(&PEERS, 40), ["ADDRESS OR NAME"]);
    }

    #[test]
    fn wide_terminal_widens_addresses_and_names_before_the_notes() {
        let widths =
            |width| -> Vec<u16> { visible(&SOCKETS, width).iter().map(|(_, width)| *width).collect() };
        assert_eq!(widths(80), [7, 10, 10, 5, 6, 6, 6, 4]);
        assert_eq!(widths(150), [7, 10, 10, 36, 5, 6, 6, 6, 4, 6]);
        assert_eq!(widths(200), [7, 20, 10, 40, 5, 6, 6, 6, 4, 6]);
    }

    #[test]
    fn help_and_keys_fit_the_terminal() {
        let is_within = |text: &str, width| text.width() <= width;
        assert!(HELP.len() + 2 <= 24 && HELP.iter().all(|line| is_within(line, 80)));
        assert!(is_within(KEYS, 80) && is_within(KEYS_OF_PEERS, 80) && is_within(NARROW_KEYS, 40));
        assert!(is_within(HELP_HEAD, 80));
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
