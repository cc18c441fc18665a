//! Turns runs into figures: the content of `results.json` and of the report.

use crate::environment::{DEFAULT, Environment};
use crate::machine::{self, Machine};
use crate::peer::Peer;
use crate::process::PROCESSOR;
use crate::scenario::{Cell, Scenario};
use crate::schedule::{Pair, Plan, Record};
use crate::statistics::{
    Standing, Verdict, half_width_percent, median, of_equal_state, range, ratio_interval, standing, verdict,
};
use crate::wins::{Wins, wins_of};
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
    fn of(values: &[f64]) -> Self {
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

/// True for rates of messages that have a body of the cell's size.
fn is_message_rate(metric: &str) -> bool {
    ["messages_per_second", "echoes_per_second"].contains(&metric)
}

impl Results {
    pub(crate) fn new(
        scenario: &Scenario,
        plan: &Plan,
        peers: &[Peer],
        absent: Vec<String>,
        environments: Vec<Environment>,
        cells: &[Cell],
        record: &Record,
    ) -> Self {
        let mut figures = Vec::new();
        let mut ratios = Vec::new();
        let mut problems = Vec::new();
        let mut reported = BTreeMap::new();
        for (number, cell) in cells.iter().enumerate() {
            let pairs: Vec<&Pair> = record.pairs.iter().filter(|pair| pair.cell == number).collect();
            for (which, peer) in peers.iter().enumerate() {
                for pair in &pairs {
                    if let Some(Ok(sample)) = &pair.outcomes[which] {
                        reported.insert(peer.name.clone(), sample.version.clone());
                    }
                }
                let mine = figures_of(cell, which, peer, &pairs);
                problems.extend(mine.first().and_then(|figure| problem(figure, &peer.title)));
                figures.extend(mine);
                if which > 0 {
                    ratios.extend(ratios_of(cell, which, &peer.name, &pairs, plan.widest_percent));
                }
            }
        }
        let wins =
            wins_of(&figures, &ratios, &peers.iter().skip(1).map(|p| p.name.clone()).collect::<Vec<_>>());
        Self {
            title: scenario.title.clone(),
            date: record.date.clone(),
            took_seconds: record.took.as_secs_f64(),
            pairs: plan.pairs,
            most_pairs: plan.most_pairs,
            target_ms: plan.target_ms,
            machine: record.machine.clone(),
            versions: machine::versions(peers, &reported),
            libraries: peers
                .iter()
                .map(|peer| Library { name: peer.name.clone(), title: peer.title.clone() })
                .collect(),
            calibration: calibration_of(record),
            memory: Some(memory_of(record)),
            environments,
            cells: figures,
            ratios,
            wins,
            absent,
            problems,
        }
    }

    /// Formats as `7`, or `7 to 21`.
    pub(crate) fn number_of_pairs(&self) -> String {
        number_of_pairs(self.pairs, self.most_pairs)
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

/// Returns a cell's metrics on one peer. A cell without a good run still has its headline metric, without
/// samples.
fn figures_of(cell: &Cell, which: usize, peer: &Peer, pairs: &[&Pair]) -> Vec<Figure> {
    let outcomes: Vec<_> = pairs.iter().filter_map(|pair| pair.outcomes[which].as_ref()).collect();
    let good: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok()).collect();
    let failures: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
    let unsupported = failures.iter().find(|f| f.unsupported).map(|f| f.reason.clone());
    let errors: Vec<String> = failures.iter().filter(|f| !f.unsupported).map(|f| f.reason.clone()).collect();
    let states: Vec<MachineState> = pairs
        .iter()
        .filter(|pair| matches!(pair.outcomes[which], Some(Ok(_))))
        .map(|pair| state(&pair.lines_ns[which..which + 2]))
        .collect();
    let cpu: Vec<f64> = good.iter().map(|s| s.cpu_seconds / s.messages.max(1) as f64 * 1e6).collect();
    let metrics: Vec<String> = match good.first() {
        Some(sample) => sample.metrics.keys().cloned().collect(),
        None if cell.is_round_trip() => vec!["p50_us".to_owned(), "p99_us".to_owned()],
        None => vec!["messages_per_second".to_owned()],
    };
    let figure = |metric: String| {
        let samples: Vec<f64> = good.iter().filter_map(|s| s.metrics.get(&metric).copied()).collect();
        Figure {
            cell: cell.clone(),
            library: peer.name.clone(),
            summary: Summary::of(&samples),
            runs: good.len(),
            failed: errors.len(),
            cpu_seconds_per_million_messages: median(&cpu),
            megabytes_per_second: (is_message_rate(&metric) && !samples.is_empty())
                .then(|| median(&samples) * cell.size as f64 / 1e6),
            metric,
            lost: good.iter().map(|s| s.lost).sum(),
            reordered: good.iter().map(|s| s.reordered).sum(),
            corrupted: good.iter().map(|s| s.corrupted).sum(),
            samples,
            counts: good.iter().map(|s| s.count).collect(),
            errors: errors.clone(),
            unsupported: unsupported.clone(),
            states: states.clone(),
        }
    };
    metrics.into_iter().map(figure).collect()
}

fn problem(figure: &Figure, title: &str) -> Option<String> {
    let mut parts = Vec::new();
    for (number, what) in
        [(figure.lost, "lost"), (figure.reordered, "reordered"), (figure.corrupted, "corrupted")]
    {
        if number > 0 {
            parts.push(format!("{number} messages {what}"));
        }
    }
    if let Some(error) = figure.errors.first() {
        parts.push(format!("{} of {} runs failed: {error}", figure.failed, figure.failed + figure.runs));
    }
    (!parts.is_empty()).then(|| format!("{} on {title}: {}", figure.cell.title(), parts.join("; ")))
}

/// Returns the ratios of the metrics of one cell on one peer, which has the number `which`.
pub(crate) fn ratios_of(
    cell: &Cell,
    which: usize,
    library: &str,
    pairs: &[&Pair],
    widest_percent: Option<u32>,
) -> Vec<Ratio> {
    let good = |pair: &Pair, which: usize| match &pair.outcomes[which] {
        Some(Ok(sample)) => Some(sample.clone()),
        _ => None,
    };
    let both: Vec<_> =
        pairs.iter().filter_map(|pair| Some((*pair, good(pair, 0)?, good(pair, which)?))).collect();
    let Some((_, first, _)) = both.first() else { return Vec::new() };
    let mut ratios = Vec::new();
    for metric in first.metrics.keys() {
        let value = |sample: &crate::process::Sample| sample.metrics.get(metric).copied().unwrap_or(0.0);
        let mut reference: Vec<f64> = both.iter().map(|(_, reference, _)| value(reference)).collect();
        let mut subject: Vec<f64> = both.iter().map(|(_, _, subject)| value(subject)).collect();
        let pairs = subject.iter().zip(&reference);
        let pairs: Vec<f64> = if smaller_is_better(metric) {
            pairs.map(|(s, r)| r / s).collect()
        } else {
            pairs.map(|(s, r)| s / r).collect()
        };
        let mut only_state = None;
        if cell.transport == "inproc" {
            let with_state = |values: &[f64], which: usize| -> Vec<(f64, MachineState)> {
                let states = both.iter().map(|(pair, ..)| state(&pair.lines_ns[which..which + 2]));
                values.iter().copied().zip(states).collect()
            };
            let (ours, theirs) = (with_state(&subject, which), with_state(&reference, 0));
            if let Some((s, r, state)) =
                of_equal_state(&ours, &theirs, &[MachineState::Fast, MachineState::Slow])
            {
                (subject, reference, only_state) = (s, r, Some(state));
            }
        }
        let frame = (cell.size + if cell.size > 255 { 9 } else { 2 }) as f64;
        let share = (metric == "messages_per_second"
            && cell.transport == "tcp"
            && cell.environment == DEFAULT)
            .then(|| {
                let share =
                    |(pair, _, s): &(&Pair, _, _)| value(s) * frame / 1e6 / pair.before.tcp_mb_s.max(1.0);
                median(&both.iter().map(share).collect::<Vec<_>>())
            });
        let compared = (median(&subject), median(&reference));
        let (ratio, interval) = if smaller_is_better(metric) {
            (compared.1 / compared.0, ratio_interval(&reference, &subject))
        } else {
            (compared.0 / compared.1, ratio_interval(&subject, &reference))
        };
        let mut ratio = Ratio {
            cell: cell.clone(),
            library: library.to_owned(),
            metric: metric.clone(),
            ratio,
            interval,
            widest_percent,
            standing: String::new(),
            compared,
            median_of_pairs: median(&pairs),
            pairs,
            states: both.iter().map(|(pair, ..)| state(&pair.lines_ns[..])).collect(),
            only_state,
            share_of_raw_tcp: share,
        };
        ratio.standing = ratio.standing_text();
        ratios.push(ratio);
    }
    ratios
}

/// Returns the machine's state from some measurements of the cache line.
fn state(lines_ns: &[f64]) -> MachineState {
    let fast = lines_ns.iter().filter(|ns| **ns < FAST_LINE_NS).count();
    match fast {
        0 => MachineState::Slow,
        n if n == lines_ns.len() => MachineState::Fast,
        _ => MachineState::Changed,
    }
}

fn memory_of(record: &Record) -> Memory {
    let lines: Vec<f64> = record.pairs.iter().flat_map(|pair| pair.lines_ns.iter().copied()).collect();
    let of = |wanted| record.pairs.iter().filter(|pair| state(&pair.lines_ns) == wanted).count();
    Memory {
        line_ns: Summary::of(&lines),
        far_from_ns: FAST_LINE_NS,
        near: of(MachineState::Fast),
        far: of(MachineState::Slow),
        changed: of(MachineState::Changed),
    }
}

fn calibration_of(record: &Record) -> CalibrationSummary {
    let samples: Vec<CalibrationSample> = record
        .calibrations
        .iter()
        .map(|(at, c)| CalibrationSample {
            at_seconds: *at,
            tcp_mb_s: c.tcp_mb_s,
            ping_pong_us: c.ping_pong_us,
            line_ns: c.line_ns,
        })
        .collect();
    let of =
        |value: fn(&CalibrationSample) -> f64| Summary::of(&samples.iter().map(value).collect::<Vec<_>>());
    CalibrationSummary {
        tcp_mb_s: of(|s| s.tcp_mb_s),
        ping_pong_us: of(|s| s.ping_pong_us),
        line_ns: of(|s| s.line_ns),
        fast_below_line_ns: FAST_LINE_NS,
        samples,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_state_between_any_two_lines_is_seen() {
        assert_eq!(state(&[50.0, 52.0, 49.0]), MachineState::Fast);
        assert_eq!(state(&[200.0, 190.0]), MachineState::Slow);
        assert_eq!(state(&[50.0, 200.0, 50.0]), MachineState::Changed);
    }

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
    fn only_rates_of_messages_have_megabytes() {
        assert!(is_message_rate("messages_per_second") && is_message_rate("echoes_per_second"));
        assert!(!is_message_rate("connections_per_second") && !is_message_rate("p50_us"));
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
