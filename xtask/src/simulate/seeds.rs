//! Runs seeds, each in a separate process.

use std::io::Read;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use super::SimulateOptions;

/// Longest run time of a seed. On a busy machine, a seed may take longer while its processor time
/// still grows and is below half of this.
pub(super) const LIMIT: Duration = Duration::from_secs(120);

/// Beginning of the message for a seed that takes longer.
const TOO_LONG: &str = "it takes more than";
/// Beginning of the message for a seed whose two runs differ.
const DIFFER: &str = "two runs differ:";

/// Sums over all seeds.
#[derive(Default)]
struct Totals {
    passed: u64,
    failed: u64,
    virtual_seconds: f64,
    numbers: [u64; 4],
}

/// A seed that has failed.
pub(super) struct FailedSeed {
    pub(super) seed: u64,
    /// Number of seeds that were run until then.
    pub(super) seeds: u64,
    pub(super) seconds: f64,
    pub(super) words: String,
}

fn command(binary: &Path, rest: &[String], seed: u64) -> Command {
    let mut command = Command::new(binary);
    command.arg(seed.to_string()).args(rest);
    command
}

/// Runs one seed, which prints its result itself.
pub(super) fn one(binary: &Path, wanted: &SimulateOptions, seed: u64) -> ExitCode {
    let mut command = command(binary, &wanted.rest, seed);
    if wanted.trace {
        command.arg("--trace");
    }
    match command.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("simulate: {}: {error}", binary.display());
            ExitCode::FAILURE
        }
    }
}

/// Faults that can be left out, with their names in `crates/sim/src/faults.rs`.
const FAULTS: [&str; 19] = [
    "partial",
    "again",
    "interrupted",
    "spurious",
    "reset",
    "refused",
    "descriptors",
    "no_memory",
    "watches",
    "wall",
    "lost",
    "doubled",
    "weak",
    "late",
    "unresolved",
    "stall",
    "latency",
    "old",
    "sandbox",
];

/// Leaves out one fault after the other, as long as the seed still fails.
pub(super) fn shrink(binary: &Path, mut wanted: SimulateOptions, seed: u64) -> ExitCode {
    let (passed, mut words) = outcome(command(binary, &wanted.rest, seed), LIMIT);
    if passed {
        println!("seed {seed} has passed");
        return ExitCode::SUCCESS;
    }
    let mut needed = Vec::new();
    for fault in FAULTS {
        let before = wanted.rest.len();
        wanted.rest.extend(["--without".to_owned(), fault.to_owned()]);
        match outcome(command(binary, &wanted.rest, seed), LIMIT) {
            (false, other) => words = other,
            (true, _) => {
                wanted.rest.truncate(before);
                needed.push(fault);
            }
        }
    }
    for most in ["100", "30", "10", "3", "1"] {
        let before = wanted.rest.len();
        wanted.rest.extend(["--most".to_owned(), most.to_owned()]);
        match outcome(command(binary, &wanted.rest, seed), LIMIT) {
            (false, other) => words = other,
            (true, _) => {
                wanted.rest.truncate(before);
                break;
            }
        }
    }
    println!("seed {seed} needs {needed:?} to fail: --seed {seed} {}\n{words}", wanted.rest.join(" "));
    ExitCode::FAILURE
}

/// Runs a seed. Returns true if it has passed, and its last output.
fn outcome(mut command: Command, limit: Duration) -> (bool, String) {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return (false, format!("{}: {error}", command.get_program().display())),
    };
    let pipes = (child.stdout.take(), child.stderr.take());
    let (child, is_late) = (Mutex::new(child), AtomicBool::new(false));
    let (over, is_over) = mpsc::channel::<()>();
    let (child, is_late) = (&child, &is_late);
    let (output, status) = std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut before = 0.0;
            loop {
                if is_over.recv_timeout(limit) != Err(mpsc::RecvTimeoutError::Timeout) {
                    return;
                }
                let id = child.lock().unwrap_or_else(PoisonError::into_inner).id();
                let used = seconds(&format!("/proc/{id}/stat"), OWN_TIMES);
                if used == before || 2.0 * used >= limit.as_secs_f64() {
                    break;
                }
                before = used;
            }
            is_late.store(true, SeqCst);
            let _ = child.lock().unwrap_or_else(PoisonError::into_inner).kill();
        });
        // A seed that passes prints one line, so the pipes can be read one after the other.
        let (stdout, stderr) = pipes;
        let output = [read(stderr), read(stdout)];
        drop(over);
        (output, child.lock().unwrap_or_else(PoisonError::into_inner).wait())
    });
    let [stderr, stdout] = output;
    match status {
        _ if is_late.load(SeqCst) => (false, format!("{TOO_LONG} {} s", limit.as_secs())),
        Ok(status) if status.success() => (true, stdout),
        Ok(status) if stderr.is_empty() => (false, status.to_string()),
        Ok(_) => (false, stderr),
        Err(error) => (false, error.to_string()),
    }
}

/// Returns the end of a trace: times, threads and their steps. Leaves out system calls by which
/// threads of the engine wait and wake each other up.
fn summarize_trace(trace: &str) -> String {
    const LINES: usize = 30;
    const OWN: [&str; 5] = ["futex_", "epoll_", "timerfd_", "eventfd", "membarrier"];
    let is_told = |line: &&str| match line.split_once(" us  ") {
        Some((_, rest)) => {
            rest.split_whitespace().nth(1).is_some_and(|what| OWN.iter().all(|own| !what.starts_with(own)))
        }
        None => false,
    };
    let lines: Vec<&str> = trace.lines().filter(is_told).collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

/// Reads a pipe to its end.
fn read(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        let _ = pipe.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).trim_end().to_owned()
}

/// Runs a seed. Returns its last output if it fails.
fn fails(binary: &Path, rest: &[String], seed: u64, limit: Duration) -> Option<String> {
    let (passed, words) = outcome(command(binary, rest, seed), limit);
    (!passed).then_some(words)
}

/// Runs one seed. Returns it if it fails.
pub(super) fn try_one(binary: &Path, rest: &[String], seed: u64) -> Option<FailedSeed> {
    let start = Instant::now();
    let words = fails(binary, rest, seed, LIMIT).filter(|words| !words.starts_with(TOO_LONG))?;
    Some(FailedSeed { seed, seeds: 1, seconds: start.elapsed().as_secs_f64(), words })
}

/// Runs seeds with their options on the calling thread, until one fails or the time is over. Returns
/// the number of runs. A seed that takes too long has failed if it passes without the variable in half
/// the time.
pub(super) fn search(
    binary: &Path,
    runs: impl Iterator<Item = (u64, Vec<String>)>,
    variable: (&str, String),
    budget: Duration,
) -> (u64, Option<FailedSeed>) {
    let (start, mut seeds) = (Instant::now(), 0);
    for (seed, options) in runs {
        seeds += 1;
        let mut command = command(binary, &options, seed);
        command.env(variable.0, &variable.1);
        let (passed, words) = outcome(command, LIMIT.min(budget));
        let seconds = start.elapsed().as_secs_f64();
        let is_endless = || fails(binary, &options, seed, budget / 2).is_none();
        if !passed && (!words.starts_with(TOO_LONG) || is_endless()) {
            return (seeds, Some(FailedSeed { seed, seeds, seconds, words }));
        }
        if start.elapsed() >= budget {
            break;
        }
    }
    (seeds, None)
}

/// Runs a seed. Returns its standard error and its standard output if it passes, or an error with its
/// last output if it fails.
pub(super) fn both_outputs(
    binary: &Path,
    rest: &[String],
    variable: (&str, String),
    seed: u64,
) -> Result<(String, String), String> {
    let mut command = command(binary, rest, seed);
    let output = command.env(variable.0, variable.1).output().map_err(|error| error.to_string())?;
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    if output.status.success() { Ok((stderr, stdout)) } else { Err(stderr) }
}

/// Runs seeds from 1 on, on all cores, until one fails or the time is over. Returns their number.
pub(super) fn search_on_all_cores(
    binary: &Path,
    rest: &[String],
    budget: Duration,
) -> (u64, Option<FailedSeed>) {
    let (next, is_over) = (AtomicU64::new(1), AtomicBool::new(false));
    let found: Mutex<Option<FailedSeed>> = Mutex::new(None);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..cores() {
            scope.spawn(|| {
                while !is_over.load(SeqCst) && start.elapsed() < budget {
                    let seed = next.fetch_add(1, Relaxed);
                    let (passed, words) = outcome(command(binary, rest, seed), LIMIT);
                    if passed || words.starts_with(TOO_LONG) {
                        continue;
                    }
                    is_over.store(true, SeqCst);
                    let seconds = start.elapsed().as_secs_f64();
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    if found.as_ref().is_none_or(|found| seed < found.seed) {
                        *found = Some(FailedSeed { seed, seeds: 0, seconds, words });
                    }
                }
            });
        }
    });
    let seeds = next.into_inner() - 1;
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    (seeds, found.map(|found| FailedSeed { seeds, ..found }))
}

pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the processor time, in seconds, of ended child processes.
fn processor_seconds() -> f64 {
    seconds("/proc/self/stat", CHILDREN_TIMES)
}

/// Positions in proc(5) after the name of the process: of utime and stime, and of cutime and cstime.
const OWN_TIMES: usize = 11;
const CHILDREN_TIMES: usize = 13;

/// Returns the processor time in seconds, from two numbers of a file of proc(5).
fn seconds(path: &str, place: usize) -> f64 {
    /// Clock ticks per second in proc(5) on x86-64.
    const TICKS: f64 = 100.0;
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let (_, numbers) = text.rsplit_once(')').unwrap_or_default();
    let ticks = numbers.split_whitespace().skip(place).take(2);
    ticks.filter_map(|number| number.parse::<f64>().ok()).sum::<f64>() / TICKS
}

/// A seed that must pass.
pub(super) struct Run {
    pub(super) seed: u64,
    pub(super) options: Vec<String>,
    /// True if the seed runs twice. Both runs must be the same.
    pub(super) twice: bool,
}

/// Runs seeds on all cores until `until`, with these variables of the environment. Returns true if
/// all have passed.
pub(super) fn many(
    binary: &Path,
    runs: impl Iterator<Item = Run> + Send,
    until: Option<Instant>,
    variables: &[(&str, String)],
) -> bool {
    let (runs, totals, start) = (Mutex::new(runs), Mutex::new(Totals::default()), Instant::now());
    let before = processor_seconds();
    std::thread::scope(|scope| {
        for _ in 0..cores() {
            scope.spawn(|| {
                while until.is_none_or(|until| Instant::now() < until) {
                    let run = runs.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some(run) = run else { return };
                    let outcome = |option: Option<&str>| {
                        let mut command = command(binary, &run.options, run.seed);
                        command.args(option).envs(variables.iter().map(|(name, value)| (*name, value)));
                        outcome(command, LIMIT)
                    };
                    let (mut passed, mut words) = outcome(None);
                    if run.twice {
                        let again = outcome(None);
                        if again.1 != words {
                            (passed, words) = (false, format!("{DIFFER}\n{words}\n{}", again.1));
                        }
                    }
                    if !passed && !words.starts_with(TOO_LONG) {
                        words = format!("{}\n{words}", summarize_trace(&outcome(Some("--trace")).1));
                    }
                    totals.lock().unwrap_or_else(PoisonError::into_inner).add(&run, passed, &words);
                }
            });
        }
    });
    let totals = totals.into_inner().unwrap_or_else(PoisonError::into_inner);
    let real = start.elapsed().as_secs_f64();
    let [switches, calls, points, faults] = totals.numbers;
    println!(
        "{:.0} virtual seconds in {real:.0} s on {} cores, {:.0} s of processor time; {faults} faults, {switches} changes of threads, {calls} calls, {points} points",
        totals.virtual_seconds,
        cores(),
        processor_seconds() - before
    );
    println!("simulation: {} passed, {} failed, 0 skipped", totals.passed, totals.failed);
    totals.failed == 0
}

impl Totals {
    fn add(&mut self, run: &Run, passed: bool, words: &str) {
        if passed {
            self.passed += 1;
        } else {
            self.failed += 1;
            let (seed, options) = (run.seed, run.options.join(" "));
            let again = match words.contains(DIFFER) {
                true => format!("--from {seed} --seeds 1 --twice {options}"),
                false => format!("--seed {seed} {options} --trace"),
            };
            println!("FAILED seed {seed} {options}\n{words}\nagain: cargo xtask simulate {again}\n");
        }
        let line = words.lines().last().unwrap_or_default();
        let number_before = |unit: &str| {
            let mut words = line.split([' ', ',']).filter(|word| !word.is_empty()).peekable();
            while let Some(word) = words.next() {
                if words.peek() == Some(&unit) {
                    return word.parse::<f64>().ok();
                }
            }
            None
        };
        self.virtual_seconds += number_before("s").unwrap_or(0.0);
        for (sum, unit) in self.numbers.iter_mut().zip(["switches", "calls", "points", "faults"]) {
            *sum += number_before(unit).unwrap_or(0.0) as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_story_is_when_who_and_what() {
        let trace = "strategy Random\n  10.000 us  main   recv\n  11.000 us  io#2   epoll_wait(1) = 0\n  12.500 us  io#2   recv(18) = 7\nFAILED";
        assert_eq!(summarize_trace(trace), "  10.000 us  main   recv\n  12.500 us  io#2   recv(18) = 7");
    }

    #[test]
    fn the_last_line_of_a_seed_is_counted() {
        let mut totals = Totals::default();
        let line = "passed pair: hash 01 virtual 1.500000 s, 20 switches, 30 calls, 40 points, 50 faults";
        let run = Run { seed: 1, options: Vec::new(), twice: false };
        totals.add(&run, true, line);
        totals.add(&run, true, line);
        assert_eq!((totals.passed, totals.numbers, totals.virtual_seconds), (2, [40, 60, 80, 100], 3.0));
    }
}
