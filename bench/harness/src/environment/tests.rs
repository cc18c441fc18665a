//! Names, plans and undo steps; and one real veth pair, if the system allows it.

use super::kind::KINDS;
use super::*;
use group::Groups;
use std::path::PathBuf;

fn facts(groups: Result<Groups, String>) -> HostFacts {
    HostFacts {
        groups,
        processor: Some(1),
        relay: "/programs/wire".into(),
        busy: "/programs/busy".into(),
        root: true,
    }
}

fn plan_of(name: &str) -> EnvironmentPlan {
    let groups = Groups::V1("/groups".into());
    plan::plan_for(EnvironmentKind::from_name(name).unwrap(), &ObjectNames::new(7, 3), &facts(Ok(groups)))
        .unwrap()
}

/// An empty folder of this test.
fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("taut-bench-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn every_kind_has_a_name_of_its_own_and_says_what_it_is() {
    for (name, kind) in KINDS {
        assert_eq!(EnvironmentKind::from_name(name), Ok(kind));
        assert_eq!(
            KINDS.iter().filter(|(_, other)| other.description() == kind.description()).count(),
            1,
            "{name}"
        );
    }
}

#[test]
fn one_core_takes_the_last_processor_that_may_be_used() {
    assert_eq!(plan::last_processor("Name:\tx\nCpus_allowed_list:\t0-3,8\nMems:\t0\n"), Some(8));
    assert_eq!(plan::last_processor("Cpus_allowed_list:\t0-1\n"), Some(1));
    assert_eq!(plan::last_processor("nothing"), None);
    assert_eq!(plan_of("one-core").command_changes.prefix, ["taskset", "-c", "1"]);
    let nothing = HostFacts { processor: None, ..facts(Err("none".to_owned())) };
    assert!(plan::plan_for(EnvironmentKind::OneCore, &ObjectNames::new(1, 1), &nothing).is_err());
}

#[test]
fn busy_neighbours_come_and_go_with_each_program() {
    let plan = plan_of("busy-4");
    assert_eq!(plan.command_changes.prefix, ["/programs/busy", "4"]);
    assert!(plan.steps.is_empty() && plan.command_changes.variables.is_empty());
}

#[test]
fn names_identify_their_harness() {
    let (near, far) = ObjectNames::new(7, 3).namespaces();
    assert_ne!(near, far);
    assert_ne!(ObjectNames::new(7, 4).namespaces().0, near);
    let names: Vec<String> =
        [near.as_str(), "taut-bench-8-0", "taut-bench-x", "mine", "taut-bench-"].map(str::to_owned).to_vec();
    assert_eq!(plan::stale(&names, |_| false), [near, "taut-bench-8-0".to_owned()]);
    assert_eq!(plan::stale(&names, |pid| pid == 7), ["taut-bench-8-0"]);
}

/// Each object that a plan creates in the machine itself has an undo step.
#[test]
fn every_lasting_step_has_an_undo() {
    for (name, _) in KINDS {
        let plan = plan_of(name);
        for (step, undo) in &plan.steps {
            let makes = match step {
                Step::MakeDirectory(_) => true,
                Step::Run(words) => {
                    words[..3] == ["ip", "netns", "add"] || words.contains(&"veth".to_owned())
                }
                Step::Write(path, _) => !path.starts_with("/groups/taut-bench-7-3"),
                Step::Start(_) => true,
                Step::OneOf(ways) => ways.iter().flat_map(|(_, steps)| steps).any(|step| match step {
                    // Objects in a namespace of the run disappear with the namespace.
                    Step::Run(words) | Step::Start(words) => {
                        !words.iter().any(|word| word.starts_with("taut-bench-7-3-"))
                    }
                    _ => true,
                }),
            };
            assert!(!makes || undo.is_some(), "{name}: {step:?}");
        }
    }
    let removing: Vec<_> = plan_of("veth").steps.into_iter().filter_map(|(_, undo)| undo).collect();
    let run = |text: &str| Undo::Run(text.split(' ').map(str::to_owned).collect());
    assert_eq!(
        removing,
        [
            Undo::RemoveNamespace("taut-bench-7-3-near".to_owned()),
            Undo::RemoveNamespace("taut-bench-7-3-far".to_owned()),
            run("ip -n taut-bench-7-3-near link del wire")
        ]
    );
}

#[test]
fn delay_and_loss_are_on_both_sides() {
    let text = |name: &str| format!("{:?}", plan_of(name).steps);
    assert_eq!(text("veth-delay").matches("\"delay\", \"1ms\"").count(), 2);
    assert_eq!(text("veth-loss-0.1").matches("\"loss\", \"0.1%\"").count(), 2);
    assert_eq!(text("veth-loss-0.1").matches("rps_cpus").count(), 2, "packets stay in order");
    assert_eq!(text("veth-loss-1").matches("\"--probability\", \"0.01\"").count(), 2);
    // Without netem, the devices of a relay replace the pair, also in the namespaces.
    assert!(text("veth-delay").contains("\"/programs/wire\", \"wire\", \"taut-bench-7-3-near\""));
    assert_eq!(text("veth-delay").matches("\"tuntap\", \"add\"").count(), 2);
    assert!(!text("veth-loss-1").contains("tuntap"));
    assert!(!text("veth").contains("netem") && !text("veth-delay").contains("statistic"));
}

#[test]
fn the_mount_of_the_cpu_controller_is_found_in_both_versions() {
    let v1 = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n\
              cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0\n\
              cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
    assert_eq!(Groups::find(v1), Ok(Groups::V1("/sys/fs/cgroup/cpu,cpuacct".into())));
    assert!(Groups::find("proc /proc proc rw 0 0\n").is_err());
    let mount = folder("mounts");
    let mounts = format!("cgroup2 {} cgroup2 rw 0 0\n", mount.display());
    std::fs::write(mount.join("cgroup.controllers"), "cpuset memory\n").unwrap();
    assert!(Groups::find(&mounts).unwrap_err().contains("no cpu controller"));
    std::fs::write(mount.join("cgroup.controllers"), "cpuset cpu memory\n").unwrap();
    std::fs::write(mount.join("cgroup.subtree_control"), "memory\n").unwrap();
    assert_eq!(Groups::find(&mounts), Ok(Groups::V2 { mount: mount.clone(), delegated: false }));
    std::fs::write(mount.join("cgroup.subtree_control"), "cpu memory\n").unwrap();
    assert_eq!(Groups::find(&mounts), Ok(Groups::V2 { mount: mount.clone(), delegated: true }));
    std::fs::remove_dir_all(mount).unwrap();
}

/// An ordinary folder replaces the mount; its files keep the written text.
#[test]
fn half_a_core_is_a_quota_and_programs_join_its_group() {
    for delegated in [false, true] {
        let mount = folder(&format!("group-{delegated}"));
        let control = mount.join("cgroup.subtree_control");
        let groups = Groups::V2 { mount: mount.clone(), delegated };
        let made = make("half-core", EnvironmentKind::HalfCore, &facts(Ok(groups)));
        assert_eq!(made.environment.absent, None);
        let group = PathBuf::from(made.command_changes.prefix.last().unwrap()).parent().unwrap().to_owned();
        assert_eq!(std::fs::read_to_string(group.join("cpu.max")).unwrap(), "50000 100000");
        let joined: u32 =
            std::fs::read_to_string(group.join("cgroup.procs")).unwrap().trim().parse().unwrap();
        assert_ne!(joined, std::process::id());
        let switched = || std::fs::read_to_string(&control).ok();
        assert_eq!(switched(), (!delegated).then(|| "+cpu".to_owned()));
        drop(made);
        assert_eq!(switched(), (!delegated).then(|| "-cpu".to_owned()));
        std::fs::remove_dir_all(mount).unwrap();
    }
}

#[test]
fn failed_plan_undoes_its_steps() {
    let mount = folder("failing");
    let steps = vec![
        (Step::MakeDirectory(mount.join("a")), Some(Undo::RemoveGroup(mount.join("a")))),
        (Step::Run(plan::words(&["sh", "-c", "echo no such thing >&2; exit 3"])), None),
        (Step::MakeDirectory(mount.join("b")), Some(Undo::RemoveGroup(mount.join("b")))),
    ];
    let environment = Environment { name: "x".to_owned(), what: "x".to_owned(), absent: None };
    let mut made = PreparedEnvironment {
        environment,
        command_changes: CommandChanges::default(),
        undo: Vec::new(),
        started: Vec::new(),
    };
    let reason =
        made.apply_plan(EnvironmentPlan { steps, command_changes: CommandChanges::default() }).unwrap_err();
    assert!(reason.contains("no such thing"), "{reason}");
    assert!(mount.join("a").exists());
    drop(made);
    assert!(!mount.join("a").exists() && !mount.join("b").exists());
    std::fs::remove_dir_all(mount).unwrap();
}

#[test]
fn the_first_way_that_works_is_taken_and_named() {
    let environment = Environment { name: "x".to_owned(), what: "x".to_owned(), absent: None };
    let mut made = PreparedEnvironment {
        environment,
        command_changes: CommandChanges::default(),
        undo: Vec::new(),
        started: Vec::new(),
    };
    let ways = |commands: [&'static str; 2]| {
        Step::OneOf(commands.map(|command| (command, vec![Step::Run(plan::words(&[command]))])).to_vec())
    };
    assert_eq!(made.step(&ways(["false", "true"])), Ok(Some("true")));
    assert!(made.step(&ways(["false", "no-such-command"])).unwrap_err().contains("no-such-command"));
}

#[test]
fn an_environment_that_cannot_be_made_says_why() {
    let made =
        make("half-core", EnvironmentKind::HalfCore, &facts(Err("no control groups are mounted".to_owned())));
    assert_eq!(made.environment.absent.as_deref(), Some("no control groups are mounted"));
    let as_user = HostFacts { root: false, ..facts(Err("no".to_owned())) };
    let made = make("half-core", EnvironmentKind::HalfCore, &as_user);
    assert_eq!(made.environment.absent.as_deref(), Some("no; this needs root"));
    assert!(plan::is_root("Name:\tx\nUid:\t1000\t0\t0\t0\n") && !plan::is_root("Uid:\t0\t1000\t0\t0\n"));
    assert!(make_all(&["moon".to_owned()], Path::new(".")).is_err());
}

#[test]
fn started_program_ends_with_environment() {
    let environment = Environment { name: "x".to_owned(), what: "x".to_owned(), absent: None };
    let mut made = PreparedEnvironment {
        environment,
        command_changes: CommandChanges::default(),
        undo: Vec::new(),
        started: Vec::new(),
    };
    let start = |script: &str| Step::Start(plan::words(&["sh", "-c", script]));
    assert_eq!(made.step(&start("echo ready; exec sleep 100000")), Ok(None));
    assert!(made.step(&start("echo no such device >&2; exit 2")).unwrap_err().contains("no such device"));
    assert_eq!(made.started.len(), 1);
    made.remove();
    assert!(made.started.is_empty());
}
