//! The memory that slabs may use.

use std::fs;
use std::path::{Component, Path};

use super::{SLOT, SLOTS};
use crate::libc;

/// Parts of the machine's memory, and of the limit of a control group, that slabs may use.
const PART_OF_MACHINE: u64 = 8;
const PART_OF_GROUP: u64 = 4;

/// Returns the number of bytes that this process may use, at most `most`. 0 if it may not reserve
/// the addresses.
pub(super) fn budget(most: usize) -> usize {
    if address_limit() / 4 < (SLOTS * SLOT) as u64 {
        return 0;
    }
    // SAFETY: integers only.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    let machine = u64::try_from(pages).unwrap_or(0) * u64::try_from(size).unwrap_or(0);
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = group_limit(&groups, Path::new("/sys/fs/cgroup"));
    (most as u64).min(machine / PART_OF_MACHINE).min(group / PART_OF_GROUP) as usize
}

/// Returns the limit of the address space, RLIMIT_AS.
fn address_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one rlimit, which is ours.
    match unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) } {
        0 => limit.rlim_cur,
        _ => 0,
    }
}

/// Returns the lowest memory limit of the control groups in `groups` (cgroups(7),
/// `/proc/PID/cgroup`), which are mounted at `root`.
fn group_limit(groups: &str, root: &Path) -> u64 {
    let mut lowest = u64::MAX;
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (mount, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => continue,
        };
        // In a container, the path may lie outside of what is mounted.
        let inside = path.trim_start_matches('/');
        let is_inside = Path::new(inside).components().all(|part| matches!(part, Component::Normal(_)));
        let group = if is_inside { mount.join(inside) } else { mount.clone() };
        for folder in group.ancestors().take_while(|folder| folder.starts_with(&mount)) {
            let limit = fs::read_to_string(folder.join(file)).ok();
            // "max" is no number.
            lowest = limit.and_then(|limit| limit.trim().parse().ok()).unwrap_or(u64::MAX).min(lowest);
        }
    }
    lowest
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn lowest_limit_of_all_groups_counts() {
        let root = std::env::temp_dir().join(format!("tautline-groups-{}", std::process::id()));
        let write = |folder: &str, file: &str, text: &str| {
            fs::create_dir_all(root.join(folder)).unwrap();
            fs::write(root.join(folder).join(file), text).unwrap();
        };
        write("a/b", "memory.max", "max\n");
        write("a", "memory.max", "4096\n");
        write("memory/c", "memory.limit_in_bytes", "8192\n");
        assert_eq!(group_limit("0::/a/b\n", &root), 4096);
        assert_eq!(group_limit("5:cpu,memory:/c\n0::/\n", &root), 8192);
        assert_eq!(group_limit("5:cpu:/a\n", &root), u64::MAX);
        assert_eq!(group_limit("0::/../../elsewhere\n", &root), u64::MAX);
        fs::remove_dir_all(&root).unwrap();
    }
}
