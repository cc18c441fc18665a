//! `Inbox`: news from the I/O side to a socket's owner, and the way to wake that owner.
//!
//! Any thread pushes; one owner drains. The owner parks like this:
//!
//! ```text
//! owner:    prepare_park()  [parked = true; heavy barrier; pending?]
//!           look at the inproc chains once more;  sleep;  finish_park()
//! pusher:   push()          [news; pending = true; full fence; parked or exposed?] -> unpark
//! producer: publish to an inproc chain;
//!           parked_hint()   [light barrier; parked or exposed?] -> nudge()
//! ```
//!
//! If all inproc producers of an owner call `wake_if_parked`, which has a full fence, the owner
//! parks with `prepare_park_without_barrier`.
//!
//! No wake-up is lost. One side stores `parked`, the other stores `pending` or a chain's tail. Each
//! side then loads the other's value behind a barrier, so at least one load sees the other side's
//! store. The light barrier of `parked_hint` is free for the sender, because `prepare_park` pays
//! for both sides with the heavy barrier.

use crate::sync::atomic::{AtomicBool, AtomicU8, Ordering, fence};
use crate::sync::{Mutex, barrier_heavy, barrier_light, lock};
use smallvec::SmallVec;

/// Wakes a sleeping owner: an eventfd, a condition variable. If the owner is awake, its next sleep
/// ends at once.
pub trait Unpark: Send + Sync {
    /// Called by any thread that holds no lock of the inbox. Must not block.
    fn unpark(&self);
}

/// Number of news up to which the inbox releases the memory of drained news.
const LITTLE: usize = 4;

/// News, oldest first. The news of a socket with one peer come one at a time, and need no memory
/// besides the inbox.
pub type NewsList<T> = SmallVec<[T; 1]>;

/// Current contents of an inbox.
#[derive(Debug)]
struct NewsQueue<T> {
    all: NewsList<T>,
    /// Number of news that are obsolete.
    void: usize,
}

impl<T> NewsQueue<T> {
    /// Takes all news out.
    fn take(&mut self) -> NewsList<T> {
        self.void = 0;
        match self.all.capacity() {
            0..=LITTLE => std::mem::take(&mut self.all),
            // A socket with many peers will need the memory again.
            _ => self.all.drain(..).collect(),
        }
    }

    /// Notes that `more` news are obsolete. Once half of all news are obsolete, removes those for
    /// which `is_void` returns true.
    fn discard(&mut self, more: usize, mut is_void: impl FnMut(&mut T) -> bool) -> NewsList<T> {
        self.void += more;
        let mut void = NewsList::new();
        if self.void * 2 < self.all.len() {
            return void;
        }
        self.void = 0;
        for mut item in std::mem::take(&mut self.all) {
            let list = if is_void(&mut item) { &mut void } else { &mut self.all };
            list.push(item);
        }
        void
    }
}

/// The owner sleeps, or is about to.
const PARKED: u8 = 1;
/// The wake descriptor was handed to the application (ZMQ_FD). Every event wakes the owner.
const EXPOSED: u8 = 2;
/// The owner is permanently gone.
const CLOSED: u8 = 4;

/// News for one owner. On its own cache lines, because every call of the owner and every message of
/// an inproc peer looks at it.
#[repr(align(128))]
pub struct Inbox<T, W> {
    news: Mutex<NewsQueue<T>>,
    /// True if `news` may contain items.
    pending: AtomicBool,
    /// PARKED, EXPOSED, CLOSED.
    // Relaxed: fence, by `prepare`, `expose`, `push`, `wake_if_parked` and `parked_hint`; CLOSED is
    // own: under the lock of the news. The thread that clears PARKED wakes the owner by a lock or a
    // system call, which orders the later steps. A bit that is seen for too long causes one extra
    // wake-up.
    state: AtomicU8,
    waker: W,
}

impl<T, W: Unpark> Inbox<T, W> {
    /// Returns an empty inbox whose owner is awake.
    pub fn new(waker: W) -> Self {
        Inbox {
            news: Mutex::new(NewsQueue { all: NewsList::new(), void: 0 }),
            pending: AtomicBool::new(false),
            state: AtomicU8::new(0),
            waker,
        }
    }

    /// Returns the waker of the owner.
    #[inline]
    pub fn waker(&self) -> &W {
        &self.waker
    }

    /// Adds news, and wakes the owner if it sleeps.
    pub fn push(&self, news: T) {
        {
            let mut queue = lock(&self.news);
            // Relaxed: own, `close` sets it under this lock.
            if self.state.load(Ordering::Relaxed) & CLOSED != 0 {
                drop(queue);
                return;
            }
            queue.all.push(news);
        }
        // Release pairs with the Acquire in `pending`; the lock itself guards the news.
        self.pending.store(true, Ordering::Release);
        // Store `pending`, then load `state`: pairs with the heavy barrier in `prepare_park`.
        fence(Ordering::SeqCst);
        self.wake();
    }

    /// True if there may be news.
    #[inline]
    pub fn has_pending(&self) -> bool {
        // Acquire pairs with the Release in `push`.
        self.pending.load(Ordering::Acquire)
    }

    /// Notes that `count` news may be obsolete for an owner that has not looked since. News for
    /// which `is_void` returns true are removed. The search runs from the oldest to the newest,
    /// once there are as many obsolete news as others.
    pub fn discard(&self, count: usize, is_void: impl FnMut(&mut T) -> bool) {
        let void = lock(&self.news).discard(count, is_void);
        // Drop the items outside of the lock, because a dropped item may notify other threads.
        drop(void);
    }

    /// Returns the number of news.
    pub fn len(&self) -> usize {
        lock(&self.news).all.len()
    }

    /// Takes all news out.
    pub fn drain(&self) -> NewsList<T> {
        // Cleared before the news are taken: a push in between may leave the flag set with no news
        // inside, but never cleared with news inside. A swap, so that the lock below comes after it
        // also for the pusher that set the flag.
        if self.pending.swap(false, Ordering::AcqRel) { lock(&self.news).take() } else { NewsList::new() }
    }

    /// Prepares the owner for sleep. Returns false if there are news: the owner must not sleep and
    /// need not call `finish_park`. After true, the owner looks at its inproc chains once more,
    /// sleeps until woken, and calls `finish_park`.
    #[inline]
    pub fn prepare_park(&self) -> bool {
        self.prepare(barrier_heavy)
    }

    /// Prepares an owner for sleep that has no inproc chains, or whose inproc peers ring it.
    /// Returns false if there are news, as `prepare_park` does. No thread calls `parked_hint` for
    /// this owner, so a fence is enough and other threads are not disturbed.
    #[inline]
    pub fn prepare_park_without_barrier(&self) -> bool {
        // Pairs with the fences in `push` and `wake_if_parked`.
        self.prepare(|| fence(Ordering::SeqCst))
    }

    #[inline]
    fn prepare(&self, barrier: impl Fn()) -> bool {
        self.state.fetch_or(PARKED, Ordering::Relaxed);
        // Store `parked`, then load `pending` (and the chains' tails): pairs with the fence in
        // `push` and the light barrier in `parked_hint`.
        barrier();
        if self.has_pending() {
            self.finish_park();
            return false;
        }
        true
    }

    /// Notes that the owner is awake.
    #[inline]
    pub fn finish_park(&self) {
        self.state.fetch_and(!PARKED, Ordering::Relaxed);
    }

    /// From now on every event wakes, whether the owner sleeps or not, because the application
    /// waits on the wake descriptor itself.
    #[inline]
    pub fn expose(&self) {
        self.state.fetch_or(EXPOSED, Ordering::Relaxed);
        // Store `EXPOSED`, then the caller looks at the existing news: the same pairing as in
        // `prepare_park`.
        barrier_heavy();
    }

    /// Reverts `expose`: the owner waits itself again. Called only by the owner.
    #[inline]
    pub fn conceal(&self) {
        self.state.fetch_and(!EXPOSED, Ordering::Relaxed);
    }

    /// Notes that the owner is gone: present and future news are dropped.
    pub fn close(&self) {
        let news = {
            let mut queue = lock(&self.news);
            self.state.store(CLOSED, Ordering::Relaxed);
            queue.take()
        };
        drop(news);
    }

    /// True if the wake descriptor was handed to the application.
    #[inline]
    pub fn is_exposed(&self) -> bool {
        self.state.load(Ordering::Relaxed) & EXPOSED != 0
    }

    /// Wakes the owner if it sleeps, without news. For changes outside of the inbox, for example in
    /// an inproc chain.
    #[inline]
    pub fn wake_if_parked(&self) {
        // Store (the caller's), then load `state`: pairs with the heavy barrier in `prepare_park`.
        fence(Ordering::SeqCst);
        self.wake();
    }

    /// True if `wake_if_parked` would wake the owner. Called right after publishing to an inproc
    /// chain. Costs one load.
    #[inline]
    pub fn parked_hint(&self) -> bool {
        // Store (the chain's tail), then load `state`: pairs with the heavy barrier in
        // `prepare_park`.
        barrier_light();
        self.state.load(Ordering::Relaxed) & (PARKED | EXPOSED) != 0
    }

    fn wake(&self) {
        let state = self.state.load(Ordering::Relaxed);
        if state & (PARKED | EXPOSED) == 0 {
            return;
        }
        // Only the thread that clears the bit wakes. Relaxed: look; the waker's own system call or
        // lock orders the later steps.
        let former = self.state.fetch_and(!PARKED, Ordering::Relaxed);
        if former & (PARKED | EXPOSED) != 0 {
            self.waker.unpark();
        }
    }
}
