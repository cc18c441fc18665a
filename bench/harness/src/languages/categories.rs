//! Categories of use in `analysis.md`: the languages that are fast enough for a kind of program, on each library.

use super::data::{Data, LanguageFigure};
use super::pages::library_title;
use std::fmt::Write;

/// Values from `from` on, up to the next category.
struct Category {
    from: f64,
    title: &'static str,
    /// One use.
    example: &'static str,
}

const LATENCIES: [Category; 4] = [
    Category { from: 0.0, title: "below 10 µs", example: "control loops, orders of a trading system" },
    Category {
        from: 10.0,
        title: "10 to 50 µs",
        example: "a cache that several services of one machine ask",
    },
    Category { from: 50.0, title: "50 to 200 µs", example: "calls behind a web page" },
    Category { from: 200.0, title: "above 200 µs", example: "jobs that take milliseconds themselves" },
];

const RATES: [Category; 3] = [
    Category { from: 1e6, title: "above 1 M/s", example: "market data, samples of sensors" },
    Category { from: 1e5, title: "100 K/s to 1 M/s", example: "logs and metrics of a whole site" },
    Category { from: 0.0, title: "below 100 K/s", example: "jobs for workers, commands" },
];

/// Returns the table of each figure, for messages of the smallest size.
pub(super) fn tables(data: &Data) -> String {
    let Some(&size) = data.sizes().first() else { return String::new() };
    let mut text = format!(
        "The categories of each language by its medians for {size} B: the mean latency, and the rate.\n"
    );
    for (head, figure, categories) in [
        ("latency", LanguageFigure::Mean, &LATENCIES[..]),
        ("messages per second", LanguageFigure::Rate, &RATES[..]),
    ] {
        let libraries: Vec<&str> = ["libzmq", "tautline", "own"]
            .into_iter()
            .filter(|library| data.rows.iter().any(|row| row.library == *library))
            .collect();
        let _ = write!(text, "\n| {head} | example |");
        for library in &libraries {
            let _ = write!(text, " {} |", library_title(library));
        }
        let _ = writeln!(text, "\n|---|---|{}", "---|".repeat(libraries.len()));
        for category in categories {
            let _ = write!(text, "| {} | {} |", category.title, category.example);
            for library in &libraries {
                let titles: Vec<&str> = data
                    .rows
                    .iter()
                    .filter(|row| row.library == *library)
                    .filter(|row| {
                        let median = row.longest(figure, size).and_then(|cell| cell.median(figure));
                        median.and_then(|median| category_of(categories, median)) == Some(category.title)
                    })
                    .map(|row| row.title.as_str())
                    .collect();
                let _ =
                    write!(text, " {} |", if titles.is_empty() { "-".to_owned() } else { titles.join("; ") });
            }
            text.push('\n');
        }
    }
    text
}

/// Returns the title of the category that contains the value.
fn category_of(categories: &[Category], value: f64) -> Option<&'static str> {
    let containing = categories.iter().filter(|category| category.from <= value);
    containing.max_by(|one, other| one.from.total_cmp(&other.from)).map(|category| category.title)
}

#[cfg(test)]
mod tests {
    use super::super::data::tests::{cell, data, row};
    use super::*;

    #[test]
    fn a_bound_belongs_to_the_category_above_it() {
        assert_eq!(category_of(&LATENCIES, 9.99), Some("below 10 µs"));
        assert_eq!(category_of(&LATENCIES, 10.0), Some("10 to 50 µs"));
        assert_eq!(category_of(&LATENCIES, 1e6), Some("above 200 µs"));
        assert_eq!(category_of(&RATES, 99_999.0), Some("below 100 K/s"));
        assert_eq!(category_of(&RATES, 1e5), Some("100 K/s to 1 M/s"));
        assert_eq!(category_of(&RATES, 2e7), Some("above 1 M/s"));
    }

    #[test]
    fn each_language_is_in_the_category_of_its_smallest_messages() {
        let rows = vec![
            row("go", "libzmq", vec![cell(64, 0, &[2e5]), cell(1500, 0, &[9.0])]),
            row("go", "tautline", vec![cell(64, 0, &[3e6])]),
            row("python", "tautline", vec![cell(64, 0, &[1.5e6])]),
        ];
        let text = tables(&data(rows));
        assert!(
            text.contains("| above 1 M/s | market data, samples of sensors | - | go; python |\n"),
            "{text}"
        );
        assert!(
            text.contains("| 100 K/s to 1 M/s | logs and metrics of a whole site | go | - |\n"),
            "{text}"
        );
        assert!(!text.contains("its own"), "{text}");
    }
}
