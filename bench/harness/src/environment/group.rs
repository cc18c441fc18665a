//! Limits processor time by control groups: the mount of the `cpu` controller, in version 1 or 2.

use super::plan::{Step, Undo};
use std::path::{Path, PathBuf};

/// Microseconds of a period, and of processor time in it. Container runtimes use these values for half a
/// processor.
const PERIOD_US: u32 = 100_000;
const QUOTA_US: u32 = 50_000;

/// Directory and version of the control groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Groups {
    V1(PathBuf),
    /// `delegated`: the controller is already on for the groups below the mount.
    V2 {
        mount: PathBuf,
        delegated: bool,
    },
}

impl Groups {
    /// Finds the mount in `/proc/mounts`. Version 1 first: if its controller is mounted, version 2 does not
    /// have it.
    pub(crate) fn find(mounts: &str) -> Result<Self, String> {
        let of = |kind: &str, option: &str| {
            mounts.lines().find_map(|line| {
                let mut words = line.split(' ').skip(1);
                let (path, this, options) = (words.next()?, words.next()?, words.next()?);
                let fits = this == kind && (option.is_empty() || options.split(',').any(|o| o == option));
                fits.then(|| PathBuf::from(path))
            })
        };
        if let Some(mount) = of("cgroup", "cpu") {
            return Ok(Self::V1(mount));
        }
        let mount = of("cgroup2", "").ok_or("no control groups are mounted")?;
        if !lists_cpu(&mount.join("cgroup.controllers")) {
            return Err(format!("{} has no cpu controller", mount.display()));
        }
        let delegated = lists_cpu(&mount.join("cgroup.subtree_control"));
        Ok(Self::V2 { mount, delegated })
    }

    pub(crate) fn mount(&self) -> &Path {
        match self {
            Self::V1(mount) | Self::V2 { mount, .. } => mount,
        }
    }

    /// Returns the steps that create a group with half a processor, and its directory.
    pub(crate) fn steps(&self, name: &str) -> (Vec<(Step, Option<Undo>)>, PathBuf) {
        let group = self.mount().join(name);
        let write = |file: &str, text: String| (Step::Write(group.join(file), text), None);
        let make = (Step::MakeDirectory(group.clone()), Some(Undo::RemoveGroup(group.clone())));
        let mut steps = Vec::new();
        match self {
            Self::V1(_) => {
                steps.push(make);
                steps.push(write("cpu.cfs_period_us", PERIOD_US.to_string()));
                steps.push(write("cpu.cfs_quota_us", QUOTA_US.to_string()));
            }
            Self::V2 { mount, delegated } => {
                if !delegated {
                    let control = mount.join("cgroup.subtree_control");
                    let off = Undo::Write(control.clone(), "-cpu".to_owned());
                    steps.push((Step::Write(control, "+cpu".to_owned()), Some(off)));
                }
                steps.push(make);
                steps.push(write("cpu.max", format!("{QUOTA_US} {PERIOD_US}")));
            }
        }
        (steps, group)
    }
}

fn lists_cpu(file: &Path) -> bool {
    std::fs::read_to_string(file).is_ok_and(|text| text.split_whitespace().any(|word| word == "cpu"))
}
