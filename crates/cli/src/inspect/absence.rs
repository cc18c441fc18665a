//! Reasons why a process is not shown, each with a remedy.

use std::fs;
use std::path::PathBuf;

use super::{ProcessName, users};
use crate::failure::Failure;

/// Advice on how to observe a process.
pub const HOW: &str = "start it with TAUT_OBSERVE=1 in its environment, or with taut run --observe";

/// Returns the failure for a process whose counters this user cannot see.
pub fn not_observed(process: ProcessName) -> Failure {
    let what = format!("the process {process} is not observed");
    let Some(owner) = users::owner_of(process.pid) else {
        let has_list = fs::metadata("/proc/self").is_ok();
        return Failure::usage(what).hint(if has_list { "no such process runs" } else { HOW });
    };
    let own = users::own();
    if own != owner && own != 0 {
        let owner = users::for_sudo(owner);
        return Failure::usage(format!("the process {process} belongs to {owner}"))
            .hint(format!("only its own user and root can observe it: sudo -u {owner} {}", own_command()));
    }
    let mounts = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    let other = mounts(&process.pid.to_string()).is_some_and(|other| Some(other) != mounts("self"));
    Failure::usage(what).hint(match other && own != 0 {
        true => format!("{HOW}. It has other mounts, as in a container or with PrivateTmp: only root sees its counters, or give it a folder that both see (docs/operate/services.md)"),
        false => HOW.to_owned(),
    })
}

/// Reports that no process is observed.
pub fn report_none() {
    match users::own() {
        0 => notice!("taut: no process is observed"),
        _ => notice!("taut: no process of this user is observed"),
    }
    notice!("  {HOW}");
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
    fn arguments_are_quoted_if_needed() {
        for (argument, text) in
            [("4711/3", "4711/3"), ("--for=1s", "--for=1s"), ("", "''"), ("it's > 1", "'it'\\''s > 1'")]
        {
            assert_eq!(quoted(argument), text);
        }
    }
}
