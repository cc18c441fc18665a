//! Plans to create and remove an environment: a list of steps that depends only on its kind, its names and
//! the machine.

use super::CommandChanges;
use super::group::Groups;
use super::kind::{EnvironmentKind, NetworkLink};
use std::path::{Path, PathBuf};

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Run(Vec<String>),
    MakeDirectory(PathBuf),
    Write(PathBuf, String),
    /// Starts a program that prints a line when it is ready. It runs as long as the environment exists.
    Start(Vec<String>),
    /// Takes the first alternative that works. The report names it.
    OneOf(Vec<(&'static str, Vec<Step>)>),
}

/// Undo step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Undo {
    Run(Vec<String>),
    Write(PathBuf, String),
    /// Control group, or network namespace by its name. Processes in it are killed.
    RemoveGroup(PathBuf),
    RemoveNamespace(String),
}

/// Steps in order, each with its undo step if it needs one, and the changes to a program's command.
#[derive(Debug, Default)]
pub(super) struct EnvironmentPlan {
    pub(super) steps: Vec<(Step, Option<Undo>)>,
    pub(super) command_changes: CommandChanges,
}

/// Facts about the machine that the plans need.
pub(super) struct HostFacts {
    pub(super) groups: Result<Groups, String>,
    /// Processor for `one-core`.
    pub(super) processor: Option<u32>,
    /// Program that delays packets if the kernel cannot.
    pub(super) relay: PathBuf,
    /// Program that runs a command beside busy processes.
    pub(super) busy: PathBuf,
    pub(super) root: bool,
}

impl HostFacts {
    pub(super) fn here(programs: &Path) -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        Self {
            groups: Groups::find(&read("/proc/mounts")),
            processor: last_processor(&read("/proc/self/status")),
            relay: programs.join("wire"),
            busy: std::path::absolute(programs.join("busy")).unwrap_or_else(|_| programs.join("busy")),
            root: is_root(&read("/proc/self/status")),
        }
    }

    /// Place of the control groups.
    pub(super) fn groups(&self) -> Option<&Path> {
        self.groups.as_ref().ok().map(Groups::mount)
    }
}

/// Names of the objects created for one environment. They are unique, and identify the harness that owns
/// them.
pub(super) struct ObjectNames {
    base: String,
}

const STEM: &str = "taut-bench-";

impl ObjectNames {
    pub(super) fn new(pid: u32, number: u32) -> Self {
        Self { base: format!("{STEM}{pid}-{number}") }
    }

    pub(super) fn group(&self) -> &str {
        &self.base
    }

    /// Namespace of the started program, and namespace of the process that it forks.
    pub(super) fn namespaces(&self) -> (String, String) {
        (format!("{}-near", self.base), format!("{}-far", self.base))
    }
}

/// Returns those names whose harness is no longer alive.
pub(super) fn stale(names: &[String], alive: impl Fn(u32) -> bool) -> Vec<String> {
    let owner = |name: &str| name.strip_prefix(STEM)?.split('-').next()?.parse::<u32>().ok();
    names.iter().filter(|name| owner(name).is_some_and(|pid| !alive(pid))).cloned().collect()
}

/// Returns the plan of an environment, or the reason why it cannot be created.
pub(super) fn plan_for(
    kind: EnvironmentKind,
    names: &ObjectNames,
    facts: &HostFacts,
) -> Result<EnvironmentPlan, String> {
    let mut plan = EnvironmentPlan::default();
    match kind {
        EnvironmentKind::Default => {}
        EnvironmentKind::OneCore => {
            let processor = facts.processor.ok_or("cannot find out which processors this process may use")?;
            plan.command_changes.prefix = words(&["taskset", "-c", &processor.to_string()]);
        }
        EnvironmentKind::HalfCore => {
            let (steps, group) = facts.groups.clone()?.steps(names.group());
            plan.steps = steps;
            // The shell joins the group and then becomes the program, so that all of the program runs inside.
            let join = "echo $$ >\"$0\" && exec \"$@\"";
            plan.command_changes.prefix =
                words(&["sh", "-c", join, &group.join("cgroup.procs").display().to_string()]);
        }
        EnvironmentKind::Network(wire) => network(&mut plan, wire, names, facts),
        EnvironmentKind::NoSharedMemory => {
            plan.command_changes.variables.insert("TAUT_IPC_MEMORY".to_owned(), "0".to_owned());
        }
        EnvironmentKind::Busy(number) => {
            // The neighbours start and end with each run, so that nothing else runs beside them.
            plan.command_changes.prefix = words(&[&facts.busy.display().to_string(), &number.to_string()]);
        }
    }
    Ok(plan)
}

/// Addresses of the two ends. They cannot collide, because the namespaces contain no other interfaces.
const NEAR: &str = "10.83.0.1";
const FAR: &str = "10.83.0.2";

fn network(plan: &mut EnvironmentPlan, wire: NetworkLink, names: &ObjectNames, facts: &HostFacts) {
    let (near, far) = names.namespaces();
    let near = near.as_str();
    let far = far.as_str();
    let mut run = |text: &[&str], undo: Option<Undo>| plan.steps.push((Step::Run(words(text)), undo));
    for side in [near, far] {
        run(&["ip", "netns", "add", side], Some(Undo::RemoveNamespace(side.to_owned())));
    }
    // Create the devices within the namespaces, so that they never appear on the machine itself. They need a
    // separate undo step, because a namespace lives as long as a process in it.
    let pair = ["ip", "-n", near, "link", "add", "wire", "mtu", "1500", "type", "veth"];
    let peer = ["peer", "name", "wire", "mtu", "1500", "netns", far];
    let remove = Undo::Run(words(&["ip", "-n", near, "link", "del", "wire"]));
    run(&[&pair[..], &peer[..]].concat(), Some(remove));
    for (side, address) in [(near, NEAR), (far, FAR)] {
        run(&["ip", "-n", side, "addr", "add", &format!("{address}/30"), "dev", "wire"], None);
        run(&["ip", "-n", side, "link", "set", "lo", "up"], None);
        run(&["ip", "-n", side, "link", "set", "wire", "up"], None);
    }
    if wire.lost_per_mille > 0 {
        plan.steps.push((in_order([near, far], facts.processor), None));
    }
    plan.steps.extend(disturbance(wire, [near, far], &facts.relay).map(|step| (step, None)));
    plan.command_changes.prefix = words(&["ip", "netns", "exec", near]);
    plan.command_changes.options = words(&["--near-address", NEAR, "--far-address", FAR, "--far-netns", far]);
}

/// Keep the packets of a connection in order, like a network card with one queue. Otherwise, each sending
/// processor delivers its own packets, packets of different processors overtake each other, and TCP treats
/// them as lost.
fn in_order(sides: [&str; 2], processor: Option<u32>) -> Step {
    let processors = (1_u64 << processor.map_or(1, |last| last.min(31) + 1)) - 1;
    let set = format!("echo {processors:x} >/sys/class/net/wire/queues/rx-0/rps_cpus");
    let steps = sides.map(|side| {
        Step::Run(
            [&words(&["ip", "netns", "exec", side, "sh", "-c"])[..], std::slice::from_ref(&set)].concat(),
        )
    });
    Step::OneOf(vec![
        ("packets in order", steps.to_vec()),
        ("packets of one connection overtake each other, which TCP takes for losses", Vec::new()),
    ])
}

/// Delays or loses packets. It disappears with the namespaces.
fn disturbance(wire: NetworkLink, sides: [&str; 2], relay: &Path) -> Option<Step> {
    if wire == (NetworkLink { delay_ms: 0, lost_per_mille: 0 }) {
        return None;
    }
    let both = |step: &dyn Fn(&str) -> Vec<String>| sides.map(|side| Step::Run(step(side))).to_vec();
    let percent = format!("{}%", wire.percent());
    let mut netem = Vec::new();
    let mut ways = Vec::new();
    if wire.lost_per_mille > 0 {
        // Lose single packets, and not the 64 KiB that the kernel passes to a veth at once.
        netem.extend(both(&|side| words(&["ip", "-n", side, "link", "set", "wire", "gso_max_segs", "1"])));
        let mut statistic = netem.clone();
        let probability = format!("{}", f64::from(wire.lost_per_mille) / 1000.0);
        let rule = ["iptables", "-w", "-A", "INPUT", "-i", "wire", "-m", "statistic", "--mode", "random"];
        let drop = ["--probability", probability.as_str(), "-j", "DROP"];
        statistic.extend(both(&|side| {
            words(&[&["ip", "netns", "exec", side][..], &rule[..], &drop[..]].concat())
        }));
        if wire.delay_ms == 0 {
            ways.push(("by iptables", statistic));
        }
    }
    let delay = format!("{}ms", wire.delay_ms);
    netem.extend(both(&|side| {
        // Room for all packets in transit: a full queue would lose packets.
        let mut text =
            vec!["tc", "-n", side, "qdisc", "add", "dev", "wire", "root", "netem", "limit", "100000"];
        if wire.delay_ms > 0 {
            text.extend(["delay", &delay]);
        }
        if wire.lost_per_mille > 0 {
            text.extend(["loss", &percent]);
        }
        words(&text)
    }));
    ways.insert(0, ("by netem", netem));
    if wire.lost_per_mille == 0 {
        ways.push((
            "by a program between two TUN devices, in place of the pair",
            relayed(wire, sides, relay),
        ));
    }
    Some(Step::OneOf(ways))
}

/// TUN devices in place of the veth pair, and a program between them.
fn relayed(wire: NetworkLink, sides: [&str; 2], relay: &Path) -> Vec<Step> {
    let [near, far] = sides;
    let run = |text: &[&str]| Step::Run(words(text));
    let mut steps = vec![run(&["ip", "-n", near, "link", "del", "wire"])];
    for (side, address) in [(near, NEAR), (far, FAR)] {
        steps.push(run(&["ip", "-n", side, "tuntap", "add", "dev", "wire", "mode", "tun"]));
        // Room for all packets in transit: a full queue would lose packets.
        let device = ["ip", "-n", side, "link", "set", "wire", "mtu", "1500", "txqueuelen", "50000"];
        steps.push(run(&device));
        steps.push(run(&["ip", "-n", side, "addr", "add", &format!("{address}/30"), "dev", "wire"]));
        steps.push(run(&["ip", "-n", side, "link", "set", "wire", "up"]));
    }
    let delay_us = (wire.delay_ms * 1000).to_string();
    steps.push(Step::Start(words(&[&relay.display().to_string(), "wire", near, far, &delay_us])));
    steps
}

/// Select the last available processor, because the first one has the most interrupts.
pub(super) fn last_processor(status: &str) -> Option<u32> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    list.trim().rsplit([',', '-']).next()?.parse().ok()
}

/// The effective user is the second number.
pub(super) fn is_root(status: &str) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    line.and_then(|line| line.split_whitespace().nth(1)) == Some("0")
}

pub(super) fn words(text: &[&str]) -> Vec<String> {
    text.iter().map(|word| (*word).to_owned()).collect()
}

/// Returns the reason text with Debian's package of a missing command.
pub(super) fn package_of(program: &str) -> &'static str {
    match program {
        "ip" | "tc" => " (Debian: iproute2)",
        "taskset" => " (Debian: util-linux)",
        "iptables" => " (Debian: iptables)",
        _ => "",
    }
}
