//! Runs a target over its seeds, its past failures (`regressions/TARGET`), and mutations of both that are the
//! same on every run. This needs no nightly compiler and no instrumentation.

use crate::{SYSTEM_TARGETS, Target, targets};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tautline_testkit::{XorShift, with_watchdog};

/// Length limit of a mutated input.
const LONGEST: usize = 2048;

/// Defines a test for each target that `calls` or `talks` names.
#[macro_export]
macro_rules! tests {
    ($($name:ident: $mutations:literal,)*) => {
        $(#[test]
        fn $name() {
            $crate::smoke::smoke(stringify!($name));
        })*
    };
}

/// Runs the target of this name.
pub fn smoke(name: &str) {
    static ALONE: Mutex<()> = Mutex::new(());
    let target = targets().find(|target| target.name == name).unwrap();
    let talks = SYSTEM_TARGETS.iter().any(|target| target.name == name);
    let _alone = talks.then(|| ALONE.lock().unwrap_or_else(PoisonError::into_inner));
    with_watchdog(Duration::from_secs(600), name, || {
        let mut corpus = (target.seeds)();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions").join(name);
        let mut files: Vec<_> =
            fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        files.sort();
        corpus.extend(files.iter().filter_map(|file| fs::read(file).ok()));
        corpus.iter().for_each(|input| run(target, input));
        let mut random = XorShift::new(name.len() as u64);
        for _ in 0..target.mutations {
            let mut input = corpus[random.below(corpus.len())].clone();
            for _ in 0..=random.below(4) {
                let other = &corpus[random.below(corpus.len())];
                mutate(&mut input, other, &mut random);
            }
            run(target, &input);
        }
    });
}

fn run(target: &Target, input: &[u8]) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (target.run)(input))) {
        eprintln!("{}: broken by the input {}", target.name, input.escape_ascii());
        resume_unwind(panic);
    }
}

/// Mutates an input in one of several ways that find faults.
fn mutate(input: &mut Vec<u8>, other: &[u8], random: &mut XorShift) {
    let at = random.below(input.len() + 1);
    match random.below(8) {
        0 if at < input.len() => input[at] ^= 1 << random.below(8),
        1 if at < input.len() => input[at] = random.next_u64() as u8,
        2 if at < input.len() => input[at] = [0, 1, 0x7F, 0x80, 0xFF][random.below(5)],
        3 => input.insert(at, random.next_u64() as u8),
        4 if at < input.len() => drop(input.drain(at..(at + 1 + random.below(8)).min(input.len()))),
        5 => input.truncate(at),
        6 => {
            let from = random.below(other.len() + 1);
            let piece = other[from..(from + random.below(64)).min(other.len())].to_vec();
            drop(input.splice(at..at, piece));
        }
        _ => {
            let len = random.below(40);
            let piece = random.bytes(len);
            drop(input.splice(at..at, piece));
        }
    }
    input.truncate(LONGEST);
}
