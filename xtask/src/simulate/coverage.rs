//! Which lines of the engine the simulator runs: `--coverage`. What is built for this system counts,
//! without tests. The tools are LLVM's, of the compiler's own version: `rustup component add
//! llvm-tools`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Wanted, seeds};

const FLAGS: &str = "--cfg simulated --cfg covered -C instrument-coverage";
/// Where each run writes; LLVM adds up what several write to one file.
const PROFILE: &str = "%2m.profraw";
/// Files of which less is run are named.
const ENOUGH: f64 = 85.0;

/// Lines of a file, and those that were run.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Lines {
    all: u64,
    run: u64,
}

impl Lines {
    fn percent(self) -> f64 {
        100.0 * self.run as f64 / self.all.max(1) as f64
    }
}

/// Runs the seeds, and tells what they have covered. False: one has failed.
pub(super) fn run(root: &Path, target: &Path, wanted: &Wanted) -> Result<bool, String> {
    let tools = tools()?;
    let folder = target.join("coverage");
    let binary = super::build(root, &folder, FLAGS)?;
    let profiles = folder.join("profiles");
    let _ = std::fs::remove_dir_all(&profiles);
    std::fs::create_dir_all(&profiles).map_err(|error| format!("{}: {error}", profiles.display()))?;
    let profile = profiles.join(PROFILE).to_string_lossy().into_owned();
    let passed = seeds::many(&binary, wanted, &[("LLVM_PROFILE_FILE", profile)]);
    let merged = folder.join("merged.profdata");
    let written = std::fs::read_dir(&profiles).map_err(|error| format!("{}: {error}", profiles.display()))?;
    let mut merge = Command::new(tools.join("llvm-profdata"));
    merge.args(["merge", "-sparse", "-o"]).arg(&merged);
    output(merge.args(written.flatten().map(|entry| entry.path())))?;
    let lines = output(
        Command::new(tools.join("llvm-cov"))
            .args(["export", "-format=lcov", "-instr-profile"])
            .arg(&merged)
            .arg(&binary),
    )?;
    tell(&files(&lines, root));
    Ok(passed)
}

fn tell(files: &BTreeMap<String, Lines>) {
    for part in ["crates/core/src/", "crates/io/src/", "crates/mem/src/", "crates/proto/src/"] {
        let own: Vec<(&String, &Lines)> = files.iter().filter(|(path, _)| path.starts_with(part)).collect();
        let sum = own.iter().fold(Lines::default(), |sum, (_, lines)| Lines {
            all: sum.all + lines.all,
            run: sum.run + lines.run,
        });
        println!("{part}: {:.1} % of {} lines", sum.percent(), sum.all);
        let mut little: Vec<_> = own.into_iter().filter(|(_, lines)| lines.percent() < ENOUGH).collect();
        little.sort_by_key(|(_, lines)| std::cmp::Reverse(lines.all - lines.run));
        for (path, lines) in little {
            println!("    {path}: {:.0} %, {} lines are not run", lines.percent(), lines.all - lines.run);
        }
    }
}

/// The files below `root`, from the records of lcov.
fn files(records: &str, root: &Path) -> BTreeMap<String, Lines> {
    let mut files = BTreeMap::new();
    let mut path = None;
    let mut lines = Lines::default();
    for record in records.lines() {
        match record.split_once(':') {
            Some(("SF", name)) => {
                path =
                    Path::new(name).strip_prefix(root).ok().map(|path| path.to_string_lossy().into_owned());
                lines = Lines::default();
            }
            Some(("LF", count)) => lines.all = count.parse().unwrap_or(0),
            Some(("LH", count)) => lines.run = count.parse().unwrap_or(0),
            _ if record == "end_of_record" => {
                if let Some(path) = path.take() {
                    files.insert(path, lines);
                }
            }
            _ => {}
        }
    }
    files
}

/// Where the compiler's tools are.
fn tools() -> Result<PathBuf, String> {
    let printed = output(Command::new("rustc").args(["--print", "target-libdir"]))?;
    let folder = Path::new(printed.trim()).with_file_name("bin");
    match folder.join("llvm-cov").exists() {
        true => Ok(folder),
        false => Err("LLVM's tools are missing: rustup component add llvm-tools".to_owned()),
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
        let records = "SF:/r/crates/core/src/a.rs\nDA:1,2\nLF:10\nLH:9\nend_of_record\nSF:/x/b.rs\nLF:3\nend_of_record\n";
        let files = files(records, Path::new("/r"));
        assert_eq!(files.len(), 1);
        assert_eq!(files["crates/core/src/a.rs"].percent(), 90.0);
    }
}
