//! Faults that the engine once had, put back one after the other: what the simulator finds, and how
//! fast. Each is a patch in `tests/sim/faults`, which begins with what it brings back. Two
//! kinds of lines before the first change are for this program:
//!
//! ```text
//!   options: --late --only publish     for each seed
//!   not found: WHY                     it is known that no seed finds it
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::Wanted;
use super::scratch::Scratch;
use super::seeds::{self, Found};

struct Planted {
    name: String,
    path: PathBuf,
    /// What it brings back.
    title: String,
    options: Vec<String>,
    not_found: Option<String>,
}

/// Whether all were found, but those of which it is known that they are not.
pub(super) fn run(root: &Path, target: &Path, wanted: &Wanted, names: &[String]) -> Result<bool, String> {
    let mut all = planted(&root.join("tests/sim/faults"))?;
    if let Some(name) = names.iter().find(|name| all.iter().all(|one| one.name != **name)) {
        let known: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        return Err(format!("there is no fault {name}, but {}", known.join(", ")));
    }
    all.retain(|one| names.is_empty() || names.contains(&one.name));
    let budget = Duration::from_secs(60 * wanted.minutes.unwrap_or(10));
    let scratch = Scratch::new(root, target, "planted");
    let (mut found, mut known, mut missed) = (0, 0, 0);
    let mut rows = Vec::new();
    for one in &all {
        scratch.restore()?;
        scratch.apply(&one.path).map_err(|words| format!("{}: {words}", one.path.display()))?;
        let start = Instant::now();
        let binary = scratch.build().map_err(|words| format!("{}: {words}", one.path.display()))?;
        let built = start.elapsed().as_secs();
        let options: Vec<String> = one.options.iter().chain(&wanted.rest).cloned().collect();
        let verdict = match (seeds::search_on_all_cores(&binary, &options, budget), &one.not_found) {
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
    }
    println!("\n| fault | what it brings back | found by | seed | s |\n|---|---|---|--:|--:|");
    rows.iter().for_each(|row| println!("{row}"));
    println!("\nfaults put back: {found} found, {missed} missed, {known} known not to be found");
    Ok(missed == 0)
}

/// The line of a table for a fault that was found.
fn row(one: &Planted, by: &Found) -> String {
    let mut workloads = by.words.lines().filter_map(|line| line.trim().strip_prefix("workload "));
    let workload = workloads.next_back().and_then(|rest| rest.split(',').next()).unwrap_or_default();
    let title = one.title.trim_end_matches('.');
    format!("| {} | {title} | {workload} | {} | {:.0} |", one.name, by.seed, by.seconds.ceil())
}

fn planted(folder: &Path) -> Result<Vec<Planted>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "patch"));
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(describe(path, &text))
    };
    paths.into_iter().map(read).collect()
}

fn describe(path: PathBuf, text: &str) -> Planted {
    let head = || text.lines().take_while(|line| !line.starts_with("diff ") && !line.starts_with("--- "));
    let value = |key: &str| head().find_map(|line| line.strip_prefix(key)).map(str::trim);
    Planted {
        name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        title: head().next().unwrap_or_default().to_owned(),
        options: value("options:").unwrap_or_default().split_whitespace().map(str::to_owned).collect(),
        not_found: value("not found:").map(str::to_owned),
        path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_names_the_workload() {
        let one = describe("faults/bell.patch".into(), "A bell is lost.\n");
        let words = "FAILED: every thread waits\n  thread 1 main: Over\n  workload pair, hash 01".to_owned();
        let by = Found { seed: 7, seeds: 9, seconds: 1.2, words };
        assert_eq!(row(&one, &by), "| bell | A bell is lost | pair | 7 | 2 |");
    }

    #[test]
    fn a_patch_says_what_it_is() {
        let text = "A bell is lost.\n\noptions: --late --only pair\ndiff --git a/x b/x\nnot found: x\n";
        let one = describe("faults/bell.patch".into(), text);
        assert_eq!((one.name.as_str(), one.title.as_str()), ("bell", "A bell is lost."));
        assert_eq!((one.options.len(), one.not_found), (3, None));
    }
}
