//! One run of one program: its command line, its time limit, and the JSON line that it prints.

use crate::environment::CommandChanges;
use crate::interrupt;
use crate::peer::Peer;
use crate::scenario::Cell;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

/// Report of a peer program about one run.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Sample {
    #[serde(default)]
    pub(crate) count: u64,
    pub(crate) messages: u64,
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) lost: u64,
    pub(crate) reordered: u64,
    pub(crate) corrupted: u64,
    #[serde(default)]
    pub(crate) library: String,
    #[serde(default)]
    pub(crate) version: String,
    pub(crate) metrics: BTreeMap<String, f64>,
}

/// A run without a result: the reason, and whether it timed out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failure {
    pub(crate) reason: String,
    pub(crate) hung: bool,
    /// The peer does not support the cell, which is not a failure.
    pub(crate) unsupported: bool,
}

/// Report of `calibrate` about the machine.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Calibration {
    /// One-way time of a cache line between two threads.
    pub(crate) line_ns: f64,
    /// Raw loopback TCP in 64 KiB writes.
    #[serde(default)]
    pub(crate) tcp_mb_s: f64,
    /// One spinning 64-byte round trip over loopback TCP.
    #[serde(default)]
    pub(crate) ping_pong_us: f64,
}

/// Metric of the messages, or round trips, per second.
pub(crate) const RATE: &str = "messages_per_second";
/// Metric of the processor time per message: user and system time of all threads at both ends.
pub(crate) const PROCESSOR: &str = "processor_us";

/// Runs one cell once on one peer, in an environment.
pub(crate) fn run(
    peer: &Peer,
    cell: &Cell,
    around: &CommandChanges,
    count: u64,
    timeout_s: u64,
    stderr: &Path,
) -> Result<Sample, Failure> {
    let mut command = match around.prefix.split_first() {
        None => Command::new(&peer.program),
        Some((first, rest)) => {
            let mut command = Command::new(first);
            command.args(rest).arg(&peer.program);
            command
        }
    };
    command.args(&peer.arguments).envs(&around.variables).envs(&peer.environment);
    command.args(["--pattern", &cell.pattern, "--transport", &cell.transport, "--api", &cell.api]);
    command.args(["--size", &cell.size.to_string()]);
    match cell.millis {
        Some(millis) => command.args(["--millis", &millis.to_string()]),
        None => command.args(["--count", &count.to_string()]),
    };
    for (name, value) in &cell.with {
        command.args([format!("--{name}"), value.to_string()]);
    }
    command.args(["--timeout", &timeout_s.to_string()]);
    if cell.subscribers > 1 || cell.pattern == "fan_out" {
        command.args(["--subscribers", &cell.subscribers.to_string()]);
    }
    if cell.processes == 2 {
        command.arg("--two-processes");
    }
    command.args(&around.options);
    if let Some((directory, _)) = &peer.library {
        command.env("LD_LIBRARY_PATH", directory);
    }
    let line = first_line(&mut command, timeout_s + 5, stderr)?;
    let mut sample: Sample = parse(&line)?;
    if let Some((_, wanted)) = &peer.library
        && Path::new(&sample.library) != wanted
    {
        return Err(failure(format!("it ran on {} instead of {}", sample.library, wanted.display())));
    }
    if sample.seconds <= 0.0 || sample.metrics.is_empty() {
        return Err(failure("it reported no time".to_owned()));
    }
    derive_metrics(cell, &mut sample);
    Ok(sample)
}

/// Adds the metrics that follow from the others: the processor time per message, and the rate of round trips.
fn derive_metrics(cell: &Cell, sample: &mut Sample) {
    let messages = sample.messages as f64;
    if cell.has_processor_time() && sample.messages > 0 && sample.cpu_seconds > 0.0 {
        sample.metrics.insert(PROCESSOR.to_owned(), sample.cpu_seconds / messages * 1e6);
    }
    if cell.is_round_trip() {
        sample.metrics.entry(RATE.to_owned()).or_insert(messages / sample.seconds);
    }
}

/// Measures the machine: all of it, or the cache line only.
pub(crate) fn calibrate(
    program: &Path,
    ms: u64,
    line_only: bool,
    stderr: &Path,
) -> Result<Calibration, Failure> {
    let mut command = Command::new(program);
    command.args(["--ms", &ms.to_string()]);
    if line_only {
        command.arg("--line-only");
    }
    parse(&first_line(&mut command, 15, stderr)?)
}

fn failure(reason: String) -> Failure {
    Failure { reason, ..Failure::default() }
}

fn parse<T: serde::de::DeserializeOwned>(line: &str) -> Result<T, Failure> {
    let value: serde_json::Value = serde_json::from_str(line)
        .map_err(|e| failure(format!("not the JSON of the contract ({e}): {line}")))?;
    if value["ok"] == true {
        return serde_json::from_value(value)
            .map_err(|e| failure(format!("incomplete result ({e}): {line}")));
    }
    let reason = value["error"].as_str().unwrap_or("it failed without saying why").to_owned();
    Err(Failure { hung: reason.starts_with("hung"), unsupported: value["unsupported"] == true, reason })
}

/// Runs the command to its end, or kills it after `limit_s`. Returns the first line of its output.
///
/// This thread sleeps in `read` and the guard in a channel, so the harness takes no time from the
/// measurement.
fn first_line(command: &mut Command, limit_s: u64, stderr: &Path) -> Result<String, Failure> {
    let errors = std::fs::File::create(stderr).map_err(|e| failure(format!("{}: {e}", stderr.display())))?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors);
    let mut child = command
        .spawn()
        .map_err(|e| failure(format!("cannot start {}: {e}", command.get_program().display())))?;
    let stdout = child.stdout.take();
    let child = Arc::new(Mutex::new(child));
    interrupt::set_running(Some(Arc::clone(&child)));
    let (done, guard_done) = mpsc::channel::<()>();
    let guarded = Arc::clone(&child);
    let guard = std::thread::spawn(move || {
        let late =
            guard_done.recv_timeout(Duration::from_secs(limit_s)) == Err(mpsc::RecvTimeoutError::Timeout);
        if late {
            let _ = lock(&guarded).kill();
        }
        late
    });
    let mut output = String::new();
    if let Some(mut stdout) = stdout {
        // Output that is not text is not a result either. The parser below reports it.
        let _ = stdout.read_to_string(&mut output);
    }
    drop(done);
    let killed = guard.join().unwrap_or(false);
    let status = lock(&child).wait();
    interrupt::set_running(None);
    if let Some(line) = output.lines().find(|line| line.starts_with('{')) {
        return Ok(line.to_owned());
    }
    let mut reason = match (killed, status) {
        (true, _) => format!("hung: killed after {limit_s} s"),
        (false, Ok(status)) => format!("it ended without a result: {status}"),
        (false, Err(error)) => format!("cannot wait for it: {error}"),
    };
    let said = std::fs::read_to_string(stderr).unwrap_or_default();
    if let Some(last) = said.lines().rev().find(|line| !line.trim().is_empty()) {
        reason += &format!(" ({})", last.trim().chars().take(200).collect::<String>());
    }
    Err(Failure { reason, hung: killed, unsupported: false })
}

fn lock(child: &Mutex<Child>) -> std::sync::MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit_s: u64) -> Result<String, Failure> {
        // One file per script, because tests run in parallel.
        let name = format!("tautline-bench-{}-{}", std::process::id(), script.len());
        let stderr = std::env::temp_dir().join(name);
        let result = first_line(Command::new("sh").args(["-c", script]), limit_s, &stderr);
        let _ = std::fs::remove_file(stderr);
        result
    }

    #[test]
    fn the_json_line_is_found_among_noise() {
        assert_eq!(shell("echo hello; echo '{\"ok\":true}'; echo more", 30).unwrap(), "{\"ok\":true}");
    }

    #[test]
    fn crash_reports_the_last_stderr_line() {
        let failure = shell("echo why >&2; exit 7", 30).unwrap_err();
        assert!(failure.reason.contains("exit status: 7") && failure.reason.contains("(why)"), "{failure:?}");
        assert!(!failure.hung);
    }

    #[test]
    fn a_hang_is_killed() {
        let failure = shell("exec sleep 1000", 1).unwrap_err();
        assert!(failure.hung, "{failure:?}");
    }

    #[test]
    fn an_error_line_is_a_failure() {
        let failure = parse::<Sample>("{\"ok\":false,\"error\":\"hung: after 3\"}").unwrap_err();
        assert!(failure.hung && !failure.unsupported);
        let line = "{\"ok\":false,\"unsupported\":true,\"error\":\"no inproc\"}";
        assert!(parse::<Sample>(line).unwrap_err().unsupported);
    }

    fn derived(pattern: &str, metrics: &str) -> BTreeMap<String, f64> {
        let cell = serde_json::json!({"pattern": pattern, "transport": "tcp", "size": 64, "api": "buffers",
            "processes": 1, "subscribers": 1});
        let line = format!(
            "{{\"ok\":true,\"messages\":4,\"seconds\":2,\"cpu_seconds\":1,\"lost\":0,\"reordered\":0,\"corrupted\":0,\
             \"metrics\":{metrics}}}"
        );
        let mut sample = parse::<Sample>(&line).unwrap();
        derive_metrics(&serde_json::from_value(cell).unwrap(), &mut sample);
        sample.metrics
    }

    #[test]
    fn processor_time_and_rate_of_round_trips_are_derived() {
        let metrics = derived("req_rep", "{\"p50_us\":7}");
        assert_eq!((metrics[RATE], metrics[PROCESSOR], metrics["p50_us"]), (2.0, 250_000.0, 7.0));
        assert_eq!(derived("push_pull", "{\"messages_per_second\":9}")[RATE], 9.0);
        // Its sender spins until a message is due.
        assert_eq!(derived("latency", "{\"p50_us\":7}").len(), 1);
    }
}
