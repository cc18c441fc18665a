//! The functions of libuv that watch descriptors. Node exports them to its addons, and has kept them since its first release with this
//! ABI. The rest of the crate uses only [`Poll`], [`Idle`] and [`Prepare`].

use std::alloc::{Layout, dealloc, handle_alloc_error};
use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;

#[repr(C)]
pub(crate) struct Loop {
    _opaque: [u8; 0],
}

#[repr(C)]
struct Handle {
    _opaque: [u8; 0],
}

type PollFn = unsafe extern "C" fn(*mut Handle, c_int, c_int);
type PlainFn = unsafe extern "C" fn(*mut Handle);

unsafe extern "C" {
    fn uv_handle_size(kind: c_int) -> usize;
    fn uv_handle_set_data(handle: *mut Handle, data: *mut c_void);
    fn uv_handle_get_data(handle: *const Handle) -> *mut c_void;
    fn uv_ref(handle: *mut Handle);
    fn uv_unref(handle: *mut Handle);
    fn uv_close(handle: *mut Handle, done: PlainFn);
    fn uv_poll_init(of: *mut Loop, handle: *mut Handle, fd: c_int) -> c_int;
    fn uv_poll_start(handle: *mut Handle, events: c_int, call: PollFn) -> c_int;
    fn uv_poll_stop(handle: *mut Handle) -> c_int;
    fn uv_idle_init(of: *mut Loop, handle: *mut Handle) -> c_int;
    fn uv_idle_start(handle: *mut Handle, call: PlainFn) -> c_int;
    fn uv_idle_stop(handle: *mut Handle) -> c_int;
    fn uv_prepare_init(of: *mut Loop, handle: *mut Handle) -> c_int;
    fn uv_prepare_start(handle: *mut Handle, call: PlainFn) -> c_int;
}

// The values of the handles in `uv_handle_type`, and UV_READABLE.
const IDLE: c_int = 6;
const POLL: c_int = 8;
const PREPARE: c_int = 9;
const READABLE: c_int = 1;

/// The kind of a handle.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandleKind {
    /// A watched descriptor is readable.
    Poll,
    /// A new turn of the loop begins.
    Idle,
    /// A turn ends: the loop is about to wait for events.
    Prepare,
}

/// Object that a handle calls, on the loop's thread. The object must live until its last handle has called `closed`.
pub(crate) trait Listener {
    /// Called for an event of one of its handles.
    fn on_event(&self, handle: HandleKind);
    /// Called after one of its handles was closed. After the last call, the listener may be freed and must not be used.
    ///
    /// # Safety
    /// Called once for each handle that was closed.
    unsafe fn on_closed(listener: NonNull<Self>);
}

/// A handle in a separate allocation. libuv owns the memory after `close`.
struct OwnedHandle {
    raw: NonNull<Handle>,
}

fn layout(kind: c_int) -> Layout {
    // SAFETY: the function takes a number and returns a number.
    let size = unsafe { uv_handle_size(kind) }.max(1);
    Layout::from_size_align(size, 16).unwrap_or(Layout::new::<[u128; 64]>())
}

fn allocate(kind: c_int) -> NonNull<Handle> {
    let layout = layout(kind);
    // SAFETY: the size is not zero.
    let raw = unsafe { std::alloc::alloc_zeroed(layout) };
    NonNull::new(raw.cast()).unwrap_or_else(|| handle_alloc_error(layout))
}

fn free(raw: NonNull<Handle>, kind: c_int) {
    // SAFETY: from `allocate` with the same kind. libuv never knew the handle, or has closed it.
    unsafe { dealloc(raw.as_ptr().cast(), layout(kind)) };
}

fn catch_panic(call: impl FnOnce()) {
    // Unwinding into libuv is undefined. The callees do not panic; a panic would only lose this call.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call));
}

unsafe extern "C" fn on_poll<L: Listener>(handle: *mut Handle, _status: c_int, _events: c_int) {
    // SAFETY: `Poll::new` set the data to a listener that lives until the handle is closed. libuv makes no call after that.
    let listener = unsafe { &*uv_handle_get_data(handle).cast::<L>() };
    catch_panic(|| listener.on_event(HandleKind::Poll));
}

unsafe extern "C" fn on_idle<L: Listener>(handle: *mut Handle) {
    // SAFETY: as in `on_poll`.
    let listener = unsafe { &*uv_handle_get_data(handle).cast::<L>() };
    catch_panic(|| listener.on_event(HandleKind::Idle));
}

unsafe extern "C" fn on_prepare<L: Listener>(handle: *mut Handle) {
    // SAFETY: as in `on_poll`.
    let listener = unsafe { &*uv_handle_get_data(handle).cast::<L>() };
    catch_panic(|| listener.on_event(HandleKind::Prepare));
}

unsafe extern "C" fn on_close<L: Listener, const KIND: c_int>(handle: *mut Handle) {
    // SAFETY: the handle still exists, libuv no longer uses it, and its data is the listener.
    let listener = unsafe { uv_handle_get_data(handle) };
    if let (Some(raw), Some(listener)) = (NonNull::new(handle), NonNull::new(listener.cast::<L>())) {
        free(raw, KIND);
        // SAFETY: once for each handle.
        catch_panic(|| unsafe { L::on_closed(listener) });
    }
}

impl OwnedHandle {
    /// Sets whether the handle keeps the loop alive.
    fn keep_alive(&self, on: bool) {
        // SAFETY: an initialised handle that is not closed.
        unsafe { if on { uv_ref(self.raw.as_ptr()) } else { uv_unref(self.raw.as_ptr()) } };
    }
}

/// Watches a descriptor for being readable.
pub(crate) struct Poll {
    handle: OwnedHandle,
    active: bool,
    /// Keeps the descriptor open while it is watched.
    _fd: OwnedFd,
}

impl Poll {
    /// Returns an inactive handle, or `None` if the loop cannot watch this descriptor.
    ///
    /// # Safety
    /// The loop must be that of the calling thread. `listener` must live until its `closed` was called.
    pub(crate) unsafe fn new<L: Listener>(of: *mut Loop, fd: OwnedFd, listener: NonNull<L>) -> Option<Poll> {
        let raw = allocate(POLL);
        // SAFETY: memory of the size that libuv demands. The caller guarantees that the loop is this thread's.
        if unsafe { uv_poll_init(of, raw.as_ptr(), fd.as_raw_fd()) } != 0 {
            free(raw, POLL);
            return None;
        }
        // SAFETY: initialised above.
        unsafe { uv_handle_set_data(raw.as_ptr(), listener.as_ptr().cast()) };
        Some(Poll { handle: OwnedHandle { raw }, active: false, _fd: fd })
    }

    pub(crate) fn start<L: Listener>(&mut self, keep_alive: bool) {
        if !self.active {
            // SAFETY: an initialised handle that is not closed. Its data is an `L`, because each socket has one type of listener.
            self.active = unsafe { uv_poll_start(self.handle.raw.as_ptr(), READABLE, on_poll::<L>) } == 0;
        }
        self.handle.keep_alive(keep_alive);
    }

    /// Leaves the descriptor in the loop's set, without keeping the loop alive.
    pub(crate) fn unref(&self) {
        self.handle.keep_alive(false);
    }

    pub(crate) fn stop(&mut self) {
        if self.active {
            // SAFETY: as in `start`.
            unsafe { uv_poll_stop(self.handle.raw.as_ptr()) };
            self.active = false;
        }
    }

    pub(crate) fn close<L: Listener>(self) {
        // SAFETY: an initialised handle, closed once because `close` takes `self`. libuv stops watching the descriptor at once.
        unsafe { uv_close(self.handle.raw.as_ptr(), on_close::<L, POLL>) };
    }
}

/// Calls the listener once in each turn of the loop. The loop does not sleep while the handle is active.
pub(crate) struct Idle {
    handle: OwnedHandle,
    active: bool,
}

impl Idle {
    /// Returns an inactive handle.
    ///
    /// # Safety
    /// Same as for [`Poll::new`].
    pub(crate) unsafe fn new<L: Listener>(of: *mut Loop, listener: NonNull<L>) -> Option<Idle> {
        let raw = allocate(IDLE);
        // SAFETY: as in `Poll::new`.
        if unsafe { uv_idle_init(of, raw.as_ptr()) } != 0 {
            free(raw, IDLE);
            return None;
        }
        // SAFETY: initialised above.
        unsafe { uv_handle_set_data(raw.as_ptr(), listener.as_ptr().cast()) };
        Some(Idle { handle: OwnedHandle { raw }, active: false })
    }

    pub(crate) fn start<L: Listener>(&mut self) {
        if !self.active {
            // SAFETY: as in `Poll::start`.
            self.active = unsafe { uv_idle_start(self.handle.raw.as_ptr(), on_idle::<L>) } == 0;
        }
    }

    pub(crate) fn stop(&mut self) {
        if self.active {
            // SAFETY: as in `Poll::start`.
            unsafe { uv_idle_stop(self.handle.raw.as_ptr()) };
            self.active = false;
        }
    }

    pub(crate) fn close<L: Listener>(self) {
        // SAFETY: as in `Poll::close`.
        unsafe { uv_close(self.handle.raw.as_ptr(), on_close::<L, IDLE>) };
    }
}

/// Calls the listener at the end of each turn of the loop. The handle does not keep the loop alive.
pub(crate) struct Prepare {
    handle: OwnedHandle,
}

impl Prepare {
    /// Returns an inactive handle.
    ///
    /// # Safety
    /// Same as for [`Poll::new`].
    pub(crate) unsafe fn new<L: Listener>(of: *mut Loop, listener: NonNull<L>) -> Option<Prepare> {
        let raw = allocate(PREPARE);
        // SAFETY: as in `Poll::new`.
        if unsafe { uv_prepare_init(of, raw.as_ptr()) } != 0 {
            free(raw, PREPARE);
            return None;
        }
        // SAFETY: initialised above.
        unsafe { uv_handle_set_data(raw.as_ptr(), listener.as_ptr().cast()) };
        Some(Prepare { handle: OwnedHandle { raw } })
    }

    pub(crate) fn start<L: Listener>(&mut self) {
        // SAFETY: as in `Poll::start`.
        unsafe { uv_prepare_start(self.handle.raw.as_ptr(), on_prepare::<L>) };
        self.handle.keep_alive(false);
    }

    pub(crate) fn close<L: Listener>(self) {
        // SAFETY: as in `Poll::close`.
        unsafe { uv_close(self.handle.raw.as_ptr(), on_close::<L, PREPARE>) };
    }
}
