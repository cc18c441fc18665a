//! Entering a socket: from the handle that C gives to the engine's `&mut Socket`, one caller at a
//! time.
//!
//! Called by every function that takes a socket. A socket belongs to one thread at a time and moves
//! between threads only with a full fence (zmq_socket(3)); so entering costs a load and a store of
//! the slot's `busy` byte and no locked instruction. The byte limits the damage of programs that
//! break the rule: a thread that finds it set waits until the other caller is out. It cannot see
//! two callers that enter within the same nanoseconds; an atomic exchange could, and costs 4 ns.
//!
//! A close is different. It ends the call of another thread, however long that would block, and
//! never misses a call that enters at the same time: `open` and `busy` are a store and a load on
//! each side, with a barrier between.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, compiler_fence};
use std::time::Duration;

use tautline_core::{Closer, Error, SharedSocket, Socket, SocketType};
use tautline_io::barrier;

use crate::shared;
use crate::slot::{Body, Slot, Spare};

/// A slot with a socket in it.
pub(crate) type SocketSlot = Slot<SocketBody>;

/// What a socket's slot holds. In C order, so that `busy` lies beside the slot's tag.
#[repr(C)]
pub(crate) struct SocketBody {
    /// A caller is inside.
    // Relaxed: caller: a socket passes between threads with a full fence.
    busy: AtomicBool,
    /// The socket is there, and no thread is closing it.
    // Relaxed: caller, and fence: `Entry::new` and `close`.
    open: AtomicBool,
    /// Written by the caller inside: where [`crate::poll`] keeps this entry.
    // Relaxed: caller; to others it is a number, which they check.
    mark: AtomicU32,
    /// The process in which the socket was made or last waited for.
    // Relaxed: caller: it differs only after a fork.
    process: AtomicU32,
    /// Ends the call of another thread. There while the handle is good. Taken by the thread that
    /// closes.
    closer: UnsafeCell<Option<Closer>>,
    /// Initialised while `open` is set, and until the thread that closes takes it out. Accessed
    /// only by the caller inside.
    socket: UnsafeCell<MaybeUninit<Socket>>,
}

impl Default for SocketBody {
    fn default() -> Self {
        SocketBody {
            busy: AtomicBool::new(false),
            open: AtomicBool::new(false),
            mark: AtomicU32::new(0),
            process: AtomicU32::new(0),
            closer: UnsafeCell::default(),
            socket: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }
}

// SAFETY: the socket, which is Send, is reached only through an `Entry`, and callers of one socket
// take turns: by the contract of zmq_socket, and as far as `busy` can enforce it. The closer is
// reached by the one thread that retires the slot. All else is atomic.
unsafe impl Sync for SocketBody {}

impl Body for SocketBody {
    const TAG: u32 = 0x50C4_E701;

    fn spare() -> &'static Spare<Self> {
        static SPARE: Spare<SocketBody> = Spare::new();
        &SPARE
    }
}

impl SocketBody {
    /// In a forked child: the type of the parent's socket.
    pub(crate) fn socket_type(&self) -> Option<SocketType> {
        // SAFETY: a socket that is open is initialised, and its type never changes. No other thread
        // is there, and none of the parent's is closing it.
        self.open
            .load(Ordering::Relaxed)
            .then(|| unsafe { (*self.socket.get()).assume_init_ref() }.socket_type())
    }
}

/// Gives a new socket to C.
pub(crate) fn open(socket: Socket) -> *mut c_void {
    let slot = SocketSlot::claim();
    let body = slot.body();
    body.process.store(std::process::id(), Ordering::Relaxed);
    // SAFETY: the slot was claimed, so it is not in use, and its handle is not out.
    unsafe {
        *body.closer.get() = Some(Closer::of(&socket));
        (*body.socket.get()).write(socket);
    }
    body.open.store(true, Ordering::Relaxed);
    slot.publish()
}

/// Ends the handle and closes the socket. A call of another thread in it fails with NotSocket; this
/// waits until that thread has left, which a call that blocks does at once. NotSocket if the handle
/// is none.
///
/// # Safety
/// As for [`Entry::new`].
pub(crate) unsafe fn close(handle: *mut c_void) -> Result<(), Error> {
    // SAFETY: the caller's word.
    let Some(slot) = (unsafe { SocketSlot::at(handle) }) else {
        // SAFETY: the caller's word.
        return unsafe { shared::close(handle) };
    };
    // One of several threads that close wins.
    if !slot.retire() {
        return Err(Error::NotSocket);
    }
    let body = slot.body();
    body.open.store(false, Ordering::Relaxed);
    // Store `open`, then load `busy`: pairs with the fence in `Entry::new`.
    barrier::heavy();
    // SAFETY: this thread has retired the slot, and nothing else takes the closer out.
    let closer = unsafe { &mut *body.closer.get() }.take();
    if body.busy.load(Ordering::Acquire) {
        if let Some(closer) = closer {
            closer.end_calls();
        }
        wait_until_left(body);
    }
    // SAFETY: it was open until now. No caller is inside, and none that enters finds it open.
    let socket = unsafe { (*body.socket.get()).assume_init_read() };
    slot.recycle();
    socket.close();
    Ok(())
}

/// A caller's stay in a socket; ends when dropped.
pub(crate) struct Entry {
    slot: &'static SocketSlot,
}

impl Drop for Entry {
    #[inline(always)]
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `enter`, should the next caller be another thread
        // without a fence.
        self.slot.body().busy.store(false, Ordering::Release);
    }
}

impl Entry {
    /// Enters the socket behind a handle. NotSocket if it is none.
    ///
    /// # Safety
    /// `handle` is null, or points to four readable bytes.
    #[inline(always)]
    pub(crate) unsafe fn new(handle: *mut c_void) -> Result<Entry, Error> {
        // SAFETY: the caller's word.
        let slot = unsafe { SocketSlot::at(handle) }.ok_or(Error::NotSocket)?;
        if slot.body().busy.load(Ordering::Acquire) {
            wait_for_turn(slot)?;
        }
        slot.body().busy.store(true, Ordering::Relaxed);
        // Store `busy`, then load `open` in `socket`: pairs with the barrier in `close`.
        compiler_fence(Ordering::SeqCst);
        Ok(Entry { slot })
    }

    /// The socket. NotSocket if another thread closes it.
    #[inline(always)]
    pub(crate) fn socket(&mut self) -> Result<&mut Socket, Error> {
        let body = self.slot.body();
        if !body.open.load(Ordering::Relaxed) {
            return Err(Error::NotSocket);
        }
        // SAFETY: it is open, and stays initialised while this caller is inside. This caller is
        // inside alone; see the unsafe impl of Sync above.
        Ok(unsafe { (*body.socket.get()).assume_init_mut() })
    }

    /// Whether this is the handle of a socket of one thread.
    ///
    /// # Safety
    /// As for [`Entry::new`].
    pub(crate) unsafe fn is_handle(handle: *mut c_void) -> bool {
        // SAFETY: the caller's word.
        unsafe { SocketSlot::at(handle) }.is_some()
    }

    /// Notes where the caller keeps this entry, for [`marked`].
    pub(crate) fn mark(&self, index: u32) {
        self.slot.body().mark.store(index, Ordering::Relaxed);
    }

    /// Whether this is an entry of the socket behind `handle`.
    pub(crate) fn is_of(&self, handle: *mut c_void) -> bool {
        self.slot.handle() == handle
    }
}

/// What the caller inside the socket noted last; only a hint, to be checked against one's own
/// entries. `None` if no thread is inside.
///
/// # Safety
/// As for [`Entry::new`].
pub(crate) unsafe fn marked(handle: *mut c_void) -> Option<u32> {
    // SAFETY: the caller's word.
    let body = unsafe { SocketSlot::at(handle) }?.body();
    body.busy.load(Ordering::Relaxed).then(|| body.mark.load(Ordering::Relaxed))
}

/// Lets `call` work on the socket behind a handle.
///
/// # Safety
/// As for [`Entry::new`].
#[inline(always)]
pub(crate) unsafe fn with<T>(
    handle: *mut c_void,
    call: impl FnOnce(&mut Socket) -> Result<T, Error>,
) -> Result<T, Error> {
    // SAFETY: the caller's word.
    match unsafe { Entry::new(handle) } {
        Ok(mut entry) => call(entry.socket()?),
        // SAFETY: the caller's word.
        Err(_) => unsafe { with_shared(handle, call) },
    }
}

/// # Safety
/// As for [`Entry::new`].
#[cold]
unsafe fn with_shared<T>(
    handle: *mut c_void,
    call: impl FnOnce(&mut Socket) -> Result<T, Error>,
) -> Result<T, Error> {
    // SAFETY: the caller's word.
    unsafe { shared::at(handle) }?.with(call)
}

/// As [`with`], for calls that may block: `many` if other threads may use the socket meanwhile.
///
/// # Safety
/// As for [`Entry::new`].
#[inline(always)]
pub(crate) unsafe fn transfer<T>(
    handle: *mut c_void,
    one: impl FnOnce(&mut Socket) -> Result<T, Error>,
    many: impl FnOnce(&SharedSocket) -> Result<T, Error>,
) -> Result<T, Error> {
    // SAFETY: the caller's word.
    match unsafe { Entry::new(handle) } {
        Ok(mut entry) => one(entry.socket()?),
        // SAFETY: the caller's word.
        Err(_) => unsafe { transfer_shared(handle, many) },
    }
}

/// # Safety
/// As for [`Entry::new`].
#[cold]
pub(crate) unsafe fn transfer_shared<T>(
    handle: *mut c_void,
    many: impl FnOnce(&SharedSocket) -> Result<T, Error>,
) -> Result<T, Error> {
    // SAFETY: the caller's word.
    many(&*unsafe { shared::at(handle) }?)
}

/// Waits until the caller inside is out. NotSocket if another thread closes the socket.
#[cold]
fn wait_for_turn(slot: &SocketSlot) -> Result<(), Error> {
    wait_while_busy(slot.body(), || slot.in_use());
    if slot.in_use() { Ok(()) } else { Err(Error::NotSocket) }
}

/// Closing thread: waits until the caller inside is out.
#[cold]
fn wait_until_left(body: &SocketBody) {
    wait_while_busy(body, || true);
}

/// Waits until the caller inside is out, as long as `goes_on` says so. A forked child does not wait
/// for a thread that only its parent has.
fn wait_while_busy(body: &SocketBody, goes_on: impl Fn() -> bool) {
    let process = std::process::id();
    if body.process.swap(process, Ordering::Relaxed) != process {
        body.busy.store(false, Ordering::Relaxed);
        return;
    }
    let mut tries = 0_u32;
    while body.busy.load(Ordering::Acquire) && goes_on() {
        tries = tries.saturating_add(1);
        if tries < 1000 {
            std::thread::yield_now()
        } else {
            tautline_io::thread::sleep(Duration::from_millis(1))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ptr::null_mut;
    use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};

    use super::*;
    use tautline_core::{Context, Flags, SocketType};

    /// A closed handle must not become another test's socket while it is looked at.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handle that may go to another thread.
    #[derive(Clone, Copy)]
    struct Handle(*mut c_void);
    // SAFETY: the tests do with it what programs do, or worse but guarded by `busy`.
    unsafe impl Send for Handle {}

    impl Handle {
        fn new(context: &Context) -> Handle {
            Handle(open(context.socket(SocketType::Pull).unwrap()))
        }

        fn enter(self) -> Result<Entry, Error> {
            // SAFETY: the handle of a slot.
            unsafe { Entry::new(self.0) }
        }

        fn close(self) -> Result<(), Error> {
            // SAFETY: the handle of a slot.
            unsafe { close(self.0) }
        }

        fn slot(self) -> &'static SocketSlot {
            // SAFETY: the handle of a slot.
            unsafe { SocketSlot::at(self.0) }.unwrap()
        }
    }

    #[test]
    fn a_handle_is_good_until_closed() {
        let _alone = alone();
        let context = Context::new();
        let handle = Handle::new(&context);
        assert!(handle.enter().unwrap().socket().is_ok());
        assert!(handle.enter().unwrap().is_of(handle.0));
        handle.close().unwrap();
        assert_eq!(handle.enter().err(), Some(Error::NotSocket));
        // SAFETY: null is allowed.
        assert_eq!(unsafe { Entry::new(null_mut()) }.err(), Some(Error::NotSocket));
        context.terminate().unwrap();
    }

    #[test]
    fn the_mark_is_seen_while_a_call_is_inside() {
        let _alone = alone();
        let context = Context::new();
        let handle = Handle::new(&context);
        // SAFETY: the handle of a slot, or null.
        let seen = |handle: Handle| unsafe { marked(handle.0) };
        assert_eq!(seen(handle), None);
        let entry = handle.enter().unwrap();
        entry.mark(7);
        assert_eq!(seen(handle), Some(7));
        drop(entry);
        assert_eq!((seen(handle), seen(Handle(null_mut()))), (None, None));
        handle.close().unwrap();
        context.terminate().unwrap();
    }

    #[test]
    fn a_second_caller_waits_for_the_first() {
        let _alone = alone();
        let context = Context::new();
        let handle = Handle::new(&context);
        let first = handle.enter().unwrap();
        let (out, came) = mpsc::channel();
        let second = std::thread::spawn(move || {
            let handle = handle;
            let entered = handle.enter().is_ok();
            out.send(entered).unwrap();
        });
        // However long it takes, it must not come while we are inside.
        for _ in 0..2000 {
            assert!(came.try_recv().is_err());
            std::thread::yield_now();
        }
        drop(first);
        assert!(came.recv().unwrap());
        second.join().unwrap();
        handle.close().unwrap();
        context.terminate().unwrap();
    }

    #[test]
    fn a_close_refuses_the_callers_that_wait() {
        let _alone = alone();
        let context = Context::new();
        let handle = Handle::new(&context);
        let first = handle.enter().unwrap();
        let second = std::thread::spawn(move || {
            let handle = handle;
            handle.enter().err()
        });
        let closing = std::thread::spawn(move || {
            let handle = handle;
            handle.close()
        });
        assert_eq!(second.join().unwrap(), Some(Error::NotSocket));
        drop(first);
        assert_eq!(closing.join().unwrap(), Ok(()));
        context.terminate().unwrap();
    }

    #[test]
    fn a_close_ends_the_call_of_another_thread() {
        let _alone = alone();
        let context = Context::new();
        let handle = Handle::new(&context);
        let (inside, is_inside) = mpsc::channel();
        let blocked = std::thread::spawn(move || {
            let handle = handle;
            let mut entry = handle.enter().unwrap();
            inside.send(()).unwrap();
            let received = entry.socket().and_then(|socket| socket.recv(&mut [], Flags::NONE));
            (received, entry.socket().err())
        });
        is_inside.recv().unwrap();
        assert_eq!(handle.close(), Ok(()));
        assert_eq!(blocked.join().unwrap(), (Err(Error::NotSocket), Some(Error::NotSocket)));
        assert_eq!(handle.close(), Err(Error::NotSocket));
        context.terminate().unwrap();
    }

    /// Each socket is closed while another thread is about to enter it.
    #[test]
    fn a_close_never_misses_a_call_that_enters() {
        let _alone = alone();
        let context = Context::new();
        for _ in 0..200 {
            let handle = Handle::new(&context);
            let (started, has_started) = mpsc::channel();
            let caller = std::thread::spawn(move || {
                let handle = handle;
                started.send(()).unwrap();
                loop {
                    let received =
                        handle.enter().and_then(|mut entry| entry.socket()?.recv(&mut [], Flags::DONTWAIT));
                    if received != Err(Error::Again) {
                        return received;
                    }
                }
            });
            has_started.recv().unwrap();
            assert_eq!(handle.close(), Ok(()));
            assert_eq!(caller.join().unwrap(), Err(Error::NotSocket));
        }
        context.terminate().unwrap();
    }

    #[test]
    fn a_child_does_not_wait_for_its_parents_threads() {
        let _alone = alone();
        let context = Context::new();
        let handle = Handle::new(&context);
        let of_the_parent = handle.enter().unwrap();
        // What the memory of a forked child looks like: a thread is inside, in another process.
        handle.slot().body().process.store(u32::MAX, Ordering::Relaxed);
        drop(handle.enter().unwrap());
        std::mem::forget(of_the_parent);
        handle.close().unwrap();
        context.terminate().unwrap();
    }
}
