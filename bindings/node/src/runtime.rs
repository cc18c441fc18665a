//! What the sockets of one JavaScript thread share: its event loop, whom to call, and how all of it ends with the thread.

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::sync::mpsc;
use std::time::Duration;

use napi::{Env, Error, JsValue, Result, Status, Unknown, sys};
use napi_derive::napi;
use tautline_core as core;

use crate::calls::calls;
use crate::context;
use crate::socket::Inner;
use crate::uv::{self, Listener, Prepare};

/// Time at the end of the process after which it reports the messages that it waits for.
const SILENT: Duration = Duration::from_secs(1);

/// One for each JavaScript environment: the main thread, and each worker thread.
pub(crate) struct Shared {
    env: sys::napi_env,
    pub(crate) uv: *mut uv::Loop,
    /// The function `(socket, status)` of `lib/`, called when a socket may go on.
    on_ready: sys::napi_ref,
    /// Context that identifies the calls to Node's async hooks.
    place: sys::napi_async_context,
    /// By number; those that are open.
    sockets: RefCell<Vec<Option<Rc<Inner>>>>,
    free: RefCell<Vec<u32>>,
    /// Those that have sent something in this turn of the loop.
    senders: RefCell<Vec<Rc<Inner>>>,
    turn_end: RefCell<Option<Prepare>>,
    contexts: RefCell<Vec<core::Context>>,
    open_handles: Cell<usize>,
    is_main: bool,
    /// Set at the end, until the last handle is gone.
    ending: Cell<sys::napi_async_cleanup_hook_handle>,
}

#[napi]
pub struct Runtime(pub(crate) Rc<Shared>);

#[napi]
impl Runtime {
    /// `onReady(socket, status)` is called, as a turn of its own, when the wait of a socket is over.
    #[napi(constructor)]
    pub fn new(env: Env, on_ready: Unknown<'_>, is_main: bool) -> Result<Self> {
        let raw = env.raw();
        let mut uv = ptr::null_mut();
        let mut function = ptr::null_mut();
        let mut name = ptr::null_mut();
        let mut place = ptr::null_mut();
        // SAFETY: the environment of this call, values of it, and places to write to.
        unsafe {
            check(sys::napi_get_uv_event_loop(raw, &mut uv))?;
            check(sys::napi_create_reference(raw, on_ready.raw(), 1, &mut function))?;
            check(sys::napi_create_string_utf8(raw, c"TAUTLINE".as_ptr(), 8, &mut name))?;
            check(sys::napi_async_init(raw, ptr::null_mut(), name, &mut place))?;
        }
        let shared = Rc::new(Shared {
            env: raw,
            uv: uv.cast(),
            on_ready: function,
            place,
            sockets: RefCell::default(),
            free: RefCell::default(),
            senders: RefCell::default(),
            turn_end: RefCell::default(),
            contexts: RefCell::default(),
            open_handles: Cell::new(0),
            is_main,
            ending: Cell::new(ptr::null_mut()),
        });
        let argument = Rc::into_raw(shared.clone()).cast_mut().cast::<c_void>();
        // SAFETY: the hook gets the reference that was taken for it, once.
        unsafe { check(sys::napi_add_async_cleanup_hook(raw, Some(end), argument, ptr::null_mut()))? };
        shared.watch_turns();
        Ok(Runtime(shared))
    }

    /// The functions for every message: `send`, `sendText`, `receive`, `wait`.
    #[napi]
    pub fn calls<'a>(&self, env: Env) -> Result<Unknown<'a>> {
        calls(env, &self.0)
    }

    /// The context ends when the thread does.
    pub(crate) fn adopt(&self, context: core::Context) {
        self.0.contexts.borrow_mut().push(context);
    }
}

pub(crate) fn check(status: sys::napi_status) -> Result<()> {
    if status == sys::Status::napi_ok { Ok(()) } else { Err(Error::from_status(Status::from(status))) }
}

/// The environment ends: closes all sockets, then waits for their handles, then for what is queued.
unsafe extern "C" fn end(handle: sys::napi_async_cleanup_hook_handle, argument: *mut c_void) {
    // SAFETY: the reference taken for this hook in `Runtime::new`; it is called once.
    let shared = unsafe { Rc::from_raw(argument.cast_const().cast::<Shared>()) };
    shared.ending.set(handle);
    let sockets: Vec<_> = shared.sockets.borrow().iter().flatten().cloned().collect();
    for socket in sockets {
        socket.watched.say_farewell();
        socket.close();
    }
    if let Some(turn_end) = shared.turn_end.take() {
        turn_end.close::<Shared>();
    }
    let mut contexts = shared.contexts.take();
    if shared.is_main {
        contexts.push(context::shared().clone());
    }
    for context in contexts {
        terminate(context);
    }
    shared.end_if_done();
}

/// As zmq_ctx_term(3): what is queued is sent, for at most each socket's linger time.
fn terminate(context: core::Context) {
    let (done, ended) = mpsc::channel::<()>();
    let work = move || {
        while context.terminate() == Err(core::Error::Interrupted) {}
        drop(done);
    };
    if std::thread::Builder::new().name("tautline-end".into()).spawn(work).is_err() {
        return;
    }
    if ended.recv_timeout(SILENT) == Err(mpsc::RecvTimeoutError::Timeout) {
        eprintln!(
            "tautline: waiting until queued messages are sent; `linger` and `context.blocky` say for how long"
        );
        let _ = ended.recv();
    }
}

impl Shared {
    pub(crate) fn env(&self) -> sys::napi_env {
        self.env
    }

    /// The number of a socket that is made by `make` from it.
    pub(crate) fn enlist(&self, make: impl FnOnce(u32) -> Rc<Inner>) -> Rc<Inner> {
        let mut sockets = self.sockets.borrow_mut();
        let number = self.free.borrow_mut().pop().unwrap_or(sockets.len() as u32);
        let socket = make(number);
        let place = number as usize;
        if place == sockets.len() {
            sockets.push(None);
        }
        sockets[place] = Some(socket.clone());
        socket
    }

    pub(crate) fn strike(&self, number: u32) {
        let struck = self.sockets.borrow_mut().get_mut(number as usize).and_then(Option::take);
        if struck.is_some() {
            self.free.borrow_mut().push(number);
        }
    }

    #[inline]
    pub(crate) fn socket(&self, number: u32) -> Option<Rc<Inner>> {
        self.sockets.borrow().get(number as usize)?.clone()
    }

    /// A socket has sent something: it is flushed at the end of the turn.
    pub(crate) fn has_sent(&self, socket: &Rc<Inner>) {
        self.senders.borrow_mut().push(socket.clone());
    }

    /// From now on what was sent in a turn of the loop is flushed at its end, before the loop sleeps.
    fn watch_turns(self: &Rc<Self>) {
        // SAFETY: the loop of this thread; the reference kept here is given back when the handle is closed.
        let turn_end = unsafe { Prepare::new(self.uv, NonNull::from(&**self)) };
        if let Some(mut turn_end) = turn_end {
            let _ = Rc::into_raw(self.clone());
            self.handle_opened();
            turn_end.start::<Shared>();
            *self.turn_end.borrow_mut() = Some(turn_end);
        }
    }

    pub(crate) fn handle_opened(&self) {
        self.open_handles.set(self.open_handles.get() + 1);
    }

    pub(crate) fn handle_closed(&self) {
        self.open_handles.set(self.open_handles.get().saturating_sub(1));
        self.end_if_done();
    }

    /// Node goes on with the end of the environment when all handles are gone.
    fn end_if_done(&self) {
        if self.open_handles.get() == 0 {
            let handle = self.ending.replace(ptr::null_mut());
            if !handle.is_null() {
                // SAFETY: the handle that the hook was called with, given back once.
                unsafe { sys::napi_remove_async_cleanup_hook(handle) };
            }
        }
    }

    /// Calls `onReady(socket, status)` for the socket behind `peer`.
    pub(crate) fn notify(&self, peer: sys::napi_ref, status: i32) {
        if !self.ending.get().is_null() {
            return;
        }
        let env = self.env;
        let mut scope = ptr::null_mut();
        // SAFETY: called by the loop, on the environment's thread; the references are alive until the end, which was ruled out. What
        // is created here is gone with the scope.
        unsafe {
            if sys::napi_open_handle_scope(env, &mut scope) != sys::Status::napi_ok {
                return;
            }
            let mut function = ptr::null_mut();
            let mut arguments = [ptr::null_mut(); 2];
            sys::napi_get_reference_value(env, self.on_ready, &mut function);
            sys::napi_get_reference_value(env, peer, &mut arguments[0]);
            sys::napi_create_int32(env, status, &mut arguments[1]);
            if !function.is_null() && arguments.iter().all(|value| !value.is_null()) {
                let receiver = arguments[0];
                let mut result = ptr::null_mut();
                let called = sys::napi_make_callback(
                    env,
                    self.place,
                    receiver,
                    function,
                    arguments.len(),
                    arguments.as_ptr(),
                    &mut result,
                );
                if called == sys::Status::napi_pending_exception {
                    let mut exception = ptr::null_mut();
                    sys::napi_get_and_clear_last_exception(env, &mut exception);
                    sys::napi_fatal_exception(env, exception);
                }
            }
            sys::napi_close_handle_scope(env, scope);
        }
    }
}

impl Listener for Shared {
    fn called(&self, _handle: uv::Kind) {
        let senders = self.senders.take();
        for socket in &senders {
            socket.flush();
        }
        // Keeps its memory.
        let mut senders = senders;
        senders.clear();
        *self.senders.borrow_mut() = senders;
    }

    unsafe fn closed(listener: NonNull<Self>) {
        // SAFETY: the reference that `watch_turns` has kept, given back once: there is one handle.
        let shared = unsafe { Rc::from_raw(listener.as_ptr().cast_const()) };
        shared.handle_closed();
    }
}
