//! Puts planted faults back one after the other, and measures whether and how fast the simulator
//! finds them. The seed that found the fault before runs first, then others.

use std::path::Path;
use std::time::{Duration, Instant};

use super::SimulateOptions;
use super::faults::{self, Fault};
use super::scratch::Scratch;
use super::seeds::{self, FailedSeed};

/// Runs the faults. Returns true if all were found, except for those that are marked as not found.
pub(super) fn run(
    root: &Path,
    target: &Path,
    wanted: &SimulateOptions,
    names: &[String],
) -> Result<bool, String> {
    let mut all = faults::all(root)?;
    if let Some(name) = names.iter().find(|name| all.iter().all(|one| one.name != **name)) {
        let known: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        return Err(format!("unknown fault {name}; known faults: {}", known.join(", ")));
    }
    all.retain(|one| names.is_empty() || names.contains(&one.name));
    let budget = Duration::from_secs(60 * wanted.minutes.unwrap_or(10));
    let scratch = Scratch::new(root, target, "planted");
    let (mut found, mut known, mut missed) = (0, 0, 0);
    let mut rows = Vec::new();
    for one in &all {
        scratch.restore()?;
        scratch.apply(one)?;
        let start = Instant::now();
        let binary = scratch.build().map_err(|words| format!("{}: {words}", one.name))?;
        let built = start.elapsed().as_secs();
        let options: Vec<String> = one.options.iter().chain(&wanted.rest).cloned().collect();
        let by_name = one.seed.and_then(|seed| seeds::try_one(&binary, &options, seed));
        let lost = one.seed.filter(|_| by_name.is_none());
        let result = match by_name {
            Some(by) => (1, Some(by)),
            None => seeds::search_on_all_cores(&binary, &options, budget),
        };
        let verdict = match (result, &one.not_found) {
            ((_, Some(by)), _) => {
                found += 1;
                rows.push(row(one, &by));
                let words = by.words.lines().next().unwrap_or_default().to_owned();
                format!("seed {}, {} seeds, {:.1} s: {words}", by.seed, by.seeds, by.seconds)
            }
            ((seeds, None), Some(why)) => {
                known += 1;
                format!("not found by {seeds} seeds: {why}")
            }
            ((seeds, None), None) => {
                missed += 1;
                format!("NOT FOUND by {seeds} seeds")
            }
        };
        println!("{} ({}; built in {built} s)\n  {verdict}", one.name, one.title);
        if let Some(seed) = lost {
            println!("  its own seed {seed} no longer finds it: correct `found by` in the fault");
        }
    }
    println!("\n| fault | what it brings back | found by | seed | s |\n|---|---|---|--:|--:|");
    rows.iter().for_each(|row| println!("{row}"));
    println!("\nfaults put back: {found} found, {missed} missed, {known} known not to be found");
    Ok(missed == 0)
}

/// Returns the table row of a fault that was found.
fn row(one: &Fault, by: &FailedSeed) -> String {
    let mut workloads = by.words.lines().filter_map(|line| line.trim().strip_prefix("workload "));
    let workload = workloads.next_back().and_then(|rest| rest.split(',').next()).unwrap_or_default();
    let title = one.title.trim_end_matches('.');
    format!("| {} | {title} | {workload} | {} | {:.0} |", one.name, by.seed, by.seconds.ceil())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_names_the_workload() {
        let text = "A bell is lost.\nnot found: x\n";
        let one = Fault::parse("faults/bell.patch".into(), text).unwrap();
        let words = "FAILED: every thread waits\n  thread 1 main: Over\n  workload pair, hash 01".to_owned();
        let by = FailedSeed { seed: 7, seeds: 9, seconds: 1.2, words };
        assert_eq!(row(&one, &by), "| bell | A bell is lost | pair | 7 | 2 |");
    }
}
