//! `tautline-bench languages`: measures the cost of a binding in each language, on libzmq 4.3.5 and on
//! Tautline.
//!
//! `language` reads the descriptors, `trial` runs one pair of processes and proves which library they used,
//! `rounds` runs all trials, `data` stores the measurements, `pages` and `plots` show them.
//! `docs/develop/methodology.md` describes the method.

mod categories;
mod data;
mod language;
mod pages;
mod plots;
mod rounds;
mod trial;

use crate::machine::{self, Machine};
use data::{BASELINE, Data};
use language::Language;
use rounds::{Outcome, Rounds};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use trial::{Libraries, TrialKind};

/// Options of the command line.
pub(crate) struct Arguments {
    /// Descriptors and the plan: `bench/languages`.
    pub(crate) directory: PathBuf,
    /// Output folder of `bench/languages/build.sh`, with the programs.
    pub(crate) programs: PathBuf,
    /// The two `libzmq.so.5`.
    pub(crate) libzmq: PathBuf,
    pub(crate) tautline: PathBuf,
    /// Output folder: `docs/results`.
    pub(crate) out: PathBuf,
    /// Only these languages, and the baseline; empty for all.
    pub(crate) only: Vec<String>,
    /// Sizes in bytes; empty for the plan's sizes.
    pub(crate) sizes: Vec<u64>,
    /// `latency` or `throughput` only.
    pub(crate) kind: Option<String>,
    /// Overrides the plan's number of rounds.
    pub(crate) repeats: Option<u32>,
    /// Only the shortest count of each cell.
    pub(crate) short: bool,
    /// A trial run: a tenth of the shortest counts, two rounds. Existing measurements are not merged.
    pub(crate) quick: bool,
    /// Stops after that time. The same command continues later.
    pub(crate) part: Option<Duration>,
    /// Starts again instead of continuing an interrupted run.
    pub(crate) fresh: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LanguagePlan {
    repeats: u32,
    sizes: Vec<u64>,
    /// Time limit of a trial with one of the longer counts; 0 for no limit.
    budget_seconds: f64,
    latency: Latency,
    throughput: Throughput,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Latency {
    rounds: Vec<u64>,
    warm_up: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Throughput {
    counts: Vec<Vec<u64>>,
    warm_up: u64,
}

/// One cell of the plan.
#[derive(Debug)]
struct Point {
    kind: TrialKind,
    size: u64,
    count: u64,
    length: usize,
    warm_up: u64,
}

impl LanguagePlan {
    fn read(directory: &Path) -> Result<Self, String> {
        let path = directory.join("plan.toml");
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let plan: Self = toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        if plan.throughput.counts.len() != plan.sizes.len() {
            return Err(format!("{}: each size needs one list of counts", path.display()));
        }
        Ok(plan)
    }

    fn points(&self, arguments: &Arguments) -> Vec<Point> {
        let mut points = Vec::new();
        for (&size, counts) in self.sizes.iter().zip(&self.throughput.counts) {
            let mut add = |kind, counts: &[u64], warm_up| {
                for (length, &count) in counts.iter().enumerate() {
                    let count = if arguments.quick { (count / 10).max(2) } else { count };
                    points.push(Point { kind, size, count, length, warm_up });
                }
            };
            add(TrialKind::Latency, &self.latency.rounds, self.latency.warm_up);
            add(TrialKind::Throughput, counts, self.throughput.warm_up);
        }
        points.retain(|point| {
            (arguments.sizes.is_empty() || arguments.sizes.contains(&point.size))
                && arguments.kind.as_deref().is_none_or(|kind| kind == data::kind_name(point.kind))
                && (point.length == 0 || !(arguments.short || arguments.quick))
        });
        points
    }
}

/// Measures, merges with the existing file, and writes the pages. Returns true if no trial failed.
pub(crate) fn run(arguments: &Arguments) -> Result<bool, String> {
    let plan = LanguagePlan::read(&arguments.directory)?;
    let points = plan.points(arguments);
    let repeats = arguments.repeats.unwrap_or(if arguments.quick { 2 } else { plan.repeats }).max(1);
    let libraries =
        Libraries { libzmq: resolved(&arguments.libzmq)?, tautline: resolved(&arguments.tautline)? };
    let (languages, skipped) = find(arguments)?;
    let scratch = std::env::temp_dir().join(format!("tautline-languages-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).map_err(|e| format!("{}: {e}", scratch.display()))?;

    announce(&languages, &skipped, &libraries, &points, repeats);
    let identities = BTreeMap::from([
        ("libzmq".to_owned(), identity(&libraries.libzmq)),
        ("tautline".to_owned(), identity(&libraries.tautline)),
    ]);
    let file =
        arguments.programs.join(if arguments.quick { "unfinished-quick.json" } else { "unfinished.json" });
    if arguments.fresh {
        let _ = std::fs::remove_file(&file);
    }
    let outcome = Rounds {
        languages: &languages,
        points: &points,
        plan: &plan,
        repeats,
        libraries: &libraries,
        scratch: &scratch,
        file,
        key: format!("{repeats} {} {points:?} {identities:?} {languages:?}", plan.budget_seconds),
        part: arguments.part,
    }
    .run();
    let _ = std::fs::remove_dir_all(&scratch);
    let rows = match outcome? {
        Outcome::Finished(rows) => rows,
        Outcome::Interrupted(done, all) => {
            println!("{done} of {all} trials are done; run the same command again to continue");
            return Ok(true);
        }
    };
    let failures: usize = rows.iter().flat_map(|row| &row.cells).map(|cell| cell.failures.len()).sum();

    let data = Data {
        date: machine::date(),
        machine: Machine::here(),
        compilers: machine::versions(&[], &BTreeMap::new()),
        libraries: identities,
        repeats,
        budget_seconds: plan.budget_seconds,
        rows,
        skipped,
    };
    let data = match read(&arguments.out) {
        Some(old) if !arguments.quick => old.merge(data),
        _ => data,
    };
    write(&data, &arguments.out)?;
    if failures > 0 {
        println!("{failures} trials failed; the pages say which");
    }
    Ok(failures == 0)
}

/// Writes the pages again from `benchmark_data.json`.
pub(crate) fn report(out: &Path) -> Result<bool, String> {
    let data = read(out).ok_or_else(|| format!("no benchmark_data.json in {}", out.display()))?;
    write(&data, out)?;
    Ok(true)
}

/// Returns the languages to run, and those to skip with the reason.
fn find(arguments: &Arguments) -> Result<(Vec<Language>, BTreeMap<String, String>), String> {
    let names = language::names(&arguments.directory, BASELINE)?;
    if let Some(unknown) = arguments.only.iter().find(|name| !names.contains(name)) {
        return Err(format!("no language {unknown}; there are {}", names.join(", ")));
    }
    let (mut languages, mut skipped) = (Vec::new(), BTreeMap::new());
    for name in names {
        if !arguments.only.is_empty() && name != BASELINE && !arguments.only.contains(&name) {
            continue;
        }
        match Language::read(&arguments.directory, &name, &arguments.programs)? {
            Ok(language) => languages.push(language),
            Err(reason) if name == BASELINE => return Err(format!("the baseline cannot run: {reason}")),
            Err(reason) => drop(skipped.insert(name, reason)),
        }
    }
    Ok((languages, skipped))
}

fn announce(
    languages: &[Language],
    skipped: &BTreeMap<String, String>,
    libraries: &Libraries,
    points: &[Point],
    repeats: u32,
) {
    println!("libzmq    {}", libraries.libzmq.display());
    println!("Tautline  {}", libraries.tautline.display());
    for language in languages {
        let versions: Vec<&str> = language.versions.values().map(String::as_str).collect();
        println!("{:<22} {} on {}", language.name, versions.join("; "), language.libraries().join(" and "));
    }
    for (name, reason) in skipped {
        println!("{name:<22} SKIPPED: {reason}");
    }
    for point in points {
        let what = if point.kind == TrialKind::Latency { "round trips" } else { "messages" };
        println!("{repeats} times {} {what} of {} bytes", point.count, point.size);
    }
}

fn resolved(path: &Path) -> Result<PathBuf, String> {
    path.canonicalize().map_err(|e| format!("{}: {e}", path.display()))
}

/// Returns the size and SHA-256 of a library.
fn identity(path: &Path) -> String {
    let sum = Command::new("sha256sum").arg(path).output().ok();
    let sum =
        sum.and_then(|o| String::from_utf8_lossy(&o.stdout).split_whitespace().next().map(str::to_owned));
    let size = std::fs::metadata(path).map_or(0, |data| data.len());
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    format!("{file}, {size} bytes, sha256 {}", sum.unwrap_or_else(|| "unknown".to_owned()))
}

fn read(out: &Path) -> Option<Data> {
    let json = std::fs::read_to_string(out.join("benchmark_data.json")).ok()?;
    serde_json::from_str(&json).ok()
}

fn write(data: &Data, out: &Path) -> Result<(), String> {
    let mut files = pages::all(data);
    files.extend(plots::all(data)?);
    let json = serde_json::to_string_pretty(data).map_err(|e| e.to_string())?;
    files.push(("benchmark_data.json".to_owned(), json + "\n"));
    for (name, text) in files {
        let path = out.join(name);
        let folder = path.parent().unwrap_or(out);
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&path, text))
            .map_err(|e| format!("{}: {e}", path.display()))?;
    }
    println!("results: {}", out.join("analysis.md").display());
    Ok(())
}
