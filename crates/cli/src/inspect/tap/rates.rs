//! `--rates`: shows message rates instead of messages. A line of blocks shows the last half minute.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use ratatui::crossterm::cursor::MoveToPreviousLine;
use ratatui::crossterm::terminal::{Clear, ClearType};
use tautline_observe::Reading;
use tautline_observe::tap::{Direction, MessageCopy};

use super::View;
use super::filter::way;
use crate::failure::Result;
use crate::inspect::units::{bytes, count, rate};

/// Number of stored rates.
const KEPT: usize = 30;
/// Time between two rates.
const PACE: Duration = Duration::from_secs(1);
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Rates by socket and direction, one line each.
pub struct Rates {
    out: File,
    /// True if the lines are redrawn in place.
    in_place: bool,
    /// Number of lines drawn last.
    drawn: u16,
    since: Instant,
    types: BTreeMap<u64, String>,
    rows: BTreeMap<(u64, bool), Row>,
}

#[derive(Default)]
struct Row {
    rates: VecDeque<f64>,
    now: u64,
    messages: u64,
    bytes: u64,
}

impl Rates {
    /// Creates the rates of this process.
    pub fn new(reading: &Reading, out: File) -> Rates {
        let types = reading.sockets.iter().map(|socket| (socket.id, socket.type_name.clone())).collect();
        let (in_place, rows) = (out.is_terminal(), BTreeMap::new());
        Rates { out, in_place, drawn: 0, since: Instant::now(), types, rows }
    }

    /// Computes the rates since the last call and prints the lines.
    fn draw(&mut self) -> Result<()> {
        let now = Instant::now();
        // The last call may be early but still counts as a full interval.
        let seconds = now.duration_since(self.since).max(PACE).as_secs_f64();
        self.since = now;
        let mut text = String::new();
        if self.in_place && self.drawn > 0 {
            text += &MoveToPreviousLine(self.drawn).to_string();
        }
        for ((socket, out), row) in &mut self.rows {
            row.rates.push_back(row.now as f64 / seconds);
            row.now = 0;
            if row.rates.len() > KEPT {
                row.rates.pop_front();
            }
            let kind = self.types.get(socket).map_or("", String::as_str);
            let direction = if *out { Direction::Out } else { Direction::In };
            text += &format!(
                "{socket:>4} {kind:<7} {:<3} {:<KEPT$} {:>7}/s {:>6} {:>7}",
                way(direction),
                blocks(&row.rates),
                rate(row.rates.back().copied().unwrap_or(0.0)),
                count(row.messages),
                bytes(row.bytes),
            );
            if self.in_place {
                text += &Clear(ClearType::UntilNewLine).to_string();
            }
            text.push('\n');
        }
        self.drawn = self.rows.len().min(u16::MAX.into()) as u16;
        self.out.write_all(text.as_bytes()).map_err(|error| crate::sink::broken(&error))
    }
}

impl View for Rates {
    fn show(&mut self, copy: &MessageCopy, _: u64) -> Result<()> {
        let row = self.rows.entry((copy.socket, copy.direction == Direction::Out)).or_default();
        row.now += 1;
        row.messages += 1;
        row.bytes = copy.parts.iter().fold(row.bytes, |sum, part| sum.saturating_add(part.length));
        Ok(())
    }

    fn due(&self) -> Option<Instant> {
        Some(self.since + PACE)
    }

    fn tick(&mut self) -> Result<()> {
        self.draw()
    }

    fn end(&mut self) -> Result<()> {
        self.draw()
    }
}

/// Returns one block per rate, scaled to the highest rate.
fn blocks(rates: &VecDeque<f64>) -> String {
    let most = rates.iter().copied().fold(0.0, f64::max);
    let block = |rate: &f64| match rate {
        rate if *rate <= 0.0 => BLOCKS[0],
        rate => BLOCKS[((rate / most * 8.0).ceil() as usize).clamp(1, 8)],
    };
    rates.iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_rate_is_a_whole_block() {
        let line = |rates: &[f64]| blocks(&rates.iter().copied().collect());
        assert_eq!(line(&[]), "");
        assert_eq!(line(&[0.0, 0.0]), "  ");
        assert_eq!(line(&[0.0, 1.0, 40.0, 80.0]), " ▁▄█");
    }
}
