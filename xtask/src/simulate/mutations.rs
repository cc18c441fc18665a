//! Makes random changes of the engine, and measures which of them the simulator finds. One build of
//! a copy contains all changes. A variable of the environment enables one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::SimulateOptions;
use super::scratch::Scratch;
use super::seeds;
use super::sites::{self, MutationSite};

/// Text that is appended to `crates/mem/src/lib.rs`.
const MUTATED: &str = r#"
/// Whether the mutation of this number is in force. With `REACHED`, the numbers of those that the
/// program comes to are told, each once.
pub fn mutated(number: u32) -> bool {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    static CHOSEN: std::sync::OnceLock<(u32, bool)> = std::sync::OnceLock::new();
    static REACHED: [AtomicBool; MUTATIONS] = [const { AtomicBool::new(false) }; MUTATIONS];
    let (chosen, tells) = *CHOSEN.get_or_init(|| {
        let number = std::env::var("MUTATION").ok().and_then(|number| number.parse().ok());
        (number.unwrap_or(0), std::env::var_os("REACHED").is_some())
    });
    if tells && !REACHED[number as usize].swap(true, Relaxed) {
        eprintln!("reached {number}");
    }
    chosen == number
}
"#;

/// Most builds in which changes that do not compile are removed.
const TRIES: usize = 12;
/// Number of seeds that first report the mutations that they reach. They must pass without mutations.
const ASKED: u64 = 400;

/// Result of a mutation.
enum MutationResult {
    Found(seeds::FailedSeed),
    /// Not found by this number of seeds, of workloads that reach it.
    Missed(u64),
    /// The first seeds do not reach it.
    Unreached,
}

/// One of the first seeds, with its report.
struct SeedReach {
    seed: u64,
    workload: String,
    reached: BTreeSet<usize>,
}

/// Runs the mutations. Returns false if the sources fail without a mutation.
pub(super) fn run(root: &Path, target: &Path, wanted: &SimulateOptions, count: u32) -> Result<bool, String> {
    let scratch = Scratch::new(root, target, "mutations");
    let all = sites::all(root);
    println!(
        "{} places in {} files",
        all.len(),
        all.iter().map(|site| &site.path).collect::<BTreeSet<_>>().len()
    );
    let mut chosen = choose(&all, wanted.from, count as usize * 3 / 2);
    let binary = compile(root, &scratch, &mut chosen)?;
    chosen.truncate(count as usize);
    let numbered: Vec<(usize, &MutationSite)> = chosen.iter().map(|(number, site)| (*number, site)).collect();
    let budget = Duration::from_secs(wanted.seconds.unwrap_or(60));
    let asked = match each(1..=ASKED, |seed| probe_seed(&binary, &wanted.rest, seed)) {
        Ok(asked) => asked,
        Err(words) => {
            println!("without any mutation {words}");
            return Ok(false);
        }
    };
    let verdicts = each(numbered.into_iter(), |(number, site)| {
        let verdict = test_mutation(&binary, &wanted.rest, number, &asked, budget);
        println!("{}", format_verdict(site, &verdict));
        Ok::<_, String>(verdict)
    })?;
    let found = verdicts.iter().filter(|verdict| matches!(verdict, MutationResult::Found(_))).count();
    let unreached = verdicts.iter().filter(|verdict| matches!(verdict, MutationResult::Unreached)).count();
    println!("mutations: {found} of {} found, {unreached} in lines that no seed reaches", verdicts.len());
    Ok(true)
}

/// Calls `f` with each item, on all cores. Returns the results in order, or an error.
fn each<T: Send, R: Send, E: Send>(
    all: impl Iterator<Item = T> + Send,
    f: impl Fn(T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let next = Mutex::new(all.enumerate());
    let results = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..seeds::cores() {
            scope.spawn(|| {
                loop {
                    let one = next.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some((at, one)) = one else { return };
                    let result = f(one);
                    results.lock().unwrap_or_else(PoisonError::into_inner).insert(at, result);
                }
            });
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
}

fn probe_seed(binary: &Path, rest: &[String], seed: u64) -> Result<SeedReach, String> {
    let (told, last) = seeds::both_outputs(binary, rest, ("REACHED", String::new()), seed)
        .map_err(|words| format!("seed {seed} fails: {words}"))?;
    let numbers = told.lines().filter_map(|line| line.strip_prefix("reached ")?.parse().ok());
    let workload = last.strip_prefix("passed ").and_then(|rest| rest.split(':').next());
    Ok(SeedReach { seed, workload: workload.unwrap_or_default().to_owned(), reached: numbers.collect() })
}

fn format_verdict(site: &MutationSite, verdict: &MutationResult) -> String {
    let place = format!("{}:{}: {}", site.path, site.line, site.what);
    match verdict {
        MutationResult::Found(by) => {
            let words = by.words.lines().next().unwrap_or_default();
            let (seed, count, seconds) = (by.seed, by.seeds, by.seconds);
            format!("found by seed {seed}, {count} seeds, {seconds:.1} s: {place}\n    {words}")
        }
        MutationResult::Missed(seeds) => format!("NOT FOUND by {seeds} seeds: {place}"),
        MutationResult::Unreached => format!("NOT REACHED: {place}"),
    }
}

/// Runs the seeds that reach the mutation, then other seeds of their workloads in turn.
fn test_mutation(
    binary: &Path,
    rest: &[String],
    number: usize,
    asked: &[SeedReach],
    budget: Duration,
) -> MutationResult {
    let reach: Vec<&SeedReach> = asked.iter().filter(|one| one.reached.contains(&number)).collect();
    let workloads: BTreeSet<&str> = reach.iter().map(|one| one.workload.as_str()).collect();
    if workloads.is_empty() {
        return MutationResult::Unreached;
    }
    let of = |workload: &str| [rest, &["--only".to_owned(), workload.to_owned()]].concat();
    let known = reach.iter().map(|one| (one.seed, rest.to_vec()));
    let others = (ASKED + 1..).flat_map(|seed| workloads.iter().map(move |workload| (seed, of(workload))));
    let runs = known.chain(others);
    match seeds::search(binary, runs, ("MUTATION", number.to_string()), budget) {
        (_, Some(found)) => MutationResult::Found(found),
        (seeds, None) => MutationResult::Missed(seeds),
    }
}

/// Chooses places at random, at most one on each line.
fn choose(all: &[MutationSite], seed: u64, count: usize) -> Vec<(usize, MutationSite)> {
    let mut left: Vec<&MutationSite> = all.iter().collect();
    let mut lines = BTreeSet::new();
    let mut chosen = Vec::new();
    let mut state = seed;
    while chosen.len() < count && !left.is_empty() {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let site = left.swap_remove(((z ^ (z >> 31)) % left.len() as u64) as usize);
        if lines.insert((&site.path, site.line)) {
            chosen.push((chosen.len() + 1, site.clone()));
        }
    }
    chosen
}

/// Builds with all mutations that compile, and removes the others from `chosen`.
fn compile(
    root: &Path,
    scratch: &Scratch,
    chosen: &mut Vec<(usize, MutationSite)>,
) -> Result<PathBuf, String> {
    for _ in 0..TRIES {
        scratch.restore_except(|name| {
            sites::folders().any(|folder| name.starts_with(folder)) || name == "crates/mem/src/lib.rs"
        })?;
        write(root, scratch, chosen)?;
        let words = match scratch.build() {
            Ok(binary) => return Ok(binary),
            Err(words) => words,
        };
        let before = chosen.len();
        for (path, line) in places(&words) {
            // The nearest change causes the error, usually a change before it.
            let cause = chosen
                .iter()
                .enumerate()
                .filter(|(_, (_, site))| site.path == path)
                .min_by_key(|(_, (_, site))| match site.line {
                    behind if behind > line => 10 * (behind - line),
                    before => line - before,
                })
                .map(|(at, _)| at);
            if let Some(at) = cause {
                chosen.remove(at);
            }
        }
        if chosen.len() == before {
            return Err(words);
        }
        println!("{} do not compile", before - chosen.len());
    }
    Err(format!("after {TRIES} tries it does not compile yet"))
}

/// Writes the engine with these changes into the copy.
fn write(root: &Path, scratch: &Scratch, chosen: &[(usize, MutationSite)]) -> Result<(), String> {
    let read =
        |path: &str| std::fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"));
    let mem = "crates/mem/src/lib.rs";
    let most = chosen.iter().map(|(number, _)| number + 1).max().unwrap_or(1);
    let mutated = MUTATED.replace("MUTATIONS", &most.to_string());
    scratch.write(mem, format!("{}{mutated}", read(mem)?).as_bytes())?;
    let mut files: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (number, site) in chosen {
        if !files.contains_key(site.path.as_str()) {
            files.insert(&site.path, read(&site.path)?.lines().map(str::to_owned).collect());
        }
        if let Some(line) = files.get_mut(site.path.as_str()).and_then(|lines| lines.get_mut(site.line - 1)) {
            *line = site.changed(*number);
        }
    }
    for folder in sites::folders() {
        for source in crate::scan::sources(&root.join(folder)) {
            let path = format!("{folder}/{}", source.path);
            let text = files.get(path.as_str()).map_or(source.text, |lines| lines.join("\n") + "\n");
            scratch.write(&path, text.as_bytes())?;
        }
    }
    Ok(())
}

/// Returns the files and lines of the compiler's errors.
fn places(words: &str) -> Vec<(String, usize)> {
    let place = |line: &str| {
        let (place, _) = line.split_once(": error")?;
        let mut parts = place.rsplitn(3, ':');
        let (_, line, path) = (parts.next()?, parts.next()?, parts.next()?);
        Some((path.to_owned(), line.parse().ok()?))
    };
    words.lines().filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_places() {
        let words = "crates/core/src/a.rs:12:5: error[E0308]: mismatched types\nerror: could not compile\n\
                     crates/core/src/b.rs:1:1: warning: unused\n";
        assert_eq!(places(words), [("crates/core/src/a.rs".to_owned(), 12)]);
    }

    #[test]
    fn the_same_number_chooses_the_same_places() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
        let all = sites::all(root);
        let [first, second] = [7, 7].map(|seed| choose(&all, seed, 50));
        let lines =
            |chosen: &[(usize, MutationSite)]| chosen.iter().map(|(_, site)| site.line).collect::<Vec<_>>();
        assert_eq!(first.len(), 50);
        assert_eq!(lines(&first), lines(&second));
    }
}
