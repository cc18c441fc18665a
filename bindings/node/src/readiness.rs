//! When a socket may go on: its descriptors in the event loop of its thread.
//!
//! A wait goes by the engine's wait rule, in steps. First it looks again in each turn of the loop for some microseconds, which is about
//! what a change of threads would cost; then the loop sleeps in its own `epoll` on the socket's descriptors and the thread reads by
//! itself. So a message from the network wakes one thread, this one.
//!
//! A wait holds its JavaScript socket; a socket that nobody waits for can be collected, which closes it. Descriptors stay in the loop's
//! set from one wait to the next, as taking them out and in again costs two system calls; they are taken out when they report
//! something that nobody waits for.

use std::cell::{Cell, RefCell};
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::task::{Poll as TaskPoll, Waker};

use napi::sys;
use tautline_core::{self as core, Error, Flags, Patience, Rest};

use crate::errors::code;
use crate::runtime::Shared;
use crate::uv::{Idle, Kind, Listener, Poll};

/// The wait is over and the operation can be retried.
pub(crate) const READY: i32 = 1;
/// It goes on.
const PENDING: i32 = 0;

/// A socket and its wait.
pub(crate) struct Watched {
    shared: Rc<Shared>,
    socket: RefCell<Option<core::Socket>>,
    /// The JavaScript socket, weak but while it waits.
    peer: Cell<sys::napi_ref>,
    wait: RefCell<Wait>,
    /// Handles that libuv knows; while there are any, one reference to this is theirs.
    handles: Cell<usize>,
    /// Sent when the thread ends before the socket was closed.
    farewell: Cell<&'static [u8]>,
}

#[derive(Default)]
struct Wait {
    /// POLLIN and POLLOUT; 0 if no operation waits.
    interest: i16,
    keep_alive: bool,
    /// True if the JavaScript socket is held.
    holds: bool,
    patience: Patience,
    idle: Option<Idle>,
    polls: Vec<Poll>,
}

impl Watched {
    /// `peer` is a weak reference, this socket's from now on.
    pub(crate) fn new(shared: Rc<Shared>, socket: core::Socket, peer: sys::napi_ref) -> Rc<Watched> {
        Rc::new(Watched {
            shared,
            socket: RefCell::new(Some(socket)),
            peer: Cell::new(peer),
            wait: RefCell::default(),
            handles: Cell::new(0),
            farewell: Cell::new(&[]),
        })
    }

    /// Calls the socket; [`Error::NotSocket`] if it is closed or lent.
    #[inline]
    pub(crate) fn with<T>(
        &self,
        call: impl FnOnce(&mut core::Socket) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.socket.borrow_mut().as_mut().map_or(Err(Error::NotSocket), call)
    }

    /// Waits for `interest` instead of what was waited for before; 0 ends a wait. Returns PENDING, and the runtime is told of the end;
    /// or how the wait has ended at once: READY or an error.
    pub(crate) fn wait(self: &Rc<Self>, interest: i16, keep_alive: bool) -> i32 {
        {
            let wait = &mut *self.wait.borrow_mut();
            if wait.interest != interest {
                self.leave(wait);
            }
            wait.interest = interest;
            wait.keep_alive = keep_alive;
            if interest == 0 {
                self.rest(wait);
                return PENDING;
            }
            if wait.idle.is_none()
                && let Err(error) = self.open(wait)
            {
                wait.interest = 0;
                self.rest(wait);
                return code(error);
            }
        }
        let status = self.turn();
        let wait = &mut *self.wait.borrow_mut();
        if status == PENDING {
            self.hold(wait)
        } else {
            self.settle(wait)
        }
        status
    }

    /// One look, or a few.
    fn turn(&self) -> i32 {
        let mut socket = self.socket.borrow_mut();
        let Some(socket) = socket.as_mut() else { return code(Error::NotSocket) };
        let Wait { interest, keep_alive, patience, idle, polls, .. } = &mut *self.wait.borrow_mut();
        match socket.poll_ready(*interest, patience, Rest::Descriptors, Waker::noop()) {
            TaskPoll::Ready(outcome) => {
                *patience = Patience::default();
                outcome.map_or_else(code, |()| READY)
            }
            TaskPoll::Pending => {
                let Some(idle) = idle else { return code(Error::NotSocket) };
                if patience.is_resting() {
                    idle.stop();
                    for poll in polls {
                        poll.start::<Watched>(*keep_alive);
                    }
                } else {
                    idle.start::<Watched>();
                }
                PENDING
            }
        }
    }

    /// Looks again soon: something else than a wait has taken note of the news.
    pub(crate) fn look_again(&self) {
        if let Wait { interest: 1.., idle: Some(idle), .. } = &mut *self.wait.borrow_mut() {
            idle.start::<Watched>();
        }
    }

    /// The wait is over.
    fn settle(&self, wait: &mut Wait) {
        wait.interest = 0;
        wait.patience = Patience::default();
        self.rest(wait);
    }

    /// Stops holding the loop and the JavaScript socket, because no operation waits.
    fn rest(&self, wait: &mut Wait) {
        if let Some(idle) = &mut wait.idle {
            idle.stop();
        }
        for poll in &wait.polls {
            poll.rest();
        }
        if std::mem::take(&mut wait.holds) {
            // SAFETY: a reference of this environment, alive until `close` takes it; its count was raised by `hold`.
            unsafe { sys::napi_reference_unref(self.shared.env(), self.peer.get(), ptr::null_mut()) };
        }
    }

    fn hold(&self, wait: &mut Wait) {
        if !std::mem::replace(&mut wait.holds, true) {
            // SAFETY: as in `rest`.
            unsafe { sys::napi_reference_ref(self.shared.env(), self.peer.get(), ptr::null_mut()) };
        }
    }

    /// Abandons a wait that will not be continued.
    fn leave(&self, wait: &mut Wait) {
        let patience = std::mem::take(&mut wait.patience);
        if let Some(socket) = self.socket.borrow_mut().as_mut() {
            socket.stop_waiting(patience);
        }
    }

    /// Makes the handles, once.
    fn open(self: &Rc<Self>, wait: &mut Wait) -> Result<(), Error> {
        let descriptors = self.with(|socket| socket.descriptors().map_err(Error::from))?;
        let listener = NonNull::from(&**self);
        let uv = self.shared.uv;
        // SAFETY: the loop of this thread, as everything of an environment happens on its thread; the reference kept below, which is
        // given back when the last handle is closed, keeps the listener alive.
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

    /// Ends the wait and gives the socket away.
    pub(crate) fn take(&self) -> Option<core::Socket> {
        {
            let wait = &mut *self.wait.borrow_mut();
            self.leave(wait);
            self.settle(wait);
            for poll in &mut wait.polls {
                poll.stop();
            }
        }
        self.socket.borrow_mut().take()
    }

    pub(crate) fn put_back(&self, socket: core::Socket) {
        *self.socket.borrow_mut() = Some(socket);
    }

    /// To be sent at the end of the thread, if the socket is still open then.
    pub(crate) fn set_farewell(&self, message: &'static [u8]) {
        self.farewell.set(message);
    }

    pub(crate) fn say_farewell(&self) {
        let message = self.farewell.take();
        if !message.is_empty() {
            // Without a peer there is nobody to say it to.
            let _ = self.with(|socket| socket.send(message, Flags::DONTWAIT));
        }
    }

    /// Closes the socket and everything that belongs to it. A second time it does nothing.
    pub(crate) fn close(&self) {
        drop(self.take());
        close_handles(&mut self.wait.borrow_mut());
        let peer = self.peer.replace(ptr::null_mut());
        if !peer.is_null() {
            // SAFETY: this socket's reference, deleted once; the environment is there, at its end too.
            unsafe { sys::napi_delete_reference(self.shared.env(), peer) };
        }
    }

    /// The loop's call: goes on with the wait, and tells if it is over.
    fn go_on(&self) {
        let status = self.turn();
        if status != PENDING {
            self.settle(&mut self.wait.borrow_mut());
            self.shared.notify(self.peer.get(), status);
        }
    }
}

fn close_handles(wait: &mut Wait) {
    if let Some(idle) = wait.idle.take() {
        idle.close::<Watched>();
    }
    for poll in wait.polls.drain(..) {
        poll.close::<Watched>();
    }
}

impl Listener for Watched {
    fn called(&self, handle: Kind) {
        {
            let wait = &mut *self.wait.borrow_mut();
            if wait.interest == 0 {
                // No operation waits for this descriptor.
                match (handle, &mut wait.idle) {
                    (Kind::Idle, Some(idle)) => idle.stop(),
                    _ => wait.polls.iter_mut().for_each(Poll::stop),
                }
                return;
            }
        }
        self.go_on();
    }

    unsafe fn closed(listener: NonNull<Self>) {
        // SAFETY: alive by the reference that is given back below.
        let (left, shared) = unsafe {
            let watched = listener.as_ref();
            watched.handles.set(watched.handles.get() - 1);
            (watched.handles.get(), watched.shared.clone())
        };
        if left == 0 {
            // SAFETY: the reference that `opened` kept with the first handle.
            drop(unsafe { Rc::from_raw(listener.as_ptr().cast_const()) });
        }
        shared.handle_closed();
    }
}
