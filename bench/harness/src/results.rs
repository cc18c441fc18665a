//! From runs to figures: what `results.json` holds and the report shows.

use crate::machine::{self, Machine};
use crate::peer::Peer;
use crate::scenario::{Cell, Scenario};
use crate::schedule::{Pair, Plan, Record};
use crate::statistics::{median, range, ratio_interval};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Below this a cache line crosses the cores quickly: the fast one of a virtual machine's two states.
pub(crate) const FAST_LINE_NS: f64 = 110.0;

/// The whole of `results.json`.
#[derive(Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) title: String,
    pub(crate) date: String,
    pub(crate) took_seconds: f64,
    pub(crate) pairs: u32,
    pub(crate) target_ms: u64,
    pub(crate) machine: Machine,
    pub(crate) versions: BTreeMap<String, String>,
    /// The reference first.
    pub(crate) libraries: Vec<Library>,
    pub(crate) calibration: CalibrationSummary,
    /// One object for each cell, library and metric.
    pub(crate) cells: Vec<Figure>,
    /// One object for each cell, metric and library other than the reference.
    pub(crate) ratios: Vec<Ratio>,
    /// What was lost, reordered, corrupted or failed; empty when all went well.
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

/// What the machine could do while the run went on.
#[derive(Serialize, Deserialize)]
pub(crate) struct CalibrationSummary {
    pub(crate) tcp_mb_s: Summary,
    pub(crate) ping_pong_us: Summary,
    pub(crate) line_ns: Summary,
    pub(crate) fast_below_line_ns: f64,
    pub(crate) samples: Vec<CalibrationSample>,
}

/// One calibration, and when.
#[derive(Serialize, Deserialize)]
pub(crate) struct CalibrationSample {
    pub(crate) at_seconds: f64,
    pub(crate) tcp_mb_s: f64,
    pub(crate) ping_pong_us: f64,
    pub(crate) line_ns: f64,
}

/// One metric of one cell on one library. A metric that ends in `_us` is better when small, others when large.
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
    pub(crate) lost: u64,
    pub(crate) reordered: u64,
    pub(crate) corrupted: u64,
    pub(crate) samples: Vec<f64>,
    /// Messages per run.
    pub(crate) counts: Vec<u64>,
    pub(crate) errors: Vec<String>,
}

impl Figure {
    /// Did every run succeed, and every message arrive whole and in order?
    pub(crate) fn sound(&self) -> bool {
        self.runs > 0 && self.failed == 0 && self.lost + self.reordered + self.corrupted == 0
    }
}

/// A library against the reference in one cell.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Ratio {
    #[serde(flatten)]
    pub(crate) cell: Cell,
    pub(crate) library: String,
    pub(crate) metric: String,
    /// Median of the library's runs by the median of the reference's.
    pub(crate) ratio: f64,
    /// 95 % bootstrap interval of it.
    pub(crate) interval: (f64, f64),
    /// The ratio of each pair, and their median.
    pub(crate) pairs: Vec<f64>,
    pub(crate) median_of_pairs: f64,
    /// Machine state of each pair: fast, slow, or changed in between.
    pub(crate) states: Vec<String>,
    /// Over tcp: bytes on the wire by what raw TCP carried in the same pair; median.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) share_of_raw_tcp: Option<f64>,
}

impl Ratio {
    /// Is the library at least as good as the reference here?
    pub(crate) fn won(&self) -> bool {
        if smaller_is_better(&self.metric) { self.ratio <= 1.0 } else { self.ratio >= 1.0 }
    }
}

/// Times are better small.
pub(crate) fn smaller_is_better(metric: &str) -> bool {
    metric.ends_with("_us")
}

impl Results {
    pub(crate) fn new(
        scenario: &Scenario,
        plan: &Plan,
        peers: &[Peer],
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
                    ratios.extend(ratios_of(cell, which, peer, &pairs));
                }
            }
        }
        Self {
            title: scenario.title.clone(),
            date: record.date.clone(),
            took_seconds: record.took.as_secs_f64(),
            pairs: plan.pairs,
            target_ms: plan.target_ms,
            machine: record.machine.clone(),
            versions: machine::versions(peers, &reported),
            libraries: peers
                .iter()
                .map(|peer| Library { name: peer.name.clone(), title: peer.title.clone() })
                .collect(),
            calibration: calibration_of(record),
            cells: figures,
            ratios,
            problems,
        }
    }

    /// The figure of one cell, library and metric.
    pub(crate) fn figure(&self, cell: &Cell, library: &str, metric: &str) -> Option<&Figure> {
        self.cells.iter().find(|f| f.cell == *cell && f.library == library && f.metric == metric)
    }

    /// The ratio of one cell, library and metric.
    pub(crate) fn ratio(&self, cell: &Cell, library: &str, metric: &str) -> Option<&Ratio> {
        self.ratios.iter().find(|r| r.cell == *cell && r.library == library && r.metric == metric)
    }

    /// Every cell once, in the order they ran.
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

/// A cell's metrics on one peer; a cell without any good run still has its headline metric, without samples.
fn figures_of(cell: &Cell, which: usize, peer: &Peer, pairs: &[&Pair]) -> Vec<Figure> {
    let outcomes: Vec<_> = pairs.iter().filter_map(|pair| pair.outcomes[which].as_ref()).collect();
    let good: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok()).collect();
    let errors: Vec<String> =
        outcomes.iter().filter_map(|outcome| outcome.as_ref().err().map(|e| e.reason.clone())).collect();
    let cpu: Vec<f64> = good.iter().map(|s| s.cpu_seconds / s.messages as f64 * 1e6).collect();
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
            metric,
            summary: Summary::of(&samples),
            runs: good.len(),
            failed: errors.len(),
            cpu_seconds_per_million_messages: median(&cpu),
            lost: good.iter().map(|s| s.lost).sum(),
            reordered: good.iter().map(|s| s.reordered).sum(),
            corrupted: good.iter().map(|s| s.corrupted).sum(),
            samples,
            counts: good.iter().map(|s| s.count).collect(),
            errors: errors.clone(),
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

fn ratios_of(cell: &Cell, which: usize, peer: &Peer, pairs: &[&Pair]) -> Vec<Ratio> {
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
        let reference: Vec<f64> = both.iter().map(|(_, reference, _)| value(reference)).collect();
        let subject: Vec<f64> = both.iter().map(|(_, _, subject)| value(subject)).collect();
        let pairs: Vec<f64> = subject.iter().zip(&reference).map(|(s, r)| s / r).collect();
        let frame = (cell.size + if cell.size > 255 { 9 } else { 2 }) as f64;
        let share = (metric == "messages_per_second" && cell.transport == "tcp").then(|| {
            let share = |(pair, _, s): &(&Pair, _, _)| value(s) * frame / 1e6 / pair.before.tcp_mb_s.max(1.0);
            median(&both.iter().map(share).collect::<Vec<_>>())
        });
        ratios.push(Ratio {
            cell: cell.clone(),
            library: peer.name.clone(),
            metric: metric.clone(),
            ratio: median(&subject) / median(&reference),
            interval: ratio_interval(&subject, &reference),
            median_of_pairs: median(&pairs),
            pairs,
            states: both.iter().map(|(pair, ..)| state(pair).to_owned()).collect(),
            share_of_raw_tcp: share,
        });
    }
    ratios
}

/// The machine's state around a pair.
fn state(pair: &Pair) -> &'static str {
    match (pair.before.line_ns < FAST_LINE_NS, pair.after_line_ns < FAST_LINE_NS) {
        (true, true) => "fast",
        (false, false) => "slow",
        _ => "changed",
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
