//! Turns runs into figures and ratios.

use crate::environment::{DEFAULT, Environment};
use crate::machine;
use crate::peer::Peer;
use crate::results::{
    CalibrationSample, CalibrationSummary, FAST_LINE_NS, Figure, Library, MachineState, Memory, Ratio,
    Results, Summary, smaller_is_better,
};
use crate::scenario::{Cell, Scenario};
use crate::schedule::{Pair, Plan, Record};
use crate::statistics::{median, of_equal_state, ratio_interval};
use crate::wins::wins_of;
use std::collections::BTreeMap;

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

/// True for rates of messages that have a body of the cell's size.
fn is_message_rate(metric: &str) -> bool {
    ["messages_per_second", "echoes_per_second"].contains(&metric)
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

    #[test]
    fn only_rates_of_messages_have_megabytes() {
        assert!(is_message_rate("messages_per_second") && is_message_rate("echoes_per_second"));
        assert!(!is_message_rate("connections_per_second") && !is_message_rate("p50_us"));
    }
}
