//! The content of `results.json` and of the report: figures, ratios and their verdicts.

use crate::environment::Environment;
use crate::machine::Machine;
use crate::process::PROCESSOR;
use crate::scenario::Cell;
use crate::statistics::{Standing, Verdict, half_width_percent, median, range, standing, verdict};
use crate::wins::Wins;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Below this, a cache line crosses the cores quickly: the fast one of a virtual machine's two states.
pub(crate) const FAST_LINE_NS: f64 = 110.0;

/// The whole of `results.json`.
#[derive(Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) title: String,
    pub(crate) date: String,
    pub(crate) took_seconds: f64,
    pub(crate) pairs: u32,
    /// Number of pairs of a cell that stayed open; 0 in results without such a number.
    #[serde(default)]
    pub(crate) most_pairs: u32,
    pub(crate) target_ms: u64,
    pub(crate) machine: Machine,
    pub(crate) versions: BTreeMap<String, String>,
    /// The reference first.
    pub(crate) libraries: Vec<Library>,
    pub(crate) calibration: CalibrationSummary,
    /// Distance of the caches of two processors during the run.
    #[serde(default)]
    pub(crate) memory: Option<Memory>,
    /// Environments of the chosen cells, in the scenario's order.
    #[serde(default)]
    pub(crate) environments: Vec<Environment>,
    /// One object for each cell, library and metric.
    pub(crate) cells: Vec<Figure>,
    /// One object for each cell, metric and library other than the reference.
    pub(crate) ratios: Vec<Ratio>,
    /// Number of cells that each library won against the reference: by pattern and metric, then by transport and
    /// metric.
    #[serde(default)]
    pub(crate) wins: Vec<Wins>,
    /// Peers of the scenario that could not run at all, and the reason.
    #[serde(default)]
    pub(crate) absent: Vec<String>,
    /// Lost, reordered, corrupted or failed cells; empty after a run without errors.
    pub(crate) problems: Vec<String>,
}

/// A peer as the results name it.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Library {
    pub(crate) name: String,
    pub(crate) title: String,
}

/// The middle and the ends of some samples.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Summary {
    pub(crate) fn of(values: &[f64]) -> Self {
        let (min, max) = range(values);
        Self { median: median(values), min, max }
    }
}

/// Calibrations of the machine during the run.
#[derive(Serialize, Deserialize)]
pub(crate) struct CalibrationSummary {
    pub(crate) tcp_mb_s: Summary,
    pub(crate) ping_pong_us: Summary,
    pub(crate) line_ns: Summary,
    pub(crate) fast_below_line_ns: f64,
    pub(crate) samples: Vec<CalibrationSample>,
}

/// Memory of the machine. The processors of a virtual machine may be near each other or far apart. Its user
/// cannot choose this, but it decides the cost of sharing data between two threads.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// One-way time of a cache line between two processors, measured beside every run.
    pub(crate) line_ns: Summary,
    /// Above this value, the caches are far.
    pub(crate) far_from_ns: f64,
    /// Number of pairs of runs with near caches, with far caches, and with a change.
    pub(crate) near: usize,
    pub(crate) far: usize,
    pub(crate) changed: usize,
}

/// One calibration, and its time.
#[derive(Serialize, Deserialize)]
pub(crate) struct CalibrationSample {
    pub(crate) at_seconds: f64,
    pub(crate) tcp_mb_s: f64,
    pub(crate) ping_pong_us: f64,
    pub(crate) line_ns: f64,
}

/// One metric of one cell on one library. Smaller is better for a metric that ends in `_us`, larger for the
/// others.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Figure {
    #[serde(flatten)]
    pub(crate) cell: Cell,
    pub(crate) library: String,
    pub(crate) metric: String,
    #[serde(flatten)]
    pub(crate) summary: Summary,
    pub(crate) runs: usize,
    pub(crate) failed: usize,
    pub(crate) cpu_seconds_per_million_messages: f64,
    /// Bytes of the bodies of the counted messages, if the metric is a rate of messages; median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) megabytes_per_second: Option<f64>,
    pub(crate) lost: u64,
    pub(crate) reordered: u64,
    pub(crate) corrupted: u64,
    pub(crate) samples: Vec<f64>,
    /// Messages per run.
    pub(crate) counts: Vec<u64>,
    pub(crate) errors: Vec<String>,
    /// Reason if the library does not support the cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unsupported: Option<String>,
    /// Machine state of each run: fast, slow, or changed during the run.
    #[serde(default)]
    pub(crate) states: Vec<MachineState>,
}

/// State of a virtual machine during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MachineState {
    /// A cache line crosses in less than [`FAST_LINE_NS`].
    Fast,
    Slow,
    /// Fast before and slow after, or the reverse.
    Changed,
}

impl Figure {
    /// True if every run succeeded, and every message arrived whole and in order.
    pub(crate) fn is_sound(&self) -> bool {
        self.runs > 0 && self.failed == 0 && self.lost + self.reordered + self.corrupted == 0
    }
}

/// Comparison of a library with the reference in one cell.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Ratio {
    #[serde(flatten)]
    pub(crate) cell: Cell,
    pub(crate) library: String,
    pub(crate) metric: String,
    /// Ratio of the medians, the library's to the reference's, inverted if smaller is better. Above 1, the
    /// library is better.
    pub(crate) ratio: f64,
    /// 95 % bootstrap interval of the ratio.
    pub(crate) interval: (f64, f64),
    /// Limit of half the interval's width, in per cent of the ratio. Beyond it, the ratio is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) widest_percent: Option<u32>,
    /// Verdict in words, for readers of the file.
    #[serde(default)]
    pub(crate) standing: String,
    /// The compared medians, the library's and the reference's.
    #[serde(default)]
    pub(crate) compared: (f64, f64),
    /// Ratio of each pair, and the median of these ratios.
    pub(crate) pairs: Vec<f64>,
    pub(crate) median_of_pairs: f64,
    /// Machine state of each pair, if it was the same from before its first run to after its last, or
    /// changed.
    pub(crate) states: Vec<MachineState>,
    /// Over inproc, where the machine state decides: the state that `ratio` and `interval` are about.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) only_state: Option<MachineState>,
    /// Over tcp: bytes on the wire divided by the bytes of raw TCP in the same pair; median.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) share_of_raw_tcp: Option<f64>,
}

impl Ratio {
    /// True if the library is at least as good as the reference here.
    pub(crate) fn won(&self) -> bool {
        self.ratio >= 1.0
    }

    /// Verdict of the interval.
    pub(crate) fn verdict(&self) -> Verdict {
        verdict(self.interval, false)
    }

    /// True if the interval is too wide for a verdict.
    pub(crate) fn is_wide(&self) -> bool {
        self.widest_percent.is_some_and(|widest| self.half_width_percent() > f64::from(widest))
    }

    /// Verdict of the interval, which is open if it is too wide.
    pub(crate) fn decided(&self) -> Verdict {
        if self.is_wide() { Verdict::Open } else { self.verdict() }
    }

    fn half_width_percent(&self) -> f64 {
        half_width_percent(self.ratio, self.interval)
    }

    /// Verdict that also knows "level" and the limit of the width. One or two pairs give no verdict, because
    /// their interval has no width.
    pub(crate) fn standing(&self) -> Standing {
        if self.pairs.len() < 3 || self.is_wide() { Standing::Open } else { standing(self.interval) }
    }

    /// Returns the verdict in words, with the reason if it is open: `won`, `open: holds 1`.
    pub(crate) fn standing_text(&self) -> String {
        let standing = self.standing().word();
        match self.standing() {
            Standing::Open if self.pairs.len() == 1 => format!("{standing}: 1 pair"),
            Standing::Open if self.pairs.len() < 3 => format!("{standing}: {} pairs", self.pairs.len()),
            Standing::Open if self.is_wide() => {
                format!("{standing}: \u{b1}{:.0} %", self.half_width_percent().ceil())
            }
            Standing::Open => format!("{standing}: holds 1"),
            _ => standing.to_owned(),
        }
    }
}

/// Formats the number of pairs of a cell: `7`, or `7 to 21`.
pub(crate) fn number_of_pairs(pairs: u32, most_pairs: u32) -> String {
    if most_pairs > pairs { format!("{pairs} to {most_pairs}") } else { pairs.to_string() }
}

/// True for times, memory and processor use, where smaller is better.
pub(crate) fn smaller_is_better(metric: &str) -> bool {
    ["_us", "_ms", "_kib", "_percent"].iter().any(|unit| metric.ends_with(unit))
}

impl Results {
    /// Formats as `7`, or `7 to 21`.
    pub(crate) fn number_of_pairs(&self) -> String {
        number_of_pairs(self.pairs, self.most_pairs)
    }

    /// Returns the title of a library.
    pub(crate) fn title_of(&self, library: &str) -> &str {
        self.libraries.iter().find(|l| l.name == library).map_or("", |l| l.title.as_str())
    }

    /// Returns the figure of one cell, library and metric.
    pub(crate) fn figure(&self, cell: &Cell, library: &str, metric: &str) -> Option<&Figure> {
        self.cells.iter().find(|f| f.cell == *cell && f.library == library && f.metric == metric)
    }

    /// Returns the ratio of one cell, library and metric.
    pub(crate) fn ratio(&self, cell: &Cell, library: &str, metric: &str) -> Option<&Ratio> {
        self.ratios.iter().find(|r| r.cell == *cell && r.library == library && r.metric == metric)
    }

    /// Returns the median, the least and the greatest ratio of the processor time per message, of all cells.
    pub(crate) fn processor_ratio(&self, library: &str) -> Option<(f64, f64, f64)> {
        let ratios: Vec<f64> = self
            .ratios
            .iter()
            .filter(|r| r.library == library && r.metric == PROCESSOR)
            .map(|r| r.ratio)
            .collect();
        let (low, high) = range(&ratios);
        (!ratios.is_empty()).then(|| (median(&ratios), low, high))
    }

    /// Returns the metrics of one cell, those of libraries that failed in it last.
    pub(crate) fn metrics_of(&self, cell: &Cell) -> Vec<&str> {
        let mut metrics: Vec<&str> = Vec::new();
        for good in [true, false] {
            for figure in self.cells.iter().filter(|f| f.cell == *cell && (f.runs > 0) == good) {
                // A failed library has only the headline metric, so it comes last.
                if !metrics.contains(&figure.metric.as_str()) && (good || metrics.is_empty()) {
                    metrics.push(&figure.metric);
                }
            }
        }
        metrics
    }

    /// Returns every cell once, in the order of the runs.
    pub(crate) fn distinct_cells(&self) -> Vec<&Cell> {
        let mut cells: Vec<&Cell> = Vec::new();
        for figure in &self.cells {
            if !cells.contains(&&figure.cell) {
                cells.push(&figure.cell);
            }
        }
        cells
    }
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::DEFAULT;
    use crate::wins::wins_of;

    fn figure(lost: u64, samples: &[f64]) -> Figure {
        let cell = Cell {
            pattern: "push_pull".to_owned(),
            transport: "tcp".to_owned(),
            size: 64 + samples.len() as u64 + lost,
            api: "buffers".to_owned(),
            processes: 1,
            subscribers: 1,
            with: BTreeMap::new(),
            millis: None,
            target_ms: None,
            environment: DEFAULT.to_owned(),
        };
        Figure {
            cell,
            library: "x".to_owned(),
            metric: "messages_per_second".to_owned(),
            summary: Summary::of(samples),
            runs: samples.len(),
            failed: 0,
            cpu_seconds_per_million_messages: 0.0,
            megabytes_per_second: None,
            lost,
            reordered: 0,
            corrupted: 0,
            samples: samples.to_vec(),
            counts: Vec::new(),
            errors: Vec::new(),
            unsupported: None,
            states: Vec::new(),
        }
    }

    fn ratio(figure: &Figure, interval: (f64, f64)) -> Ratio {
        Ratio {
            cell: figure.cell.clone(),
            library: figure.library.clone(),
            metric: figure.metric.clone(),
            ratio: (interval.0 + interval.1) / 2.0,
            interval,
            widest_percent: None,
            standing: String::new(),
            compared: (0.0, 0.0),
            pairs: vec![1.0; 3],
            median_of_pairs: 0.0,
            states: Vec::new(),
            only_state: None,
            share_of_raw_tcp: None,
        }
    }

    #[test]
    fn a_cell_that_lost_messages_is_never_won() {
        let figures = [figure(0, &[1.0]), figure(1, &[1.0]), figure(0, &[1.0; 3]), figure(0, &[1.0; 4])];
        let ratios = [
            ratio(&figures[0], (2.0, 3.0)),
            ratio(&figures[1], (9.0, 10.0)),
            ratio(&figures[2], (0.9, 1.3)),
            ratio(&figures[3], (0.5, 0.9)),
        ];
        let wins = wins_of(&figures, &ratios, &["x".to_owned()]);
        let groups: Vec<&str> = wins.iter().map(|wins| wins.group.title()).collect();
        assert_eq!(groups, ["PUSH/PULL", "tcp"]);
        for wins in &wins {
            let counts = (wins.cells, wins.won, wins.beyond_doubt, wins.open, wins.lost);
            assert_eq!(counts, (4, 2, 1, 0, 2));
        }
    }

    #[test]
    fn wide_interval_counts_as_open_with_reason() {
        let figures = [1, 3, 4, 5].map(|runs| figure(0, &vec![1.0; runs]));
        let intervals = [(2.0, 3.0), (2.0, 2.2), (0.4, 0.9), (0.93, 1.05)];
        let mut ratios: Vec<Ratio> = figures.iter().zip(intervals).map(|(f, i)| ratio(f, i)).collect();
        let texts = |ratios: &[Ratio]| ratios.iter().map(Ratio::standing_text).collect::<Vec<_>>();
        assert_eq!(texts(&ratios), ["won", "won", "lost", "open: holds 1"]);
        ratios.iter_mut().for_each(|ratio| ratio.widest_percent = Some(10));
        assert_eq!(texts(&ratios), ["open: \u{b1}20 %", "won", "open: \u{b1}39 %", "open: holds 1"]);
        let wins = &wins_of(&figures, &ratios, &["x".to_owned()])[0];
        assert_eq!((wins.won, wins.beyond_doubt, wins.open, wins.lost), (1, 1, 3, 0));
        ratios[1].pairs.truncate(2);
        assert_eq!(ratios[1].standing_text(), "open: 2 pairs");
        ratios[1].pairs.truncate(1);
        assert_eq!(ratios[1].standing_text(), "open: 1 pair");
    }

    #[test]
    fn wins_name_their_group_in_json() {
        let figures = [figure(0, &[1.0])];
        let wins = wins_of(&figures, &[ratio(&figures[0], (2.0, 3.0))], &["x".to_owned()]);
        let json = serde_json::to_value(&wins).unwrap();
        assert_eq!((&json[0]["pattern"], &json[1]["transport"]), (&"push_pull".into(), &"tcp".into()));
        assert_eq!(serde_json::from_value::<Vec<Wins>>(json).unwrap(), wins);
    }
}
