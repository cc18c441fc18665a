//! Waits for a socket: its descriptors are in the event loop of its thread.
//!
//! A wait follows the engine's wait rule, in steps. First it checks the socket in each turn of the loop for some microseconds, about as
//! long as a thread switch takes. Then the loop sleeps in its own `epoll` on the socket's descriptors, and the thread itself reads. A
//! message from the network therefore wakes only this thread.
//!
//! A wait holds its JavaScript socket. Without a wait, the garbage collector may collect the socket, which closes it. Descriptors stay
//! in the loop's set between waits, because removing and adding them again costs two system calls. If a descriptor reports an event
//! while no operation waits, the loop stops watching the socket's descriptors.

use std::cell::{Cell, RefCell};
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::task::Waker;

use napi::sys;
use tautline_core::{self as core, Error, Flags, WaitMode, WaitState, WaitStep};

use crate::errors::code;
use crate::runtime::Environment;
use crate::uv::{HandleKind, Idle, Listener, Poll};

/// Result of a wait that is over: the operation can be retried.
pub(crate) const READY: i32 = 1;
/// Result of a wait that goes on.
const PENDING: i32 = 0;

/// A socket and its wait.
pub(crate) struct WaitingSocket {
    shared: Rc<Environment>,
    socket: RefCell<Option<core::Socket>>,
    /// Reference to the JavaScript socket. The reference is weak, except during a wait.
    peer: Cell<sys::napi_ref>,
    wait: RefCell<SocketWait>,
    /// Number of handles that libuv knows. While it is above 0, the handles own one reference to this object.
    handles: Cell<usize>,
    /// Message to send if the thread ends while the socket is open.
    final_message: Cell<&'static [u8]>,
}

#[derive(Default)]
struct SocketWait {
    /// POLLIN and POLLOUT; 0 if no operation waits.
    interest: i16,
    keep_alive: bool,
    /// True if the JavaScript socket is held.
    holds: bool,
    patience: WaitState,
    idle: Option<Idle>,
    polls: Vec<Poll>,
}

impl WaitingSocket {
    /// Takes over `peer`, a weak reference.
    pub(crate) fn new(
        shared: Rc<Environment>,
        socket: core::Socket,
        peer: sys::napi_ref,
    ) -> Rc<WaitingSocket> {
        Rc::new(WaitingSocket {
            shared,
            socket: RefCell::new(Some(socket)),
            peer: Cell::new(peer),
            wait: RefCell::default(),
            handles: Cell::new(0),
            final_message: Cell::new(&[]),
        })
    }

    /// Calls the socket. Returns [`Error::NotSocket`] if it is closed or lent.
    #[inline]
    pub(crate) fn with_socket<T>(
        &self,
        call: impl FnOnce(&mut core::Socket) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.socket.borrow_mut().as_mut().map_or(Err(Error::NotSocket), call)
    }

    /// Waits for `interest`, which replaces the interest of an earlier wait. Returns READY or an error if the wait ends at once, or else
    /// PENDING; the runtime then calls JavaScript at the end. Interest 0 ends a wait, and returns PENDING without a later call.
    pub(crate) fn wait(self: &Rc<Self>, interest: i16, keep_alive: bool) -> i32 {
        {
            let wait = &mut *self.wait.borrow_mut();
            if wait.interest != interest {
                self.abandon_wait(wait);
            }
            wait.interest = interest;
            wait.keep_alive = keep_alive;
            if interest == 0 {
                self.release_references(wait);
                return PENDING;
            }
            if wait.idle.is_none()
                && let Err(error) = self.open(wait)
            {
                wait.interest = 0;
                self.release_references(wait);
                return code(error);
            }
        }
        let status = self.poll_once();
        let wait = &mut *self.wait.borrow_mut();
        if status == PENDING {
            self.hold(wait)
        } else {
            self.finish_wait(wait)
        }
        status
    }

    /// Checks the socket, as the wait rule demands. If the wait goes on, starts the handles for the next check.
    fn poll_once(&self) -> i32 {
        let mut socket = self.socket.borrow_mut();
        let Some(socket) = socket.as_mut() else { return code(Error::NotSocket) };
        let SocketWait { interest, keep_alive, patience, idle, polls, .. } = &mut *self.wait.borrow_mut();
        let Some(idle) = idle else { return code(Error::NotSocket) };
        // The loop watches the descriptors, so no waker is needed.
        match socket.poll_ready(*interest, patience, WaitMode::Descriptors, Waker::noop()) {
            Err(error) => return code(error),
            Ok(WaitStep::Ready) => return READY,
            Ok(WaitStep::CheckAgain) => idle.start::<WaitingSocket>(),
            Ok(WaitStep::Sleeping) => {
                idle.stop();
                for poll in polls {
                    poll.start::<WaitingSocket>(*keep_alive);
                }
            }
        }
        PENDING
    }

    /// Checks the socket again in the next turn of the loop. Another call may have consumed the event that a wait needs.
    pub(crate) fn poll_again_soon(&self) {
        if let SocketWait { interest: 1.., idle: Some(idle), .. } = &mut *self.wait.borrow_mut() {
            idle.start::<WaitingSocket>();
        }
    }

    /// Ends the wait.
    fn finish_wait(&self, wait: &mut SocketWait) {
        wait.interest = 0;
        wait.patience = WaitState::default();
        self.release_references(wait);
    }

    /// Stops holding the loop and the JavaScript socket, because no operation waits.
    fn release_references(&self, wait: &mut SocketWait) {
        if let Some(idle) = &mut wait.idle {
            idle.stop();
        }
        for poll in &wait.polls {
            poll.unref();
        }
        if std::mem::take(&mut wait.holds) {
            // SAFETY: a reference of this environment, alive until `close` takes it. `hold` raised its count.
            unsafe { sys::napi_reference_unref(self.shared.env(), self.peer.get(), ptr::null_mut()) };
        }
    }

    fn hold(&self, wait: &mut SocketWait) {
        if !std::mem::replace(&mut wait.holds, true) {
            // SAFETY: as in `rest`.
            unsafe { sys::napi_reference_ref(self.shared.env(), self.peer.get(), ptr::null_mut()) };
        }
    }

    /// Abandons a wait that will not be continued.
    fn abandon_wait(&self, wait: &mut SocketWait) {
        let patience = std::mem::take(&mut wait.patience);
        if let Some(socket) = self.socket.borrow_mut().as_mut() {
            socket.stop_waiting(patience);
        }
    }

    /// Creates the handles. Called once.
    fn open(self: &Rc<Self>, wait: &mut SocketWait) -> Result<(), Error> {
        let descriptors = self.with_socket(|socket| socket.descriptors().map_err(Error::from))?;
        let listener = NonNull::from(&**self);
        let uv = self.shared.uv;
        // SAFETY: the loop of this thread, because an environment runs only on its own thread. `opened` keeps a reference, which keeps
        // the listener alive until the last handle is closed.
        let idle = unsafe { Idle::new(uv, listener) }.ok_or(Error::TooManyFiles)?;
        wait.idle = Some(idle);
        self.opened();
        for fd in descriptors {
            // SAFETY: as above.
            let Some(poll) = (unsafe { Poll::new(uv, fd, listener) }) else {
                close_handles(wait);
                return Err(Error::TooManyFiles);
            };
            wait.polls.push(poll);
            self.opened();
        }
        Ok(())
    }

    fn opened(self: &Rc<Self>) {
        if self.handles.replace(self.handles.get() + 1) == 0 {
            let _ = Rc::into_raw(self.clone());
        }
        self.shared.handle_opened();
    }

    /// Ends the wait and returns the socket.
    pub(crate) fn take(&self) -> Option<core::Socket> {
        {
            let wait = &mut *self.wait.borrow_mut();
            self.abandon_wait(wait);
            self.finish_wait(wait);
            for poll in &mut wait.polls {
                poll.stop();
            }
        }
        self.socket.borrow_mut().take()
    }

    pub(crate) fn put_back(&self, socket: core::Socket) {
        *self.socket.borrow_mut() = Some(socket);
    }

    /// Sets the message to send at the end of the thread, if the socket is still open.
    pub(crate) fn set_final_message(&self, message: &'static [u8]) {
        self.final_message.set(message);
    }

    pub(crate) fn send_final_message(&self) {
        let message = self.final_message.take();
        if !message.is_empty() {
            // Sending fails if there is no peer. Then the message is not needed.
            let _ = self.with_socket(|socket| socket.send(message, Flags::DONTWAIT));
        }
    }

    /// Closes the socket and its handles, and deletes its reference. A second call has no effect.
    pub(crate) fn close(&self) {
        drop(self.take());
        close_handles(&mut self.wait.borrow_mut());
        let peer = self.peer.replace(ptr::null_mut());
        if !peer.is_null() {
            // SAFETY: this socket's reference, deleted once. The environment still exists, even during its end.
            unsafe { sys::napi_delete_reference(self.shared.env(), peer) };
        }
    }

    /// Continues the wait for the loop, and notifies JavaScript if the wait is over.
    fn continue_wait(&self) {
        let status = self.poll_once();
        if status != PENDING {
            self.finish_wait(&mut self.wait.borrow_mut());
            self.shared.notify(self.peer.get(), status);
        }
    }
}

fn close_handles(wait: &mut SocketWait) {
    if let Some(idle) = wait.idle.take() {
        idle.close::<WaitingSocket>();
    }
    for poll in wait.polls.drain(..) {
        poll.close::<WaitingSocket>();
    }
}

impl Listener for WaitingSocket {
    fn on_event(&self, handle: HandleKind) {
        {
            let wait = &mut *self.wait.borrow_mut();
            if wait.interest == 0 {
                // No operation waits for this descriptor.
                match (handle, &mut wait.idle) {
                    (HandleKind::Idle, Some(idle)) => idle.stop(),
                    _ => wait.polls.iter_mut().for_each(Poll::stop),
                }
                return;
            }
        }
        self.continue_wait();
    }

    unsafe fn on_closed(listener: NonNull<Self>) {
        // SAFETY: the reference that is released below keeps the listener alive.
        let (left, shared) = unsafe {
            let watched = listener.as_ref();
            watched.handles.set(watched.handles.get() - 1);
            (watched.handles.get(), watched.shared.clone())
        };
        if left == 0 {
            // SAFETY: the reference that `opened` kept for the first handle.
            drop(unsafe { Rc::from_raw(listener.as_ptr().cast_const()) });
        }
        shared.handle_closed();
    }
}
