//! Criterion's results as a Markdown table: `cargo run -p xtask -- benches`, after `cargo bench -p tautline`.
//!
//! Criterion writes a directory for each benchmark, with `new/benchmark.json` (its name and the unit of an iteration) and
//! `new/estimates.json` (nanoseconds for an iteration). This module needs only a few values of known names, so it searches the text
//! instead of parsing JSON.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

/// Result of one benchmark.
struct Row {
    /// Name, such as `throughput/tcp/blocking/64`.
    name: String,
    /// Nanoseconds for an iteration, and the ends of the 95 % interval.
    median: f64,
    low: f64,
    high: f64,
    /// Messages in an iteration, if the table shows a rate.
    elements: Option<f64>,
}

pub fn run(target: &Path) -> ExitCode {
    let directory = target.join("criterion");
    let mut rows = Vec::new();
    collect(&directory, &mut rows);
    if rows.is_empty() {
        eprintln!(
            "no results in {}: run `cargo bench -p tautline --all-features` first",
            directory.display()
        );
        return ExitCode::FAILURE;
    }
    rows.sort_by_key(|row| natural(&row.name));
    print!("{}", table(&rows));
    ExitCode::SUCCESS
}

fn collect(directory: &Path, rows: &mut Vec<Row>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()) {
        match path.file_name() {
            Some(name) if name == "new" => rows.extend(read(&path)),
            _ => collect(&path, rows),
        }
    }
}

fn read(directory: &Path) -> Option<Row> {
    let benchmark = fs::read_to_string(directory.join("benchmark.json")).ok()?;
    let estimates = fs::read_to_string(directory.join("estimates.json")).ok()?;
    row(&benchmark, &estimates)
}

fn row(benchmark: &str, estimates: &str) -> Option<Row> {
    let name = after(benchmark, "\"full_id\":\"")?.split('"').next()?.to_owned();
    let median = after(estimates, "\"median\":")?;
    Some(Row {
        name,
        median: number(median, "\"point_estimate\":")?,
        low: number(median, "\"lower_bound\":")?,
        high: number(median, "\"upper_bound\":")?,
        elements: number(benchmark, "\"Elements\":"),
    })
}

fn after<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.split_once(key).map(|(_, rest)| rest)
}

fn number(text: &str, key: &str) -> Option<f64> {
    after(text, key)?.split([',', '}']).next()?.trim().parse().ok()
}

/// Orders names, and numbers in them by value.
fn natural(name: &str) -> Vec<(String, u64)> {
    name.split('/')
        .map(|part| (part.trim_end_matches(char::is_numeric).to_owned(), part.parse().unwrap_or(0)))
        .collect()
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from("| benchmark | median | 95 % |\n|---|--:|--:|\n");
    for row in rows {
        let [median, low, high] = match row.elements {
            // The longest time is the lowest rate.
            Some(elements) => [row.median, row.high, row.low].map(|nanos| rate(elements * 1e9 / nanos)),
            None => [row.median, row.low, row.high].map(|nanos| format!("{:.2} µs", nanos / 1e3)),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {} | {median} | {low} .. {high} |", row.name);
    }
    text
}

fn rate(per_second: f64) -> String {
    match per_second {
        r if r >= 1e6 => format!("{:.2} M/s", r / 1e6),
        r => format!("{:.1} K/s", r / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BENCHMARK: &str = r#"{"group_id":"throughput/tcp","function_id":"blocking","value_str":"64","throughput":{"Elements":2},"full_id":"throughput/tcp/blocking/64","directory_name":"x","title":"t"}"#;
    const ESTIMATES: &str = r#"{"mean":{"confidence_interval":{"confidence_level":0.95,"lower_bound":1.0,"upper_bound":9.0},"point_estimate":5.0,"standard_error":1.0},"median":{"confidence_interval":{"confidence_level":0.95,"lower_bound":80.0,"upper_bound":200.0},"point_estimate":100.0,"standard_error":2.5}}"#;

    #[test]
    fn a_rate_is_of_elements_and_a_time_of_iterations() {
        let mut row = row(BENCHMARK, ESTIMATES).unwrap();
        let shown = table(std::slice::from_ref(&row));
        assert!(
            shown.ends_with("| throughput/tcp/blocking/64 | 20.00 M/s | 10.00 M/s .. 25.00 M/s |\n"),
            "{shown}"
        );
        row.elements = None;
        assert!(table(&[row]).ends_with("| 0.10 µs | 0.08 µs .. 0.20 µs |\n"));
    }

    #[test]
    fn sizes_are_in_the_order_of_numbers() {
        let mut names = ["a/1024", "a/64", "b/2"];
        names.sort_by_key(|name| natural(name));
        assert_eq!(names, ["a/64", "a/1024", "b/2"]);
    }

    #[test]
    fn a_file_of_another_form_is_no_result() {
        assert!(row("{}", ESTIMATES).is_none() && row(BENCHMARK, "").is_none());
    }
}
