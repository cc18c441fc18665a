//! Reasons why a process is not shown, each with a remedy.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use tautline_observe::processes_of;

use super::ProcessName;
use crate::failure::Failure;

/// Advice on how to observe a process.
pub const HOW: &str = "start it with TAUT_OBSERVE=1 in its environment, or with taut run --observe";

/// Returns the failure for a process that has no file of counters of this user.
pub fn not_observed(process: ProcessName) -> Failure {
    let what = format!("the process {process} is not observed");
    let Ok(found) = fs::metadata(format!("/proc/{}", process.pid)) else {
        let has_list = fs::metadata("/proc/self").is_ok();
        return Failure::usage(what).hint(if has_list { "no such process runs" } else { HOW });
    };
    if fs::metadata("/proc/self").is_ok_and(|own| own.uid() != found.uid()) {
        let owner = user_name(found.uid());
        return Failure::usage(format!("the process {process} belongs to {owner}"))
            .hint(format!("only its own user can observe it: sudo -u {owner} {}", own_command()));
    }
    let mounts = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    let other = mounts(&process.pid.to_string()).is_some_and(|other| Some(other) != mounts("self"));
    Failure::usage(what).hint(match other {
        true => format!("{HOW}. It has other mounts, as in a container or with PrivateTmp: give it a folder that both see (docs/operate/observe.md)"),
        false => HOW.to_owned(),
    })
}

/// Reports that no process is observed. Root learns of the observed processes of other users.
pub fn report_none() {
    notice!("taut: no process of this user is observed");
    let others = of_other_users();
    if others.is_empty() {
        notice!("  {HOW}");
    }
    for (user, count) in others {
        let owner = user_name(user);
        notice!(
            "  {owner} has {}: sudo -u {owner} {}",
            super::units::many(count, "observed program"),
            own_command()
        );
    }
}

/// Returns the number of observed processes of each other user whose folders this user can read.
fn of_other_users() -> BTreeMap<u32, usize> {
    let folders = |place: &str, prefix: &'static str| {
        let entries = fs::read_dir(place).into_iter().flatten().flatten();
        entries.filter_map(move |entry| entry.file_name().to_str()?.strip_prefix(prefix)?.parse::<u32>().ok())
    };
    let users = folders("/run/user", "").chain(folders("/tmp", "tautline-"));
    let own = fs::metadata("/proc/self").map(|own| own.uid()).ok();
    let counted = users.filter(|user| Some(*user) != own).map(|user| (user, processes_of(user).len()));
    counted.filter(|(_, count)| *count > 0).collect()
}

/// Returns the name of a user for `sudo -u`: as in the list of users, or else `#UID`.
fn user_name(user: u32) -> String {
    name_in(&fs::read_to_string("/etc/passwd").unwrap_or_default(), user)
}

fn name_in(users: &str, user: u32) -> String {
    let named = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _password, number) = (fields.next()?, fields.next()?, fields.next()?);
        (number.parse() == Ok(user) && !name.is_empty()).then(|| name.to_owned())
    });
    named.unwrap_or_else(|| format!("'#{user}'"))
}

/// Returns the command line of this process, to be repeated as another user.
fn own_command() -> String {
    let mut arguments = std::env::args_os();
    let program = arguments.next().map(PathBuf::from).unwrap_or_default();
    let program = program.file_name().map(|name| name.to_string_lossy().into_owned());
    let arguments = arguments.map(|argument| quoted(&argument.to_string_lossy()));
    std::iter::once(program.unwrap_or_else(|| "taut".to_owned()))
        .chain(arguments)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Quotes an argument for a shell, if it needs that.
fn quoted(argument: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:,+@=".contains(letter);
    match !argument.is_empty() && argument.chars().all(is_plain) {
        true => argument.to_owned(),
        false => format!("'{}'", crate::format::escaped(argument.as_bytes()).replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_their_names() {
        let users = "root:x:0:0:root:/root:/bin/bash\n\nbroken\norders:x:998:998::/:/bin/false\n";
        assert_eq!([0, 998, 7].map(|user| name_in(users, user)), ["root", "orders", "'#7'"]);
    }

    #[test]
    fn arguments_are_quoted_if_needed() {
        for (argument, text) in
            [("4711/3", "4711/3"), ("--for=1s", "--for=1s"), ("", "''"), ("it's > 1", "'it'\\''s > 1'")]
        {
            assert_eq!(quoted(argument), text);
        }
    }
}
