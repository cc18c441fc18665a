//! `tautline-bench languages`: what a binding costs in each language, on libzmq 4.3.5 and on Tautline.
//!
//! `language` reads the descriptors, `trial` runs one pair of processes and proves which library they had, `data` keeps
//! what was measured, `pages` and `plots` show it. `docs/methodology.md` says what is measured and how.

mod data;
mod language;
mod pages;
mod plots;
mod trial;

use crate::machine::{self, Machine};
use crate::progress::{Progress, clock};
use data::{BASELINE, Cell, Data, Row};
use language::Language;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use trial::{Kind, Libraries, Task};

/// What the command line asks for.
pub(crate) struct Arguments {
    /// Descriptors and the plan: `bench/languages`.
    pub(crate) directory: PathBuf,
    /// Where `bench/languages/build.sh` left the programs.
    pub(crate) programs: PathBuf,
    /// The two `libzmq.so.5`.
    pub(crate) libzmq: PathBuf,
    pub(crate) tautline: PathBuf,
    /// Where the results go: `docs/results`.
    pub(crate) out: PathBuf,
    /// These languages only, and the baseline; empty for all.
    pub(crate) only: Vec<String>,
    /// Sizes in bytes; empty for the plan's.
    pub(crate) sizes: Vec<u64>,
    /// `latency` or `throughput` only.
    pub(crate) kind: Option<String>,
    /// Instead of the plan's.
    pub(crate) repeats: Option<u32>,
    /// The shortest count of each cell only.
    pub(crate) short: bool,
    /// A tenth of the shortest counts, twice: to try it out. Nothing is kept of what was there.
    pub(crate) quick: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan {
    repeats: u32,
    sizes: Vec<u64>,
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
struct Point {
    kind: Kind,
    size: u64,
    count: u64,
    length: usize,
    warm_up: u64,
}

impl Plan {
    fn read(directory: &Path) -> Result<Self, String> {
        let path = directory.join("plan.toml");
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let plan: Self = toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        if plan.throughput.counts.len() != plan.sizes.len() {
            return Err(format!("{}: one list of counts for each size", path.display()));
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
            add(Kind::Latency, &self.latency.rounds, self.latency.warm_up);
            add(Kind::Throughput, counts, self.throughput.warm_up);
        }
        points.retain(|point| {
            (arguments.sizes.is_empty() || arguments.sizes.contains(&point.size))
                && arguments.kind.as_deref().is_none_or(|kind| kind == data::kind_name(point.kind))
                && (point.length == 0 || !(arguments.short || arguments.quick))
        });
        points
    }
}

/// Measures, merges with what is there, and writes the pages; true when nothing failed.
pub(crate) fn run(arguments: &Arguments) -> Result<bool, String> {
    let plan = Plan::read(&arguments.directory)?;
    let points = plan.points(arguments);
    let repeats = arguments.repeats.unwrap_or(if arguments.quick { 2 } else { plan.repeats }).max(1);
    let libraries =
        Libraries { libzmq: resolved(&arguments.libzmq)?, tautline: resolved(&arguments.tautline)? };
    let (languages, skipped) = find(arguments)?;
    let scratch = std::env::temp_dir().join(format!("tautline-languages-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).map_err(|e| format!("{}: {e}", scratch.display()))?;

    announce(&languages, &skipped, &libraries, &points, repeats);
    let rows = measure(&languages, &points, repeats, &libraries, &scratch);
    let _ = std::fs::remove_dir_all(&scratch);
    let failures: usize = rows.iter().flat_map(|row| &row.cells).map(|cell| cell.failures.len()).sum();

    let data = Data {
        date: machine::date(),
        machine: Machine::here(),
        compilers: machine::versions(&[], &BTreeMap::new()),
        libraries: BTreeMap::from([
            ("libzmq".to_owned(), identity(&libraries.libzmq)),
            ("tautline".to_owned(), identity(&libraries.tautline)),
        ]),
        repeats,
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

/// The languages to run, and those to skip with the reason.
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
        println!("{:<16} {} on {}", language.name, versions.join("; "), language.libraries().join(" and "));
    }
    for (name, reason) in skipped {
        println!("{name:<16} SKIPPED: {reason}");
    }
    for point in points {
        let what = if point.kind == Kind::Latency { "round trips" } else { "messages" };
        println!("{repeats} times {} {what} of {} bytes", point.count, point.size);
    }
}

/// Rounds over all cells, in each every language on every library in turn.
fn measure(
    languages: &[Language],
    points: &[Point],
    repeats: u32,
    libraries: &Libraries,
    scratch: &Path,
) -> Vec<Row> {
    let mut rows: Vec<(usize, Row)> = Vec::new();
    for (at, language) in languages.iter().enumerate() {
        for library in language.libraries() {
            let cells = points.iter().map(|point| empty_cell(point, language)).collect();
            let row = Row {
                language: language.name.clone(),
                title: language.title.clone(),
                binding: language.binding.clone(),
                library: (*library).to_owned(),
                date: machine::date(),
                versions: language.versions.clone(),
                cells,
            };
            rows.push((at, row));
        }
    }
    // How long a trial takes is not known before the first round: a guess, which the progress corrects by its pace.
    let share = Duration::from_secs(2);
    let trials = u32::try_from(rows.len() * points.len()).unwrap_or(u32::MAX).saturating_mul(repeats);
    let mut progress = Progress::new(share * trials);
    for _ in 0..repeats {
        for (place, point) in points.iter().enumerate() {
            for (at, row) in &mut rows {
                let language = &languages[*at];
                let cell = &mut row.cells[place];
                let begin = Instant::now();
                // A cell that failed twice is given up: a hang costs minutes each time.
                if cell.failures.len() < 2 {
                    let task = Task {
                        kind: point.kind,
                        size: point.size,
                        count: cell.count,
                        warm_up: point.warm_up,
                    };
                    match trial::run(language, &row.library, libraries, task, scratch) {
                        Ok(figures) => {
                            for (name, value) in figures {
                                cell.samples.entry(name).or_default().push(value);
                            }
                        }
                        Err(reason) => {
                            let (name, kind) = (&language.name, data::kind_name(point.kind));
                            progress.note(&format!(
                                "FAILED {name} on {}, {kind}, {} bytes: {reason}",
                                row.library, point.size
                            ));
                            cell.failures.push(reason);
                        }
                    }
                }
                progress.advance(share);
                progress.show(&format!(
                    "{} on {}: {} of {} bytes, {}",
                    language.name,
                    row.library,
                    data::kind_name(point.kind),
                    point.size,
                    clock(begin.elapsed())
                ));
            }
        }
    }
    progress.finish();
    rows.into_iter().map(|(_, row)| row).collect()
}

fn empty_cell(point: &Point, language: &Language) -> Cell {
    let count = match point.kind {
        Kind::Latency => point.count,
        Kind::Throughput => (point.count / language.slow).max(2),
    };
    Cell {
        kind: data::kind_name(point.kind).to_owned(),
        size: point.size,
        count,
        length: point.length,
        samples: BTreeMap::new(),
        failures: Vec::new(),
    }
}

fn resolved(path: &Path) -> Result<PathBuf, String> {
    path.canonicalize().map_err(|e| format!("{}: {e}", path.display()))
}

/// Size and SHA-256 of a library.
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
