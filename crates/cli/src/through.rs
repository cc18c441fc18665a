//! Transforms a message with a command of the user.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::process::{Pid, Signal, kill_process_group};
use tautline::Message;

use crate::failure::{Failure, Result};
use crate::source::Parts;

/// Runs the command on a message. The last part is its standard input. The output replaces that
/// part, without the final line break. The command can read the other parts in `TAUT_PART_1`,
/// `TAUT_PART_2`, ...; they stay unchanged. A part has no variable if it contains a NUL byte or if
/// it exceeds a limit ([`LONGEST`], [`ROOM`]). A notice reports the first part without a variable.
///
/// The second value is true if the command succeeded.
pub fn run(command: &str, parts: &[Message]) -> Result<(Parts, bool)> {
    let (body, before) = parts.split_last().ok_or_else(|| Failure::failed("a message without parts"))?;
    let failed = |error: std::io::Error| Failure::failed(format!("--through {command}: {error}"));
    let mut child = Command::new("sh");
    // Use a process group, so that the whole group can be terminated.
    child.arg("-c").arg(command).process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut room = ROOM;
    for (at, part) in before.iter().enumerate() {
        let name = format!("TAUT_PART_{}", at + 1);
        match variable(part, &mut room) {
            Ok(value) => {
                child.env(name, value);
            }
            Err(why) => {
                // An inherited variable of this name would be wrong.
                child.env_remove(&name);
                if !REPORTED.swap(true, Ordering::Relaxed) {
                    notice!("taut: --through: {name} is not set: {why} (further parts are not reported)");
                }
            }
        }
    }
    let mut child = child.spawn().map_err(failed)?;
    begin(Pid::from_child(&child));
    let stdin = child.stdin.take();
    let output = thread::scope(|scope| {
        // Write on a separate thread, because the command may print before it has read everything.
        scope.spawn(|| {
            // The command may ignore its input.
            stdin.map(|mut stdin| stdin.write_all(body))
        });
        child.wait_with_output()
    });
    running().group = None;
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

/// True after a part without a variable was reported: one notice is enough for a stream of
/// messages.
// Relaxed: flag: it protects no other data.
static REPORTED: AtomicBool = AtomicBool::new(false);

/// Returns the value of the variable for a part, or the reason why the part gets no variable.
/// `room` is the size that is left for this and the following variables.
fn variable<'a>(part: &'a Message, room: &mut usize) -> std::result::Result<&'a OsStr, &'static str> {
    if part.contains(&0) {
        return Err("the part contains a NUL byte, which a variable cannot hold");
    }
    if part.len() > LONGEST {
        return Err("the part is longer than 64 KiB");
    }
    *room = room.checked_sub(part.len() + VARIABLE).ok_or("the parts are longer than 256 KiB together")?;
    Ok(OsStr::from_bytes(part))
}

/// The running command.
struct Running {
    /// Its process group, if a command runs.
    group: Option<Pid>,
    /// True after [`abandon`]. A command that starts at that moment is terminated as well.
    is_abandoned: bool,
}

static RUNNING: Mutex<Running> = Mutex::new(Running { group: None, is_abandoned: false });

fn running() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn begin(group: Pid) {
    let mut running = running();
    running.group = Some(group);
    if running.is_abandoned {
        terminate(group);
    }
}

fn terminate(group: Pid) {
    // An error means that the command has already ended.
    let _ = kill_process_group(group, Signal::TERM);
}

/// Terminates the running command and all later ones, because their results are no longer needed.
pub fn abandon() {
    let mut running = running();
    running.is_abandoned = true;
    running.group.into_iter().for_each(terminate);
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
    fn part_with_nul_has_no_variable_and_other_bytes_have_one() {
        let parts = [Message::from(&b"a\0b"[..]), Message::from(&b"\xff"[..]), Message::from("abc")];
        let (made, success) =
            run("cat; echo ${TAUT_PART_1-unset}; printf %s \"$TAUT_PART_2\"", &parts).unwrap();
        assert_eq!((&made[2][..], success), (&b"abcunset\n\xff"[..], true));
        assert_eq!(
            variable(&parts[0], &mut ROOM.clone()),
            Err("the part contains a NUL byte, which a variable cannot hold")
        );
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
