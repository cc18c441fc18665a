//! Scenario files (`bench/scenarios/*.toml`): the cells to run, their peers, the number of repeats and
//! their length.

use crate::environment::{DEFAULT, EnvironmentKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// One measured combination. A ratio compares equal cells on two peers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) pattern: String,
    pub(crate) transport: String,
    /// Bytes of one message's body.
    pub(crate) size: u64,
    /// `buffers` (zmq_send, zmq_recv) or `messages` (zmq_msg_*).
    pub(crate) api: String,
    /// 1: two threads of one process; 2: the sender is a separate process.
    pub(crate) processes: u32,
    pub(crate) subscribers: u32,
    /// Options of the pattern: `connections`, `rate`, ... Each becomes `--NAME VALUE` of the program.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) with: BTreeMap<String, u64>,
    /// Duration of a run, in place of a number of messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) millis: Option<u64>,
    /// Overrides the scenario's duration if it is too short for the environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) target_ms: Option<u64>,
    /// Environment of both programs.
    #[serde(default = "default_environment", skip_serializing_if = "is_default")]
    pub(crate) environment: String,
}

fn default_environment() -> String {
    DEFAULT.to_owned()
}

fn is_default(environment: &str) -> bool {
    environment == DEFAULT
}

impl Cell {
    /// Formats as `PUSH/PULL tcp 64 B`, followed by the differences from the usual cell.
    pub(crate) fn title(&self) -> String {
        let mut title =
            format!("{} {} {}", pattern_title(&self.pattern), self.transport, size_title(self.size));
        if self.subscribers > 1 {
            title += &format!(" to {}", self.subscribers);
        }
        if let Some(variant) = self.variant() {
            title += &format!(" ({variant})");
        }
        title
    }

    /// Returns the same cell in the default environment.
    pub(crate) fn in_default(&self) -> Self {
        Self { environment: default_environment(), target_ms: None, ..self.clone() }
    }

    /// Returns the differences from a cell with buffers in one process in the default environment, if
    /// any.
    pub(crate) fn variant(&self) -> Option<String> {
        let mut parts = Vec::new();
        if !is_default(&self.environment) {
            parts.push(self.environment.clone());
        }
        if self.api != "buffers" {
            parts.push(self.api.clone());
        }
        if self.processes > 1 {
            parts.push(format!("{} processes", self.processes));
        }
        parts.extend(self.with.iter().map(|(name, value)| format!("{name} {value}")));
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    pub(crate) fn is_round_trip(&self) -> bool {
        self.pattern == "req_rep"
    }

    /// True if the processor time of a run is the cost of its messages. A sender of `latency` spins.
    pub(crate) fn has_processor_time(&self) -> bool {
        !["latency", "crowd_idle", "memory_pairs", "memory_crowd"].contains(&self.pattern.as_str())
    }

    /// True if the cell has, for each key of `only`, one of its values.
    fn matches(&self, only: &[(String, String)]) -> bool {
        only.iter().all(|(key, _)| {
            self.value_of(key).is_some_and(|value| only.iter().any(|(k, v)| k == key && *v == value))
        })
    }

    fn value_of(&self, key: &str) -> Option<String> {
        Some(match key {
            "pattern" => self.pattern.clone(),
            "transport" => self.transport.clone(),
            "size" => self.size.to_string(),
            "api" => self.api.clone(),
            "processes" => self.processes.to_string(),
            "subscribers" => self.subscribers.to_string(),
            "environment" => self.environment.clone(),
            other => self.with.get(other)?.to_string(),
        })
    }
}

/// Returns the socket types' names for a pattern's name in the files.
pub(crate) fn pattern_title(pattern: &str) -> &str {
    match pattern {
        "push_pull" => "PUSH/PULL",
        "router_router" => "ROUTER/ROUTER",
        "pub_sub" => "PUB/SUB",
        "fan_out" => "PUB fan-out",
        "req_rep" => "REQ/REP",
        "one_way" => "one way, REQ to REP",
        "dealer_router" => "DEALER/ROUTER pipelined",
        "filter" => "PUB/SUB by topic",
        "fan_in" => "PUSH fan-in",
        "scaling" => "PUSH/PULL side by side",
        "in_turn" => "PUSH in turn",
        "latency" => "one-way latency",
        "oversubscribed" => "ping-pong, oversubscribed",
        "ring" => "ring of processes",
        "crowd_publish" => "PUB to a crowd",
        "crowd_route" => "ROUTER to a crowd",
        "crowd_idle" => "an idle crowd",
        "batches" => "DEALER/ROUTER in batches",
        "memory_pairs" => "memory of connected pairs",
        "memory_crowd" => "memory of one PULL's connections",
        "handshakes" => "connections in turn",
        "engine_trip" => "request to an engine",
        "engine_answers" => "answers of an engine",
        "copy" => "memory copy",
        other => other,
    }
}

/// Formats a size: `64 B`, `1 KiB`, `64 KiB`.
pub(crate) fn size_title(size: u64) -> String {
    match size {
        s if s >= 1 << 20 && s.is_multiple_of(1 << 20) => format!("{} MiB", s >> 20),
        s if s >= 1 << 10 && s.is_multiple_of(1 << 10) => format!("{} KiB", s >> 10),
        s => format!("{s} B"),
    }
}

/// A block of the file: the product of its lists.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Block {
    pattern: Vec<String>,
    transport: Vec<String>,
    size: Vec<u64>,
    #[serde(default = "default_api")]
    api: Vec<String>,
    #[serde(default = "default_one")]
    processes: Vec<u32>,
    #[serde(default = "default_one")]
    subscribers: Vec<u32>,
    #[serde(default)]
    with: BTreeMap<String, Vec<u64>>,
    #[serde(default)]
    millis: Option<u64>,
    #[serde(default)]
    target_ms: Option<u64>,
    #[serde(default = "default_environments")]
    environment: Vec<String>,
}

fn default_environments() -> Vec<String> {
    vec![default_environment()]
}

fn default_api() -> Vec<String> {
    vec!["buffers".to_owned()]
}

fn default_one() -> Vec<u32> {
    vec![1]
}

/// A scenario file. The comments in `quick.toml` explain each field.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    pub(crate) title: String,
    pub(crate) peers: Vec<String>,
    pub(crate) pairs: u32,
    /// Cells that are open after `pairs` pairs run again, until they are decided or have this many.
    #[serde(default)]
    pub(crate) most_pairs: Option<u32>,
    /// A cell is open if its interval reaches further than this from its ratio, in per cent of the ratio.
    #[serde(default)]
    pub(crate) widest_percent: Option<u32>,
    pub(crate) target_ms: u64,
    pub(crate) timeout_s: u64,
    pub(crate) calibration_ms: u64,
    /// Scenarios of the same folder that `run` measures after this one, for example because their peers differ.
    #[serde(default)]
    also: Vec<String>,
    cells: Vec<Block>,
}

impl Scenario {
    /// Reads and checks a scenario file.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let scenario: Self = toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        if scenario.peers.len() < 2 {
            return Err(format!("{}: at least two peers are needed", path.display()));
        }
        Ok(scenario)
    }

    /// Reads the scenarios that `also` names, each with its name.
    pub(crate) fn read_others(&self, path: &Path) -> Result<Vec<(String, Self)>, String> {
        let read = |name: &String| {
            Ok((name.clone(), Self::read(&path.with_file_name(name).with_extension("toml"))?))
        };
        self.also.iter().map(read).collect()
    }

    /// True if a cell matches `only`.
    pub(crate) fn has(&self, only: &[(String, String)]) -> Result<bool, String> {
        Ok(self.all_cells()?.iter().any(|cell| cell.matches(only)))
    }

    fn all_cells(&self) -> Result<Vec<Cell>, String> {
        let mut cells = Vec::new();
        for block in &self.cells {
            for environment in &block.environment {
                block.expand(environment, &mut cells);
            }
        }
        for cell in &cells {
            EnvironmentKind::from_name(&cell.environment)?.fits(cell)?;
        }
        Ok(cells)
    }

    /// Returns every cell that matches `only`, in the file's order.
    pub(crate) fn cells(&self, only: &[(String, String)]) -> Result<Vec<Cell>, String> {
        let cells = self.all_cells()?;
        if let Some((key, _)) = only.iter().find(|(key, _)| cells.iter().all(|c| c.value_of(key).is_none())) {
            return Err(format!("--only: no cell has the key {key}"));
        }
        let mut chosen = Vec::new();
        for cell in cells {
            if cell.matches(only) && !chosen.contains(&cell) {
                chosen.push(cell);
            }
        }
        if chosen.is_empty() { Err("no cell of the scenario fits --only".to_owned()) } else { Ok(chosen) }
    }
}

impl Block {
    fn expand(&self, environment: &str, cells: &mut Vec<Cell>) {
        let options = product(&self.with);
        for api in &self.api {
            for &processes in &self.processes {
                for pattern in &self.pattern {
                    for transport in &self.transport {
                        for &size in &self.size {
                            for &subscribers in &self.subscribers {
                                cells.extend(options.iter().map(|with| Cell {
                                    pattern: pattern.clone(),
                                    transport: transport.clone(),
                                    size,
                                    api: api.clone(),
                                    processes,
                                    subscribers,
                                    with: with.clone(),
                                    millis: self.millis,
                                    target_ms: self.target_ms,
                                    environment: environment.to_owned(),
                                }));
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns every choice of one value for each name; for no names, the one empty choice.
fn product(lists: &BTreeMap<String, Vec<u64>>) -> Vec<BTreeMap<String, u64>> {
    let mut choices = vec![BTreeMap::new()];
    for (name, values) in lists {
        choices = choices
            .iter()
            .flat_map(|choice| {
                values.iter().map(move |value| {
                    let mut choice = choice.clone();
                    choice.insert(name.clone(), *value);
                    choice
                })
            })
            .collect();
    }
    choices
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quick() -> Scenario {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/quick.toml");
        Scenario::read(&path).unwrap()
    }

    #[test]
    fn quick_has_the_whole_main_job() {
        let cells = quick().cells(&[]).unwrap();
        assert_eq!(cells.len(), 3 * 3 * 4 + 3 + 3);
    }

    #[test]
    fn only_is_and_between_keys_and_or_within_one() {
        let only = |list: &[(&str, &str)]| {
            let list: Vec<_> = list.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            quick().cells(&list).map(|cells| cells.len())
        };
        assert_eq!(only(&[("pattern", "push_pull"), ("transport", "tcp")]), Ok(4));
        assert_eq!(only(&[("size", "64"), ("size", "1024"), ("pattern", "pub_sub")]), Ok(6));
        assert!(only(&[("colour", "red")]).is_err());
        assert!(only(&[("size", "7")]).is_err());
    }

    #[test]
    fn options_multiply_and_can_be_chosen_by() {
        let text = "title='t'\npeers=['a','b']\npairs=1\ntarget_ms=1\ntimeout_s=1\ncalibration_ms=1\n\
                    [[cells]]\npattern=['latency']\ntransport=['tcp']\nsize=[64]\nmillis=500\n\
                    with={rate=[1000,10000],burst=[2,10,30]}\n\
                    [[cells]]\npattern=['push_pull']\ntransport=['tcp']\nsize=[64]\n";
        let scenario: Scenario = toml::from_str(text).unwrap();
        let cells = scenario.cells(&[]).unwrap();
        assert_eq!(cells.len(), 2 * 3 + 1);
        assert_eq!(cells[0].title(), "one-way latency tcp 64 B (burst 2, rate 1000)");
        assert_eq!(cells[6].variant(), None);
        let only = [("rate".to_owned(), "1000".to_owned())];
        assert_eq!(scenario.cells(&only).unwrap().len(), 3);
    }

    fn in_environments(transport: &str, more: &str) -> Result<Vec<Cell>, String> {
        let text = format!(
            "title='t'\npeers=['a','b']\npairs=1\ntarget_ms=1\ntimeout_s=1\ncalibration_ms=1\n\
             [[cells]]\npattern=['push_pull']\nsize=[64]\ntransport=['{transport}']\n{more}"
        );
        toml::from_str::<Scenario>(&text).map_err(|e| e.to_string())?.cells(&[])
    }

    #[test]
    fn environments_multiply_and_must_suit_the_cell() {
        let cells = in_environments("tcp", "processes=[2]\nenvironment=['default','veth']").unwrap();
        assert_eq!(cells.len(), 2);
        assert_eq!(cells[0].title(), "PUSH/PULL tcp 64 B (2 processes)");
        assert_eq!(cells[1].title(), "PUSH/PULL tcp 64 B (veth, 2 processes)");
        assert_eq!(cells[1].in_default(), cells[0]);
        assert!(in_environments("ipc", "environment=['no-shared-memory','half-core']").is_ok());
        assert!(in_environments("tcp", "environment=['veth']").unwrap_err().contains("two processes"));
        assert!(in_environments("tcp", "environment=['no-shared-memory']").unwrap_err().contains("ipc"));
        assert!(in_environments("tcp", "environment=['moon']").unwrap_err().contains("no environment moon"));
        assert!(
            in_environments("tcp", "environment=['far-cache']").unwrap_err().contains("every run reports")
        );
    }

    #[test]
    fn a_cell_without_an_environment_is_written_as_before() {
        let cells = in_environments("tcp", "processes=[2]\nenvironment=['default','one-core']").unwrap();
        let text = serde_json::to_string(&cells).unwrap();
        assert_eq!(text.matches("environment").count(), 1);
        assert_eq!(serde_json::from_str::<Vec<Cell>>(&text).unwrap(), cells);
    }

    #[test]
    fn every_scenario_file_reads() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let scenario = Scenario::read(&path).unwrap();
            assert!(!scenario.cells(&[]).unwrap().is_empty());
            scenario.read_others(&path).unwrap();
        }
    }

    #[test]
    fn only_chooses_among_scenarios_that_run_together() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/crowded.toml");
        let crowded = Scenario::read(&path).unwrap();
        let others = crowded.read_others(&path).unwrap();
        let (name, python) = &others[0];
        assert_eq!(name, "crowded-python");
        let only = |key: &str, value: &str| [(key.to_owned(), value.to_owned())];
        assert_eq!(crowded.has(&only("api", "asyncio")), Ok(false));
        assert_eq!(python.has(&only("api", "asyncio")), Ok(true));
        assert_eq!(python.has(&only("nodes", "20")), Ok(false));
        assert_eq!(crowded.has(&only("nodes", "20")), Ok(true));
    }
}
