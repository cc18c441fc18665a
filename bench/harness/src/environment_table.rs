//! Table of environments: for one library, a row for each cell and metric, and a column for each environment.
//! An entry is the ratio to the reference and the verdict of its interval.

use crate::environment::{DEFAULT, Environment};
use crate::results::{Figure, Ratio, Results};
use crate::scenario::Cell;
use crate::statistics::Standing;
use crate::table::{ratio_text, three, unit};

/// One row: the cell's name without its environment.
pub(crate) struct Row<'a> {
    pub(crate) label: String,
    pub(crate) entries: Vec<CellResult<'a>>,
}

/// One cell and metric in one environment.
pub(crate) enum CellResult<'a> {
    /// The scenario has no such cell there.
    None,
    /// The environment could not be created.
    Absent,
    /// Lost messages or failed, with either library.
    Failed,
    Ratio(&'a Ratio),
}

/// True if there are environments to compare.
pub(crate) fn is_of_interest(results: &Results) -> bool {
    results.environments.iter().any(|environment| environment.name != DEFAULT)
}

/// Returns the rows of one library. The entries are in the order of `results.environments`.
pub(crate) fn rows<'a>(results: &'a Results, library: &str) -> Vec<Row<'a>> {
    let mut cells: Vec<Cell> = Vec::new();
    for cell in results.distinct_cells() {
        let cell = cell.in_default();
        if !cells.contains(&cell) {
            cells.push(cell);
        }
    }
    let mut rows = Vec::new();
    for cell in &cells {
        let of_cell: Vec<&Figure> =
            results.cells.iter().filter(|f| f.library == library && f.cell.in_default() == *cell).collect();
        let mut metrics: Vec<&str> = Vec::new();
        for figure in &of_cell {
            if !metrics.contains(&figure.metric.as_str()) {
                metrics.push(&figure.metric);
            }
        }
        for metric in metrics {
            let entries =
                results.environments.iter().map(|e| entry(results, &of_cell, library, metric, e)).collect();
            let name = unit(metric).0;
            let quantity =
                if name == "messages" { String::new() } else { format!(", {}", name.replace('_', " ")) };
            rows.push(Row { label: cell.title() + &quantity, entries });
        }
    }
    rows
}

fn entry<'a>(
    results: &'a Results,
    of_cell: &[&Figure],
    library: &str,
    metric: &str,
    environment: &Environment,
) -> CellResult<'a> {
    let figure = of_cell.iter().find(|f| f.cell.environment == environment.name && f.metric == metric);
    match figure {
        None if environment.absent.is_some() => CellResult::Absent,
        None => CellResult::None,
        Some(figure) => match results.ratio(&figure.cell, library, metric) {
            Some(ratio) if figure.is_sound() => CellResult::Ratio(ratio),
            _ => CellResult::Failed,
        },
    }
}

impl CellResult<'_> {
    /// Formats a ratio: `1.23x won`, or with the reason why it is open: `1.23x open: holds 1`.
    pub(crate) fn short(&self) -> String {
        match self {
            Self::None => "-".to_owned(),
            Self::Absent => "not there".to_owned(),
            Self::Failed => "FAILED".to_owned(),
            Self::Ratio(ratio) => format!("{}x {}", ratio_text(ratio.ratio), ratio.standing_text()),
        }
    }

    /// Formats the interval of a ratio: `1.10..1.36`.
    pub(crate) fn interval(&self) -> Option<String> {
        match self {
            Self::Ratio(ratio) => Some(format!("{}..{}", three(ratio.interval.0), three(ratio.interval.1))),
            _ => None,
        }
    }

    pub(crate) fn standing(&self) -> Option<Standing> {
        match self {
            Self::Ratio(ratio) => Some(ratio.standing()),
            _ => None,
        }
    }
}

/// Counts the entries of a column that are won, lost, level and open.
pub(crate) fn tally(rows: &[Row<'_>], column: usize) -> [usize; 4] {
    [Standing::Won, Standing::Lost, Standing::Level, Standing::Open]
        .map(|wanted| rows.iter().filter(|row| row.entries[column].standing() == Some(wanted)).count())
}

/// Describes in a sentence how near the processors' caches were.
pub(crate) fn memory(results: &Results) -> Option<String> {
    let memory = results.memory.as_ref()?;
    let line = &memory.line_ns;
    Some(format!(
        "A cache line crossed between two processors in {} ns ({} to {}): caches were near in {} pairs of runs, far \
         ({:.0} ns and more) in {}, and changed in {}.",
        three(line.median),
        three(line.min),
        three(line.max),
        memory.near,
        memory.far_from_ns,
        memory.far,
        memory.changed
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn figure(environment: &str, library: &str, lost: u64) -> Value {
        json!({
            "pattern": "push_pull", "transport": "tcp", "size": 64, "api": "buffers", "processes": 2, "subscribers": 1,
            "environment": environment, "library": library, "metric": "messages_per_second",
            "median": 675000.0, "min": 1.0, "max": 1.0, "runs": 3, "failed": 0, "cpu_seconds_per_million_messages": 0.0,
            "megabytes_per_second": 43.2,
            "lost": lost, "reordered": 0, "corrupted": 0, "samples": [1.0], "counts": [1], "errors": []
        })
    }

    fn ratio(environment: &str, interval: [f64; 2]) -> Value {
        let mut ratio = figure(environment, "ours", 0);
        ratio["ratio"] = json!((interval[0] + interval[1]) / 2.0);
        ratio["interval"] = json!(interval);
        ratio["pairs"] = json!([1.0, 1.0, 1.0]);
        ratio["median_of_pairs"] = json!(1.0);
        ratio["states"] = json!([]);
        ratio["compared"] = json!([675_000.0, 675_000.0]);
        ratio
    }

    fn results() -> Results {
        let summary = json!({"median": 60.0, "min": 50.0, "max": 200.0});
        let environment = |name: &str| json!({"name": name, "what": "what it is"});
        let mut delay = environment("veth-delay");
        delay["absent"] = json!("no netem");
        let names = ["default", "one-core", "veth", "half-core"];
        serde_json::from_value(json!({
            "title": "t", "date": "d", "took_seconds": 1.0, "pairs": 3, "target_ms": 1,
            "machine": {"cpu": "c", "cores": 2, "memory_gib": 1.0, "kernel": "k", "system": "s",
                "virtual_machine": true, "load": 0.0},
            "versions": {}, "problems": [],
            "libraries": [{"name": "theirs", "title": "Theirs"}, {"name": "ours", "title": "Ours"}],
            "calibration": {"tcp_mb_s": summary, "ping_pong_us": summary, "line_ns": summary,
                "fast_below_line_ns": 110.0, "samples": []},
            "memory": {"line_ns": summary, "far_from_ns": 110.0, "near": 3, "far": 1, "changed": 2},
            "environments": [environment("default"), environment("one-core"), environment("veth"), delay,
                environment("half-core"), environment("no-shared-memory")],
            "cells": names.map(|name| figure(name, "ours", u64::from(name == "half-core"))),
            "ratios": [ratio("default", [1.1, 1.3]), ratio("one-core", [0.98, 1.04]), ratio("veth", [0.7, 0.9]),
                ratio("half-core", [2.0, 3.0])],
        }))
        .unwrap()
    }

    #[test]
    fn a_row_says_for_each_environment_what_came_of_it() {
        let results = results();
        assert!(is_of_interest(&results));
        let rows = rows(&results, "ours");
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].label, "PUSH/PULL tcp 64 B (2 processes)");
        let shown: Vec<String> = rows[0].entries.iter().map(CellResult::short).collect();
        assert_eq!(shown, ["1.20x won", "1.01x level", "0.80x lost", "not there", "FAILED", "-"]);
        assert_eq!(rows[0].entries[0].interval().as_deref(), Some("1.10..1.30"));
        assert_eq!(tally(&rows, 0), [1, 0, 0, 0]);
        assert_eq!(tally(&rows, 4), [0, 0, 0, 0]);
    }

    #[test]
    fn every_report_has_the_table_and_why_an_environment_is_not_there() {
        let mut results = results();
        results.ratios[1].widest_percent = Some(2);
        let wins = json!({"pattern": "push_pull", "library": "ours", "metric": "messages_per_second", "cells": 4,
            "won": 3, "beyond_doubt": 2, "open": 1, "lost": 0});
        results.wins.push(serde_json::from_value(wins).unwrap());
        for text in [
            crate::table::text(&results),
            crate::report::html(&results),
            crate::markdown::text(std::slice::from_ref(&results)),
        ] {
            for part in [
                "1.20x won",
                "0.80x lost",
                "1.01x open: \u{b1}3 %",
                "no netem",
                "far (110 ns and more) in 1",
                "43.2",
                "(75 %)",
            ] {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
    }

    #[test]
    fn results_of_one_environment_have_no_such_table() {
        let mut results = results();
        results.environments.truncate(1);
        assert!(!is_of_interest(&results));
        assert!(!crate::report::html(&results).contains("By environment"));
    }
}
