//! Pages of `docs/results`: `analysis.md` about all languages, and one page for each.

use super::categories;
use super::data::{BASELINE, Cell, Data, LanguageFigure, Ratio, Row, Table, band, overhead, ratio};
use super::plots::short;
use crate::statistics::{Verdict, verdict};
use std::fmt::Write;

const FIGURES: [LanguageFigure; 2] = [LanguageFigure::Mean, LanguageFigure::Rate];

/// Returns every page: file name under the results, and text.
pub(super) fn all(data: &Data) -> Vec<(String, String)> {
    let mut pages = vec![("analysis.md".to_owned(), analysis(data))];
    for language in data.languages() {
        pages.push((format!("{}.md", language.language), page(data, language)));
    }
    pages
}

fn figure_title(figure: LanguageFigure) -> &'static str {
    match figure {
        LanguageFigure::Mean => "Latency (half a round trip, mean)",
        LanguageFigure::P50 => "Latency, p50",
        LanguageFigure::P99 => "Latency, p99",
        LanguageFigure::Rate => "Throughput",
    }
}

fn value(figure: LanguageFigure, value: Option<f64>) -> String {
    match value {
        None => "failed".to_owned(),
        Some(value) if figure == LanguageFigure::Rate && value >= 1e6 => {
            format!("{} M/s", short(value / 1e6))
        }
        Some(value) if figure == LanguageFigure::Rate => format!("{} K/s", short(value / 1e3)),
        Some(value) => format!("{} µs", short(value)),
    }
}

/// Formats a ratio with its interval. Bold if it was lost, `~` if the interval contains
/// 1.
fn ratio_text(ratio: Option<Ratio>, figure: LanguageFigure) -> String {
    let Some(ratio) = ratio else { return String::new() };
    let (low, high) = ratio.interval;
    let text = match verdict(ratio.interval, figure.smaller_is_better()) {
        Verdict::Better => short(ratio.value),
        Verdict::Open => format!("~{}", short(ratio.value)),
        Verdict::Worse => format!("**{}**", short(ratio.value)),
    };
    format!("{text} ({}..{})", short(low), short(high))
}

fn gain(data: &Data, language: &str, figure: LanguageFigure, size: u64) -> Option<Ratio> {
    let ours = data.row(language, "tautline")?.longest(figure, size)?;
    let theirs = data.row(language, "libzmq")?.longest(figure, size)?;
    ratio(ours, theirs, figure)
}

pub(super) fn library_title(library: &str) -> &str {
    match library {
        "tautline" => "Tautline",
        "own" => "its own",
        other => other,
    }
}

fn analysis(data: &Data) -> String {
    let mut text = String::from(
        "# Every language, on libzmq and on Tautline\n\nFor readers who choose a language or a library. This page \
         compares libzmq and Tautline in every language.\n\nWritten by `make languages`; [methodology.md](../develop/methodology.md) \
         describes the measurement and its limits. Figures are medians of all trials; the 95 % interval of a ratio is in \
         brackets. **Bold** cells were lost, `~` cells are undecided. If a cell was measured with two counts, this page \
         has the longer one.\n\n",
    );
    environment(data, &mut text);
    let plain = &data.of_table(Table::Plain);
    text.push_str("\n![Tautline beside libzmq](plots/dashboard.svg)\n\n## Tautline beside libzmq under the same binding\n\n");
    summary(plain, &mut text);
    let _ = write!(text, "\n## What each language is fast enough for\n\n{}", categories::tables(plain));
    for figure in FIGURES {
        let plot = if figure == LanguageFigure::Rate { "throughput" } else { "latency" };
        let _ = write!(text, "\n## {}\n\n![{plot}](plots/{plot}.svg)\n\n", figure_title(figure));
        table_of(plain, figure, &mut text);
    }
    text.push_str("\n## Overhead beside C++ on the same library\n\n![speed](plots/speed.svg)\n\nThe picture has the speed, with C++ on libzmq as 100 per cent; the table holds \
         each language against C++ on the same library.\n\n");
    text.push_str(
        "(language - C++) / C++ for times, (C++ - language) / C++ for rates: larger values are worse. Negative values \
         mean faster than C++ by that share.\n\n",
    );
    overheads(plain, &mut text);
    section(
        data,
        Table::Async,
        "Async calls",
        "The same programs with the binding's calls for async programs. The rows of Node.js are those above: its \
         bindings have only async calls.",
        &mut text,
    );
    section(
        data,
        Table::Curve,
        "Encrypted with CURVE",
        "The same programs, and every message is encrypted and authenticated with CURVE. Tautline has its default \
         ciphers. For long messages they are slower than those of libsodium, and those of the feature `curve-dryoc` are \
         faster ([cipher.md](../decisions/cipher.md)).",
        &mut text,
    );
    skipped(data, &mut text);
    text
}

/// Writes the three tables of one kind of programs, if any was measured.
fn section(data: &Data, table: Table, title: &str, about: &str, text: &mut String) {
    let part = data.of_table(table);
    if part.rows.iter().all(|row| row.table != table) {
        return;
    }
    let _ = write!(text, "\n## {title}\n\n{about}\n\n");
    summary(&part, text);
    for figure in FIGURES {
        let _ = write!(text, "\n### {title}: {}\n\n", figure_title(figure).to_lowercase());
        table_of(&part, figure, text);
    }
}

fn environment(data: &Data, text: &mut String) {
    let machine = &data.machine;
    let _ = writeln!(text, "- {}, {} ({})", data.date, machine.system, machine.kernel);
    let kind = if machine.virtual_machine { "a virtual machine" } else { "a machine" };
    let _ = writeln!(
        text,
        "- {kind} with {} cores of {}, {} GiB; load average {} when the last trials began to count",
        machine.cores, machine.cpu, machine.memory_gib, machine.load
    );
    let _ = write!(text, "- {} interleaved trials of each cell", data.repeats);
    if data.budget_seconds > 0.0 {
        let _ = write!(text, "; the longer counts take at most {} s", data.budget_seconds);
    }
    text.push('\n');
    for (name, library) in &data.libraries {
        let _ = writeln!(text, "- {}, as of the last trials: {library}", library_title(name));
    }
    for (name, version) in &data.compilers {
        let _ = writeln!(text, "- {name}: {version}");
    }
    for row in data.languages() {
        let versions: Vec<&str> = row.versions.values().map(String::as_str).collect();
        let _ = writeln!(
            text,
            "- [{}]({}.md), measured {}: {}",
            row.title,
            row.language,
            dates(data, row),
            versions.join("; ")
        );
    }
}

/// Returns the time when a language was measured, on all its libraries.
fn dates(data: &Data, language: &Row) -> String {
    let rows = || data.rows.iter().filter(|row| row.language == language.language).map(Row::dates);
    let first = rows().map(|(first, _)| first).min().unwrap_or(&language.date);
    let last = rows().map(|(_, last)| last).max().unwrap_or(&language.date);
    if first == last { first.to_owned() } else { format!("from {first} to {last}") }
}

/// Counts the won and the other comparisons.
fn summary(data: &Data, text: &mut String) {
    text.push_str("Ratios of medians: times below 1 and rates above 1 are Tautline's.\n\n| language |");
    let sizes = data.sizes();
    for figure in FIGURES {
        for size in &sizes {
            let what = if figure == LanguageFigure::Rate { "rate" } else { "latency" };
            let _ = write!(text, " {what}, {size} B |");
        }
    }
    text.push_str("\n|---|");
    text.push_str(&"--:|".repeat(FIGURES.len() * sizes.len()));
    text.push('\n');
    let (mut cells, mut won, mut lost) = (0, 0, Vec::new());
    for row in data.languages() {
        if data.row(&row.language, "libzmq").is_none() || data.row(&row.language, "tautline").is_none() {
            continue;
        }
        let _ = write!(text, "| {} |", row.title);
        for figure in FIGURES {
            for &size in &sizes {
                let gain = gain(data, &row.language, figure, size);
                let _ = write!(text, " {} |", ratio_text(gain, figure));
                let Some(gain) = gain else { continue };
                cells += 1;
                if (gain.value < 1.0) == figure.smaller_is_better() {
                    won += 1;
                } else {
                    lost.push(format!("{}, {}, {size} B: {}", row.title, figure.kind(), short(gain.value)));
                }
            }
        }
        text.push('\n');
    }
    let _ = writeln!(text, "\n{won} of {cells} cells won by the median.");
    if !lost.is_empty() {
        let _ = writeln!(text, "Not won: {}.", lost.join("; "));
    }
}

fn table_of(data: &Data, figure: LanguageFigure, text: &mut String) {
    let sizes = data.sizes();
    text.push_str("| language | binding | library |");
    let rates = figure == LanguageFigure::Rate;
    for size in &sizes {
        let _ = write!(text, " {size} B |{}", if rates { " Mb/s |" } else { "" });
    }
    text.push_str("\n|---|---|---|");
    text.push_str(&"--:|".repeat(sizes.len() * if rates { 2 } else { 1 }));
    text.push('\n');
    for row in &data.rows {
        let _ = write!(text, "| {} | {} | {} |", row.title, row.binding, library_title(&row.library));
        for &size in &sizes {
            let measured = row.cells.iter().any(|cell| cell.kind == figure.kind() && cell.size == size);
            let median = row.longest(figure, size).and_then(|cell| cell.median(figure));
            let shown = if measured { value(figure, median) } else { "not measured".to_owned() };
            let _ = write!(text, " {shown} |");
            if rates {
                let _ = write!(text, " {} |", median.map_or_else(String::new, |rate| megabits(rate, size)));
            }
        }
        text.push('\n');
    }
    if rates {
        text.push_str(
            "\nMb/s: millions of bits of messages per second, without the bytes of the protocol.\n",
        );
    }
}

/// Formats the megabits per second of messages of that size, with commas between thousands.
fn megabits(rate: f64, size: u64) -> String {
    let megabits = rate * size as f64 * 8.0 / 1e6;
    if megabits < 1000.0 {
        return short(megabits);
    }
    let whole = megabits.round() as u64;
    let (thousands, rest) = (whole / 1000, whole % 1000);
    format!("{thousands},{rest:03}")
}

fn overheads(data: &Data, text: &mut String) {
    let sizes = data.sizes();
    text.push_str("| language | library |");
    for figure in FIGURES {
        for size in &sizes {
            let what = if figure == LanguageFigure::Rate { "rate" } else { "latency" };
            let _ = write!(text, " {what}, {size} B |");
        }
    }
    text.push_str("\n|---|---|");
    text.push_str(&"---|".repeat(FIGURES.len() * sizes.len()));
    text.push('\n');
    for row in data.rows.iter().filter(|row| row.language != BASELINE) {
        let library = match row.library.as_str() {
            "own" => "its own, to C++ on libzmq",
            other => library_title(other),
        };
        let _ = write!(text, "| {} | {library} |", row.title);
        for figure in FIGURES {
            for &size in &sizes {
                let cost = data
                    .baseline_of(row)
                    .and_then(|baseline| baseline.longest(figure, size))
                    .and_then(|baseline| ratio(row.longest(figure, size)?, baseline, figure))
                    .map(|ratio| overhead(ratio.value, figure));
                let shown = cost.map_or_else(String::new, |o| format!("{:.0} % ({})", 100.0 * o, band(o)));
                let _ = write!(text, " {shown} |");
            }
        }
        text.push('\n');
    }
}

fn skipped(data: &Data, text: &mut String) {
    if data.skipped.is_empty() {
        return;
    }
    text.push_str("\n## Skipped\n\n");
    for (name, reason) in &data.skipped {
        let _ = writeln!(text, "- {name}: {reason}");
    }
}

/// Returns all measurements of one language.
fn page(data: &Data, language: &Row) -> String {
    let mut text = format!(
        "# {}\n\n{}. Measured {} by `make languages`; see [the analysis](analysis.md) for the machine and the others, and \
         [methodology.md](../develop/methodology.md) for the method.\n\n",
        language.title,
        language.binding,
        dates(data, language)
    );
    for (name, version) in &language.versions {
        let _ = writeln!(text, "- {name}: {version}");
    }
    for row in data.rows.iter().filter(|row| row.language == language.language) {
        let _ = write!(text, "\n## On {}\n\n", library_title(&row.library));
        text.push_str("| | size | count | trials | median | smallest..largest | to C++ on the same | last trial |\n|---|--:|--:|--:|--:|---|---|---|\n");
        for cell in &row.cells {
            let figures: &[LanguageFigure] = if cell.kind == LanguageFigure::Rate.kind() {
                &[LanguageFigure::Rate]
            } else {
                &[LanguageFigure::Mean, LanguageFigure::P50, LanguageFigure::P99]
            };
            for &figure in figures {
                line(data, row, cell, figure, &mut text);
            }
        }
        let failures: Vec<&String> = row.cells.iter().flat_map(|cell| &cell.failures).collect();
        if !failures.is_empty() {
            let _ = write!(text, "\nTrials that failed: {}\n\n", failures.len());
            for failure in failures {
                let _ = writeln!(text, "- {failure}");
            }
        }
    }
    text
}

fn line(data: &Data, row: &Row, cell: &Cell, figure: LanguageFigure, text: &mut String) {
    let values = cell.values(figure);
    let (low, high) = crate::statistics::range(values);
    let compared = data
        .baseline_of(row)
        .filter(|baseline| row.language != baseline.language)
        .and_then(|baseline| baseline.cell(&cell.kind, cell.size, cell.length))
        .and_then(|baseline| ratio(cell, baseline, figure))
        .map_or_else(String::new, |ratio| {
            format!("{} ({}..{})", short(ratio.value), short(ratio.interval.0), short(ratio.interval.1))
        });
    let range = if values.is_empty() {
        String::new()
    } else {
        format!("{}..{}", value(figure, Some(low)), value(figure, Some(high)))
    };
    let _ = writeln!(
        text,
        "| {} | {} B | {} | {} | {} | {range} | {compared} | {} |",
        figure_title(figure),
        cell.size,
        cell.count,
        values.len(),
        value(figure, cell.median(figure)),
        row.date(cell),
    );
}

#[cfg(test)]
mod tests {
    use super::super::data::tests::{cell, data, row};
    use super::*;

    fn of(table: Table, language: &str, library: &str, rate: f64) -> Row {
        Row { table, ..row(language, library, vec![cell(64, 0, &[rate])]) }
    }

    /// Returns the part of the page below this heading.
    fn below<'a>(page: &'a str, heading: &str) -> &'a str {
        let from = page
            .split_once(&format!("\n## {heading}\n"))
            .unwrap_or_else(|| panic!("no {heading} in {page}"))
            .1;
        from.split_once("\n## ").map_or(from, |(text, _)| text)
    }

    #[test]
    fn each_kind_of_programs_has_its_own_section() {
        let mut rows = vec![
            of(Table::Plain, "cpp", "libzmq", 2e6),
            of(Table::Plain, "node", "libzmq", 3e5),
            of(Table::Async, "go-async", "libzmq", 1e5),
            of(Table::Curve, "cpp-curve", "libzmq", 4e5),
        ];
        rows[1].also = Some(Table::Async);
        let page = analysis(&data(rows));
        for heading in [
            "Tautline beside libzmq under the same binding",
            "Throughput",
            "Overhead beside C++ on the same library",
        ] {
            assert!(!below(&page, heading).contains("-async"), "{page}");
            assert!(!below(&page, heading).contains("-curve"), "{page}");
        }
        let asynchronous = below(&page, "Async calls");
        assert!(asynchronous.contains("| go-async |") && asynchronous.contains("| node |"), "{page}");
        assert!(!asynchronous.contains("cpp"), "{page}");
        assert!(below(&page, "Encrypted with CURVE").contains("| cpp-curve |"), "{page}");
    }

    #[test]
    fn kind_that_was_not_measured_has_no_section() {
        let mut rows = vec![of(Table::Plain, "node", "libzmq", 3e5)];
        rows[0].also = Some(Table::Async);
        let page = analysis(&data(rows));
        assert!(!page.contains("Async calls") && !page.contains("CURVE"), "{page}");
    }

    #[test]
    fn each_rate_is_also_in_megabits() {
        let page = analysis(&data(vec![of(Table::Plain, "cpp", "libzmq", 3.95e6)]));
        assert!(page.contains("| library | 64 B | Mb/s |\n"), "{page}");
        assert!(page.contains("| libzmq | 3.95 M/s | 2,022 |\n"), "{page}");
        assert_eq!((megabits(1e3, 64).as_str(), megabits(24e3, 65536).as_str()), ("0.51", "12,583"));
    }
}
