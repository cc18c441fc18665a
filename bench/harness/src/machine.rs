//! Environment of the measurements: the machine, the system and the versions.

use crate::peer::Peer;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::process::Command;

/// The machine, as far as it describes itself.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) memory_gib: f64,
    pub(crate) kernel: String,
    pub(crate) system: String,
    /// True if a hypervisor is visible. The speed of such a machine drifts with its neighbours.
    pub(crate) virtual_machine: bool,
    /// Load average of the last minute when the run began.
    pub(crate) load: f64,
}

impl Machine {
    pub(crate) fn here() -> Self {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            cpuinfo.lines().find_map(|line| {
                line.split_once(':').filter(|(key, _)| key.trim() == name).map(|(_, v)| v.trim())
            })
        };
        let memory_kib = std::fs::read_to_string("/proc/meminfo")
            .unwrap_or_default()
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse::<f64>().ok())
            .unwrap_or(0.0);
        let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
        let system = release
            .lines()
            .find_map(|line| line.strip_prefix("PRETTY_NAME="))
            .map_or(std::env::consts::OS, |name| name.trim_matches('"'));
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        Self {
            cpu: field("model name").unwrap_or(std::env::consts::ARCH).to_owned(),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_gib: (memory_kib / 1024.0 / 102.4).round() / 10.0,
            kernel: first_line("uname", &["-sr"]),
            system: system.to_owned(),
            virtual_machine: field("flags").is_some_and(|flags| flags.split(' ').any(|f| f == "hypervisor")),
            load: load.split(' ').next().and_then(|l| l.parse().ok()).unwrap_or(0.0),
        }
    }
}

/// Returns versions by name: the compilers, this repository's commit, and each peer's library with
/// its path.
pub(crate) fn versions(peers: &[Peer], reported: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut versions = BTreeMap::new();
    versions.insert("rustc".to_owned(), first_line("rustc", &["--version"]));
    versions.insert("cc".to_owned(), first_line("cc", &["--version"]));
    let commit = first_line("git", &["describe", "--always", "--dirty"]);
    let tautline = format!("{} ({commit})", env!("CARGO_PKG_VERSION"));
    versions.insert("tautline".to_owned(), tautline);
    for peer in peers {
        if let Some(version) = reported.get(&peer.name) {
            versions.insert(format!("{} reports", peer.name), version.clone());
        }
        if let Some((_, path)) = &peer.library {
            versions.insert(format!("{} library", peer.name), path.display().to_string());
        }
    }
    versions
}

fn first_line(program: &str, arguments: &[&str]) -> String {
    Command::new(program)
        .args(arguments)
        .output()
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned))
        .unwrap_or_else(|| "unknown".to_owned())
}

/// Formats the current time as `2026-01-31 12:00 UTC`, from the days since 1970 in the civil
/// calendar.
pub(crate) fn date() -> String {
    let seconds =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", seconds / 3600 % 24, seconds / 60 % 60)
}

fn civil(days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut left) = (1970, days);
    while left >= 365 + u64::from(leap(year)) {
        left -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    for (month, length) in (1..).zip([31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]) {
        if left < length {
            return (year, month, left + 1);
        }
        left -= length;
    }
    (year, 12, 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calendar() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_454), (2026, 1, 1));
    }
}
