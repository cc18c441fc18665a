//! `tautline-bench`: runs the cells of a scenario file on several messaging libraries in turn and writes a
//! table, `results.json` and `report.html`.
//!
//! Modules: `scenario` and `peer` read files, `process` runs one program once, `schedule` decides the order
//! and the lengths of the runs, `evaluate` turns the runs into `results`, `wins` counts the won cells, `table`,
//! `report` and `markdown` show them. `bench/README.md` describes the measurements. `environment` creates and
//! removes the environment of a cell, `environment_table` is their table, `ablate` compares Tautline with
//! itself. If a message was lost, reordered or corrupted, or a run failed, the exit code is 1, after the
//! report is written.
#![forbid(unsafe_code)]

mod ablate;
mod environment;
mod environment_table;
mod evaluate;
mod interrupt;
mod languages;
mod machine;
mod markdown;
mod peer;
mod process;
mod progress;
mod report;
mod results;
mod scenario;
mod schedule;
mod statistics;
mod table;
mod wins;

use scenario::Scenario;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "usage: tautline-bench run --scenario FILE --ours DIR --baseline DIR [options]
  --scenario FILE     scenario file (bench/scenarios/*.toml)
  --ours DIR          folder of Tautline's libzmq.so.5
  --baseline DIR      folder of the reference libzmq.so.5
  --library NAME=DIR  folder of another libzmq.so.5 that a peer file names
  --programs DIR      compiled peer programs and calibrate (default target/bench/bin)
  --peers DIR         peer files (default bench/peers)
  --out DIR           for results.json and report.html (default target/bench)
  --only KEY=VALUE,.. only these cells: pattern, transport, size, api, processes, subscribers,
                      environment, or an option of the pattern; a repeated key accepts either value
  --pairs N           number of pairs, instead of the scenario's
  --most-pairs N      runs open cells again until they are decided or have N pairs
  --millis N          duration of timed cells, instead of the scenario's
  --quick             3 pairs of half the time each; takes two minutes for one environment
  --peer 'NAME [VARIABLE=VALUE]..'
                      replaces the scenario's peers, repeatable; the first is the reference
  tautline-bench ablate RULE.. [options]
                      measures the benefit of each rule of the engine's timing: Tautline beside itself without that rule;
                      RULE is a name for TAUT_WITHOUT, or VARIABLE=VALUE, which only one side gets. Options as for run, without
                      --baseline; --peer is the compared peer (default tautline)
  tautline-bench report --out DIR    writes report.html again from results.json
  tautline-bench languages --tautline FILE --libzmq FILE [options]
  --languages DIR     descriptors and plan.toml (default bench/languages)
  --programs DIR      output of bench/languages/build.sh (default target/languages)
  --out DIR           for the pages and benchmark_data.json (default docs/results)
  --only NAME,..      only these languages, and the baseline
  --sizes N,..        sizes, instead of the plan's; --kind latency|throughput; --repeats N
  --short             only the shortest count of each cell
  --quick             a trial run: a tenth of that count, twice
  --part SECONDS      stops after that time; the same command continues later
  --fresh             starts again instead of continuing an interrupted run
  tautline-bench languages-report --out DIR   writes the pages again
  tautline-bench markdown DIR...     prints the tables of each DIR's results.json for a document";

/// Options of the command line.
pub(crate) struct Arguments {
    scenario: PathBuf,
    libraries: BTreeMap<String, PathBuf>,
    programs: PathBuf,
    peers: PathBuf,
    out: PathBuf,
    only: Vec<(String, String)>,
    pairs: Option<u32>,
    most_pairs: Option<u32>,
    millis: Option<u64>,
    quick: bool,
    /// Peers in place of the scenario's.
    named: Vec<String>,
    /// Rules that `ablate` switches off, one at a time.
    rules: Vec<String>,
}

enum Command {
    Run(Arguments),
    Ablate(Arguments),
    Report(PathBuf),
    Markdown(Vec<PathBuf>),
    Languages(languages::Arguments),
    LanguagesReport(PathBuf),
    Help,
}

fn parse() -> Result<Command, lexopt::Error> {
    use lexopt::prelude::*;
    let mut parser = lexopt::Parser::from_env();
    if std::env::args().nth(1).is_some_and(|word| word.starts_with("languages")) {
        return parse_languages(parser);
    }
    let mut command = None;
    let mut directories = Vec::new();
    let mut arguments = Arguments {
        scenario: PathBuf::from("bench/scenarios/quick.toml"),
        libraries: BTreeMap::new(),
        programs: PathBuf::from("target/bench/bin"),
        peers: PathBuf::from("bench/peers"),
        out: PathBuf::from("target/bench"),
        only: Vec::new(),
        pairs: None,
        most_pairs: None,
        millis: None,
        quick: false,
        named: Vec::new(),
        rules: Vec::new(),
    };
    while let Some(argument) = parser.next()? {
        match argument {
            Long("scenario") => arguments.scenario = parser.value()?.into(),
            Long("ours") => drop(arguments.libraries.insert("ours".to_owned(), parser.value()?.into())),
            Long("baseline") => {
                drop(arguments.libraries.insert("baseline".to_owned(), parser.value()?.into()))
            }
            Long("programs") => arguments.programs = parser.value()?.into(),
            Long("peers") => arguments.peers = parser.value()?.into(),
            Long("out") => arguments.out = parser.value()?.into(),
            Long("pairs") => arguments.pairs = Some(parser.value()?.parse()?),
            Long("most-pairs") => arguments.most_pairs = Some(parser.value()?.parse()?),
            Long("millis") => arguments.millis = Some(parser.value()?.parse()?),
            Long("quick") => arguments.quick = true,
            Long("peer") => arguments.named.push(parser.value()?.string()?),
            Long("library") => {
                let value = parser.value()?.string()?;
                let (name, directory) = value.split_once('=').ok_or("--library wants NAME=DIR")?;
                arguments.libraries.insert(name.to_owned(), directory.into());
            }
            Long("only") => {
                for part in parser.value()?.string()?.split(',') {
                    let (key, value) = part.split_once('=').ok_or("--only wants KEY=VALUE")?;
                    arguments.only.push((key.trim().to_owned(), value.trim().to_owned()));
                }
            }
            Long("help") | Short('h') => return Ok(Command::Help),
            Value(word) if command.is_none() => command = Some(word.string()?),
            Value(directory) if command.as_deref() == Some("markdown") => directories.push(directory.into()),
            Value(rule) if command.as_deref() == Some("ablate") => arguments.rules.push(rule.string()?),
            other => return Err(other.unexpected()),
        }
    }
    match command.as_deref() {
        Some("ablate") => Ok(Command::Ablate(arguments)),
        Some("run") => Ok(Command::Run(arguments)),
        Some("report") => Ok(Command::Report(arguments.out)),
        Some("markdown") => Ok(Command::Markdown(directories)),
        _ => Err(USAGE.into()),
    }
}

fn parse_languages(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    use lexopt::prelude::*;
    let mut report = false;
    let mut arguments = languages::Arguments {
        directory: PathBuf::from("bench/languages"),
        programs: PathBuf::from("target/languages"),
        libzmq: PathBuf::new(),
        tautline: PathBuf::new(),
        out: PathBuf::from("docs/results"),
        only: Vec::new(),
        sizes: Vec::new(),
        kind: None,
        repeats: None,
        short: false,
        quick: false,
        part: None,
        fresh: false,
    };
    while let Some(argument) = parser.next()? {
        match argument {
            Value(word) if word == "languages" => {}
            Value(word) if word == "languages-report" => report = true,
            Long("languages") => arguments.directory = parser.value()?.into(),
            Long("programs") => arguments.programs = parser.value()?.into(),
            Long("libzmq") => arguments.libzmq = parser.value()?.into(),
            Long("tautline") => arguments.tautline = parser.value()?.into(),
            Long("out") => arguments.out = parser.value()?.into(),
            Long("only") => {
                arguments.only =
                    parser.value()?.string()?.split(',').map(|name| name.trim().to_owned()).collect();
            }
            Long("sizes") => {
                for size in parser.value()?.string()?.split(',') {
                    arguments.sizes.push(size.trim().parse().map_err(|_| "--sizes needs numbers")?);
                }
            }
            Long("kind") => {
                let kind = parser.value()?.string()?;
                if !["latency", "throughput"].contains(&kind.as_str()) {
                    return Err("--kind must be latency or throughput".into());
                }
                arguments.kind = Some(kind);
            }
            Long("repeats") => arguments.repeats = Some(parser.value()?.parse()?),
            Long("short") => arguments.short = true,
            Long("quick") => arguments.quick = true,
            Long("part") => {
                let seconds: u64 = parser.value()?.parse()?;
                arguments.part = Some(std::time::Duration::from_secs(seconds));
            }
            Long("fresh") => arguments.fresh = true,
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(other.unexpected()),
        }
    }
    Ok(if report { Command::LanguagesReport(arguments.out) } else { Command::Languages(arguments) })
}

/// Returns the peers that can run, and the title and reason of each peer that cannot. The first two must be
/// able to run.
fn find_peers(names: &[String], arguments: &Arguments) -> Result<(Vec<peer::Peer>, Vec<String>), String> {
    let (mut peers, mut absent) = (Vec::new(), Vec::new());
    for name in names {
        match peer::Peer::read(&arguments.peers, name, &arguments.programs, &arguments.libraries) {
            Ok(peer) => peers.push(peer),
            Err(reason) if peers.len() < 2 => return Err(reason),
            Err(reason) => absent.push(format!("{name}: {}", reason.trim())),
        }
    }
    for text in &absent {
        println!("not there: {text}");
    }
    Ok((peers, absent))
}

/// Work from the scenario and the command line, in environments that exist as long as this value.
pub(crate) struct Job {
    pub(crate) scenario: Scenario,
    pub(crate) plan: schedule::Plan,
    /// Cells whose environment exists.
    pub(crate) cells: Vec<scenario::Cell>,
    pub(crate) made: Vec<environment::PreparedEnvironment>,
}

impl Job {
    /// `out` is the folder for the results.
    fn new(arguments: &Arguments, scenario: Scenario, out: &Path) -> Result<Self, String> {
        let mut cells = scenario.cells(&arguments.only)?;
        let halved = |time: u64| if arguments.quick { time.div_ceil(2) } else { time };
        for cell in &mut cells {
            cell.millis = cell.millis.map(|millis| halved(arguments.millis.unwrap_or(millis)));
            cell.target_ms = cell.target_ms.map(halved);
        }
        std::fs::create_dir_all(out).map_err(|e| format!("{}: {e}", out.display()))?;
        let pairs = if arguments.quick { scenario.pairs.min(3) } else { scenario.pairs };
        let pairs = arguments.pairs.unwrap_or(pairs).max(1);
        // A number of pairs on the command line is exact, unless that also has the largest number.
        let growing = arguments.pairs.is_none() && !arguments.quick;
        let most_pairs = arguments.most_pairs.or(scenario.most_pairs.filter(|_| growing));
        let plan = schedule::Plan {
            pairs,
            most_pairs: most_pairs.unwrap_or(pairs).max(pairs),
            widest_percent: scenario.widest_percent,
            target_ms: halved(scenario.target_ms),
            timeout_s: scenario.timeout_s,
            calibration_ms: scenario.calibration_ms,
            calibrate: arguments.programs.join("calibrate"),
            stderr: out.join("stderr.txt"),
        };
        interrupt::install_handlers()?;
        let mut names: Vec<String> = Vec::new();
        for cell in &cells {
            if !names.contains(&cell.environment) {
                names.push(cell.environment.clone());
            }
        }
        let made = environment::make_all(&names, &arguments.programs)?;
        interrupt::check()?;
        for environment in made.iter().map(|made| &made.environment) {
            if let Some(reason) = &environment.absent {
                println!("not there: {}: {reason}", environment.name);
                cells.retain(|cell| cell.environment != environment.name);
            }
        }
        if cells.is_empty() {
            return Err("none of the chosen environments is available".to_owned());
        }
        Ok(Self { scenario, plan, cells, made })
    }

    /// Runs it on some peers, the reference first.
    fn measure(&self, peers: &[peer::Peer], absent: Vec<String>) -> Result<results::Results, String> {
        let record = schedule::run(&self.plan, &self.cells, peers, &self.made)?;
        let environments = self.made.iter().map(|made| made.environment.clone()).collect();
        Ok(results::Results::new(
            &self.scenario,
            &self.plan,
            peers,
            absent,
            environments,
            &self.cells,
            &record,
        ))
    }
}

/// Runs the scenario and those that it names, each into its own folder. Returns true if no message was lost and
/// no run failed.
fn run(arguments: &Arguments) -> Result<bool, String> {
    let scenario = Scenario::read(&arguments.scenario)?;
    // The peers of the command line are for this file.
    let others = if arguments.named.is_empty() { scenario.read_others(&arguments.scenario)? } else { vec![] };
    let mut chosen = Vec::new();
    for (name, other) in others {
        if other.has(&arguments.only)? {
            chosen.push((other, arguments.out.join(name)));
        }
    }
    // If no file has such a cell, the reason is that of the first.
    if chosen.is_empty() || scenario.has(&arguments.only)? {
        chosen.insert(0, (scenario, arguments.out.clone()));
    }
    let mut sound = true;
    for (scenario, out) in chosen {
        sound &= run_one(arguments, scenario, &out)?;
    }
    Ok(sound)
}

fn run_one(arguments: &Arguments, scenario: Scenario, out: &Path) -> Result<bool, String> {
    let job = Job::new(arguments, scenario, out)?;
    let names = if arguments.named.is_empty() { &job.scenario.peers } else { &arguments.named };
    let (peers, absent) = find_peers(names, arguments)?;
    let results = job.measure(&peers, absent)?;
    print!("{}", table::text(&results));
    write_results(&results, out)?;
    Ok(results.problems.is_empty())
}

fn write_results(results: &results::Results, out: &Path) -> Result<(), String> {
    let json = serde_json::to_string_pretty(results).map_err(|e| e.to_string())?;
    for (name, text) in [("results.json", json), ("report.html", report::html(results))] {
        let path = out.join(name);
        std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        println!("{:>7}: {}", name.split('.').next().unwrap_or(name), path.display());
    }
    Ok(())
}

fn read_results(directory: &Path) -> Result<results::Results, String> {
    let path = directory.join("results.json");
    let json = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    serde_json::from_str(&json).map_err(|e| format!("{}: {e}", path.display()))
}

fn report_again(out: &Path) -> Result<bool, String> {
    let results = read_results(out)?;
    print!("{}", table::text(&results));
    write_results(&results, out)?;
    Ok(results.problems.is_empty())
}

fn main() -> ExitCode {
    let outcome = parse().map_err(|e| e.to_string()).and_then(|command| match command {
        Command::Run(arguments) => run(&arguments),
        Command::Ablate(arguments) => ablate::run(&arguments),
        Command::Report(out) => report_again(&out),
        Command::Markdown(directories) => {
            let results: Result<Vec<_>, _> = directories.iter().map(|d| read_results(d)).collect();
            print!("{}", markdown::text(&results?));
            Ok(true)
        }
        Command::Languages(arguments) => languages::run(&arguments),
        Command::LanguagesReport(out) => languages::report(&out),
        Command::Help => {
            println!("{USAGE}");
            Ok(true)
        }
    });
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("tautline-bench: {error}");
            ExitCode::from(if error == interrupt::INTERRUPTED_ERROR { 130 } else { 2 })
        }
    }
}
