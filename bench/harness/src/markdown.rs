//! Tables for a document, from one or several results: a table for each pattern, a row for each cell and
//! metric.

use crate::environment_table;
use crate::results::{Figure, Results};
use crate::scenario::{Cell, pattern_title, size_title};
use crate::statistics::Verdict;
use crate::table::{losses, megabytes, processor, ratio_text, three, unit, value};
use crate::wins::Wins;

/// Returns all tables, each pattern's under a heading, in the order of their first appearance.
pub(crate) fn text(all: &[Results]) -> String {
    let mut patterns: Vec<&str> = Vec::new();
    for figure in all.iter().flat_map(|results| &results.cells) {
        if !patterns.contains(&figure.cell.pattern.as_str()) {
            patterns.push(&figure.cell.pattern);
        }
    }
    let mut text = String::new();
    for pattern in patterns {
        text += &format!("### {}\n\n", pattern_title(pattern));
        let mut head: Vec<&str> = Vec::new();
        for results in all.iter().filter(|r| r.cells.iter().any(|f| f.cell.pattern == pattern)) {
            let titles: Vec<&str> = results.libraries.iter().map(|l| l.title.as_str()).collect();
            if head != titles {
                text += &heading(&titles);
                head = titles;
            }
            for cell in results.distinct_cells().into_iter().filter(|cell| cell.pattern == pattern) {
                for metric in results.metrics_of(cell) {
                    text += &row(results, cell, metric);
                }
            }
        }
        text.push('\n');
    }
    for results in all {
        text += &wins(results);
    }
    for results in all.iter().filter(|results| environment_table::is_of_interest(results)) {
        text += &by_environment(results);
    }
    text
}

/// Returns the number of won cells by pattern and by transport, and the headline of the processor time.
fn wins(results: &Results) -> String {
    if results.wins.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "### Cells won\n\n| {} |\n{}{}|\n",
        Wins::HEADINGS.join(" | "),
        "|---".repeat(Wins::WORDS),
        "|--:".repeat(Wins::HEADINGS.len() - Wins::WORDS)
    );
    for wins in &results.wins {
        text += &format!("| {} |\n", wins.columns(results).join(" | "));
    }
    text.push('\n');
    for subject in results.libraries.iter().skip(1) {
        text += &processor(results, subject).map_or(String::new(), |line| line + "\n\n");
    }
    text
}

/// Returns each library's cells by environment, and the descriptions of the environments.
fn by_environment(results: &Results) -> String {
    let mut text = String::from("### By environment\n\n");
    for library in results.libraries.iter().skip(1) {
        let names: Vec<&str> = results.environments.iter().map(|e| e.name.as_str()).collect();
        text +=
            &format!("| {} | {} |\n|---|{}\n", library.title, names.join(" | "), "--:|".repeat(names.len()));
        for row in environment_table::rows(results, &library.name) {
            let entry = |entry: &environment_table::CellResult<'_>| match entry.interval() {
                Some(interval) => format!("{} ({interval})", entry.short()),
                None => entry.short(),
            };
            let entries: Vec<String> = row.entries.iter().map(entry).collect();
            text += &format!("| {} | {} |\n", row.label, entries.join(" | "));
        }
        text.push('\n');
    }
    for environment in &results.environments {
        text += &match &environment.absent {
            None => format!("- `{}`: {}\n", environment.name, environment.what),
            Some(reason) => format!("- `{}`: not there: {reason}\n", environment.name),
        };
    }
    text + &environment_table::memory(results).map_or(String::new(), |memory| format!("\n{memory}\n"))
}

/// If there are more libraries than this, only their medians fit.
const DETAILED: usize = 3;

fn heading(titles: &[&str]) -> String {
    if titles.len() > DETAILED {
        return format!(
            "| | size | metric | {} |\n|---|---|---|{}\n",
            titles.join(" | "),
            "--:|".repeat(titles.len())
        );
    }
    let mut names = "| | size | metric |".to_owned();
    let mut rule = "|---|---|---|".to_owned();
    for (number, title) in titles.iter().enumerate() {
        names += &format!(" {title} | MB/s |");
        rule += "--:|--:|";
        if number > 0 {
            names += " times better | 95 % |";
            rule += "--:|--:|";
        }
    }
    format!("{names}\n{rule}\n")
}

fn row(results: &Results, cell: &Cell, metric: &str) -> String {
    let mut what = cell.transport.clone();
    if cell.subscribers > 1 {
        what += &format!(", to {}", cell.subscribers);
    }
    if let Some(variant) = cell.variant() {
        what += &format!(", {variant}");
    }
    let mut text = format!("| {what} | {} | {} |", size_title(cell.size), unit(metric).0.replace('_', " "));
    if results.libraries.len() > DETAILED {
        for library in &results.libraries {
            text += &match results.figure(cell, &library.name, metric) {
                Some(f) if f.is_sound() => {
                    format!(" {} |", value(metric, f.summary.median).replace(" us", " \u{b5}s"))
                }
                Some(f) if f.unsupported.is_none() => format!(" **{}** |", flaw(f)),
                _ => " \u{2013} |".to_owned(),
            };
        }
        return text + "\n";
    }
    for (number, library) in results.libraries.iter().enumerate() {
        let figure = results.figure(cell, &library.name, metric);
        text += &match figure {
            Some(f) if f.runs > 0 && f.is_sound() => {
                let median = value(metric, f.summary.median).replace(" us", " \u{b5}s");
                format!(" {median} | {} |", megabytes(f))
            }
            Some(f) if f.unsupported.is_some() => " \u{2013} | |".to_owned(),
            Some(f) => format!(" **{}** | |", flaw(f)),
            None => " | |".to_owned(),
        };
        if number == 0 {
            continue;
        }
        text += &match results.ratio(cell, &library.name, metric) {
            Some(ratio) if figure.is_some_and(Figure::is_sound) => {
                let mark = if ratio.won() { "" } else { "**" };
                let open = if ratio.decided() == Verdict::Open { " ~" } else { "" };
                let (low, high) = ratio.interval;
                format!(" {mark}{}{mark}{open} | {}..{} |", ratio_text(ratio.ratio), three(low), three(high))
            }
            _ => " | |".to_owned(),
        };
    }
    text + "\n"
}

/// Describes a failure, in place of a speed.
fn flaw(figure: &Figure) -> String {
    match figure.errors.first() {
        Some(error) => error.chars().take(60).collect::<String>().replace('|', "/"),
        None => format!("{} lost/reordered/corrupted", losses(&[figure])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_has_as_many_columns_as_its_rule() {
        for titles in [&["a"][..], &["a", "b"], &["a", "b", "c"], &["a", "b", "c", "d"]] {
            let text = heading(titles);
            let columns: Vec<usize> = text.lines().map(|line| line.matches('|').count()).collect();
            assert_eq!(columns[0], columns[1]);
        }
    }
}
