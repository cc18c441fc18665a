//! Memory behind the handles of sockets and contexts: slots that begin with a tag and are never
//! given back to the allocator, only to the next object of the same kind. So a handle stays
//! readable after it was closed, and says so.
//!
//! Called by [`crate::context`] and [`crate::entry`]. Slots are reused in the order in which they
//! became free, which keeps a stale handle recognisable for long. Nothing here waits: a forked
//! child may find the list of spare slots locked for ever by a thread that it does not have, and
//! then takes or leaves a slot without the list.
//!
//! In a forked child the tags of all slots in use are changed before fork returns
//! ([`crate::inherited`]). So the check of the tag, which every call makes, also keeps the child
//! away from the objects of its parent.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use crate::inherited;

/// One slot. Aligned so that slots of different threads never share a cache line, nor the pair that
/// x86 fetches.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub(crate) struct Slot<T> {
    // Relaxed: caller: the handle came to this thread by some order of the program's own. The
    // exchange lets one of two destroyers win.
    tag: AtomicU32,
    body: T,
    /// The slot that was made before this one.
    // Relaxed: own: written before the slot is on the list of all.
    next: AtomicPtr<Slot<T>>,
}

/// What a kind of slot holds.
pub(crate) trait Body: Default + Send + Sync + 'static {
    /// What the tag of a slot in use reads; each kind its own.
    const TAG: u32;

    /// What the tag reads in a forked child, if the parent's object was in use.
    const INHERITED: u32 = !Self::TAG;

    /// The slots of this kind that are free.
    fn spare() -> &'static Spare<Self>;
}

/// Tag of a slot that is free.
const UNUSED: u32 = 0xDEAD_DEAD;

/// Slots waiting for their next object.
#[derive(Debug)]
pub(crate) struct Spare<T: 'static> {
    list: Mutex<VecDeque<&'static Slot<T>>>,
    /// How many were made in all.
    // Relaxed: own: under the lock of the list; without it, after a fork, a number.
    made: AtomicUsize,
    /// The slot that was made last; the others follow by `next`.
    // Relaxed: look: the exchange decides.
    all: AtomicPtr<Slot<T>>,
}

impl<T> Spare<T> {
    /// No slots yet.
    pub(crate) const fn new() -> Self {
        Spare {
            list: Mutex::new(VecDeque::new()),
            made: AtomicUsize::new(0),
            all: AtomicPtr::new(null_mut()),
        }
    }

    /// Puts a new slot on the list of all.
    fn enlist(&self, slot: &'static Slot<T>) {
        let mut last = self.all.load(Ordering::Relaxed);
        loop {
            slot.next.store(last, Ordering::Relaxed);
            let new = std::ptr::from_ref(slot).cast_mut();
            // Release pairs with the Acquire in `all`.
            match self.all.compare_exchange(last, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => last = other,
            }
        }
    }

    /// Returns all slots that were ever made.
    fn all(&self) -> impl Iterator<Item = &'static Slot<T>> {
        // SAFETY: null, or a slot, and those live for ever.
        let first = unsafe { self.all.load(Ordering::Acquire).as_ref() };
        // SAFETY: as above.
        std::iter::successors(first, |slot| unsafe { slot.next.load(Ordering::Relaxed).as_ref() })
    }

    /// The list, unless it stays locked: its holders need some nanoseconds, so then the holder is
    /// no more.
    fn list(&self) -> Option<MutexGuard<'_, VecDeque<&'static Slot<T>>>> {
        for _ in 0..1000 {
            match self.list.try_lock() {
                Ok(list) => return Some(list),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            }
        }
        None
    }
}

impl<T: Body> Slot<T> {
    /// A slot for a new object. It is no handle yet; see [`Slot::publish`].
    pub(crate) fn claim() -> &'static Self {
        inherited::watch();
        let spare = T::spare();
        let mut list = spare.list();
        if let Some(slot) = list.as_mut().and_then(|list| list.pop_front()) {
            return slot;
        }
        // The more there are, the more at once: the allocator wastes some room on each alignment.
        let made = spare.made.load(Ordering::Relaxed);
        let more = if list.is_some() { (made / 4).clamp(1, 16) } else { 1 };
        spare.made.store(made + more, Ordering::Relaxed);
        let fresh =
            |_| Slot { tag: AtomicU32::new(UNUSED), body: T::default(), next: AtomicPtr::new(null_mut()) };
        let slots: &'static [Self] = Box::leak((0..more).map(fresh).collect());
        slots.iter().for_each(|slot| spare.enlist(slot));
        if let Some(list) = &mut list {
            list.extend(&slots[1..]);
        }
        &slots[0]
    }

    /// Gives the filled slot to C.
    pub(crate) fn publish(&'static self) -> *mut c_void {
        self.tag.store(T::TAG, Ordering::Relaxed);
        self.handle()
    }

    /// The slot's address, which is its handle.
    pub(crate) fn handle(&'static self) -> *mut c_void {
        std::ptr::from_ref(self).cast_mut().cast()
    }

    /// The slot behind a handle; `None` if that is null or not (or no longer) of this kind.
    ///
    /// # Safety
    /// `handle` is null, or points to four readable bytes.
    #[inline(always)]
    pub(crate) unsafe fn at(handle: *mut c_void) -> Option<&'static Self> {
        // SAFETY: the caller's word.
        unsafe { Self::with_tag(handle, T::TAG) }
    }

    /// The slot behind a handle that a forked child has inherited; `None` for any other.
    ///
    /// # Safety
    /// As for [`Slot::at`].
    pub(crate) unsafe fn inherited(handle: *mut c_void) -> Option<&'static Self> {
        // SAFETY: the caller's word.
        unsafe { Self::with_tag(handle, T::INHERITED) }
    }

    /// # Safety
    /// As for [`Slot::at`].
    #[inline(always)]
    unsafe fn with_tag(handle: *mut c_void, expected: u32) -> Option<&'static Self> {
        let tag = handle.cast::<AtomicU32>();
        if tag.is_null() || !tag.is_aligned() {
            return None;
        }
        // SAFETY: neither null nor misaligned, and readable by the caller's word.
        let tag = unsafe { &*tag };
        if tag.load(Ordering::Relaxed) != expected {
            return None;
        }
        // SAFETY: the tag says that this is a slot of ours, and slots live for ever.
        Some(unsafe { &*handle.cast::<Self>() })
    }

    /// What is in it.
    #[inline(always)]
    pub(crate) fn body(&self) -> &T {
        &self.body
    }

    /// Whether the handle is still good.
    pub(crate) fn in_use(&self) -> bool {
        self.tag.load(Ordering::Relaxed) == T::TAG
    }

    /// Makes the handle bad; false if it is already.
    pub(crate) fn retire(&self) -> bool {
        self.retire_from(T::TAG)
    }

    /// The same for a handle that a forked child has inherited. What is in the slot stays.
    pub(crate) fn retire_inherited(&self) -> bool {
        self.retire_from(T::INHERITED)
    }

    fn retire_from(&self, tag: u32) -> bool {
        // The exchange lets one of two destroyers win; what they destroy is guarded by the body's
        // own means.
        self.tag.compare_exchange(tag, UNUSED, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Marks all slots in use as inherited. For a forked child, while it has one thread only: takes
    /// no lock and no memory.
    pub(crate) fn inherit_all() {
        for slot in T::spare().all().filter(|slot| slot.in_use()) {
            slot.tag.store(T::INHERITED, Ordering::Relaxed);
        }
    }

    /// Offers the retired, emptied slot to the next object.
    pub(crate) fn recycle(&'static self) {
        if let Some(mut list) = T::spare().list() {
            list.push_back(self);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Cat;
    impl Body for Cat {
        const TAG: u32 = 0x0CA7;
        fn spare() -> &'static Spare<Self> {
            static SPARE: Spare<Cat> = Spare::new();
            &SPARE
        }
    }

    #[derive(Debug, Default)]
    struct Dog;
    impl Body for Dog {
        const TAG: u32 = 0xD06;
        fn spare() -> &'static Spare<Self> {
            static SPARE: Spare<Dog> = Spare::new();
            &SPARE
        }
    }

    #[test]
    fn a_handle_is_good_from_publish_to_retire() {
        let slot = Slot::<Cat>::claim();
        // SAFETY: slots stay readable.
        unsafe {
            assert!(Slot::<Cat>::at(slot.handle()).is_none());
            let handle = slot.publish();
            assert!(Slot::<Cat>::at(handle).is_some() && slot.in_use());
            assert!(Slot::<Dog>::at(handle).is_none());
            assert!(slot.retire() && !slot.retire());
            assert!(Slot::<Cat>::at(handle).is_none() && !slot.in_use());
        }
    }

    #[derive(Debug, Default)]
    struct Bird;
    impl Body for Bird {
        const TAG: u32 = 0xB14D;
        fn spare() -> &'static Spare<Self> {
            static SPARE: Spare<Bird> = Spare::new();
            &SPARE
        }
    }

    #[test]
    fn a_childs_copy_of_a_handle_is_told_from_its_own() {
        let handles = [(); 40].map(|()| Slot::<Bird>::claim().publish());
        // SAFETY: slots stay readable.
        unsafe {
            assert!(Slot::<Bird>::at(handles[0]).unwrap().retire());
            Slot::<Bird>::inherit_all();
            assert!(Slot::<Bird>::inherited(handles[0]).is_none());
            for handle in &handles[1..] {
                assert!(Slot::<Bird>::at(*handle).is_none());
                let slot = Slot::<Bird>::inherited(*handle).unwrap();
                assert!(!slot.retire() && slot.retire_inherited() && !slot.retire_inherited());
                assert!(Slot::<Bird>::inherited(*handle).is_none());
            }
            let own = Slot::<Bird>::claim().publish();
            assert!(Slot::<Bird>::at(own).is_some() && Slot::<Bird>::inherited(own).is_none());
        }
    }

    #[test]
    fn slots_are_reused_oldest_first() {
        let (first, second) = (Slot::<Dog>::claim(), Slot::<Dog>::claim());
        first.recycle();
        second.recycle();
        assert_eq!(Slot::<Dog>::claim().handle(), first.handle());
        assert_eq!(Slot::<Dog>::claim().handle(), second.handle());
        let third = Slot::<Dog>::claim();
        assert!(third.handle() != first.handle() && third.handle() != second.handle());
    }

    #[test]
    fn what_is_no_slot_is_refused() {
        let mut words = [0_u64; 2];
        let word: *mut c_void = words.as_mut_ptr().cast();
        // SAFETY: null, or memory of this function.
        unsafe {
            assert!(Slot::<Cat>::at(null_mut()).is_none());
            assert!(Slot::<Cat>::at(word).is_none());
            assert!(Slot::<Cat>::at(word.byte_add(1)).is_none());
        }
    }
}
