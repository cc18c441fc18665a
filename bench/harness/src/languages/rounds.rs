//! Rounds over all cells. Each round runs every language on every library in turn.
//!
//! The measurements are written to a file as they arrive, so that an interrupted run can continue, and a long
//! run can be split. The plan's time budget, together with the duration of the shorter trial in the first
//! round, limits the number of messages in a longer trial.

use super::data::{self, Cell, Row};
use super::language::Language;
use super::trial::{self, Libraries, Task, TrialKind};
use super::{LanguagePlan, Point};
use crate::machine;
use crate::progress::{Progress, clock};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Assumed duration of a trial before the first one of its kind.
const SHORT_GUESS: Duration = Duration::from_millis(1500);
/// Fixed part of a trial: starting two processes, connecting, warming up.
const TRIAL_OVERHEAD: Duration = Duration::from_millis(600);
/// Shortest interval between two writes of the file.
const SAVE_INTERVAL: Duration = Duration::from_secs(5);
/// Number of failures after which a cell is skipped: a hang costs minutes each time.
const GIVE_UP: usize = 2;

/// Work to do.
pub(super) struct Rounds<'a> {
    pub(super) languages: &'a [Language],
    pub(super) points: &'a [Point],
    pub(super) plan: &'a LanguagePlan,
    pub(super) repeats: u32,
    pub(super) libraries: &'a Libraries,
    pub(super) scratch: &'a Path,
    /// File of an unfinished run.
    pub(super) file: PathBuf,
    /// Parameters that must be equal for a run to continue.
    pub(super) key: String,
    /// Time after which the run stops.
    pub(super) part: Option<Duration>,
}

#[derive(Serialize, Deserialize)]
struct Unfinished {
    key: String,
    rows: Vec<Row>,
}

/// Result of the rounds.
pub(super) enum Outcome {
    Finished(Vec<Row>),
    /// Finished trials, and all trials.
    Interrupted(usize, usize),
}

impl Rounds<'_> {
    pub(super) fn run(&self) -> Result<Outcome, String> {
        let began = Instant::now();
        let mut rows = self.begin()?;
        let mut kept = Instant::now();
        let mut progress = Progress::new(self.remaining_time(&rows));
        for round in 0..self.repeats as usize {
            for (place, point) in self.points.iter().enumerate() {
                for at in 0..rows.len() {
                    if rows[at].cells[place].trials() == 0 {
                        rows[at].cells[place].count = self.count(&rows, at, place);
                    }
                    if !self.is_due(&rows[at].cells[place], round) {
                        continue;
                    }
                    if self.part.is_some_and(|part| began.elapsed() >= part) {
                        self.save(&rows)?;
                        return Ok(Outcome::Interrupted(done(&rows), self.trials(&rows)));
                    }
                    let start = Instant::now();
                    self.trial(&mut rows[at], place, point, &progress);
                    let took = start.elapsed();
                    rows[at].cells[place].trial_seconds = took.as_secs_f64();
                    rows[at].cells[place].date = machine::date();
                    progress.advance(took);
                    progress.expect_more(self.remaining_time(&rows));
                    progress.show(&format!(
                        "{} on {}: {} of {} bytes, {}",
                        rows[at].language,
                        rows[at].library,
                        data::kind_name(point.kind),
                        point.size,
                        clock(took)
                    ));
                    if kept.elapsed() >= SAVE_INTERVAL {
                        self.save(&rows)?;
                        kept = Instant::now();
                    }
                }
            }
        }
        progress.finish();
        let _ = std::fs::remove_file(&self.file);
        for row in &mut rows {
            row.cells.retain(|cell| cell.trials() > 0);
        }
        Ok(Outcome::Finished(rows))
    }

    /// Returns the rows of an interrupted run, or empty rows.
    fn begin(&self) -> Result<Vec<Row>, String> {
        if let Ok(text) = std::fs::read_to_string(&self.file) {
            match serde_json::from_str::<Unfinished>(&text) {
                Ok(unfinished) if unfinished.key == self.key => {
                    println!(
                        "continuing {}: {} of {} trials are done",
                        self.file.display(),
                        done(&unfinished.rows),
                        self.trials(&unfinished.rows)
                    );
                    return Ok(unfinished.rows);
                }
                _ => println!("{} belongs to a run with other options: starting again", self.file.display()),
            }
        }
        let mut rows = Vec::new();
        for language in self.languages {
            for library in language.libraries() {
                rows.push(Row {
                    language: language.name.clone(),
                    title: language.title.clone(),
                    binding: language.binding.clone(),
                    library: (*library).to_owned(),
                    table: language.table,
                    also: language.also,
                    date: machine::date(),
                    versions: language.versions.clone(),
                    cells: self.points.iter().map(|point| empty_cell(point, language)).collect(),
                });
            }
        }
        Ok(rows)
    }

    fn save(&self, rows: &[Row]) -> Result<(), String> {
        let unfinished = Unfinished { key: self.key.clone(), rows: rows.to_vec() };
        let text = serde_json::to_string(&unfinished).map_err(|e| e.to_string())?;
        // Write to a new file, so that the old one stays complete until the new one is.
        let next = self.file.with_extension("new");
        std::fs::write(&next, text)
            .and_then(|()| std::fs::rename(&next, &self.file))
            .map_err(|e| format!("{}: {e}", self.file.display()))
    }

    fn trial(&self, row: &mut Row, place: usize, point: &Point, progress: &Progress) {
        let Some(language) = self.languages.iter().find(|language| language.name == row.language) else {
            return;
        };
        let cell = &mut row.cells[place];
        let task = Task { kind: point.kind, size: point.size, count: cell.count, warm_up: point.warm_up };
        match trial::run(language, &row.library, self.libraries, task, self.scratch) {
            Ok(figures) => {
                for (name, value) in figures {
                    cell.samples.entry(name).or_default().push(value);
                }
            }
            Err(reason) => {
                let (name, kind) = (&language.name, data::kind_name(point.kind));
                progress.note(&format!(
                    "FAILED {name} on {}, {kind}, {} bytes: {reason}",
                    row.library, point.size
                ));
                cell.failures.push(reason);
            }
        }
    }

    /// True if the cell has a trial in this round.
    fn is_due(&self, cell: &Cell, round: usize) -> bool {
        cell.count > 0 && cell.trials() <= round && cell.failures.len() < GIVE_UP
    }

    /// Returns the number of messages of a trial. A longer trial has as many as the slower of the language's
    /// libraries handles within the budget, the same number for both. Returns 0 if that is not much more than
    /// the shorter trial has.
    fn count(&self, rows: &[Row], at: usize, place: usize) -> u64 {
        let (cell, language) = (&rows[at].cells[place], &rows[at].language);
        let slowest = rows
            .iter()
            .filter(|row| row.language == *language)
            .filter_map(|row| row.cell(&cell.kind, cell.size, 0)?.seconds_each())
            .fold(0.0, f64::max);
        let shortest = rows[at].cell(&cell.kind, cell.size, 0).map_or(0, |cell| cell.count);
        if cell.length == 0 {
            cell.count
        } else {
            limited(cell.count, shortest, slowest, self.plan.budget_seconds)
        }
    }

    fn trials(&self, rows: &[Row]) -> usize {
        let cells = rows.iter().flat_map(|row| &row.cells);
        cells.filter(|cell| cell.count > 0).count() * self.repeats as usize
    }

    /// Estimates the remaining time from the known durations.
    fn remaining_time(&self, rows: &[Row]) -> Duration {
        let cells = rows.iter().flat_map(|row| &row.cells);
        cells
            .filter(|cell| cell.count > 0 && cell.failures.len() < GIVE_UP)
            .map(|cell| {
                let each = if cell.trial_seconds > 0.0 {
                    Duration::from_secs_f64(cell.trial_seconds)
                } else if cell.length == 0 {
                    SHORT_GUESS
                } else {
                    TRIAL_OVERHEAD + Duration::from_secs_f64(self.plan.budget_seconds)
                };
                let trials = self.repeats.saturating_sub(u32::try_from(cell.trials()).unwrap_or(u32::MAX));
                each * trials
            })
            .sum()
    }
}

/// Returns the part of `planned` messages that fits into the budget, rounded down to two digits.
fn limited(planned: u64, shortest: u64, seconds_each: f64, budget_seconds: f64) -> u64 {
    let mut count = planned;
    if seconds_each > 0.0 && budget_seconds > 0.0 {
        count = count.min((budget_seconds / seconds_each) as u64);
        let unit = 10_u64.pow(count.max(1).ilog10().saturating_sub(1));
        count -= count % unit;
    }
    if count < shortest + shortest / 2 { 0 } else { count }
}

fn done(rows: &[Row]) -> usize {
    rows.iter().flat_map(|row| &row.cells).map(Cell::trials).sum()
}

fn empty_cell(point: &Point, language: &Language) -> Cell {
    let divisor = match point.kind {
        TrialKind::Latency => language.slow_rounds,
        TrialKind::Throughput => language.slow,
    };
    let count = (point.count / divisor).max(2);
    Cell {
        kind: data::kind_name(point.kind).to_owned(),
        size: point.size,
        count,
        length: point.length,
        samples: BTreeMap::new(),
        failures: Vec::new(),
        trial_seconds: 0.0,
        date: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::language::{Language, Swap};
    use super::super::trial::tests::language;
    use super::{Point, TrialKind, empty_cell, limited};

    #[test]
    fn slow_language_has_fewer_messages_and_rounds() {
        let slow = Language { slow: 5, slow_rounds: 2, ..language(Swap::Loader) };
        let count =
            |kind, count| empty_cell(&Point { kind, size: 64, count, length: 0, warm_up: 10 }, &slow).count;
        assert_eq!(count(TrialKind::Latency, 10_000), 5_000);
        assert_eq!(count(TrialKind::Throughput, 10_000), 2_000);
        assert_eq!(count(TrialKind::Throughput, 3), 2);
    }

    #[test]
    fn a_longer_trial_stays_within_the_budget_or_is_left_out() {
        assert_eq!(limited(50_000, 10_000, 12e-6, 2.5), 50_000);
        assert_eq!(limited(50_000, 10_000, 120e-6, 2.5), 20_000);
        assert_eq!(limited(50_000, 10_000, 121.3e-6, 2.5), 20_000);
        assert_eq!(limited(50_000, 10_000, 200e-6, 2.5), 0);
        assert_eq!(limited(50_000, 10_000, 200e-6, 0.0), 50_000);
        assert_eq!(limited(50_000, 10_000, 0.0, 2.5), 50_000);
        assert_eq!(limited(5_000_000, 1_000_000, 1e-6, 2.5), 2_500_000);
    }
}
