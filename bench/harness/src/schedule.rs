//! Order of the runs: rounds over all cells, each with a calibration and then every peer in turn, so that a
//! drift of the machine affects all peers equally. Further rounds repeat only the cells that are still open.
//! Also decides the number of messages in each run.

use crate::environment::{CommandChanges, PreparedEnvironment};
use crate::evaluate::ratios_of;
use crate::interrupt;
use crate::machine;
use crate::peer::Peer;
use crate::process::{self, Calibration, Failure, Sample};
use crate::progress::Progress;
use crate::results::number_of_pairs;
use crate::scenario::Cell;
use crate::statistics::Standing;
use crate::table;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Number and length of the runs, from the scenario and the command line.
pub(crate) struct Plan {
    pub(crate) pairs: u32,
    /// Open cells run until they are decided or have this many pairs.
    pub(crate) most_pairs: u32,
    /// Limit of the width of an interval: [`Ratio::standing`](crate::results::Ratio::standing).
    pub(crate) widest_percent: Option<u32>,
    /// Default duration of a cell.
    pub(crate) target_ms: u64,
    pub(crate) timeout_s: u64,
    pub(crate) calibration_ms: u64,
    pub(crate) calibrate: PathBuf,
    /// Destination of the programs' error output.
    pub(crate) stderr: PathBuf,
}

impl Plan {
    /// Returns the approximate duration of a run of the cell.
    fn target_of(&self, cell: &Cell) -> u64 {
        cell.target_ms.unwrap_or(self.target_ms)
    }
}

/// One cell run once on every peer, close together in time.
pub(crate) struct Pair {
    pub(crate) cell: usize,
    pub(crate) before: Calibration,
    /// Cache line before each peer's run and after the last. If the values before and after a run differ, the
    /// state changed.
    pub(crate) lines_ns: Vec<f64>,
    /// By peer; `None` for a peer that is out of this cell after its failures.
    pub(crate) outcomes: Vec<Option<Result<Sample, Failure>>>,
}

/// All observations.
pub(crate) struct Record {
    pub(crate) date: String,
    pub(crate) machine: machine::Machine,
    pub(crate) pairs: Vec<Pair>,
    /// Seconds since the start, and the calibration of the machine at that time.
    pub(crate) calibrations: Vec<(f64, Calibration)>,
    pub(crate) took: Duration,
}

/// Time to start a program, connect, and shut down.
const OVERHEAD: Duration = Duration::from_millis(40);
/// Number of failed runs after which a peer is out of a cell. One hang is enough.
const FAILURES: u32 = 2;

/// State of one peer in one cell.
#[derive(Clone, Default)]
struct PeerRate {
    /// Seconds per message of every run so far; empty before the probe.
    seconds: Vec<f64>,
    failures: u32,
    is_excluded: bool,
}

impl PeerRate {
    /// Returns the number of messages that fill `target_ms`, at least `least`.
    fn count(&self, target_ms: u64, least: u64) -> u64 {
        let each = crate::statistics::median(&self.seconds);
        let count = target_ms as f64 / 1e3 / each.max(1e-9);
        (count as u64).clamp(least, 100_000_000)
    }

    fn record(&mut self, outcome: &Result<Sample, Failure>) {
        match outcome {
            Ok(sample) => self.seconds.push(sample.seconds / sample.count.max(1) as f64),
            Err(failure) => {
                self.failures += 1;
                self.is_excluded |= failure.hung || failure.unsupported || self.failures >= FAILURES;
            }
        }
    }
}

/// Runs the whole plan, each cell in its environment. Fails only if the machine cannot be calibrated, or
/// after a signal. Failures of a peer are part of the record.
pub(crate) fn run(
    plan: &Plan,
    cells: &[Cell],
    peers: &[Peer],
    made: &[PreparedEnvironment],
) -> Result<Record, String> {
    let run_of = |cell: &Cell| Duration::from_millis(cell.millis.unwrap_or(plan.target_of(cell))) + OVERHEAD;
    let usual = CommandChanges::default();
    let around_of = |cell: &Cell| {
        made.iter()
            .find(|made| made.environment.name == cell.environment)
            .map_or(&usual, |made| &made.command_changes)
    };
    let calibration = Duration::from_millis(3 * plan.calibration_ms) + OVERHEAD / 2;
    let probe = OVERHEAD * 3;
    let pair_of = |cell: &Cell| run_of(cell) * peers.len() as u32 + calibration;
    let probes = cells.iter().filter(|cell| cell.millis.is_none()).count() * peers.len();
    let expected = probe * probes as u32 + cells.iter().map(pair_of).sum::<Duration>() * plan.pairs;

    let mut record = Record {
        date: machine::date(),
        machine: machine::Machine::here(),
        pairs: Vec::new(),
        calibrations: Vec::new(),
        took: Duration::ZERO,
    };
    let titles: Vec<&str> = peers.iter().map(|peer| peer.title.as_str()).collect();
    let pairs = number_of_pairs(plan.pairs, plan.most_pairs);
    println!("{} cells x {pairs} pairs of {}", cells.len(), titles.join(", "));
    let mut progress = Progress::new(expected);
    let began = Instant::now();
    let mut paces = vec![vec![PeerRate::default(); peers.len()]; cells.len()];

    for round in 1..=plan.most_pairs {
        let repeated: Vec<usize> = (0..cells.len())
            .filter(|number| round <= plan.pairs || is_open(plan, *number, &cells[*number], peers, &record))
            .collect();
        if round > plan.pairs {
            let one_round: Duration = repeated.iter().map(|number| pair_of(&cells[*number])).sum();
            progress.expect_more(one_round * (plan.most_pairs + 1 - round));
        }
        for number in repeated {
            let cell = &cells[number];
            let calibrate = |line_only| {
                process::calibrate(&plan.calibrate, plan.calibration_ms, line_only, &plan.stderr)
                    .map_err(|failure| format!("calibrate: {}", failure.reason))
            };
            let before = calibrate(false)?;
            record.calibrations.push((began.elapsed().as_secs_f64(), before));
            progress.advance(calibration);
            let mut outcomes = Vec::new();
            let mut shown = Vec::new();
            let mut lines_ns = vec![before.line_ns];
            let one_run = run_of(cell);
            for (peer, pace) in peers.iter().zip(&mut paces[number]) {
                if pace.is_excluded {
                    progress.shrink(one_run);
                    outcomes.push(None);
                    lines_ns.push(lines_ns.last().copied().unwrap_or(before.line_ns));
                    continue;
                }
                let outcome = run_paced(plan, peer, cell, around_of(cell), pace);
                interrupt::check()?;
                lines_ns.push(calibrate(true)?.line_ns);
                if round == 1 && cell.millis.is_none() {
                    progress.advance(probe);
                }
                progress.advance(one_run);
                match &outcome {
                    Ok(sample) => shown.push(format!("{} {}", peer.title, table::headline(&sample.metrics))),
                    Err(failure) if failure.unsupported => shown.push(format!("{} cannot", peer.title)),
                    Err(failure) => {
                        progress.note(&format!("{} on {}: {}", cell.title(), peer.title, failure.reason));
                        shown.push(format!("{} failed", peer.title));
                    }
                }
                outcomes.push(Some(outcome));
            }
            record.pairs.push(Pair { cell: number, before, lines_ns, outcomes });
            let rounds = if round <= plan.pairs { plan.pairs } else { plan.most_pairs };
            progress.show(&format!("{round}/{rounds} {}: {}", cell.title(), shown.join(", ")));
        }
    }
    record.took = progress.finish();
    Ok(record)
}

/// Returns the smallest number of messages in a run: 100, or fewer large ones, which have 512 MiB together.
fn least_count(cell: &Cell) -> u64 {
    ((512 << 20) / cell.size.max(1)).clamp(8, 100)
}

/// True if more pairs could decide the cell: a ratio of one of its metrics is open, and no peer is out of it.
fn is_open(plan: &Plan, number: usize, cell: &Cell, peers: &[Peer], record: &Record) -> bool {
    let pairs: Vec<&Pair> = record.pairs.iter().filter(|pair| pair.cell == number).collect();
    if pairs.last().is_some_and(|pair| pair.outcomes.iter().any(Option::is_none)) {
        return false;
    }
    (1..peers.len())
        .flat_map(|which| ratios_of(cell, which, &peers[which].name, &pairs, plan.widest_percent))
        .any(|ratio| ratio.standing() == Standing::Open)
}

/// Probes until the count is known, then runs for about the target's time.
fn run_paced(
    plan: &Plan,
    peer: &Peer,
    cell: &Cell,
    around: &CommandChanges,
    pace: &mut PeerRate,
) -> Result<Sample, Failure> {
    let target_ms = plan.target_of(cell);
    let go = |pace: &mut PeerRate, count| {
        let outcome = process::run(peer, cell, around, count, plan.timeout_s, &plan.stderr);
        pace.record(&outcome);
        outcome
    };
    if cell.millis.is_none() && pace.seconds.is_empty() {
        let mut count = match cell {
            cell if cell.is_round_trip() => least_count(cell),
            Cell { size: 0x10_0000.., .. } => least_count(cell),
            Cell { size: 16_384.., .. } => 500,
            cell if cell.pattern == "filter" => 20_000,
            _ => 2000,
        };
        let mut probes = Vec::new();
        // Continue until a probe lasts a fifth of the target: short probes say little about the steady state.
        for _ in 0..3 {
            let sample = go(pace, count)?;
            probes.push(sample.clone());
            if sample.seconds * 1e3 >= target_ms as f64 / 5.0 {
                break;
            }
            let factor = target_ms as f64 / 3e3 / sample.seconds.max(1e-6);
            count = (count as f64 * factor.clamp(1.0, 50.0)) as u64;
        }
        // Only the last probe was long enough for planning.
        pace.seconds.drain(..pace.seconds.len() - 1);
        let mut sample = go(pace, pace.count(target_ms, least_count(cell)))?;
        // A message that a probe lost still counts as lost.
        for probe in probes {
            sample.lost += probe.lost;
            sample.reordered += probe.reordered;
            sample.corrupted += probe.corrupted;
        }
        return Ok(sample);
    }
    go(pace, pace.count(target_ms, least_count(cell)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(hung: bool) -> Result<Sample, Failure> {
        Err(Failure { hung, ..Failure::default() })
    }

    #[test]
    fn count_fills_the_target() {
        let pace = PeerRate { seconds: vec![1e-6, 2e-6, 9e-6], ..PeerRate::default() };
        assert_eq!(pace.count(200, 100), 100_000);
        assert_eq!(PeerRate { seconds: vec![1.0], ..PeerRate::default() }.count(200, 100), 100);
    }

    #[test]
    fn a_hang_or_two_failures_take_a_peer_out() {
        let mut pace = PeerRate::default();
        pace.record(&outcome(false));
        assert!(!pace.is_excluded);
        pace.record(&outcome(false));
        assert!(pace.is_excluded);
        let mut pace = PeerRate::default();
        pace.record(&outcome(true));
        assert!(pace.is_excluded);
    }
}
