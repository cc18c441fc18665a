//! Shows the lines of the engine that the simulator runs: `--coverage`. Code that is built for this
//! system counts, except for tests. The tools are LLVM's, in the version of the compiler. rustup
//! installs missing ones.
//!
//! `tests/sim/unreached.txt` lists code that the simulator cannot reach, with reasons: a file, or one
//! of its functions, in each line.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{SimulateOptions, seeds};
use crate::scan;

const FLAGS: &str = "--cfg simulated --cfg covered -C instrument-coverage";
/// Profile of the runs. LLVM adds up the runs that write to one file.
const PROFILE: &str = "%2m.profraw";
/// Parts of the engine whose files and functions are listed.
const PARTS: [&str; 6] =
    ["crates/core/src", "crates/queue/src", "crates/timing/src", "crates/config/src", "crates/host/src", "crates/io/src"];
/// Lower layers, of which only sums are shown.
const FOUNDATIONS: [&str; 2] = ["crates/mem/src", "crates/proto/src"];
const UNREACHED: &str = "tests/sim/unreached.txt";

/// Lines of a file. The value is true if the line was run.
type Lines = BTreeMap<usize, bool>;

/// Number of lines, and of lines that were run.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Sum {
    all: usize,
    run: usize,
}

impl Sum {
    fn of<'a>(lines: impl IntoIterator<Item = &'a Lines>) -> Self {
        lines
            .into_iter()
            .flat_map(BTreeMap::values)
            .fold(Sum::default(), |sum, run| Sum { all: sum.all + 1, run: sum.run + usize::from(*run) })
    }

    fn percent(self) -> f64 {
        100.0 * self.run as f64 / self.all.max(1) as f64
    }
}

/// A file or function that the simulator cannot reach.
#[derive(Debug, PartialEq, Eq)]
struct Unreached {
    path: String,
    /// `None` means the whole file.
    function: Option<String>,
    reason: String,
}

/// Runs the seeds, and prints their coverage. Returns false if a seed has failed.
pub(super) fn run(root: &Path, target: &Path, wanted: &SimulateOptions) -> Result<bool, String> {
    let tools = tools()?;
    let text =
        std::fs::read_to_string(root.join(UNREACHED)).map_err(|error| format!("{UNREACHED}: {error}"))?;
    let unreached = unreached(&text)?;
    let folder = target.join("coverage");
    let binary = super::build(root, &folder, FLAGS)?;
    let profiles = folder.join("profiles");
    let _ = std::fs::remove_dir_all(&profiles);
    std::fs::create_dir_all(&profiles).map_err(|error| format!("{}: {error}", profiles.display()))?;
    let profile = profiles.join(PROFILE).to_string_lossy().into_owned();
    let variables = [("LLVM_PROFILE_FILE", profile)];
    let passed = seeds::many(&binary, wanted.runs(), wanted.until(), &variables);
    let merged = folder.join("merged.profdata");
    let written = std::fs::read_dir(&profiles).map_err(|error| format!("{}: {error}", profiles.display()))?;
    let mut merge = Command::new(tools.join("llvm-profdata"));
    merge.args(["merge", "-sparse", "-o"]).arg(&merged);
    output(merge.args(written.flatten().map(|entry| entry.path())))?;
    let records = output(
        Command::new(tools.join("llvm-cov"))
            .args(["export", "-format=lcov", "-instr-profile"])
            .arg(&merged)
            .arg(&binary),
    )?;
    let _ = std::fs::remove_dir_all(&profiles);
    let _ = std::fs::remove_file(&merged);
    let files = files(&records, root);
    for part in PARTS {
        print!("{}", report(part, &files, &functions(root, part), &unreached));
    }
    for part in FOUNDATIONS {
        let sum = Sum::of(below(part, &files).map(|(_, lines)| lines));
        println!("{part}: {:.1} % of {} lines", sum.percent(), sum.all);
    }
    Ok(passed)
}

fn below<'a>(
    part: &'a str,
    files: &'a BTreeMap<String, Lines>,
) -> impl Iterator<Item = (&'a String, &'a Lines)> {
    files.iter().filter(move |(path, _)| Path::new(path.as_str()).starts_with(part))
}

/// For each file, the first lines of its functions with their names.
type Functions = BTreeMap<String, BTreeMap<usize, String>>;

fn functions(root: &Path, part: &str) -> Functions {
    let of_source = |source: scan::Source| {
        let names = source.code.lines().enumerate().filter_map(|(at, code)| Some((at + 1, function(code)?)));
        (format!("{part}/{}", source.path), names.map(|(at, name)| (at, name.to_owned())).collect())
    };
    scan::sources(&root.join(part)).into_iter().map(of_source).collect()
}

/// Returns the name of the function that begins in a line.
fn function(code: &str) -> Option<&str> {
    let (before, rest) = code.split_once("fn ")?;
    let is_item = before.split_whitespace().all(|word| {
        matches!(word, "const" | "unsafe" | "extern" | "async")
            || word.starts_with("pub")
            || word.starts_with(['"', '('])
    });
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    (is_item && end > 0).then_some(&rest[..end])
}

/// Returns the report on one part of the engine: each file, then its code that was not run.
fn report(
    part: &str,
    files: &BTreeMap<String, Lines>,
    functions: &Functions,
    unreached: &[Unreached],
) -> String {
    let mut text = String::new();
    let mut details = String::new();
    let mut reached = Vec::new();
    let mut beyond: BTreeMap<&str, (usize, BTreeSet<String>)> = BTreeMap::new();
    for (path, lines) in below(part, files) {
        let sum = Sum::of([lines]);
        let _ = writeln!(text, "{:6.1} % of {:4} lines  {path}", sum.percent(), sum.all);
        let none = BTreeMap::new();
        let begins = functions.get(path).unwrap_or(&none);
        let mut kept = Lines::new();
        // Keyed by the first line of the function; 0 is outside of functions.
        let mut own: BTreeMap<usize, Lines> = BTreeMap::new();
        for (line, run) in lines {
            let begin = begins.range(..=*line).next_back().map_or(0, |(line, _)| *line);
            own.entry(begin).or_default().insert(*line, *run);
        }
        let mut head = Some(format!("{path}\n"));
        for (begin, lines) in own {
            let name = begins.get(&begin).map_or("", String::as_str);
            let place = unreached.iter().find(|one| {
                one.path == *path && one.function.as_deref().is_none_or(|function| function == name)
            });
            if let Some(place) = place {
                let (count, places) = beyond.entry(&place.reason).or_default();
                *count += lines.values().filter(|run| !**run).count();
                places.insert(match &place.function {
                    Some(function) => format!("{path} ({function})"),
                    None => path.clone(),
                });
                kept.extend(lines.iter().filter(|(_, run)| **run));
                continue;
            }
            kept.extend(&lines);
            let missing: Vec<usize> = lines.iter().filter(|(_, run)| !**run).map(|(line, _)| *line).collect();
            if missing.is_empty() {
                continue;
            }
            details.push_str(&head.take().unwrap_or_default());
            let name = if name.is_empty() { "outside of functions" } else { name };
            let whole = if missing.len() == lines.len() { "never run, " } else { "" };
            let _ = writeln!(details, "    {name}: {whole}{}", ranges(&missing, lines.keys().copied()));
        }
        reached.push(kept);
    }
    let sum = Sum::of(below(part, files).map(|(_, lines)| lines));
    let _ = writeln!(text, "{part}: {:.1} % of {} lines", sum.percent(), sum.all);
    let within = Sum::of(&reached);
    let _ = writeln!(
        text,
        "{part}: {:.1} % of the {} lines that it can reach; it cannot reach",
        within.percent(),
        within.all
    );
    for (reason, (count, places)) in beyond {
        let places: Vec<String> = places.into_iter().collect();
        let _ = writeln!(text, "    {count} lines: {reason}: {}", places.join(", "));
    }
    let _ = writeln!(text, "{part}: not run are\n{details}");
    text
}

/// Joins lines to ranges. Lines without code, which are not in `all`, do not end a range.
fn ranges(lines: &[usize], all: impl Iterator<Item = usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    let mut goes_on = false;
    for line in all {
        match ranges.last_mut() {
            _ if !lines.contains(&line) => goes_on = false,
            Some(range) if goes_on => range.1 = line,
            _ => {
                ranges.push((line, line));
                goes_on = true;
            }
        }
    }
    let text = |(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Returns the files below `root`, from the records of lcov.
fn files(records: &str, root: &Path) -> BTreeMap<String, Lines> {
    let mut files: BTreeMap<String, Lines> = BTreeMap::new();
    let mut path = None;
    for record in records.lines() {
        match record.split_once(':') {
            Some(("SF", name)) => {
                let below = Path::new(name).strip_prefix(root).ok();
                path = below.map(|path| path.to_string_lossy().into_owned());
            }
            Some(("DA", numbers)) => {
                let Some(path) = &path else { continue };
                let Some((line, count)) = numbers.split_once(',') else { continue };
                let Ok(line) = line.parse() else { continue };
                let lines = files.entry(path.clone()).or_default();
                *lines.entry(line).or_default() |= !count.starts_with('0');
            }
            _ => {}
        }
    }
    files
}

/// Parses lines `PATH: REASON` and `PATH FUNCTION: REASON`. Other lines are empty or begin with `#`.
fn unreached(text: &str) -> Result<Vec<Unreached>, String> {
    let meant = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    meant
        .map(|line| {
            let (place, reason) = line.split_once(": ").ok_or(format!("{UNREACHED}: what is `{line}`?"))?;
            let (path, function) = match place.split_once(' ') {
                Some((path, function)) => (path, Some(function.to_owned())),
                None => (place, None),
            };
            Ok(Unreached { path: path.to_owned(), function, reason: reason.to_owned() })
        })
        .collect()
}

/// Returns the folder of the compiler's LLVM tools.
fn tools() -> Result<PathBuf, String> {
    let printed = output(Command::new("rustc").args(["--print", "target-libdir"]))?;
    let folder = Path::new(printed.trim()).with_file_name("bin");
    if !folder.join("llvm-cov").exists() {
        println!("LLVM's tools are missing, and are installed: rustup component add llvm-tools");
        output(Command::new("rustup").args(["component", "add", "llvm-tools"]))?;
    }
    match folder.join("llvm-cov").exists() {
        true => Ok(folder),
        false => Err(format!("there is no llvm-cov in {}", folder.display())),
    }
}

fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_below_the_root_count() {
        let records =
            "SF:/r/crates/core/src/a.rs\nDA:1,2\nDA:2,0\nend_of_record\nSF:/x/b.rs\nDA:1,1\nend_of_record\n";
        let files = files(records, Path::new("/r"));
        assert_eq!(files.len(), 1);
        assert_eq!(Sum::of(files.values()), Sum { all: 2, run: 1 });
    }

    #[test]
    fn unreached_lines_are_listed_by_function() {
        let lines = [(2, true), (3, false), (4, false), (7, false), (8, false), (11, true)];
        let files = BTreeMap::from([("a/x.rs".to_owned(), Lines::from(lines))]);
        let names = [(2, "one"), (7, "two"), (11, "three")].map(|(line, name)| (line, name.to_owned()));
        let functions = Functions::from([("a/x.rs".to_owned(), BTreeMap::from(names))]);
        let text = report("a", &files, &functions, &[]);
        assert!(text.contains("a: 33.3 % of 6 lines"), "{text}");
        assert!(text.ends_with("a/x.rs\n    one: 3-4\n    two: never run, 7-8\n\n"), "{text}");
        let text = report("a", &files, &functions, &unreached("a/x.rs two: because\n").unwrap());
        assert!(text.contains("a: 50.0 % of the 4 lines"), "{text}");
        assert!(text.contains("2 lines: because: a/x.rs (two)"), "{text}");
    }

    #[test]
    fn functions_have_names() {
        assert_eq!(function("    pub(crate) const fn new(a: u8) -> Self {"), Some("new"));
        assert_eq!(function("unsafe extern \"C\" fn run<T>(x: T) {"), Some("run"));
        assert_eq!(function("    type F = fn(u8);"), None);
        assert_eq!(function("    call: impl Fn() -> fn (u8)"), None);
    }
}
