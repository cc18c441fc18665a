//! The table on the terminal, and the formats of figures everywhere.

use crate::environment_table;
use crate::results::{Figure, Library, MachineState, Results};
use crate::scenario::{Cell, pattern_title, size_title};
use crate::statistics::Verdict;
use std::collections::BTreeMap;

/// Formats a rate: `3.21 M/s`, `44.1 K/s`, `812 /s`.
pub(crate) fn rate(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{} M/s", three(v / 1e6)),
        v if v >= 1e3 => format!("{} K/s", three(v / 1e3)),
        v => format!("{} /s", three(v)),
    }
}

/// Formats three significant digits: `0.0031`, `0.22`, `7.81`, `48.3`, `512`.
pub(crate) fn three(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v > 0.0 && v < 0.0995 => format!("{value:.4}"),
        _ => format!("{value:.2}"),
    }
}

/// Formats a ratio. A ratio near 1 keeps the digit that shows its side.
pub(crate) fn ratio_text(ratio: f64) -> String {
    if (ratio - 1.0).abs() < 0.005 { format!("{ratio:.3}") } else { three(ratio) }
}

/// Formats a value of a metric with its unit.
pub(crate) fn value(metric: &str, value: f64) -> String {
    match unit(metric).1 {
        "" => rate(value),
        unit => format!("{} {unit}", three(value)),
    }
}

/// Returns a metric's name without its unit, and the unit; `None` for rates.
pub(crate) fn unit(metric: &str) -> (&str, &'static str) {
    for (suffix, unit) in [("_us", "us"), ("_ms", "ms"), ("_kib", "KiB"), ("_percent", "%")] {
        if let Some(name) = metric.strip_suffix(suffix) {
            return (name, unit);
        }
    }
    (metric.strip_suffix("_per_second").unwrap_or(metric), "")
}

/// Formats a run's metrics in a few characters.
pub(crate) fn headline(metrics: &BTreeMap<String, f64>) -> String {
    match (metrics.get("messages_per_second"), metrics.get("p50_us")) {
        (Some(v), _) => rate(*v),
        (_, Some(v)) => format!("{} us", three(*v)),
        _ => metrics.iter().next().map_or_else(|| "?".to_owned(), |(metric, v)| value(metric, *v)),
    }
}

/// Formats the message errors: `0/0/0`, or the number of failed runs.
pub(crate) fn losses(figures: &[&Figure]) -> String {
    let sum = |f: fn(&Figure) -> u64| figures.iter().map(|figure| f(figure)).sum::<u64>();
    let failed: usize = figures.iter().map(|figure| figure.failed).sum();
    let losses = format!("{}/{}/{}", sum(|f| f.lost), sum(|f| f.reordered), sum(|f| f.corrupted));
    if failed > 0 { format!("{losses}, {failed} failed") } else { losses }
}

/// Returns the whole table, then the failures.
pub(crate) fn text(results: &Results) -> String {
    let Some(reference) = results.libraries.first() else { return String::new() };
    let rows = if results.libraries.len() > 3 { long_rows(results) } else { wide_rows(results) };
    let mut text = layout(&rows, if results.libraries.len() > 3 { 5 } else { 4 });
    text += &format!(
        "\nMedians of {} interleaved runs. \"better\" says how many times as good as {} (the rate by its rate, or its \
         time by the time), with its 95 % interval. ! marks a ratio that was not won, ~ one that the runs leave open. \
         \"processor\" is the processor time per message, of all threads at both ends.\n",
        results.number_of_pairs(),
        reference.title
    );
    for subject in results.libraries.iter().skip(1) {
        text += &processor(results, subject).map_or(String::new(), |line| line + "\n");
    }
    text += &environments_text(results);
    let changed: usize =
        results.cells.iter().flat_map(|f| &f.states).filter(|s| **s == MachineState::Changed).count();
    let runs: usize = results.cells.iter().map(|f| f.states.len()).sum();
    if changed > 0 {
        text += &format!(
            "The machine changed its state in {changed} of {runs} runs; inproc compares equal states only.\n"
        );
    }
    for wins in &results.wins {
        text += &format!(
            "{}, {} {}: won {} of {} ({}), {} beyond doubt, {} open, {} lost\n",
            results.title_of(&wins.library),
            wins.group.title(),
            unit(&wins.metric).0.replace('_', " "),
            wins.won,
            wins.cells,
            wins.rate(),
            wins.beyond_doubt,
            wins.open,
            wins.lost
        );
    }
    for absent in &results.absent {
        text += &format!("Could not take part: {absent}\n");
    }
    if results.problems.is_empty() {
        text += "Nothing lost, reordered or corrupted; no run failed.\n";
    } else {
        text += "PROBLEMS:\n";
        for problem in &results.problems {
            text += &format!("  {problem}\n");
        }
    }
    text
}

/// Describes in a sentence the processor time of a library beside the reference's.
pub(crate) fn processor(results: &Results, library: &Library) -> Option<String> {
    let (middle, low, high) = results.processor_ratio(&library.name)?;
    Some(format!(
        "Processor time per message: {} is {}x as good as {}, median of the cells ({}x to {}x).",
        library.title,
        three(middle),
        results.libraries.first()?.title,
        three(low),
        three(high)
    ))
}

/// Returns each library's cells by environment, the available and missing environments, and the distance of
/// the caches.
fn environments_text(results: &Results) -> String {
    let mut text = String::new();
    if environment_table::is_of_interest(results) {
        for library in results.libraries.iter().skip(1) {
            let rows = environment_table::rows(results, &library.name);
            let mut lines = vec![vec![format!("{} by environment", library.title)]];
            lines[0].extend(results.environments.iter().map(|e| e.name.clone()));
            for row in &rows {
                let mut line = vec![row.label.clone()];
                line.extend(row.entries.iter().map(environment_table::CellResult::short));
                lines.push(line);
            }
            let mut sums = vec!["won/lost/level/open".to_owned()];
            sums.extend((0..results.environments.len()).map(|column| {
                let [won, lost, level, open] = environment_table::tally(&rows, column);
                format!("{won}/{lost}/{level}/{open}")
            }));
            lines.push(sums);
            text += &layout(&lines, 1);
        }
        for environment in &results.environments {
            text += &match &environment.absent {
                None => format!("{}: {}\n", environment.name, environment.what),
                Some(reason) => format!("{}: NOT THERE: {reason}\n", environment.name),
            };
        }
    }
    text + &environment_table::memory(results).map_or(String::new(), |memory| memory + "\n")
}

/// A row for each cell and metric, the libraries side by side.
fn wide_rows(results: &Results) -> Vec<Vec<String>> {
    let Some((reference, subjects)) = results.libraries.split_first() else { return Vec::new() };
    let mut rows =
        vec![vec!["pattern".to_owned(), "transport".to_owned(), "size".to_owned(), "metric".to_owned()]];
    rows[0].extend([reference.title.clone(), "MB/s".to_owned()]);
    for subject in subjects {
        rows[0].extend([subject.title.clone(), "MB/s".to_owned()]);
        rows[0].extend(["better".to_owned(), "95 %".to_owned()]);
    }
    rows[0].push("lost/reord./corr.".to_owned());

    for cell in results.distinct_cells() {
        for metric in results.metrics_of(cell) {
            let mut row =
                vec![pattern_of(cell), cell.transport.clone(), size_title(cell.size), name_of(metric)];
            let mut figures = Vec::new();
            for library in &results.libraries {
                let figure = results.figure(cell, &library.name, metric);
                row.push(match figure {
                    Some(figure) if figure.runs > 0 => value(metric, figure.summary.median),
                    Some(figure) if figure.unsupported.is_some() => "-".to_owned(),
                    _ => "FAILED".to_owned(),
                });
                row.push(figure.map_or_else(String::new, megabytes));
                figures.extend(figure);
                if library.name == reference.name {
                    continue;
                }
                row.extend(ratio_columns(results, cell, &library.name, metric));
            }
            row.push(losses(&figures));
            rows.push(row);
        }
    }
    rows
}

/// With many libraries: a row for each cell, metric and library.
fn long_rows(results: &Results) -> Vec<Vec<String>> {
    let head = [
        "pattern",
        "transport",
        "size",
        "metric",
        "library",
        "median",
        "MB/s",
        "better",
        "95 %",
        "lost/reord./corr.",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for cell in results.distinct_cells() {
        for metric in results.metrics_of(cell) {
            for library in &results.libraries {
                let Some(figure) = results.figure(cell, &library.name, metric) else { continue };
                if figure.unsupported.is_some() {
                    continue;
                }
                let mut row =
                    vec![pattern_of(cell), cell.transport.clone(), size_title(cell.size), name_of(metric)];
                row.push(library.title.clone());
                if figure.runs > 0 {
                    row.push(value(metric, figure.summary.median));
                    row.push(megabytes(figure));
                } else {
                    row.extend(["FAILED".to_owned(), String::new()]);
                }
                row.extend(ratio_columns(results, cell, &library.name, metric));
                row.push(losses(&[figure]));
                rows.push(row);
            }
        }
    }
    rows
}

/// Formats the megabytes per second of a rate; nothing for other metrics.
pub(crate) fn megabytes(figure: &Figure) -> String {
    figure.megabytes_per_second.map_or_else(String::new, three)
}

fn pattern_of(cell: &Cell) -> String {
    let mut pattern = pattern_title(&cell.pattern).to_owned();
    if cell.subscribers > 1 {
        pattern += &format!(" to {}", cell.subscribers);
    }
    if let Some(variant) = cell.variant() {
        pattern += &format!(" ({variant})");
    }
    pattern
}

fn name_of(metric: &str) -> String {
    if metric == "messages_per_second" { "rate".to_owned() } else { unit(metric).0.replace('_', " ") }
}

/// Formats the ratio and its interval, marked if it was not won or is open.
fn ratio_columns(results: &Results, cell: &Cell, library: &str, metric: &str) -> [String; 2] {
    let Some(ratio) = results.ratio(cell, library, metric) else { return ["-".to_owned(), "-".to_owned()] };
    let mark = match (ratio.won(), ratio.decided()) {
        (_, Verdict::Worse) => " !",
        (true, Verdict::Open) => " ~",
        (false, _) => " !~",
        _ => "",
    };
    let (low, high) = ratio.interval;
    [format!("{}x{mark}", ratio_text(ratio.ratio)), format!("{}..{}", three(low), three(high))]
}

/// Pads columns to their widest entry. The first `left` columns are left-aligned, figures right-aligned.
pub(crate) fn layout(rows: &[Vec<String>], left: usize) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::from("\n");
    for (number, row) in rows.iter().enumerate() {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            line += &if column < left { format!("{cell:<width$}  ") } else { format!("{cell:>width$}  ") };
        }
        text += line.trim_end();
        text.push('\n');
        if number == 0 {
            text += &"-".repeat(widths.iter().sum::<usize>() + 2 * (columns - 1));
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        assert_eq!(rate(41_937_000.0), "41.9 M/s");
        assert_eq!(rate(84_100.0), "84.1 K/s");
        assert_eq!(rate(12.0), "12.0 /s");
        assert_eq!(value("p50_us", 7.812), "7.81 us");
        assert_eq!(value("idle_kib", 3.2), "3.20 KiB");
        assert_eq!(value("echoes_per_second", 1200.0), "1.20 K/s");
        assert_eq!(unit("connect_ms"), ("connect", "ms"));
    }
}
