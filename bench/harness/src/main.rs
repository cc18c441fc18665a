//! `tautline-bench`: runs the cells of a scenario file on several messaging libraries in turn and writes a table,
//! `results.json` and `report.html`.
//!
//! Who does what: `scenario` and `peer` read files, `process` runs one program once, `schedule` decides what runs when
//! and how long, `results` turns the runs into figures, `table` and `report` show them. `bench/README.md` says what
//! is measured. Anything lost, reordered, corrupted or failed makes the exit code 1, after the report is written.
#![forbid(unsafe_code)]

mod machine;
mod peer;
mod process;
mod progress;
mod report;
mod results;
mod scenario;
mod schedule;
mod statistics;
mod table;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "usage: tautline-bench run --scenario FILE --ours DIR --baseline DIR [options]
  --scenario FILE     what to run (bench/scenarios/*.toml)
  --ours DIR          where Tautline's libzmq.so.5 is
  --baseline DIR      where the reference libzmq.so.5 is
  --programs DIR      compiled peer programs and calibrate (default target/bench/bin)
  --peers DIR         peer files (default bench/peers)
  --out DIR           for results.json and report.html (default target/bench)
  --only KEY=VALUE,.. only these cells: pattern, transport, size, api, processes, subscribers;
                      the same key twice means either
  --pairs N           instead of the scenario's
  tautline-bench report --out DIR    writes report.html again from results.json";

/// What the command line asks for.
pub(crate) struct Arguments {
    scenario: PathBuf,
    libraries: BTreeMap<String, PathBuf>,
    programs: PathBuf,
    peers: PathBuf,
    out: PathBuf,
    only: Vec<(String, String)>,
    pairs: Option<u32>,
}

enum Command {
    Run(Arguments),
    Report(PathBuf),
    Help,
}

fn parse() -> Result<Command, lexopt::Error> {
    use lexopt::prelude::*;
    let mut parser = lexopt::Parser::from_env();
    let mut command = None;
    let mut arguments = Arguments {
        scenario: PathBuf::from("bench/scenarios/quick.toml"),
        libraries: BTreeMap::new(),
        programs: PathBuf::from("target/bench/bin"),
        peers: PathBuf::from("bench/peers"),
        out: PathBuf::from("target/bench"),
        only: Vec::new(),
        pairs: None,
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
            Long("only") => {
                for part in parser.value()?.string()?.split(',') {
                    let (key, value) = part.split_once('=').ok_or("--only wants KEY=VALUE")?;
                    arguments.only.push((key.trim().to_owned(), value.trim().to_owned()));
                }
            }
            Long("help") | Short('h') => return Ok(Command::Help),
            Value(word) if command.is_none() => command = Some(word.string()?),
            other => return Err(other.unexpected()),
        }
    }
    match command.as_deref() {
        Some("run") => Ok(Command::Run(arguments)),
        Some("report") => Ok(Command::Report(arguments.out)),
        _ => Err(USAGE.into()),
    }
}

/// Runs the scenario; true when nothing was lost and nothing failed.
fn run(arguments: &Arguments) -> Result<bool, String> {
    let scenario = scenario::Scenario::read(&arguments.scenario)?;
    let cells = scenario.cells(&arguments.only)?;
    let peers = scenario
        .peers
        .iter()
        .map(|name| peer::Peer::read(&arguments.peers, name, &arguments.programs, &arguments.libraries))
        .collect::<Result<Vec<_>, _>>()?;
    std::fs::create_dir_all(&arguments.out).map_err(|e| format!("{}: {e}", arguments.out.display()))?;

    let plan = schedule::Plan {
        pairs: arguments.pairs.unwrap_or(scenario.pairs).max(1),
        target_ms: scenario.target_ms,
        timeout_s: scenario.timeout_s,
        calibration_ms: scenario.calibration_ms,
        calibrate: arguments.programs.join("calibrate"),
        stderr: arguments.out.join("stderr.txt"),
    };
    let record = schedule::run(&plan, &cells, &peers)?;
    let results = results::Results::new(&scenario, &plan, &peers, &cells, &record);
    print!("{}", table::text(&results));
    write_results(&results, &arguments.out)?;
    Ok(results.problems.is_empty())
}

fn write_results(results: &results::Results, out: &std::path::Path) -> Result<(), String> {
    let json = serde_json::to_string_pretty(results).map_err(|e| e.to_string())?;
    for (name, text) in [("results.json", json), ("report.html", report::html(results))] {
        let path = out.join(name);
        std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        println!("{:>7}: {}", name.split('.').next().unwrap_or(name), path.display());
    }
    Ok(())
}

fn report_again(out: &std::path::Path) -> Result<bool, String> {
    let path = out.join("results.json");
    let json = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let results: results::Results =
        serde_json::from_str(&json).map_err(|e| format!("{}: {e}", path.display()))?;
    print!("{}", table::text(&results));
    write_results(&results, out)?;
    Ok(results.problems.is_empty())
}

fn main() -> ExitCode {
    let outcome = parse().map_err(|e| e.to_string()).and_then(|command| match command {
        Command::Run(arguments) => run(&arguments),
        Command::Report(out) => report_again(&out),
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
            ExitCode::from(2)
        }
    }
}
