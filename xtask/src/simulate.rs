//! The whole engine in a simulated system: `cargo xtask simulate [OPTION...]`. Builds `crates/sim` with `--cfg simulated`, in a
//! folder of its own, and starts it once for each seed.
//!
//! ```text
//!   --seed N        this one; with --trace everything that it does
//!   --seeds N       this many, from --from on (default 100)
//!   --minutes M     for this long, from --from on
//!   --from N        the first seed (default 1)
//!   --only NAME     this workload
//!   --calm          no faults
//!   --late          stores that other threads see late
//!   --without NAME  without this fault
//!   --shrink        with --seed: leaves out the faults without which it fails as well
//!   --twice         each twice: both runs must be the same to the last step
//!   --binary PATH   this program, without building one
//! ```
//!
//! A seed that fails is told with its last words; `--seed N --trace` tells its story. Exit code 1 if one has failed.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long one seed may take.
const LIMIT: Duration = Duration::from_secs(120);

#[derive(Debug)]
struct Wanted {
    seed: Option<u64>,
    from: u64,
    seeds: u64,
    until: Option<Instant>,
    trace: bool,
    shrink: bool,
    twice: bool,
    binary: Option<PathBuf>,
    /// For the program.
    rest: Vec<String>,
}

/// What became of all seeds.
#[derive(Default)]
struct Totals {
    passed: u64,
    failed: u64,
    virtual_seconds: f64,
    numbers: [u64; 3],
}

pub fn run(root: &Path, target: &Path, arguments: &[&str]) -> ExitCode {
    let wanted = match parse(arguments) {
        Ok(wanted) => wanted,
        Err(reason) => {
            eprintln!("simulate: {reason}");
            return ExitCode::from(2);
        }
    };
    let binary = match &wanted.binary {
        Some(binary) => binary.clone(),
        None => match build(root, &target.join("sim")) {
            Some(binary) => binary,
            None => return ExitCode::FAILURE,
        },
    };
    match wanted.seed {
        Some(seed) if wanted.shrink => shrink(&binary, wanted, seed),
        Some(seed) => one(&binary, &wanted, seed),
        None => many(&binary, &wanted),
    }
}

fn parse(arguments: &[&str]) -> Result<Wanted, String> {
    let mut wanted = Wanted {
        seed: None,
        from: 1,
        seeds: 100,
        until: None,
        trace: false,
        shrink: false,
        twice: false,
        binary: None,
        rest: Vec::new(),
    };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} wants a value"));
        let number = |text: &&str| text.parse().map_err(|_| format!("{word}: {text} is no number"));
        match *word {
            "--seed" => wanted.seed = Some(number(value()?)?),
            "--from" => wanted.from = number(value()?)?,
            "--seeds" => wanted.seeds = number(value()?)?,
            "--minutes" => {
                wanted.seeds = u64::MAX;
                wanted.until = Some(Instant::now() + Duration::from_secs(60 * number(value()?)?));
            }
            "--trace" => wanted.trace = true,
            "--shrink" => wanted.shrink = true,
            "--twice" => wanted.twice = true,
            "--binary" => wanted.binary = Some(value()?.into()),
            "--only" => wanted.rest.extend(["--only".to_owned(), (*value()?).to_owned()]),
            "--without" => wanted.rest.extend(["--without".to_owned(), (*value()?).to_owned()]),
            "--calm" | "--late" => wanted.rest.push((*word).to_owned()),
            _ => return Err(format!("what is {word}?")),
        }
    }
    Ok(wanted)
}

fn build(root: &Path, target: &Path) -> Option<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "-q", "--profile", "simulation", "-p", "tautline-sim"])
        .current_dir(root)
        .env("RUSTFLAGS", "--cfg simulated")
        .env("CARGO_TARGET_DIR", target)
        .status();
    match status {
        Ok(status) if status.success() => Some(target.join("simulation/tautline-sim")),
        Ok(_) => None,
        Err(error) => {
            eprintln!("simulate: cargo: {error}");
            None
        }
    }
}

fn command(binary: &Path, wanted: &Wanted, seed: u64) -> Command {
    let mut command = Command::new(binary);
    command.arg(seed.to_string()).args(&wanted.rest);
    command
}

/// One seed, which says itself what becomes of it.
fn one(binary: &Path, wanted: &Wanted, seed: u64) -> ExitCode {
    let mut command = command(binary, wanted, seed);
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

/// What can be left out, as `crates/sim/src/faults.rs` names it.
const FAULTS: [&str; 14] = [
    "partial",
    "again",
    "interrupted",
    "spurious",
    "reset",
    "refused",
    "descriptors",
    "no_memory",
    "weak",
    "late",
    "unresolved",
    "stall",
    "latency",
    "old",
];

/// Leaves out one fault after the other, as long as the seed still fails.
fn shrink(binary: &Path, mut wanted: Wanted, seed: u64) -> ExitCode {
    let (passed, mut words) = outcome(binary, &wanted, seed);
    if passed {
        println!("seed {seed} has passed");
        return ExitCode::SUCCESS;
    }
    let mut needed = Vec::new();
    for fault in FAULTS {
        let before = wanted.rest.len();
        wanted.rest.extend(["--without".to_owned(), fault.to_owned()]);
        match outcome(binary, &wanted, seed) {
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
        match outcome(binary, &wanted, seed) {
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

/// The last words of a seed, and whether it has passed.
fn outcome(binary: &Path, wanted: &Wanted, seed: u64) -> (bool, String) {
    let child = command(binary, wanted, seed).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return (false, format!("{}: {error}", binary.display())),
    };
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        match child.try_wait() {
            Ok(Some(_)) => break,
            Ok(None) if start.elapsed() < LIMIT => std::thread::sleep(pause),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return (false, format!("it takes more than {} s", LIMIT.as_secs()));
            }
        }
        pause = (pause * 2).min(Duration::from_millis(20));
    }
    match child.wait_with_output() {
        Ok(output) => {
            let words = if output.status.success() { output.stdout } else { output.stderr };
            let mut words = String::from_utf8_lossy(&words).trim_end().to_owned();
            if !output.status.success() && words.is_empty() {
                words = output.status.to_string();
            }
            (output.status.success(), words)
        }
        Err(error) => (false, error.to_string()),
    }
}

/// Many seeds, on all cores.
fn many(binary: &Path, wanted: &Wanted) -> ExitCode {
    let (next, totals, start) = (AtomicU64::new(0), Mutex::new(Totals::default()), Instant::now());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Relaxed);
                    if at >= wanted.seeds || wanted.until.is_some_and(|until| Instant::now() >= until) {
                        return;
                    }
                    let seed = wanted.from + at;
                    let (mut passed, mut words) = outcome(binary, wanted, seed);
                    if wanted.twice {
                        let again = outcome(binary, wanted, seed);
                        if again.1 != words {
                            (passed, words) = (false, format!("two runs differ:\n{words}\n{}", again.1));
                        }
                    }
                    totals.lock().unwrap_or_else(PoisonError::into_inner).add(seed, passed, &words);
                }
            });
        }
    });
    let totals = totals.into_inner().unwrap_or_else(PoisonError::into_inner);
    let real = start.elapsed().as_secs_f64();
    let [switches, calls, points] = totals.numbers;
    println!(
        "{:.0} virtual seconds in {real:.0} s on {cores} cores; {switches} changes of threads, {calls} calls, {points} points",
        totals.virtual_seconds
    );
    println!("simulation: {} passed, {} failed, 0 skipped", totals.passed, totals.failed);
    if totals.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Totals {
    fn add(&mut self, seed: u64, passed: bool, words: &str) {
        if passed {
            self.passed += 1;
        } else {
            self.failed += 1;
            println!("seed {seed} has failed:\n{words}\n");
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
        for (sum, unit) in self.numbers.iter_mut().zip(["switches", "calls", "points"]) {
            *sum += number_before(unit).unwrap_or(0.0) as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_a_seed_is_counted() {
        let mut totals = Totals::default();
        let line = "passed pair: hash 01 virtual 1.500000 s, 20 switches, 30 calls, 40 points";
        totals.add(1, true, line);
        totals.add(2, true, line);
        assert_eq!((totals.passed, totals.numbers, totals.virtual_seconds), (2, [40, 60, 80], 3.0));
    }

    #[test]
    fn options_have_values() {
        let wanted = parse(&["--from", "7", "--seeds", "3", "--only", "pair"]).unwrap();
        assert_eq!((wanted.from, wanted.seeds, wanted.rest.len()), (7, 3, 2));
        assert!(parse(&["--seed"]).is_err() && parse(&["--seed", "x"]).is_err() && parse(&["x"]).is_err());
    }
}
