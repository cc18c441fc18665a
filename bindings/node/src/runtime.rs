//! Shared state of the sockets of one JavaScript thread: its event loop, the function to call, and the end of the thread.

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::sync::mpsc;
use std::time::Duration;

use napi::{Env, Error, JsValue, Result, Status, Unknown, sys};
use napi_derive::napi;
use tautline_core as core;

use crate::calls::fast_functions;
use crate::context;
use crate::loans::LoanBuffers;
use crate::socket::SocketInner;
use crate::uv::{self, Listener, Prepare};

/// Time that the end of a thread waits for queued messages before it prints a notice.
const SILENT: Duration = Duration::from_secs(1);

/// State of a JavaScript environment. The main thread and each worker thread have one.
pub(crate) struct Environment {
    env: sys::napi_env,
    pub(crate) uv: *mut uv::Loop,
    /// The function `(socket, status)` of `lib/`, called at the end of a wait.
    on_ready: sys::napi_ref,
    /// Context that identifies the calls to Node's async hooks.
    place: sys::napi_async_context,
    /// The open sockets, by number.
    sockets: RefCell<Vec<Option<Rc<SocketInner>>>>,
    free: RefCell<Vec<u32>>,
    /// Sockets that sent a message in this turn of the loop.
    senders: RefCell<Vec<Rc<SocketInner>>>,
    turn_end: RefCell<Option<Prepare>>,
    contexts: RefCell<Vec<core::Context>>,
    pub(crate) loans: LoanBuffers,
    open_handles: Cell<usize>,
    is_main: bool,
    /// The hook of the environment's end. Set from the start of the end until the last handle is closed.
    cleanup_hook: Cell<sys::napi_async_cleanup_hook_handle>,
}

#[napi]
pub struct Runtime(pub(crate) Rc<Environment>);

#[napi]
impl Runtime {
    /// Creates the runtime. It calls `onReady(socket, status)` at the end of each wait, as a separate callback of the loop.
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
        let shared = Rc::new(Environment {
            env: raw,
            uv: uv.cast(),
            on_ready: function,
            place,
            sockets: RefCell::default(),
            free: RefCell::default(),
            senders: RefCell::default(),
            turn_end: RefCell::default(),
            contexts: RefCell::default(),
            loans: LoanBuffers::default(),
            open_handles: Cell::new(0),
            is_main,
            cleanup_hook: Cell::new(ptr::null_mut()),
        });
        let argument = Rc::into_raw(shared.clone()).cast_mut().cast::<c_void>();
        // SAFETY: the hook gets the reference taken for it, and runs once.
        unsafe {
            check(sys::napi_add_async_cleanup_hook(raw, Some(on_environment_end), argument, ptr::null_mut()))?
        };
        shared.install_turn_end_flush();
        Ok(Runtime(shared))
    }

    /// Returns the functions for every message: `send`, `sendText`, `receive`, `wait`.
    #[napi]
    pub fn fast_functions<'a>(&self, env: Env) -> Result<Unknown<'a>> {
        fast_functions(env, &self.0)
    }

    /// Terminates the context at the end of the thread.
    pub(crate) fn terminate_at_exit(&self, context: core::Context) {
        self.0.contexts.borrow_mut().push(context);
    }
}

pub(crate) fn check(status: sys::napi_status) -> Result<()> {
    if status == sys::Status::napi_ok { Ok(()) } else { Err(Error::from_status(Status::from(status))) }
}

/// Ends the environment: closes all sockets, then blocks until the queued messages of the thread's contexts are sent. Node then waits
/// for the handles to close. The main thread also terminates the shared context.
unsafe extern "C" fn on_environment_end(handle: sys::napi_async_cleanup_hook_handle, argument: *mut c_void) {
    // SAFETY: the reference taken for this hook in `Runtime::new`; it is called once.
    let shared = unsafe { Rc::from_raw(argument.cast_const().cast::<Environment>()) };
    shared.cleanup_hook.set(handle);
    let sockets: Vec<_> = shared.sockets.borrow().iter().flatten().cloned().collect();
    for socket in sockets {
        socket.watched.send_final_message();
        socket.close();
    }
    if let Some(turn_end) = shared.turn_end.take() {
        turn_end.close::<Environment>();
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

/// Terminates the context as zmq_ctx_term(3) does. Blocks until the queued messages are sent, for at most each socket's linger time.
/// Returns at once if there is no thread for it.
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
            "tautline: waiting until queued messages are sent; `linger` and `context.blocky` limit the time"
        );
        let _ = ended.recv();
    }
}

impl Environment {
    pub(crate) fn env(&self) -> sys::napi_env {
        self.env
    }

    /// Reserves a number, and returns the socket that `make` creates with it.
    pub(crate) fn register_socket(&self, make: impl FnOnce(u32) -> Rc<SocketInner>) -> Rc<SocketInner> {
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

    pub(crate) fn unregister_socket(&self, number: u32) {
        let struck = self.sockets.borrow_mut().get_mut(number as usize).and_then(Option::take);
        if struck.is_some() {
            self.free.borrow_mut().push(number);
        }
    }

    #[inline]
    pub(crate) fn socket(&self, number: u32) -> Option<Rc<SocketInner>> {
        self.sockets.borrow().get(number as usize)?.clone()
    }

    /// Notes a socket that sent a message. It is flushed at the end of the turn.
    pub(crate) fn flush_at_turn_end(&self, socket: &Rc<SocketInner>) {
        self.senders.borrow_mut().push(socket.clone());
    }

    /// Starts flushing at the end of each turn: the messages sent in a turn are written before the loop sleeps.
    fn install_turn_end_flush(self: &Rc<Self>) {
        // SAFETY: the loop of this thread. The reference kept here is released when the handle is closed.
        let turn_end = unsafe { Prepare::new(self.uv, NonNull::from(&**self)) };
        if let Some(mut turn_end) = turn_end {
            let _ = Rc::into_raw(self.clone());
            self.handle_opened();
            turn_end.start::<Environment>();
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

    /// Lets Node continue the end of the environment after all handles are closed.
    fn end_if_done(&self) {
        if self.open_handles.get() == 0 {
            let handle = self.cleanup_hook.replace(ptr::null_mut());
            if !handle.is_null() {
                // SAFETY: the handle that Node passed to the hook, removed once.
                unsafe { sys::napi_remove_async_cleanup_hook(handle) };
            }
        }
    }

    /// Calls `onReady(socket, status)` for the socket behind `peer`.
    pub(crate) fn notify(&self, peer: sys::napi_ref, status: i32) {
        if !self.cleanup_hook.get().is_null() {
            return;
        }
        let env = self.env;
        let mut scope = ptr::null_mut();
        // SAFETY: called by the loop, on the environment's thread. The references live until the end of the environment, which the
        // check above excludes. The values created here live as long as the scope.
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

impl Listener for Environment {
    fn on_event(&self, _handle: uv::HandleKind) {
        let senders = self.senders.take();
        for socket in &senders {
            socket.flush();
        }
        // Reuse the memory of the list.
        let mut senders = senders;
        senders.clear();
        *self.senders.borrow_mut() = senders;
    }

    unsafe fn on_closed(listener: NonNull<Self>) {
        // SAFETY: the reference that `install_turn_end_flush` kept. There is one handle, so it is released once.
        let shared = unsafe { Rc::from_raw(listener.as_ptr().cast_const()) };
        shared.handle_closed();
    }
}
