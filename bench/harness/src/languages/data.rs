//! `benchmark_data.json`: the measurements of each run, and the figures derived from them.

use super::trial::TrialKind;
use crate::machine::Machine;
use crate::statistics;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Baseline for the other languages.
pub(crate) const BASELINE: &str = "cpp";
/// Baseline for the other languages with CURVE.
pub(crate) const CURVE_BASELINE: &str = "cpp-curve";

/// Table of `analysis.md` that a language belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Table {
    /// Plain text over TCP, by the usual calls of the binding.
    #[default]
    Plain,
    /// By the binding's calls for async programs.
    Async,
    /// Encrypted with CURVE.
    Curve,
}

/// The whole file.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Data {
    /// Time of the last measurement of rows.
    pub(crate) date: String,
    pub(crate) machine: Machine,
    pub(crate) compilers: BTreeMap<String, String>,
    /// Path, size and SHA-256 of each library that was measured.
    pub(crate) libraries: BTreeMap<String, String>,
    pub(crate) repeats: u32,
    /// Time budget of the longer counts; 0 if there was no limit.
    #[serde(default)]
    pub(crate) budget_seconds: f64,
    /// Each language on each library, in the order of the tables.
    pub(crate) rows: Vec<Row>,
    /// Languages that could not be measured, with the reason.
    pub(crate) skipped: BTreeMap<String, String>,
}

/// One language on one library.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) language: String,
    pub(crate) title: String,
    pub(crate) binding: String,
    /// `libzmq`, `tautline`, or `own`.
    pub(crate) library: String,
    #[serde(default)]
    pub(crate) table: Table,
    /// A second table that shows the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) also: Option<Table>,
    pub(crate) date: String,
    pub(crate) versions: BTreeMap<String, String>,
    pub(crate) cells: Vec<Cell>,
}

/// All trials of one row with one size and one count.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Cell {
    /// `latency` or `throughput`.
    pub(crate) kind: String,
    pub(crate) size: u64,
    pub(crate) count: u64,
    /// Index of the count in the plan, the shortest first. Languages may divide the counts.
    pub(crate) length: usize,
    /// By figure, one value per trial.
    pub(crate) samples: BTreeMap<String, Vec<f64>>,
    pub(crate) failures: Vec<String>,
    /// Duration of the last trial, including start and end of the processes.
    #[serde(default)]
    pub(crate) trial_seconds: f64,
    /// Time of the last trial, if it differs from the start of the row: parts of a row can be measured again.
    #[serde(default)]
    pub(crate) date: String,
}

/// A figure: its name in `samples`, and its better direction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LanguageFigure {
    Mean,
    P50,
    P99,
    Rate,
}

impl LanguageFigure {
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Mean => "mean_us",
            Self::P50 => "p50_us",
            Self::P99 => "p99_us",
            Self::Rate => "messages_per_second",
        }
    }

    pub(crate) fn kind(self) -> &'static str {
        if self == Self::Rate { "throughput" } else { "latency" }
    }

    pub(crate) fn smaller_is_better(self) -> bool {
        self != Self::Rate
    }
}

/// Name of a kind in the file.
pub(crate) fn kind_name(kind: TrialKind) -> &'static str {
    match kind {
        TrialKind::Latency => "latency",
        TrialKind::Throughput => "throughput",
    }
}

impl Cell {
    pub(crate) fn values(&self, figure: LanguageFigure) -> &[f64] {
        self.samples.get(figure.key()).map_or(&[], Vec::as_slice)
    }

    /// Returns the number of trials.
    pub(crate) fn trials(&self) -> usize {
        self.samples.values().next().map_or(0, Vec::len) + self.failures.len()
    }

    /// Returns the median time of a round trip or a message, if it was measured.
    pub(crate) fn seconds_each(&self) -> Option<f64> {
        match self.median(LanguageFigure::Rate) {
            Some(rate) => Some(1.0 / rate),
            None => self.median(LanguageFigure::Mean).map(|micros| 2e-6 * micros),
        }
    }

    /// Returns `None` if every trial failed.
    pub(crate) fn median(&self, figure: LanguageFigure) -> Option<f64> {
        let values = self.values(figure);
        (!values.is_empty()).then(|| statistics::median(values))
    }
}

impl Row {
    /// Returns the cell of that kind and size with the plan's shortest (0) or a longer count.
    pub(crate) fn cell(&self, kind: &str, size: u64, length: usize) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.kind == kind && cell.size == size && cell.length == length)
    }

    /// Returns the time when the cell was measured.
    pub(crate) fn date<'a>(&'a self, cell: &'a Cell) -> &'a str {
        if cell.date.is_empty() { &self.date } else { &cell.date }
    }

    /// Returns the times of its first and last measured cell.
    pub(crate) fn dates(&self) -> (&str, &str) {
        let dates = || self.cells.iter().map(|cell| self.date(cell));
        (dates().min().unwrap_or(&self.date), dates().max().unwrap_or(&self.date))
    }

    /// Returns the cell with the longest count that has a result.
    pub(crate) fn longest(&self, figure: LanguageFigure, size: u64) -> Option<&Cell> {
        self.cells
            .iter()
            .filter(|cell| cell.kind == figure.kind() && cell.size == size)
            .filter(|cell| !cell.values(figure).is_empty())
            .max_by_key(|cell| cell.length)
    }
}

/// A ratio of medians with its 95 % interval.
#[derive(Clone, Copy)]
pub(crate) struct Ratio {
    pub(crate) value: f64,
    pub(crate) interval: (f64, f64),
}

/// Compares two cells. Returns `None` unless both have results.
pub(crate) fn ratio(subject: &Cell, reference: &Cell, figure: LanguageFigure) -> Option<Ratio> {
    let value = subject.median(figure)? / reference.median(figure)?;
    let interval = statistics::ratio_interval(subject.values(figure), reference.values(figure));
    Some(Ratio { value, interval })
}

/// Returns the overhead of a language over the baseline, as a share of the baseline's figure. More is worse
/// for times and for rates.
pub(crate) fn overhead(ratio: f64, figure: LanguageFigure) -> f64 {
    if figure.smaller_is_better() { ratio - 1.0 } else { 1.0 - ratio }
}

/// Returns the band of an overhead.
pub(crate) fn band(overhead: f64) -> &'static str {
    match overhead {
        o if o < 0.05 => "< 5 %",
        o if o < 0.20 => "5-20 %",
        o if o < 0.50 => "20-50 %",
        _ => "> 50 %",
    }
}

impl Data {
    pub(crate) fn row(&self, language: &str, library: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.language == language && row.library == library)
    }

    /// Returns the part of the data that a table shows.
    pub(crate) fn of_table(&self, table: Table) -> Self {
        let mut part = self.clone();
        part.rows.retain(|row| row.table == table || row.also == Some(table));
        part
    }

    /// Returns the C++ row to compare `row` with: on the same library, or on libzmq for an independent
    /// implementation. Rows with CURVE are compared with each other.
    pub(crate) fn baseline_of(&self, row: &Row) -> Option<&Row> {
        let language = if row.table == Table::Curve { CURVE_BASELINE } else { BASELINE };
        self.row(language, if row.library == "own" { "libzmq" } else { &row.library })
    }

    /// Returns the languages in the order of the tables, each once.
    pub(crate) fn languages(&self) -> Vec<&Row> {
        let mut seen = Vec::new();
        self.rows
            .iter()
            .filter(|row| {
                let new = !seen.contains(&row.language);
                seen.push(row.language.clone());
                new
            })
            .collect()
    }

    /// Returns the measured sizes in ascending order.
    pub(crate) fn sizes(&self) -> Vec<u64> {
        let mut sizes: Vec<u64> =
            self.rows.iter().flat_map(|row| row.cells.iter().map(|cell| cell.size)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Merges the measurements of `newer`. Rows and cells that it lacks stay. If it measured the shortest
    /// count of a row again, the row's older longer counts are dropped: they would belong to another day or
    /// another version.
    pub(crate) fn merge(mut self, newer: Self) -> Self {
        for row in newer.rows {
            let place =
                self.rows.iter_mut().find(|old| old.language == row.language && old.library == row.library);
            match place {
                Some(old) => {
                    let mut cells = std::mem::take(&mut old.cells);
                    for cell in cells.iter_mut().filter(|cell| cell.date.is_empty()) {
                        cell.date.clone_from(&old.date);
                    }
                    cells.retain(|cell| {
                        !row.cells.iter().any(|new| {
                            new.kind == cell.kind
                                && new.size == cell.size
                                && (new.length == cell.length || new.length == 0)
                        })
                    });
                    cells.extend(row.cells.iter().cloned());
                    cells.sort_by_key(|cell| (cell.kind.clone(), cell.size, cell.length));
                    *old = Row { cells, ..row };
                }
                None => self.rows.push(row),
            }
        }
        self.rows.sort_by_key(|row| (row.language != BASELINE, row.title.clone(), row.library.clone()));
        self.skipped.retain(|name, _| !self.rows.iter().any(|row| row.language == *name));
        self.skipped.extend(newer.skipped);
        Self {
            date: newer.date,
            machine: newer.machine,
            compilers: newer.compilers,
            libraries: newer.libraries,
            repeats: newer.repeats,
            budget_seconds: newer.budget_seconds,
            ..self
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn cell(size: u64, length: usize, values: &[f64]) -> Cell {
        Cell {
            kind: "throughput".to_owned(),
            size,
            count: 10,
            length,
            samples: BTreeMap::from([("messages_per_second".to_owned(), values.to_vec())]),
            failures: Vec::new(),
            trial_seconds: 0.0,
            date: String::new(),
        }
    }

    pub(crate) fn data(rows: Vec<Row>) -> Data {
        Data {
            date: String::new(),
            machine: Machine::here(),
            compilers: BTreeMap::new(),
            libraries: BTreeMap::new(),
            repeats: 1,
            budget_seconds: 0.0,
            rows,
            skipped: BTreeMap::new(),
        }
    }

    pub(crate) fn row(language: &str, library: &str, cells: Vec<Cell>) -> Row {
        Row {
            language: language.to_owned(),
            title: language.to_owned(),
            binding: String::new(),
            library: library.to_owned(),
            table: Table::Plain,
            also: None,
            date: String::new(),
            versions: BTreeMap::new(),
            cells,
        }
    }

    #[test]
    fn a_part_that_is_measured_again_replaces_that_part_only() {
        let old = data(vec![row("go", "libzmq", vec![cell(64, 0, &[1.0]), cell(64, 1, &[2.0])])]);
        let new = data(vec![row("cpp", "libzmq", vec![]), row("go", "libzmq", vec![cell(64, 1, &[3.0])])]);
        let merged = old.merge(new);
        assert_eq!(merged.rows[0].language, "cpp");
        let go = merged.row("go", "libzmq").unwrap();
        assert_eq!(go.cell("throughput", 64, 0).unwrap().median(LanguageFigure::Rate), Some(1.0));
        assert_eq!(go.longest(LanguageFigure::Rate, 64).unwrap().median(LanguageFigure::Rate), Some(3.0));
    }

    #[test]
    fn a_longer_trial_that_was_left_out_this_time_does_not_stay() {
        let old = data(vec![row(
            "go",
            "libzmq",
            vec![cell(64, 0, &[1.0]), cell(64, 1, &[2.0]), cell(8, 1, &[4.0])],
        )]);
        let merged = old.merge(data(vec![row("go", "libzmq", vec![cell(64, 0, &[3.0])])]));
        let go = merged.row("go", "libzmq").unwrap();
        assert_eq!(go.longest(LanguageFigure::Rate, 64).unwrap().median(LanguageFigure::Rate), Some(3.0));
        assert_eq!(go.longest(LanguageFigure::Rate, 8).unwrap().median(LanguageFigure::Rate), Some(4.0));
    }

    #[test]
    fn old_measurement_keeps_its_date() {
        let mut old = data(vec![row("go", "libzmq", vec![cell(64, 0, &[1.0]), cell(64, 1, &[2.0])])]);
        old.rows[0].date = "May".to_owned();
        let mut new = data(vec![row("go", "libzmq", vec![cell(64, 1, &[3.0])])]);
        new.rows[0].date = "June".to_owned();
        new.rows[0].cells[0].date = "June".to_owned();
        let merged = old.merge(new);
        assert_eq!(merged.rows[0].dates(), ("June", "May"));
        assert_eq!(merged.rows[0].date(&merged.rows[0].cells[0]), "May");
    }

    #[test]
    fn a_table_shows_its_own_rows_and_those_that_name_it_too() {
        let mut rows = vec![row("cpp", "libzmq", vec![]), row("node", "libzmq", vec![])];
        rows[1].also = Some(Table::Async);
        rows.push(Row { table: Table::Async, ..row("python-async", "libzmq", vec![]) });
        rows.push(Row { table: Table::Curve, ..row("cpp-curve", "libzmq", vec![]) });
        let data = data(rows);
        let names = |table| data.of_table(table).rows.into_iter().map(|row| row.language).collect::<Vec<_>>();
        assert_eq!(names(Table::Plain), ["cpp", "node"]);
        assert_eq!(names(Table::Async), ["node", "python-async"]);
        assert_eq!(names(Table::Curve), ["cpp-curve"]);
    }

    #[test]
    fn rows_with_curve_are_compared_with_each_other() {
        let mut rows = vec![row("cpp", "libzmq", vec![])];
        for name in ["cpp-curve", "go-curve"] {
            rows.push(Row { table: Table::Curve, ..row(name, "libzmq", vec![]) });
        }
        let data = data(rows);
        assert_eq!(data.baseline_of(&data.rows[2]).unwrap().language, "cpp-curve");
        assert_eq!(data.baseline_of(&row("go", "own", vec![])).unwrap().language, "cpp");
    }

    #[test]
    fn file_without_tables_has_plain_rows() {
        let mut json = serde_json::to_value(row("go", "libzmq", vec![])).unwrap();
        json.as_object_mut().unwrap().remove("table");
        assert_eq!(serde_json::from_value::<Row>(json).unwrap().table, Table::Plain);
    }

    #[test]
    fn more_overhead_is_worse_for_times_and_rates() {
        assert!((overhead(1.5, LanguageFigure::Mean) - 0.5).abs() < 1e-9);
        assert!((overhead(0.25, LanguageFigure::Rate) - 0.75).abs() < 1e-9);
        assert_eq!((band(-0.2), band(0.1), band(0.3), band(0.75)), ("< 5 %", "5-20 %", "20-50 %", "> 50 %"));
    }
}
