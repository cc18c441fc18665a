//! Random changes of the engine, one at a time: which of them the simulator finds. All are in one
//! build of a copy of the sources; which one is in force a variable of the environment says.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::Wanted;
use super::scratch::Scratch;
use super::seeds;
use super::sites::{self, Site};

/// Behind the last line of `crates/mem/src/lib.rs`.
const MUTATED: &str = r#"
/// Whether the mutation of this number is in force. With `MUTATION_STOPS` the program ends there.
pub fn mutated(number: u32) -> bool {
    static CHOSEN: std::sync::OnceLock<(u32, bool)> = std::sync::OnceLock::new();
    let (chosen, stops) = *CHOSEN.get_or_init(|| {
        let number = std::env::var("MUTATION").ok().and_then(|number| number.parse().ok());
        (number.unwrap_or(0), std::env::var_os("MUTATION_STOPS").is_some())
    });
    if chosen == number && stops {
        std::process::abort();
    }
    chosen == number
}
"#;

/// How often what does not compile is left out.
const TRIES: usize = 12;
/// How many seeds have to pass without any mutation.
const SOUND: u64 = 40;
/// For how long it is asked whether anything comes to a mutation that no seed has found.
const LOOK: Duration = Duration::from_secs(20);

/// What became of a mutation.
enum Verdict {
    Found(seeds::Found),
    /// After this number of seeds.
    Missed(u64),
    /// No seed comes to the line.
    Unreached,
}

/// False: the sources without any mutation fail.
pub(super) fn run(root: &Path, target: &Path, wanted: &Wanted, count: u32) -> Result<bool, String> {
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
    let numbered: Vec<(usize, &Site)> = chosen.iter().map(|(number, site)| (*number, site)).collect();
    let budget = Duration::from_secs(wanted.seconds.unwrap_or(60));
    let none = [("MUTATION", "0".to_owned())];
    for seed in 1..=SOUND {
        if let Some(words) = seeds::fails(&binary, &wanted.rest, &none, seed, seeds::LIMIT) {
            println!("without any mutation seed {seed} fails: {words}");
            return Ok(false);
        }
    }
    let verdicts = Mutex::new(BTreeMap::new());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..seeds::cores() {
            scope.spawn(|| {
                while let Some((number, site)) = numbered.get(next.fetch_add(1, Relaxed)) {
                    let verdict = judge(&binary, &wanted.rest, *number, budget);
                    println!("{}", told(site, &verdict));
                    verdicts.lock().unwrap_or_else(PoisonError::into_inner).insert(*number, verdict);
                }
            });
        }
    });
    let verdicts = verdicts.into_inner().unwrap_or_else(PoisonError::into_inner);
    let found = verdicts.values().filter(|verdict| matches!(verdict, Verdict::Found(_))).count();
    let unreached = verdicts.values().filter(|verdict| matches!(verdict, Verdict::Unreached)).count();
    println!("mutations: {found} of {} found, {unreached} in lines that no seed comes to", verdicts.len());
    Ok(true)
}

fn told(site: &Site, verdict: &Verdict) -> String {
    let place = format!("{}:{}: {}", site.path, site.line, site.what);
    match verdict {
        Verdict::Found(by) => {
            let words = by.words.lines().next().unwrap_or_default();
            format!("found by seed {} in {:.1} s: {place}\n    {words}", by.seed, by.seconds)
        }
        Verdict::Missed(seeds) => format!("NOT FOUND by {seeds} seeds: {place}"),
        Verdict::Unreached => format!("NOT REACHED: {place}"),
    }
}

fn judge(binary: &Path, rest: &[String], number: usize, budget: Duration) -> Verdict {
    let mut variables = vec![("MUTATION", number.to_string())];
    // Without the mutation the same seed takes much less.
    let is_endless = |seed| {
        let none = [("MUTATION", "0".to_owned())];
        seeds::fails(binary, rest, &none, seed, budget / 2).is_none()
    };
    match seeds::search(binary, rest, &variables, budget, is_endless) {
        (_, Some(found)) => Verdict::Found(found),
        (seeds, None) => {
            variables.push(("MUTATION_STOPS", "1".to_owned()));
            match seeds::search(binary, rest, &variables, LOOK.min(budget), |_| true) {
                (_, Some(_)) => Verdict::Missed(seeds),
                (_, None) => Verdict::Unreached,
            }
        }
    }
}

/// Some of the places, no two on one line.
fn choose(all: &[Site], seed: u64, count: usize) -> Vec<(usize, Site)> {
    let mut left: Vec<&Site> = all.iter().collect();
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

/// Builds with all of them that compile; the others are taken out of `chosen`.
fn compile(root: &Path, scratch: &Scratch, chosen: &mut Vec<(usize, Site)>) -> Result<PathBuf, String> {
    for _ in 0..TRIES {
        scratch
            .restore_but(|name| name.starts_with("crates/core/src/") || name == "crates/mem/src/lib.rs")?;
        write(root, scratch, chosen)?;
        let words = match scratch.build() {
            Ok(binary) => return Ok(binary),
            Err(words) => words,
        };
        let before = chosen.len();
        for (path, line) in places(&words) {
            // An error comes from the nearest change, mostly from one before it.
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
fn write(root: &Path, scratch: &Scratch, chosen: &[(usize, Site)]) -> Result<(), String> {
    let read =
        |path: &str| std::fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"));
    let mem = "crates/mem/src/lib.rs";
    scratch.write(mem, format!("{}{MUTATED}", read(mem)?).as_bytes())?;
    let mut files: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (number, site) in chosen {
        if !files.contains_key(site.path.as_str()) {
            files.insert(&site.path, read(&site.path)?.lines().map(str::to_owned).collect());
        }
        if let Some(line) = files.get_mut(site.path.as_str()).and_then(|lines| lines.get_mut(site.line - 1)) {
            *line = site.changed(*number);
        }
    }
    for source in crate::scan::sources(&root.join("crates/core/src")) {
        let path = format!("crates/core/src/{}", source.path);
        let text = files.get(path.as_str()).map_or(source.text, |lines| lines.join("\n") + "\n");
        scratch.write(&path, text.as_bytes())?;
    }
    Ok(())
}

/// The files and lines of the compiler's errors.
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
        let lines = |chosen: &[(usize, Site)]| chosen.iter().map(|(_, site)| site.line).collect::<Vec<_>>();
        assert_eq!(first.len(), 50);
        assert_eq!(lines(&first), lines(&second));
    }
}
