//! Environments for both programs of a run, created before the run and removed after it.
//!
//! `kind` names them, `plan` lists the steps that create and remove one, and this file executes the steps. A
//! kind adds a prefix to the program's command (`taskset`, `ip netns exec`, `busy`, a shell that joins a
//! control group), options and variables. So a peer program does not depend on the kind, except for the addresses of
//! two namespaces.
//!
//! Dropping a [`PreparedEnvironment`] removes its environment: at the end, after a failure and after a signal (`interrupt`).
//! A killed harness leaves its environments behind; the next harness that creates one removes them.

mod group;
mod kind;
mod plan;
#[cfg(test)]
mod tests;

pub(crate) use kind::{DEFAULT, EnvironmentKind};

use plan::{EnvironmentPlan, HostFacts, ObjectNames, Step, Undo};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// An environment in the results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Environment {
    pub(crate) name: String,
    /// Description in one line.
    pub(crate) what: String,
    /// Reason if it could not be created. Its cells did not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) absent: Option<String>,
}

/// An environment that exists until this is dropped, or that could not be created.
#[derive(Debug)]
pub(crate) struct PreparedEnvironment {
    pub(crate) environment: Environment,
    pub(crate) command_changes: CommandChanges,
    /// Steps that undo the steps taken so far.
    undo: Vec<Undo>,
    /// Programs that run as long as it exists.
    started: Vec<Child>,
}

/// Changes to the command line and the environment of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommandChanges {
    /// Words before the program's name.
    pub(crate) prefix: Vec<String>,
    /// Arguments after the program's own arguments.
    pub(crate) options: Vec<String>,
    pub(crate) variables: BTreeMap<String, String>,
}

/// Creates each of the named environments, in the order of their kinds. An environment that cannot be created
/// has the reason. Fails for an unknown name. Programs that an environment needs are in `programs`.
pub(crate) fn make_all(names: &[String], programs: &Path) -> Result<Vec<PreparedEnvironment>, String> {
    names.iter().try_for_each(|name| EnvironmentKind::from_name(name).map(drop))?;
    let facts = HostFacts::here(programs);
    remove_stale(&facts);
    let wanted = kind::KINDS.iter().filter(|(name, _)| names.iter().any(|wanted| wanted == name));
    Ok(wanted.map(|(name, kind)| make(name, *kind, &facts)).collect())
}

fn make(name: &str, kind: EnvironmentKind, facts: &HostFacts) -> PreparedEnvironment {
    /// Distinguishes the environments of one harness.
    static MADE: AtomicU32 = AtomicU32::new(0);
    let names = ObjectNames::new(std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
    let environment = Environment { name: name.to_owned(), what: kind.description(), absent: None };
    let mut made = PreparedEnvironment {
        environment,
        command_changes: CommandChanges::default(),
        undo: Vec::new(),
        started: Vec::new(),
    };
    if let Err(reason) = plan::plan_for(kind, &names, facts).and_then(|plan| made.apply_plan(plan)) {
        made.remove();
        made.environment.absent = Some(if facts.root { reason } else { reason + "; this needs root" });
    }
    made
}

impl PreparedEnvironment {
    /// Takes the steps of a plan, then tests whether a program starts in the environment.
    fn apply_plan(&mut self, plan: EnvironmentPlan) -> Result<(), String> {
        for (step, undo) in plan.steps {
            // Record the undo step first: a step that fails may be half done.
            self.undo.extend(undo);
            if let Some(way) = self.step(&step)? {
                self.environment.what += &format!(" ({way})");
            }
        }
        self.command_changes = plan.command_changes;
        match self.command_changes.prefix.is_empty() {
            true => Ok(()),
            false => run(&[self.command_changes.prefix.as_slice(), &["true".to_owned()]].concat()),
        }
    }

    /// Takes a step. If the step has alternatives, returns the one that worked.
    fn step(&mut self, step: &Step) -> Result<Option<&'static str>, String> {
        match step {
            Step::Run(words) => run(words).map(|()| None),
            Step::MakeDirectory(path) => {
                std::fs::create_dir(path).map(|()| None).map_err(|e| format!("mkdir {}: {e}", path.display()))
            }
            Step::Write(path, text) => {
                std::fs::write(path, text).map(|()| None).map_err(|e| format!("{}: {e}", path.display()))
            }
            Step::Start(words) => start(words).map(|child| {
                self.started.push(child);
                None
            }),
            Step::OneOf(ways) => {
                let mut reasons = Vec::new();
                for (name, steps) in ways {
                    match steps.iter().try_for_each(|step| self.step(step).map(drop)) {
                        Ok(()) => return Ok(Some(name)),
                        Err(reason) => reasons.push(format!("{name}: {reason}")),
                    }
                }
                Err(reasons.join("; "))
            }
        }
    }

    /// Undoes the steps in reverse order. An object that is already gone is not a failure.
    fn remove(&mut self) {
        for mut child in std::mem::take(&mut self.started) {
            let _ = child.kill();
            let _ = child.wait();
        }
        for undo in std::mem::take(&mut self.undo).into_iter().rev() {
            match undo {
                Undo::Run(words) => drop(run(&words)),
                Undo::Write(path, text) => drop(std::fs::write(path, text)),
                Undo::RemoveGroup(path) => remove_group(&path),
                Undo::RemoveNamespace(name) => remove_namespace(&name),
            }
        }
    }
}

impl Drop for PreparedEnvironment {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Runs a command of the system. The error holds its last line of output.
fn run(words: &[String]) -> Result<(), String> {
    let Some((program, arguments)) = words.split_first() else { return Ok(()) };
    // Use a separate process group, because a terminal's interrupt must not reach the cleanup commands.
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .process_group(0)
        .output()
        .map_err(|e| format!("{program}: {e}{}", plan::package_of(program)))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no message").trim();
    Err(format!("`{}`: {last}", words.join(" ")))
}

/// Starts a program and waits for the line by which it reports that it is ready.
fn start(words: &[String]) -> Result<Child, String> {
    let Some((program, arguments)) = words.split_first() else { return Err("no program".to_owned()) };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|e| format!("{program}: {e}"))?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        let _ = BufReader::new(stdout).read_line(&mut line);
    }
    if !line.is_empty() {
        return Ok(child);
    }
    let _ = child.kill();
    let output = child.wait_with_output().map_err(|e| format!("{program}: {e}"))?;
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

/// Kills the processes in a control group, then removes it.
fn remove_group(path: &Path) {
    // A killed process stays in its group until it has ended, which takes a moment.
    for _ in 0..100 {
        match std::fs::remove_dir(path) {
            Err(e) if e.kind() == std::io::ErrorKind::ResourceBusy => {}
            _ => return,
        }
        let left = std::fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
        kill(&left);
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn remove_namespace(name: &str) {
    let left = Command::new("ip").args(["netns", "pids", name]).process_group(0).output();
    kill(&left.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default());
    let _ = run(&plan::words(&["ip", "netns", "del", name]));
}

/// Kills the processes with these ids.
fn kill(processes: &str) {
    let mut words = plan::words(&["kill", "-KILL"]);
    words.extend(processes.split_whitespace().map(str::to_owned));
    if words.len() > 2 {
        let _ = run(&words);
    }
}

/// Removes the environments of killed harnesses.
fn remove_stale(facts: &HostFacts) {
    let alive = |pid: u32| Path::new("/proc").join(pid.to_string()).exists();
    for name in plan::stale(&directory("/run/netns".as_ref()), alive) {
        remove_namespace(&name);
    }
    if let Some(groups) = facts.groups() {
        plan::stale(&directory(groups), alive).iter().for_each(|name| remove_group(&groups.join(name)));
    }
}

fn directory(path: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()
}
