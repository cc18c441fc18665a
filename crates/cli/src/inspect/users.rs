//! Users of observed processes.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use super::ProcessSnapshot;

/// Links from the numbers to the names of users that systemd made for services (`DynamicUser=`).
const DYNAMIC: &str = "/run/systemd/dynamic-uid";

/// Returns the effective user of this process.
pub fn own() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns the owner of a process.
pub fn owner_of(pid: u32) -> Option<u32> {
    fs::metadata(format!("/proc/{pid}")).ok().map(|found| found.uid())
}

/// Names of users.
pub struct Users {
    list: String,
    known: HashMap<u32, String>,
}

impl Users {
    /// Reads the list of users.
    pub fn new() -> Users {
        Users { list: fs::read_to_string("/etc/passwd").unwrap_or_default(), known: HashMap::new() }
    }

    /// Returns the name of a user, or its number if it has no name.
    pub fn name(&mut self, user: u32) -> &str {
        let list = &self.list;
        self.known.entry(user).or_insert_with(|| find(list, user).unwrap_or_else(|| user.to_string()))
    }
}

/// Returns the name of a user for `sudo -u`: as in the list of users, or else `#UID`.
pub fn for_sudo(user: u32) -> String {
    let list = fs::read_to_string("/etc/passwd").unwrap_or_default();
    find(&list, user).unwrap_or_else(|| format!("'#{user}'"))
}

/// True if the processes belong to more than one user, or not to the user of this tool.
pub fn are_several(seen: &[ProcessSnapshot]) -> bool {
    let own = own();
    seen.iter().any(|seen| seen.found.user != own)
}

fn find(list: &str, user: u32) -> Option<String> {
    let named = list.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _password, number) = (fields.next()?, fields.next()?, fields.next()?);
        (number.parse() == Ok(user) && !name.is_empty()).then(|| name.to_owned())
    });
    named.or_else(|| {
        let name = fs::read_link(format!("{DYNAMIC}/direct:{user}")).ok()?;
        name.to_str().filter(|name| !name.is_empty()).map(str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_their_names() {
        let list = "root:x:0:0:root:/root:/bin/bash\n\nbroken\norders:x:998:998::/:/bin/false\n";
        let mut users = Users { list: list.to_owned(), known: HashMap::new() };
        assert_eq!(
            [0, 998, 4_000_000_007].map(|user| users.name(user).to_owned()),
            ["root", "orders", "4000000007"]
        );
        assert_eq!(for_sudo(4_000_000_007), "'#4000000007'");
    }
}
