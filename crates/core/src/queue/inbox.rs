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
//! An owner whose inproc producers all call `nudge` itself, which has a full fence, parks by
//! `prepare_park_alone`.
//!
//! No wake-up is lost: of the two stores (`parked` here, `pending` or a chain's tail there) and the
//! two loads that follow them behind a barrier, at least one load sees the other side's store. The
//! light barrier of `parked_hint` costs nothing on the sending path because `prepare_park` pays for
//! both with the heavy one.

use crate::sync::atomic::{AtomicBool, AtomicU8, Ordering, fence};
use crate::sync::{Mutex, barrier_heavy, barrier_light, lock};

/// Wakes a sleeping owner: an eventfd, a condition variable. A call while the owner is awake makes
/// its next sleep end at once.
pub(crate) trait Unpark: Send + Sync {
    /// Called from any thread, without locks held by the inbox; must not block.
    fn unpark(&self);
}

/// Memory for this many news is not kept.
const LITTLE: usize = 4;

/// What is in an inbox, or was. The news of a socket with one peer come singly, and take no memory
/// but this.
#[derive(Debug)]
pub(crate) struct Items<T> {
    first: Option<T>,
    more: Vec<T>,
    /// How many of them have lost their meaning.
    void: usize,
}

impl<T> Items<T> {
    const fn new() -> Self {
        Items { first: None, more: Vec::new(), void: 0 }
    }

    fn push(&mut self, item: T) {
        if self.first.is_none() {
            self.first = Some(item);
        } else {
            if self.more.capacity() == 0 {
                // A peer is there and has said something: an owner that does not care for it has
                // these two for long.
                self.more.reserve_exact(1);
            }
            self.more.push(item);
        }
    }

    /// Takes all of them out.
    fn take(&mut self) -> Items<T> {
        let first = self.first.take();
        let more = match self.more.capacity() {
            0..=LITTLE => std::mem::take(&mut self.more),
            // A socket with many peers will need the memory again.
            _ => self.more.drain(..).collect(),
        };
        self.void = 0;
        Items { first, more, void: 0 }
    }

    /// `more` of them have lost their meaning. Once that is so for half of all, those for which
    /// `is_void` says so are taken out.
    fn discard(&mut self, more: usize, mut is_void: impl FnMut(&mut T) -> bool) -> Vec<T> {
        self.void += more;
        if self.void * 2 < usize::from(self.first.is_some()) + self.more.len() {
            return Vec::new();
        }
        self.void = 0;
        let mut void: Vec<T> = self.first.take_if(&mut is_void).into_iter().collect();
        void.extend(self.more.extract_if(.., is_void));
        if self.first.is_none() && !self.more.is_empty() {
            self.first = Some(self.more.remove(0));
        }
        self.more.shrink_to(self.more.len() * 2);
        void
    }
}

impl<T> IntoIterator for Items<T> {
    type Item = T;
    type IntoIter = std::iter::Chain<std::option::IntoIter<T>, std::vec::IntoIter<T>>;

    /// The oldest first.
    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.more)
    }
}

/// The owner sleeps, or is about to.
const PARKED: u8 = 1;
/// The wake descriptor was handed to the application (ZMQ_FD): it is woken for everything.
const EXPOSED: u8 = 2;
/// The owner is gone for good.
const CLOSED: u8 = 4;

/// News for one owner. Alone on its cache lines: every call of the owner looks at it, and every
/// message of an inproc peer.
#[repr(align(128))]
pub(crate) struct Inbox<T, W> {
    news: Mutex<Items<T>>,
    /// Something may be in `news`.
    pending: AtomicBool,
    /// PARKED, EXPOSED.
    // Relaxed: fence, by `prepare`, `expose`, `push`, `nudge` and `parked_hint`; CLOSED is own:
    // under the lock of the news. The thread that clears PARKED wakes, by a lock or a system call,
    // which orders what follows; a bit that is seen too long wakes once too often.
    state: AtomicU8,
    waker: W,
}

impl<T, W: Unpark> Inbox<T, W> {
    /// An empty inbox, whose owner is awake.
    pub(crate) fn new(waker: W) -> Self {
        Inbox {
            news: Mutex::new(Items::new()),
            pending: AtomicBool::new(false),
            state: AtomicU8::new(0),
            waker,
        }
    }

    /// What wakes the owner.
    pub(crate) fn waker(&self) -> &W {
        &self.waker
    }

    /// Adds news, and wakes the owner if it sleeps.
    pub(crate) fn push(&self, news: T) {
        {
            let mut all = lock(&self.news);
            // Relaxed: own, `close` sets it under this lock.
            if self.state.load(Ordering::Relaxed) & CLOSED != 0 {
                drop(all);
                return;
            }
            all.push(news);
        }
        // Release pairs with the Acquire in `pending`; the lock itself guards the news.
        self.pending.store(true, Ordering::Release);
        // Store `pending`, then load `state`: pairs with the heavy barrier in `prepare_park`.
        fence(Ordering::SeqCst);
        self.wake();
    }

    /// Whether there may be news.
    #[inline]
    pub(crate) fn pending(&self) -> bool {
        // Acquire pairs with the Release in `push`.
        self.pending.load(Ordering::Acquire)
    }

    /// `count` news may have lost their meaning to an owner that has not looked since: those for
    /// which `is_void` says so go. They are looked for, from the oldest to the newest, once there
    /// are as many of them as of others.
    pub(crate) fn discard(&self, count: usize, is_void: impl FnMut(&mut T) -> bool) {
        let void = lock(&self.news).discard(count, is_void);
        // Outside of the lock: what goes may tell others so.
        drop(void);
    }

    /// How many news are there.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        let all = lock(&self.news);
        usize::from(all.first.is_some()) + all.more.len()
    }

    /// Takes all news out.
    pub(crate) fn drain(&self) -> Items<T> {
        // Cleared before the news are taken: a push in between leaves it set for nothing, never
        // cleared with news inside. A swap, so that the lock below comes after it also for the
        // pusher that set it.
        if self.pending.swap(false, Ordering::AcqRel) { lock(&self.news).take() } else { Items::new() }
    }

    /// The owner is going to sleep. False: there are news, do not sleep (and `finish_park` is not
    /// needed). After true, the owner looks at its inproc chains once more, sleeps until woken, and
    /// calls `finish_park`.
    pub(crate) fn prepare_park(&self) -> bool {
        self.prepare(barrier_heavy)
    }

    /// As `prepare_park`, for an owner without inproc chains, or one that is rung for them:
    /// `parked_hint` is not asked, so no other thread need be disturbed.
    pub(crate) fn prepare_park_alone(&self) -> bool {
        // Pairs with the fences in `push` and `nudge`.
        self.prepare(|| fence(Ordering::SeqCst))
    }

    #[inline]
    fn prepare(&self, barrier: impl Fn()) -> bool {
        self.state.fetch_or(PARKED, Ordering::Relaxed);
        // Store `parked`, then load `pending` (and the chains' tails): pairs with the fence in
        // `push` and the light barrier in `parked_hint`.
        barrier();
        if self.pending() {
            self.finish_park();
            return false;
        }
        true
    }

    /// The owner is awake.
    pub(crate) fn finish_park(&self) {
        self.state.fetch_and(!PARKED, Ordering::Relaxed);
    }

    /// From now on everything wakes, asleep or not: the application waits on the wake descriptor
    /// itself.
    pub(crate) fn expose(&self) {
        self.state.fetch_or(EXPOSED, Ordering::Relaxed);
        // Store `exposed`, then the caller looks at what is there already: the same pairing as in
        // `prepare_park`.
        barrier_heavy();
    }

    /// Takes that back: the owner waits by itself again. Called by the owner only.
    pub(crate) fn conceal(&self) {
        self.state.fetch_and(!EXPOSED, Ordering::Relaxed);
    }

    /// The owner is gone: what is here and what still comes is dropped.
    pub(crate) fn close(&self) {
        let news = {
            let mut all = lock(&self.news);
            self.state.store(CLOSED, Ordering::Relaxed);
            all.take()
        };
        drop(news);
    }

    /// Whether the wake descriptor was handed to the application.
    #[inline]
    pub(crate) fn is_exposed(&self) -> bool {
        self.state.load(Ordering::Relaxed) & EXPOSED != 0
    }

    /// Wakes the owner if it sleeps, without news: something outside of the inbox changed, an
    /// inproc chain for example.
    pub(crate) fn nudge(&self) {
        // Store (the caller's), then load `state`: pairs with the heavy barrier in `prepare_park`.
        fence(Ordering::SeqCst);
        self.wake();
    }

    /// Whether `nudge` would wake, asked right after publishing to an inproc chain. Costs one load.
    #[inline]
    pub(crate) fn parked_hint(&self) -> bool {
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
        // The thread that clears the bit wakes; others need not. Relaxed: look; the waker's own
        // system call or lock orders what follows.
        let former = self.state.fetch_and(!PARKED, Ordering::Relaxed);
        if former & (PARKED | EXPOSED) != 0 {
            self.waker.unpark();
        }
    }
}
