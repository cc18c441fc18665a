//! Runs the whole engine in a simulated system: `cargo xtask simulate [OPTION...]`. Builds
//! `crates/sim` with `--cfg simulated`, in a separate folder, and starts it once for each seed.
//!
//! ```text
//!   --seed N        this seed; with --trace, prints all of its steps
//!   --seeds N       N seeds, from --from on (default 100)
//!   --minutes M     seeds for M minutes, from --from on
//!   --from N        the first seed (default 1)
//!   --only NAME     this workload
//!   --calm          no faults
//!   --late          delays the time at which other threads see a store
//!   --delays        stops threads at places that the seed chooses
//!   --without NAME  without this fault
//!   --shrink        with --seed: leaves out faults as long as the seed still fails
//!   --twice         runs each seed twice: both runs must have the same steps
//!   --named         also runs each seed that finds a planted fault, with the options of that fault
//!   --binary PATH   runs this program instead of building one
//!   --planted [NAME]...
//!                   puts faults back into a copy, and searches a seed that finds each, for --minutes
//!                   (default 10)
//!   --mutations N   makes N random changes of the engine, and searches a seed that finds each, for
//!                   --seconds (default 60); --from selects the changes
//!   --coverage      shows the lines of the engine that the seeds run
//! ```
//!
//! For a seed that fails, the end of its trace and its last output are printed. `--seed N --trace`
//! prints the whole trace. The exit code is 1 if a seed has failed.

mod coverage;
pub mod faults;
mod hunk;
mod mutations;
mod planted;
pub mod scratch;
mod seeds;
mod sites;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use seeds::Run;

/// Compiler flags of the simulator.
const FLAGS: &str = "--cfg simulated";

/// Options of the command.
#[derive(Debug)]
pub(super) struct SimulateOptions {
    seed: Option<u64>,
    from: u64,
    seeds: u64,
    minutes: Option<u64>,
    seconds: Option<u64>,
    trace: bool,
    shrink: bool,
    twice: bool,
    named: bool,
    binary: Option<PathBuf>,
    /// Names of the planted faults to put back. An empty list means all.
    planted: Option<Vec<String>>,
    mutations: Option<u32>,
    coverage: bool,
    /// Options that are passed to the simulator.
    rest: Vec<String>,
}

impl SimulateOptions {
    /// Returns the time after which no further seed begins.
    fn until(&self) -> Option<Instant> {
        let seconds = self.minutes.map(|minutes| 60 * minutes).or(self.seconds)?;
        Some(Instant::now() + Duration::from_secs(seconds))
    }

    fn runs(&self) -> impl Iterator<Item = Run> + Send {
        let seeds = self.from..self.from.saturating_add(self.seeds);
        seeds.map(|seed| Run { seed, options: self.rest.clone(), twice: self.twice })
    }
}

/// Returns the seeds that find planted faults, each once.
fn named(root: &Path) -> Result<impl Iterator<Item = Run> + Send, String> {
    let faults = faults::all(root)?.into_iter();
    let seeds: BTreeSet<_> = faults.filter_map(|fault| Some((fault.seed?, fault.options))).collect();
    Ok(seeds.into_iter().map(|(seed, options)| Run { seed, options, twice: false }))
}

pub fn run(root: &Path, target: &Path, arguments: &[&str]) -> ExitCode {
    let wanted = match parse(arguments) {
        Ok(wanted) => wanted,
        Err(reason) => {
            eprintln!("simulate: {reason}");
            return ExitCode::from(2);
        }
    };
    let target = target.join("sim");
    if let Some(names) = &wanted.planted {
        return to_exit_code(planted::run(root, &target, &wanted, names));
    }
    if let Some(count) = wanted.mutations {
        return to_exit_code(mutations::run(root, &target, &wanted, count));
    }
    if wanted.coverage {
        return to_exit_code(coverage::run(root, &target, &wanted));
    }
    let binary = match &wanted.binary {
        Some(binary) => Ok(binary.clone()),
        None => build(root, &target, FLAGS),
    };
    let binary = match binary {
        Ok(binary) => binary,
        Err(words) => return to_exit_code(Err(words)),
    };
    match wanted.seed {
        Some(seed) if wanted.shrink => seeds::shrink(&binary, wanted, seed),
        Some(seed) => seeds::one(&binary, &wanted, seed),
        None if wanted.named => {
            let all = named(root).map(|named| wanted.runs().chain(named));
            to_exit_code(all.map(|all| seeds::many(&binary, all, wanted.until(), &[])))
        }
        None => to_exit_code(Ok(seeds::many(&binary, wanted.runs(), wanted.until(), &[]))),
    }
}

/// Converts the result. Prints the error if the run could not begin.
fn to_exit_code(outcome: Result<bool, String>) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(reason) => {
            eprintln!("simulate: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: &[&str]) -> Result<SimulateOptions, String> {
    let mut wanted = SimulateOptions {
        seed: None,
        from: 1,
        seeds: 100,
        minutes: None,
        seconds: None,
        trace: false,
        shrink: false,
        twice: false,
        named: false,
        binary: None,
        planted: None,
        mutations: None,
        coverage: false,
        rest: Vec::new(),
    };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        let number = |text: &&str| text.parse().map_err(|_| format!("{word}: {text} is not a number"));
        match *word {
            "--seed" => wanted.seed = Some(number(value()?)?),
            "--from" => wanted.from = number(value()?)?,
            "--seeds" => wanted.seeds = number(value()?)?,
            "--minutes" => (wanted.seeds, wanted.minutes) = (u64::MAX, Some(number(value()?)?)),
            "--seconds" => (wanted.seeds, wanted.seconds) = (u64::MAX, Some(number(value()?)?)),
            "--trace" => wanted.trace = true,
            "--shrink" => wanted.shrink = true,
            "--twice" => wanted.twice = true,
            "--named" => wanted.named = true,
            "--binary" => wanted.binary = Some(value()?.into()),
            "--coverage" => wanted.coverage = true,
            "--planted" => wanted.planted = Some(Vec::new()),
            "--mutations" => wanted.mutations = Some(number(value()?)? as u32),
            "--only" => wanted.rest.extend(["--only".to_owned(), (*value()?).to_owned()]),
            "--without" => wanted.rest.extend(["--without".to_owned(), (*value()?).to_owned()]),
            "--calm" | "--late" | "--delays" => wanted.rest.push((*word).to_owned()),
            name if !name.starts_with('-') && wanted.planted.is_some() => {
                wanted.planted.get_or_insert_default().push(name.to_owned());
            }
            _ => return Err(format!("what is {word}?")),
        }
    }
    Ok(wanted)
}

/// Builds the simulator from the sources below `root`. An error has the messages of the compiler,
/// each with its place.
fn build(root: &Path, target: &Path, flags: &str) -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "-q", "--profile", "simulation", "-p", "tautline-sim", "--message-format", "short"])
        .current_dir(root)
        .env("RUSTFLAGS", flags)
        .env("CARGO_TARGET_DIR", target)
        // Build scripts and macros write their profile here, if they have one.
        .env("LLVM_PROFILE_FILE", target.join("build.profraw"))
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    match output.status.success() {
        true => Ok(target.join("simulation/tautline-sim")),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_values() {
        let wanted = parse(&["--from", "7", "--seeds", "3", "--only", "pair"]).unwrap();
        assert_eq!((wanted.from, wanted.seeds, wanted.rest.len()), (7, 3, 2));
        assert!(parse(&["--seed"]).is_err() && parse(&["--seed", "x"]).is_err() && parse(&["x"]).is_err());
    }

    #[test]
    fn names_of_faults_follow_their_option() {
        let wanted = parse(&["--planted", "one", "two", "--minutes", "3"]).unwrap();
        assert_eq!(wanted.planted.as_deref(), Some(&["one".to_owned(), "two".to_owned()][..]));
        assert_eq!(wanted.minutes, Some(3));
    }
}
