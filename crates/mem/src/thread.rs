//! Functions that a thread calls when it exits.
//!
//! The destructor of a thread-local value would also do this. But when a thread first uses a value
//! with a destructor, the C library takes the lock of the dynamic loader. The program may hold that
//! lock while it waits for our threads: when a library that is being unloaded, or loaded, ends its
//! context. So our thread-local values have no destructors. The work of a destructor is registered
//! here instead.
//!
//! Our own threads run the registered functions when their [`OwnThread`] is dropped, and never take
//! the lock. Other threads run them by a value that does have a destructor.

use std::cell::Cell;

use crate::reserve;

/// The C library needs less memory than this to register a destructor, and ends the process if it
/// has none.
const REGISTRATION: usize = 4096;

/// More than the number of registered functions.
const MOST: usize = 6;

type Registered = [Option<fn()>; MOST];

thread_local! {
    static ROLE: Cell<Role> = const { Cell::new(Role::Programs) };
    static AT_END: Cell<Registered> = const { Cell::new([None; MOST]) };
    static WATCH: ExitGuard = const { ExitGuard };
}

/// Owner of the thread: the program or us.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Programs,
    Ours,
    OursAtItsEnd,
}

/// Detects the exit of a thread of the program.
struct ExitGuard;

impl Drop for ExitGuard {
    fn drop(&mut self) {
        call_all();
    }
}

/// Marks one of our own threads while this value lives: from the thread's first action to its last.
#[must_use = "dropping it marks the end of the thread"]
#[derive(Debug)]
pub struct OwnThread(());

impl OwnThread {
    /// Marks the calling thread as one of ours.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        ROLE.set(Role::Ours);
        OwnThread(())
    }
}

impl Drop for OwnThread {
    fn drop(&mut self) {
        ROLE.set(Role::OursAtItsEnd);
        call_all();
    }
}

/// Registers `f` to be called when the calling thread exits. Returns false if the thread is already
/// exiting, or if there is no memory; `f` is then not called.
pub fn on_exit(f: fn()) -> bool {
    let in_time = match ROLE.get() {
        Role::Programs => reserve::system_has(REGISTRATION) && WATCH.try_with(|_| ()).is_ok(),
        Role::Ours => true,
        Role::OursAtItsEnd => false,
    };
    if !in_time {
        return false;
    }
    let mut all = AT_END.get();
    let place = all.iter_mut().find(|place| place.is_none());
    let found = place.is_some();
    if let Some(place) = place {
        *place = Some(f);
        AT_END.set(all);
    }
    found
}

fn call_all() {
    AT_END.take().into_iter().flatten().for_each(|f| f());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    #[test]
    fn exit_handlers_run_once() {
        static CALLED: AtomicU32 = AtomicU32::new(0);
        fn call() {
            CALLED.fetch_add(1, SeqCst);
        }
        for (round, own) in [false, true].into_iter().enumerate() {
            let thread = std::thread::spawn(move || {
                let own = own.then(OwnThread::new);
                assert!(on_exit(call));
                let before = CALLED.load(SeqCst);
                let ours = own.is_some();
                drop(own);
                assert!(!ours || !on_exit(call), "the thread is already exiting");
                CALLED.load(SeqCst) - before
            });
            // On our own thread the function was called before the exit, on other threads it was
            // not.
            assert_eq!(thread.join().unwrap(), u32::from(own));
            assert_eq!(CALLED.load(SeqCst), round as u32 + 1);
        }
    }

    #[test]
    fn several_exit_handlers_fit() {
        std::thread::spawn(|| assert_eq!((0..9).filter(|_| on_exit(|| ())).count(), MOST)).join().unwrap();
    }
}
