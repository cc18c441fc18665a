//! What a thread gives back when it ends.
//!
//! The destructor of a thread-local value would do that, too, but when a thread first uses such a
//! value the C library takes the lock of the dynamic loader. The program may hold that lock while
//! it waits for our threads: when a library that is being unloaded, or loaded, ends its context. So
//! thread-local values of ours have no destructors; what would be done there is registered here.
//! Threads of our own call it when their [`OwnThread`] goes, and never touch the lock; other
//! threads, by a value that does have a destructor.

use std::cell::Cell;

/// More functions than there are values to give back.
const MOST: usize = 6;

type Registered = [Option<fn()>; MOST];

thread_local! {
    static ROLE: Cell<Role> = const { Cell::new(Role::Programs) };
    static AT_END: Cell<Registered> = const { Cell::new([None; MOST]) };
    static WATCH: Watch = const { Watch };
}

/// Whose thread it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Programs,
    Ours,
    OursAtItsEnd,
}

/// Sees a thread of the program end.
struct Watch;

impl Drop for Watch {
    fn drop(&mut self) {
        call_all();
    }
}

/// A thread of our own, for as long as this lives: from its first act to its last.
#[must_use = "its end is the end of the thread"]
#[derive(Debug)]
pub struct OwnThread(());

impl OwnThread {
    /// The calling thread is one.
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

/// Has the calling thread call `f` when it ends. False if it is about to end: it is not called
/// then.
pub fn at_end(f: fn()) -> bool {
    let in_time = match ROLE.get() {
        Role::Programs => WATCH.try_with(|_| ()).is_ok(),
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
    fn a_thread_calls_what_it_has_registered_once() {
        static CALLED: AtomicU32 = AtomicU32::new(0);
        fn call() {
            CALLED.fetch_add(1, SeqCst);
        }
        for (round, own) in [false, true].into_iter().enumerate() {
            let thread = std::thread::spawn(move || {
                let own = own.then(OwnThread::new);
                assert!(at_end(call));
                let before = CALLED.load(SeqCst);
                let ours = own.is_some();
                drop(own);
                assert!(!ours || !at_end(call), "too late");
                CALLED.load(SeqCst) - before
            });
            // Its own thread's has been called before the end, another's has not.
            assert_eq!(thread.join().unwrap(), u32::from(own));
            assert_eq!(CALLED.load(SeqCst), round as u32 + 1);
        }
    }

    #[test]
    fn a_thread_has_room_for_a_few() {
        std::thread::spawn(|| assert_eq!((0..9).filter(|_| at_end(|| ())).count(), MOST)).join().unwrap();
    }
}
