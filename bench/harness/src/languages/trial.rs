//! One trial: the two processes of one cell, and the proof of which library they used.

use super::data::Table;
use super::language::{Language, Swap};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// `libzmq.so.5` of either library, with its path resolved.
pub(crate) struct Libraries {
    pub(crate) libzmq: PathBuf,
    pub(crate) tautline: PathBuf,
}

impl Libraries {
    fn named(&self, name: &str) -> &Path {
        if name == "libzmq" { &self.libzmq } else { &self.tautline }
    }
}

/// One measurement task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrialKind {
    Latency,
    Throughput,
}

/// The four numbers in the arguments of a pair of programs.
#[derive(Clone, Copy)]
pub(crate) struct Task {
    pub(crate) kind: TrialKind,
    pub(crate) size: u64,
    pub(crate) count: u64,
    pub(crate) warm_up: u64,
}

/// Output line of the measuring side.
#[derive(Deserialize)]
struct Line {
    #[serde(alias = "rounds")]
    count: u64,
    size: u64,
    verified: bool,
    /// True if the program has set the keys of CURVE. A pair of programs exchanges no message if only one has.
    #[serde(default)]
    curve: bool,
    #[serde(flatten)]
    figures: BTreeMap<String, f64>,
}

/// Time limit of a trial.
const LIMIT: Duration = Duration::from_secs(180);
/// Interval between two checks of the processes until their library is known.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// Runs the task once. Returns the measurements by name: `mean_us`, `p50_us` and `p99_us`, or
/// `messages_per_second`.
pub(crate) fn run(
    language: &Language,
    library: &str,
    libraries: &Libraries,
    task: Task,
    scratch: &Path,
) -> Result<BTreeMap<String, f64>, String> {
    let port = free_port().map_err(|e| format!("no free port: {e}"))?;
    let endpoint = format!("tcp://127.0.0.1:{port}");
    // The measuring side prints the result: the requester, or the receiver.
    let (local, remote, measuring) = match task.kind {
        TrialKind::Latency => ("local_lat", "remote_lat", 1),
        TrialKind::Throughput => ("local_thr", "remote_thr", 0),
    };
    let mut sides = Vec::new();
    for program in [local, remote] {
        let mut command = Command::new(language.programs.join(program));
        command.arg(&endpoint);
        command.args([task.size, task.count, task.warm_up].map(|number| number.to_string()));
        command.env_remove("LD_PRELOAD").env_remove("LD_LIBRARY_PATH");
        choose(&mut command, language.swap, library, libraries);
        match TrialProcess::start(command, &scratch.join(program)) {
            Ok(side) => sides.push(side),
            Err(reason) => return Err(format!("{program}: {reason}")),
        }
    }
    let line =
        wait_for_result(&mut sides, measuring, &|maps| verify_library(maps, language, library, libraries))?;
    let line: Line = serde_json::from_str(&line).map_err(|e| format!("{e} in: {line}"))?;
    if !line.verified || line.count != task.count || line.size != task.size {
        return Err("its result is for other options than the given ones".to_owned());
    }
    if line.curve != (language.table == Table::Curve) {
        return Err(format!("its messages are {}encrypted with CURVE", if line.curve { "" } else { "not " }));
    }
    let wanted: &[&str] = match task.kind {
        TrialKind::Latency => &["mean_us", "p50_us", "p99_us"],
        TrialKind::Throughput => &["messages_per_second"],
    };
    wanted
        .iter()
        .map(|&name| match line.figures.get(name) {
            Some(&value) if value.is_finite() && value > 0.0 => Ok((name.to_owned(), value)),
            _ => Err(format!("its result has no {name}")),
        })
        .collect()
}

fn choose(command: &mut Command, swap: Swap, library: &str, libraries: &Libraries) {
    let path = libraries.named(library);
    match swap {
        Swap::Loader => {
            let directory = path.parent().unwrap_or(Path::new("/"));
            command.env("LD_LIBRARY_PATH", directory);
        }
        Swap::Preload => drop(command.env("LD_PRELOAD", path)),
        Swap::Bundled if library == "tautline" => drop(command.env("LD_PRELOAD", path)),
        Swap::Bundled | Swap::Own | Swap::BuiltIn => {}
    }
}

/// Checks whether a process with these mapped files uses the intended library. Returns `None` while that is
/// unknown.
fn verify_library(
    maps: &str,
    language: &Language,
    library: &str,
    libraries: &Libraries,
) -> Option<Result<(), String>> {
    let mut files: Vec<&str> = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5))
        .filter(|path| path.rsplit('/').next().is_some_and(|file| file.starts_with("libzmq")))
        .collect();
    files.dedup();
    let wanted = libraries.named(library).to_string_lossy();
    let has = files.iter().any(|file| *file == wanted);
    let other = || Some(Err(format!("it runs on {} instead of {wanted}", files.join(", "))));
    match language.swap {
        Swap::Loader if files.is_empty() => None,
        Swap::Loader if has && files.len() == 1 => Some(Ok(())),
        Swap::Loader => other(),
        // The binding's own library stays mapped, behind the preloaded one.
        Swap::Preload if has => Some(Ok(())),
        Swap::Bundled if library == "tautline" && has => Some(Ok(())),
        Swap::Preload | Swap::Bundled if files.is_empty() && library == "tautline" => None,
        Swap::Preload if files.is_empty() => None,
        Swap::Preload => other(),
        Swap::Bundled | Swap::Own | Swap::BuiltIn if files.is_empty() => Some(Ok(())),
        Swap::Bundled | Swap::Own | Swap::BuiltIn => other(),
    }
}

struct TrialProcess {
    child: Child,
    output: mpsc::Receiver<String>,
    errors: PathBuf,
    proven: bool,
}

impl TrialProcess {
    fn start(mut command: Command, errors: &Path) -> Result<Self, String> {
        let file = std::fs::File::create(errors).map_err(|e| e.to_string())?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file);
        let mut child = command.spawn().map_err(|e| e.to_string())?;
        let (sender, output) = mpsc::channel();
        if let Some(mut stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                let mut text = String::new();
                let _ = stdout.read_to_string(&mut text);
                let _ = sender.send(text);
            });
        }
        Ok(Self { child, output, errors: errors.to_owned(), proven: false })
    }

    fn check_library(&mut self, proof: &dyn Fn(&str) -> Option<Result<(), String>>) -> Result<(), String> {
        if self.proven {
            return Ok(());
        }
        // A process that has ended cannot be checked. If its library was never proven, the trial does not
        // count.
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.child.id())).unwrap_or_default();
        match proof(&maps) {
            Some(Ok(())) if !maps.is_empty() => self.proven = true,
            Some(Err(reason)) => return Err(reason),
            _ => {}
        }
        Ok(())
    }

    fn last_error_line(&self) -> String {
        let said = std::fs::read_to_string(&self.errors).unwrap_or_default();
        said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it printed nothing").to_owned()
    }
}

impl Drop for TrialProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for both processes. Returns the line of the measuring side.
fn wait_for_result(
    sides: &mut [TrialProcess],
    measuring: usize,
    proof: &dyn Fn(&str) -> Option<Result<(), String>>,
) -> Result<String, String> {
    let begin = Instant::now();
    let mut outputs: Vec<Option<String>> = vec![None; sides.len()];
    while outputs.iter().any(Option::is_none) {
        if begin.elapsed() > LIMIT {
            return Err(format!("hung: killed after {} s", LIMIT.as_secs()));
        }
        for side in sides.iter_mut() {
            side.check_library(proof)?;
        }
        // After the proof, the checks stop, so that they do not disturb the measurement.
        let patience =
            if sides.iter().all(|side| side.proven) { CHECK_INTERVAL * 50 } else { CHECK_INTERVAL };
        for (side, output) in sides.iter_mut().zip(&mut outputs) {
            if output.is_some() {
                continue;
            }
            if let Ok(text) = side.output.recv_timeout(patience) {
                *output = Some(text);
                let status = side.child.wait().map_err(|e| e.to_string())?;
                if !status.success() {
                    return Err(format!("{status}: {}", side.last_error_line()));
                }
            }
        }
    }
    if let Some(side) = sides.iter().find(|side| !side.proven) {
        return Err(format!("cannot find out which library process {} loaded", side.child.id()));
    }
    let output = outputs[measuring].take().unwrap_or_default();
    output
        .lines()
        .find(|line| line.starts_with('{'))
        .map(str::to_owned)
        .ok_or_else(|| format!("no result: {}", sides[measuring].last_error_line()))
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn language(swap: Swap) -> Language {
        Language {
            name: "x".to_owned(),
            title: "X".to_owned(),
            binding: "x".to_owned(),
            swap,
            slow: 1,
            slow_rounds: 1,
            table: Table::Plain,
            also: None,
            programs: PathBuf::new(),
            versions: BTreeMap::new(),
        }
    }

    fn libraries() -> Libraries {
        Libraries { libzmq: "/b/libzmq.so.5.2.5".into(), tautline: "/t/libzmq.so".into() }
    }

    fn maps(files: &[&str]) -> String {
        files.iter().map(|file| format!("7f00-7f01 r-xp 00000000 fe:00 12 {file}\n")).collect()
    }

    #[test]
    fn another_libzmq_than_the_wanted_one_is_noticed() {
        let told = |swap, library: &str, files: &[&str]| {
            verify_library(&maps(files), &language(swap), library, &libraries()).map(|told| told.is_ok())
        };
        let (ours, theirs) = ("/t/libzmq.so", "/b/libzmq.so.5.2.5");
        assert_eq!(told(Swap::Loader, "tautline", &["/lib/libc.so.6"]), None);
        assert_eq!(told(Swap::Loader, "tautline", &[ours]), Some(true));
        assert_eq!(told(Swap::Loader, "tautline", &[theirs]), Some(false));
        assert_eq!(told(Swap::Loader, "libzmq", &[theirs, "/usr/lib/libzmq.so.5"]), Some(false));
        assert_eq!(told(Swap::Preload, "libzmq", &[theirs, "/wheel/libzmq-1.so.5"]), Some(true));
        assert_eq!(told(Swap::Preload, "tautline", &["/wheel/libzmq-1.so.5"]), Some(false));
        assert_eq!(told(Swap::Bundled, "libzmq", &[]), Some(true));
        assert_eq!(told(Swap::Bundled, "libzmq", &[ours]), Some(false));
        assert_eq!(told(Swap::Bundled, "tautline", &[]), None);
        assert_eq!(told(Swap::BuiltIn, "tautline", &[]), Some(true));
        assert_eq!(told(Swap::BuiltIn, "tautline", &[theirs]), Some(false));
        assert_eq!(told(Swap::Own, "own", &[]), Some(true));
    }
}
