//! Counts the cells that a library won against the reference, by pattern and by transport.

use crate::results::{Figure, Ratio, Results};
use crate::scenario::{Cell, pattern_title};
use crate::statistics::Verdict;
use crate::table::unit;
use serde::{Deserialize, Serialize};

/// Cells won by one library in one pattern, or over one transport.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Wins {
    #[serde(flatten)]
    pub(crate) group: Group,
    pub(crate) library: String,
    pub(crate) metric: String,
    pub(crate) cells: usize,
    /// Cells with a median at least as good as the reference's, without loss or failure, that are not too wide.
    pub(crate) won: usize,
    /// Won cells whose whole interval is better.
    pub(crate) beyond_doubt: usize,
    /// Cells that are neither won nor lost.
    #[serde(default)]
    pub(crate) open: usize,
    /// Cells whose whole interval is worse, or that failed.
    pub(crate) lost: usize,
}

/// The cells that are counted together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Group {
    Pattern(String),
    Transport(String),
}

impl Wins {
    /// Headings of [`Wins::columns`]. The first [`Wins::WORDS`] columns are words, the others numbers.
    pub(crate) const HEADINGS: [&str; 8] =
        ["pattern or transport", "library", "metric", "cells", "won", "beyond doubt", "open", "lost"];
    pub(crate) const WORDS: usize = 3;

    /// Formats one row of a table.
    pub(crate) fn columns(&self, results: &Results) -> [String; 8] {
        [
            self.group.title().to_owned(),
            results.title_of(&self.library).to_owned(),
            unit(&self.metric).0.replace('_', " "),
            self.cells.to_string(),
            format!("{} ({})", self.won, self.rate()),
            self.beyond_doubt.to_string(),
            self.open.to_string(),
            self.lost.to_string(),
        ]
    }

    /// Formats the share of the cells that were won: `94 %`.
    pub(crate) fn rate(&self) -> String {
        format!("{:.0} %", 100.0 * self.won as f64 / self.cells.max(1) as f64)
    }
}

impl Group {
    /// Returns the name for a reader.
    pub(crate) fn title(&self) -> &str {
        match self {
            Self::Pattern(pattern) => pattern_title(pattern),
            Self::Transport(transport) => transport,
        }
    }
}

/// Counts the cells by pattern and metric, then by transport and metric.
pub(crate) fn wins_of(figures: &[Figure], ratios: &[Ratio], libraries: &[String]) -> Vec<Wins> {
    let by_pattern = wins_by(figures, ratios, libraries, |cell| Group::Pattern(cell.pattern.clone()));
    let by_transport = wins_by(figures, ratios, libraries, |cell| Group::Transport(cell.transport.clone()));
    [by_pattern, by_transport].concat()
}

fn wins_by(
    figures: &[Figure],
    ratios: &[Ratio],
    libraries: &[String],
    group_of: impl Fn(&Cell) -> Group,
) -> Vec<Wins> {
    let mut wins: Vec<Wins> = Vec::new();
    let subjects = figures.iter().filter(|f| libraries.contains(&f.library) && f.unsupported.is_none());
    for figure in subjects {
        let group = group_of(&figure.cell);
        let same = |w: &Wins| w.group == group && w.library == figure.library && w.metric == figure.metric;
        let at = wins.iter().position(same).unwrap_or_else(|| {
            wins.push(Wins {
                group: group.clone(),
                library: figure.library.clone(),
                metric: figure.metric.clone(),
                cells: 0,
                won: 0,
                beyond_doubt: 0,
                open: 0,
                lost: 0,
            });
            wins.len() - 1
        });
        let entry = &mut wins[at];
        entry.cells += 1;
        let ratio = ratios
            .iter()
            .find(|r| r.cell == figure.cell && r.library == figure.library && r.metric == figure.metric);
        match ratio {
            Some(ratio) if figure.is_sound() => match ratio.decided() {
                Verdict::Worse => entry.lost += 1,
                verdict if ratio.won() && !ratio.is_wide() => {
                    entry.won += 1;
                    entry.beyond_doubt += usize::from(verdict == Verdict::Better);
                }
                _ => entry.open += 1,
            },
            // If only the reference failed, the cell counts for neither side.
            None if figure.is_sound() => entry.cells -= 1,
            _ => entry.lost += 1,
        }
    }
    wins
}
