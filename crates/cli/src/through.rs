//! Transforms a message with a command of the user.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

use rustix::process::{Pid, Signal, kill_process_group};
use tautline::Message;

use crate::failure::{Failure, Result};
use crate::source::Parts;

/// Runs the command on a message. The last part is its standard input. The output replaces that
/// part, without the final line break. The command can read the other parts in `TAUT_PART_1`,
/// `TAUT_PART_2`, ...; they stay unchanged. A part has no variable if it is not text or if it
/// exceeds a limit ([`LONGEST`], [`ROOM`]).
///
/// The second value is true if the command succeeded.
pub fn run(command: &str, parts: &[Message]) -> Result<(Parts, bool)> {
    let (body, before) = parts.split_last().ok_or_else(|| Failure::failed("a message without parts"))?;
    let failed = |error: std::io::Error| Failure::failed(format!("--through {command}: {error}"));
    let mut child = Command::new("sh");
    // Use a process group, so that the whole group can be terminated.
    child.arg("-c").arg(command).process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
    for (at, text) in variables(before) {
        child.env(format!("TAUT_PART_{at}"), text);
    }
    let mut child = child.spawn().map_err(failed)?;
    *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) = Some(Pid::from_child(&child));
    let stdin = child.stdin.take();
    let output = thread::scope(|scope| {
        // Write on a separate thread, because the command may print before it has read everything.
        scope.spawn(|| {
            // The command may ignore its input.
            stdin.map(|mut stdin| stdin.write_all(body))
        });
        child.wait_with_output()
    });
    *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) = None;
    let output = output.map_err(failed)?;
    let mut answer = output.stdout;
    if answer.last() == Some(&b'\n') {
        answer.pop();
    }
    let mut made: Parts = before.iter().map(|part| part.to_vec()).collect();
    made.push(answer);
    Ok((made, output.status.success()))
}

/// Maximum size of a part in a variable. Linux does not start a command with a variable of 128 KiB.
const LONGEST: usize = 64 * 1024;
/// Maximum total size of the variables of a message in bytes, so that every message can start the
/// command.
const ROOM: usize = 256 * 1024;
/// Approximate size of a variable besides its value: its name and a pointer.
const VARIABLE: usize = 40;

/// Returns the parts that become variables, with their numbers.
fn variables(parts: &[Message]) -> impl Iterator<Item = (usize, &str)> {
    let mut room = ROOM;
    parts.iter().enumerate().filter_map(move |(at, part)| {
        let text = part.as_str().ok().filter(|text| text.len() <= LONGEST && !text.contains('\0'))?;
        room = room.checked_sub(text.len() + VARIABLE)?;
        Some((at + 1, text))
    })
}

/// Process group of the running command, if any.
static RUNNING: Mutex<Option<Pid>> = Mutex::new(None);

/// Terminates the running command, because its result is no longer needed.
pub fn abandon() {
    if let Some(group) = *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) {
        // An error means that the command has already ended.
        let _ = kill_process_group(group, Signal::TERM);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_changes_the_last_part() {
        let parts = [Message::from("topic"), Message::from("abc")];
        let (made, success) = run("tr a-z A-Z; echo \" $TAUT_PART_1\"", &parts).unwrap();
        assert_eq!((made, success), (vec![b"topic".to_vec(), b"ABC topic".to_vec()], true));
        let large = [Message::from(vec![b'x'; 1 << 20])];
        assert_eq!(run("cat", &large).unwrap().0[0].len(), 1 << 20);
        assert!(!run("exit 3", &large).unwrap().1);
    }

    #[test]
    fn long_and_many_parts_do_not_keep_the_command_from_running() {
        let long = [Message::from(vec![b'x'; 200_000]), Message::from("abc")];
        let (made, success) = run("cat; echo ${TAUT_PART_1-unset}", &long).unwrap();
        assert_eq!((made[0].len(), &made[1][..], success), (200_000, &b"abcunset"[..], true));
        let mut many: Vec<_> = (0..100_000).map(|_| Message::from("part")).collect();
        many.push(Message::from("abc"));
        let (made, success) = run("cat; echo $TAUT_PART_1", &many).unwrap();
        assert_eq!((made.len(), &made[100_000][..], success), (100_001, &b"abcpart"[..], true));
    }
}
