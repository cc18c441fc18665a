//! The whole engine in a simulated system: `cargo xtask simulate [OPTION...]`. Builds `crates/sim`
//! with `--cfg simulated`, in a folder of its own, and starts it once for each seed.
//!
//! ```text
//!   --seed N        this one; with --trace everything that it does
//!   --seeds N       this many, from --from on (default 100)
//!   --minutes M     for this long, from --from on
//!   --from N        the first seed (default 1)
//!   --only NAME     this workload
//!   --calm          no faults
//!   --late          stores that other threads see late
//!   --delays        threads that stand still at places that the seed says
//!   --without NAME  without this fault
//!   --shrink        with --seed: leaves out the faults without which it fails as well
//!   --twice         each twice: both runs must be the same to the last step
//!   --named         then each seed that finds a planted fault, with the options of that fault
//!   --binary PATH   this program, without building one
//!   --planted [NAME]...
//!                   faults that are put back into a copy: which seed finds each, within --minutes
//!                   (default 10)
//!   --mutations N   N random changes of the sources of the engine: which seed finds each,
//!                   within --seconds (default 60); --from says which changes
//!   --coverage      which lines of the engine the seeds run
//! ```
//!
//! A seed that fails is told with the end of its story and its last words; `--seed N --trace` tells
//! all of it. Exit code 1 if one has failed.

mod coverage;
pub mod faults;
mod hunk;
mod mutations;
mod planted;
mod scratch;
mod seeds;
mod sites;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use seeds::Run;

/// How the simulator is built.
const FLAGS: &str = "--cfg simulated";

/// What the arguments ask for.
#[derive(Debug)]
pub(super) struct Wanted {
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
    /// The names of faults to put back; none are all.
    planted: Option<Vec<String>>,
    mutations: Option<u32>,
    coverage: bool,
    /// For the program.
    rest: Vec<String>,
}

impl Wanted {
    /// When no further seed begins.
    fn until(&self) -> Option<Instant> {
        let seconds = self.minutes.map(|minutes| 60 * minutes).or(self.seconds)?;
        Some(Instant::now() + Duration::from_secs(seconds))
    }

    fn runs(&self) -> impl Iterator<Item = Run> + Send {
        let seeds = self.from..self.from.saturating_add(self.seeds);
        seeds.map(|seed| Run { seed, options: self.rest.clone(), twice: self.twice })
    }
}

/// The seeds that find planted faults, each once.
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
        return told(planted::run(root, &target, &wanted, names));
    }
    if let Some(count) = wanted.mutations {
        return told(mutations::run(root, &target, &wanted, count));
    }
    if wanted.coverage {
        return told(coverage::run(root, &target, &wanted));
    }
    let binary = match &wanted.binary {
        Some(binary) => Ok(binary.clone()),
        None => build(root, &target, FLAGS),
    };
    let binary = match binary {
        Ok(binary) => binary,
        Err(words) => return told(Err(words)),
    };
    match wanted.seed {
        Some(seed) if wanted.shrink => seeds::shrink(&binary, wanted, seed),
        Some(seed) => seeds::one(&binary, &wanted, seed),
        None if wanted.named => {
            let all = named(root).map(|named| wanted.runs().chain(named));
            told(all.map(|all| seeds::many(&binary, all, wanted.until(), &[])))
        }
        None => told(Ok(seeds::many(&binary, wanted.runs(), wanted.until(), &[]))),
    }
}

/// Whether all went well; what kept it from beginning is printed.
fn told(outcome: Result<bool, String>) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(reason) => {
            eprintln!("simulate: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: &[&str]) -> Result<Wanted, String> {
    let mut wanted = Wanted {
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
        let mut value = || words.next().ok_or(format!("{word} wants a value"));
        let number = |text: &&str| text.parse().map_err(|_| format!("{word}: {text} is no number"));
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

/// Builds the simulator of the sources below `root`. An error is what the compiler says, each
/// message with its place.
fn build(root: &Path, target: &Path, flags: &str) -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "-q", "--profile", "simulation", "-p", "tautline-sim", "--message-format", "short"])
        .current_dir(root)
        .env("RUSTFLAGS", flags)
        .env("CARGO_TARGET_DIR", target)
        // What is run in order to build writes its profile, if there is one, here.
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
