//! Entry to a socket: from the handle that C passes to the engine's `&mut Socket`, one caller at a
//! time.
//!
//! Every function that takes a socket calls this file. A socket belongs to one thread at a time and
//! moves between threads only with a full fence (zmq_socket(3)). Entering therefore costs only a
//! load and a store of the slot's `busy` byte and no locked instruction. The byte limits the damage
//! of programs that break the rule: a thread that finds it set waits until the other caller has
//! left. It cannot detect two callers that enter within the same nanoseconds. An atomic exchange
//! could, but it costs 4 ns.
//!
//! Closing is different. It ends the call of another thread, however long that would block, and it
//! never misses a call that enters at the same time: each side stores one of `open` and `busy` and
//! loads the other, with a barrier between.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, compiler_fence};
use std::time::Duration;

use tautline_core::{Closer, Error, SharedSocket, Socket, SocketType};
use tautline_io::barrier;

use crate::shared;
use crate::slot::{FreeSlots, Slot, SlotContent};

/// A slot that holds a socket.
pub(crate) type SocketSlot = Slot<SocketBody>;

/// Content of a socket's slot. In C order, so that `busy` lies beside the slot's tag.
#[repr(C)]
pub(crate) struct SocketBody {
    /// True while a caller is inside.
    // Relaxed: caller: a socket passes between threads with a full fence.
    busy: AtomicBool,
    /// True if the socket exists and is not being closed by a thread.
    // Relaxed: caller, and fence: `SocketGuard::new` and `close`.
    open: AtomicBool,
    /// Index at which [`mod@crate::poll`] keeps this entry. Written by the caller inside.
    // Relaxed: caller; other threads read it as a hint, which they check.
    mark: AtomicU32,
    /// The process in which the socket was made or last waited for.
    // Relaxed: caller: it differs only after a fork.
    process: AtomicU32,
    /// Number of sockets that this slot has held. Distinguishes a socket from its successors.
    // Relaxed: own: written before the handle is published. A reader checks `is_in_use` first,
    // which makes it visible.
    generation: AtomicU32,
    /// Ends the call of another thread. Present while the handle is valid. The closing thread takes
    /// it.
    closer: UnsafeCell<Option<Closer>>,
    /// Initialised while `open` is set, and until the closing thread takes the socket out. Only the
    /// caller inside accesses it.
    socket: UnsafeCell<MaybeUninit<Socket>>,
}

impl Default for SocketBody {
    fn default() -> Self {
        SocketBody {
            busy: AtomicBool::new(false),
            open: AtomicBool::new(false),
            mark: AtomicU32::new(0),
            process: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            closer: UnsafeCell::default(),
            socket: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }
}

// SAFETY: the socket is Send and is reached only through a `SocketGuard`. Callers of one socket
// take turns: zmq_socket(3) demands it, and `busy` enforces it as far as it can. The
// closer is reached only by the thread that retires the slot. All other fields are atomic.
unsafe impl Sync for SocketBody {}

impl SlotContent for SocketBody {
    const TAG: u32 = 0x50C4_E701;

    fn free_slots() -> &'static FreeSlots<Self> {
        static SPARE: FreeSlots<SocketBody> = FreeSlots::new();
        &SPARE
    }
}

impl SocketBody {
    /// Returns the number of sockets that the slot has held.
    pub(crate) fn generation(&self) -> u32 {
        self.generation.load(Ordering::Relaxed)
    }

    /// True while a caller is inside.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    /// Returns the index that the caller inside has stored last, as [`stored_index`] does.
    pub(crate) fn stored_index(&self) -> Option<u32> {
        self.is_busy().then(|| self.mark.load(Ordering::Relaxed))
    }

    /// Returns the type of the parent's socket, in a forked child.
    pub(crate) fn socket_type(&self) -> Option<SocketType> {
        // SAFETY: a socket that is open is initialised, and its type never changes. A forked child
        // has no other thread, and no thread of the parent was closing the socket.
        self.open
            .load(Ordering::Relaxed)
            .then(|| unsafe { (*self.socket.get()).assume_init_ref() }.socket_type())
    }
}

/// Stores a new socket in a slot and returns its handle for C.
pub(crate) fn open(socket: Socket) -> *mut c_void {
    open_slot(socket).handle()
}

/// Stores a new socket in a slot and returns the slot, whose handle is valid.
pub(crate) fn open_slot(socket: Socket) -> &'static SocketSlot {
    let slot = SocketSlot::claim();
    let body = slot.body();
    body.generation.fetch_add(1, Ordering::Relaxed);
    body.process.store(std::process::id(), Ordering::Relaxed);
    // SAFETY: the slot was claimed, so it is not in use, and its handle is not published yet.
    unsafe {
        *body.closer.get() = Some(Closer::of(&socket));
        (*body.socket.get()).write(socket);
    }
    body.open.store(true, Ordering::Relaxed);
    slot.publish();
    slot
}

/// Invalidates the handle and closes the socket. A call of another thread on the socket fails with
/// NotSocket. This function waits until that thread has left, which a blocked call does at once.
/// NotSocket if the handle is invalid.
///
/// # Safety
/// `handle` is null, or points to at least four readable bytes (the tag).
pub(crate) unsafe fn close(handle: *mut c_void) -> Result<(), Error> {
    // SAFETY: guaranteed by the caller.
    let Some(slot) = (unsafe { SocketSlot::at(handle) }) else {
        // SAFETY: guaranteed by the caller.
        return unsafe { shared::close(handle) };
    };
    take(slot)?.close();
    Ok(())
}

/// Invalidates the handle and returns the socket, like [`close`].
pub(crate) fn take(slot: &'static SocketSlot) -> Result<Socket, Error> {
    // If several threads close at the same time, one of them wins.
    if slot.retire() { Ok(take_retired(slot)) } else { Err(Error::NotSocket) }
}

/// Returns the socket of a slot that this thread has retired, like [`close`].
pub(crate) fn take_retired(slot: &'static SocketSlot) -> Socket {
    let body = slot.body();
    body.open.store(false, Ordering::Relaxed);
    // Store `open`, then load `busy`: pairs with the fence in `SocketGuard::new`.
    barrier::heavy();
    // SAFETY: this thread has retired the slot, and only the retiring thread takes the closer out.
    let closer = unsafe { &mut *body.closer.get() }.take();
    if body.busy.load(Ordering::Acquire) {
        if let Some(closer) = closer {
            closer.end_calls();
        }
        wait_until_left(body);
    }
    // SAFETY: the socket was open until now. No caller is inside, and a new caller finds it closed.
    let socket = unsafe { (*body.socket.get()).assume_init_read() };
    slot.recycle();
    socket
}

/// Access of one caller to a socket. Ends when dropped.
pub(crate) struct SocketGuard {
    slot: &'static SocketSlot,
}

impl Drop for SocketGuard {
    #[inline(always)]
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `enter`, in case the next caller is another thread
        // without a fence.
        self.slot.body().busy.store(false, Ordering::Release);
    }
}

impl SocketGuard {
    /// Enters the socket behind a handle. NotSocket if the handle is invalid.
    ///
    /// # Safety
    /// `handle` is null, or points to at least four readable bytes (the tag).
    #[inline(always)]
    pub(crate) unsafe fn new(handle: *mut c_void) -> Result<SocketGuard, Error> {
        // SAFETY: guaranteed by the caller.
        let slot = unsafe { SocketSlot::at(handle) }.ok_or(Error::NotSocket)?;
        if slot.body().busy.load(Ordering::Acquire) {
            wait_for_turn(slot)?;
        }
        slot.body().busy.store(true, Ordering::Relaxed);
        // Store `busy`, then load `open` in `socket`: pairs with the barrier in `close`.
        compiler_fence(Ordering::SeqCst);
        Ok(SocketGuard { slot })
    }

    /// Enters the socket of a slot. `None` if another caller is inside. An atomic exchange excludes
    /// every other caller of this function, also one that enters at the same time.
    #[inline(always)]
    pub(crate) fn try_new(slot: &'static SocketSlot) -> Option<SocketGuard> {
        // Acquire: pairs with the Release in `drop`. SeqCst: store `busy`, then load `open` in
        // `socket`, which pairs with the barrier in `close`.
        if slot.body().busy.swap(true, Ordering::SeqCst) { None } else { Some(SocketGuard { slot }) }
    }

    /// Returns the socket. NotSocket if another thread is closing it.
    #[inline(always)]
    pub(crate) fn socket(&mut self) -> Result<&mut Socket, Error> {
        let body = self.slot.body();
        if !body.open.load(Ordering::Relaxed) {
            return Err(Error::NotSocket);
        }
        // SAFETY: the socket is open, and stays initialised while this caller is inside. No other
        // caller is inside; see the unsafe impl of Sync above.
        Ok(unsafe { (*body.socket.get()).assume_init_mut() })
    }

    /// True if this is the handle of a socket that belongs to one thread.
    ///
    /// # Safety
    /// `handle` is null, or points to at least four readable bytes (the tag).
    pub(crate) unsafe fn is_handle(handle: *mut c_void) -> bool {
        // SAFETY: guaranteed by the caller.
        unsafe { SocketSlot::at(handle) }.is_some()
    }

    /// Stores the index at which the caller keeps this entry, for [`stored_index`].
    pub(crate) fn store_index(&self, index: u32) {
        self.slot.body().mark.store(index, Ordering::Relaxed);
    }

    /// True if this is an entry of the socket behind `handle`.
    pub(crate) fn is_of(&self, handle: *mut c_void) -> bool {
        self.slot.handle() == handle
    }
}

/// Returns the index that the caller inside the socket stored last. The index is only a hint: check
/// it against your own entries. `None` if no thread is inside.
///
/// # Safety
/// `handle` is null, or points to at least four readable bytes (the tag).
pub(crate) unsafe fn stored_index(handle: *mut c_void) -> Option<u32> {
    // SAFETY: guaranteed by the caller.
    unsafe { SocketSlot::at(handle) }?.body().stored_index()
}

/// Calls `call` with the socket behind a handle.
///
/// # Safety
/// `handle` is null, or points to at least four readable bytes (the tag).
#[inline(always)]
pub(crate) unsafe fn with<T>(
    handle: *mut c_void,
    call: impl FnOnce(&mut Socket) -> Result<T, Error>,
) -> Result<T, Error> {
    // SAFETY: guaranteed by the caller.
    match unsafe { SocketGuard::new(handle) } {
        Ok(mut entry) => call(entry.socket()?),
        // SAFETY: guaranteed by the caller.
        Err(_) => unsafe { with_shared(handle, call) },
    }
}

/// # Safety
/// `handle` is null, or points to at least four readable bytes (the tag).
#[cold]
unsafe fn with_shared<T>(
    handle: *mut c_void,
    call: impl FnOnce(&mut Socket) -> Result<T, Error>,
) -> Result<T, Error> {
    // SAFETY: guaranteed by the caller.
    unsafe { shared::at(handle) }?.with(call)
}

/// Calls `one` with the socket behind a handle, for calls that may block. If other threads may use
/// the socket at the same time, calls `many` instead.
///
/// # Safety
/// `handle` is null, or points to at least four readable bytes (the tag).
#[inline(always)]
pub(crate) unsafe fn transfer<T>(
    handle: *mut c_void,
    one: impl FnOnce(&mut Socket) -> Result<T, Error>,
    many: impl FnOnce(&SharedSocket) -> Result<T, Error>,
) -> Result<T, Error> {
    // SAFETY: guaranteed by the caller.
    match unsafe { SocketGuard::new(handle) } {
        Ok(mut entry) => one(entry.socket()?),
        // SAFETY: guaranteed by the caller.
        Err(_) => unsafe { transfer_shared(handle, many) },
    }
}

/// # Safety
/// `handle` is null, or points to at least four readable bytes (the tag).
#[cold]
pub(crate) unsafe fn transfer_shared<T>(
    handle: *mut c_void,
    many: impl FnOnce(&SharedSocket) -> Result<T, Error>,
) -> Result<T, Error> {
    // SAFETY: guaranteed by the caller.
    many(&*unsafe { shared::at(handle) }?)
}

/// Waits until the caller inside has left. NotSocket if another thread closes the socket.
#[cold]
fn wait_for_turn(slot: &SocketSlot) -> Result<(), Error> {
    wait_while_busy(slot.body(), || slot.is_in_use());
    if slot.is_in_use() { Ok(()) } else { Err(Error::NotSocket) }
}

/// Waits in the closing thread until the caller inside has left.
#[cold]
fn wait_until_left(body: &SocketBody) {
    wait_while_busy(body, || true);
}

/// Waits until the caller inside has left, as long as `goes_on` returns true. A forked child does
/// not wait for a thread that exists only in its parent.
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
pub(crate) mod tests {
    use std::ptr::null_mut;
    use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};

    use super::*;
    use tautline_core::{Context, Flags, SocketType};

    /// Serialises the tests: a closed handle must not become another test's socket while a test
    /// examines it.
    pub(crate) fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handle that may move to another thread.
    #[derive(Clone, Copy)]
    struct Handle(*mut c_void);
    // SAFETY: the tests use it as programs do. Where they break the rules, `busy` guards the
    // socket.
    unsafe impl Send for Handle {}

    impl Handle {
        fn new(context: &Context) -> Handle {
            Handle(open(context.socket(SocketType::Pull).unwrap()))
        }

        fn enter(self) -> Result<SocketGuard, Error> {
            // SAFETY: the handle of a slot.
            unsafe { SocketGuard::new(self.0) }
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
        assert_eq!(unsafe { SocketGuard::new(null_mut()) }.err(), Some(Error::NotSocket));
        context.terminate().unwrap();
    }

    #[test]
    fn the_mark_is_seen_while_a_call_is_inside() {
        let _alone = alone();
        let context = Context::new();
        let handle = Handle::new(&context);
        // SAFETY: the handle of a slot, or null.
        let seen = |handle: Handle| unsafe { stored_index(handle.0) };
        assert_eq!(seen(handle), None);
        let entry = handle.enter().unwrap();
        entry.store_index(7);
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
        // However long this takes, the other thread must not enter while we are inside.
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

    /// Closes each socket while another thread is about to enter it.
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
        // Imitate the memory of a forked child: a thread is inside, in another process.
        handle.slot().body().process.store(u32::MAX, Ordering::Relaxed);
        drop(handle.enter().unwrap());
        std::mem::forget(of_the_parent);
        handle.close().unwrap();
        context.terminate().unwrap();
    }
}
