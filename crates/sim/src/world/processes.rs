//! Processes: groups of threads and descriptors. All processes share the memory of the real
//! process, including the engine's state for all its contexts.
//!
//! Each thread of a killed process stops at its next wait. Until then it continues, because it may
//! hold a lock that processes share. After the last thread has stopped, this module closes the
//! descriptors of the process, as a kernel does.

#[cfg(simulated)]
use super::Thread;
use super::{CURRENT_TID, ThreadState, Tid, Wait, World, end_this_thread, with, world};
#[cfg(simulated)]
use crate::memory::Stack;

pub(crate) type Process = u32;

/// Makes the next thread of the calling thread start a new process.
pub(crate) fn begin_process() -> Process {
    with(|world| {
        world.processes += 1;
        world.next_process = Some((CURRENT_TID.get(), world.processes));
        world.processes
    })
    .unwrap_or(0)
}

/// Kills a process other than the caller's.
pub(crate) fn kill(process: Process) {
    with(|world| {
        world.say(&format!("kill process {process}"));
        world.killed.insert(process);
        for thread in world.threads.iter_mut().filter(|thread| thread.process == process) {
            if matches!(thread.state, ThreadState::Waits(..)) {
                thread.state = ThreadState::Ended;
            }
        }
        world.last_wake_check = (u64::MAX, 0);
        world.close_killed_process(process);
    });
}

/// True if the calling thread's process has been killed, and the wait may take long.
pub(super) fn must_stop(me: Tid, wait: &Wait) -> bool {
    let world = world();
    let process = world.thread(me).process;
    world.killed.contains(&process) && matches!(wait, Wait::Poll(_) | Wait::Epoll(_) | Wait::Time)
}

/// Ends the calling thread if its process has been killed. The thread holds no shared resource
/// here.
pub(crate) fn end_if_killed() {
    let me = CURRENT_TID.get();
    if me != 0 && must_stop(me, &Wait::Time) {
        end_this_thread();
    }
}

impl World {
    /// True if a process was killed. A killed process releases no memory.
    pub(crate) fn has_killed(&self) -> bool {
        !self.killed.is_empty()
    }

    /// Returns the stacks of all threads.
    #[cfg(simulated)]
    pub(crate) fn stacks(&self) -> Vec<Stack> {
        let stack =
            |thread: &Thread| Stack { handle: thread.handle, is_alive: thread.state != ThreadState::Ended };
        self.threads.iter().map(stack).collect()
    }

    /// Returns the process of a thread that the calling thread starts.
    pub(super) fn process_of_new(&mut self) -> Process {
        let own = match CURRENT_TID.get() {
            0 => 0,
            me => self.thread(me).process,
        };
        let new = self.next_process.take_if(|(creator, _)| *creator == CURRENT_TID.get());
        new.map_or(own, |(_, process)| process)
    }

    /// Closes the descriptors of a killed process after its last thread has stopped.
    pub(super) fn close_killed_process(&mut self, process: Process) {
        let mut own = self.threads.iter().filter(|thread| thread.process == process);
        if self.killed.contains(&process) && own.all(|thread| thread.state == ThreadState::Ended) {
            self.kernel.close_all(process);
            self.kernel.changes += 1;
        }
    }
}
