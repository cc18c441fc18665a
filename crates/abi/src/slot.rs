//! Memory behind the handles of sockets and contexts. A slot begins with a tag and is never
//! returned to the allocator, only to the next object of the same kind. A closed handle therefore
//! stays readable, and its tag shows that it is closed.
//!
//! [`crate::context`] and [`crate::entry`] call this file. Slots are reused in the order in which
//! they became free, which keeps a stale handle recognisable for a long time. This file never
//! blocks: in a forked child, a thread that exists only in the parent may hold the lock of the free
//! list for ever. The child then takes or abandons a slot without the list.
//!
//! In a forked child the tags of all slots in use are changed before fork returns
//! ([`crate::inherited`]). Every call checks the tag, so the child cannot reach the objects of its
//! parent.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use crate::inherited;

/// One slot. Its alignment ensures that slots of different threads never share a cache line, or the
/// pair of cache lines that x86 fetches together.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub(crate) struct Slot<T> {
    // Relaxed: caller: the program's own synchronisation has passed the handle to this thread. If
    // two threads destroy the object, the exchange lets one win. Release in `publish` pairs with
    // Acquire in `is_in_use`, for callers that may have an older handle of the slot.
    tag: AtomicU32,
    body: T,
    /// The slot that was made before this one.
    // Relaxed: own: written before the slot is on the list of all.
    next: AtomicPtr<Slot<T>>,
}

/// Content of one kind of slot.
pub(crate) trait SlotContent: Default + Send + Sync + 'static {
    /// Value of the tag of a slot in use. Each kind has its own value.
    const TAG: u32;

    /// Value of the tag in a forked child if the parent's object was in use.
    const INHERITED: u32 = !Self::TAG;

    /// Returns the free slots of this kind.
    fn free_slots() -> &'static FreeSlots<Self>;
}

/// Tag of a free slot.
const UNUSED: u32 = 0xDEAD_DEAD;

/// Free slots, which wait for their next object.
#[derive(Debug)]
pub(crate) struct FreeSlots<T: 'static> {
    list: Mutex<VecDeque<&'static Slot<T>>>,
    /// Total number of slots made.
    // Relaxed: own: written under the lock of the list. Without the lock, after a fork, it is only
    // a number.
    made: AtomicUsize,
    /// The slot that was made last. `next` leads to the others.
    // Relaxed: look: the exchange decides.
    all: AtomicPtr<Slot<T>>,
}

impl<T> FreeSlots<T> {
    /// Makes an empty list.
    pub(crate) const fn new() -> Self {
        FreeSlots {
            list: Mutex::new(VecDeque::new()),
            made: AtomicUsize::new(0),
            all: AtomicPtr::new(null_mut()),
        }
    }

    /// Adds a new slot to the list of all slots.
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
        // SAFETY: null, or a slot, and slots live for ever.
        let first = unsafe { self.all.load(Ordering::Acquire).as_ref() };
        // SAFETY: as above.
        std::iter::successors(first, |slot| unsafe { slot.next.load(Ordering::Relaxed).as_ref() })
    }

    /// Locks the list. Returns `None` if it stays locked: a holder needs only nanoseconds, so the
    /// holder must be a thread that exists only in the parent.
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

impl<T: SlotContent> Slot<T> {
    /// Returns a slot for a new object. Its handle is not valid yet; see [`Slot::publish`].
    pub(crate) fn claim() -> &'static Self {
        inherited::watch();
        let spare = T::free_slots();
        let mut list = spare.list();
        if let Some(slot) = list.as_mut().and_then(|list| list.pop_front()) {
            return slot;
        }
        // Make more slots at a time as their number grows: each aligned allocation wastes some
        // memory.
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

    /// Publishes the filled slot and returns its handle for C.
    pub(crate) fn publish(&'static self) -> *mut c_void {
        self.tag.store(T::TAG, Ordering::Release);
        self.handle()
    }

    /// Returns the slot's address, which is its handle.
    pub(crate) fn handle(&'static self) -> *mut c_void {
        std::ptr::from_ref(self).cast_mut().cast()
    }

    /// Returns the slot behind a handle; `None` if the handle is null or not (or no longer) of this
    /// kind.
    ///
    /// # Safety
    /// `handle` is null, or points to at least four readable bytes (the tag).
    #[inline(always)]
    pub(crate) unsafe fn at(handle: *mut c_void) -> Option<&'static Self> {
        // SAFETY: guaranteed by the caller.
        unsafe { Self::with_tag(handle, T::TAG) }
    }

    /// Returns the slot behind a handle that a forked child has inherited; `None` for any other
    /// handle.
    ///
    /// # Safety
    /// `handle` is null, or points to at least four readable bytes (the tag).
    pub(crate) unsafe fn inherited(handle: *mut c_void) -> Option<&'static Self> {
        // SAFETY: guaranteed by the caller.
        unsafe { Self::with_tag(handle, T::INHERITED) }
    }

    /// # Safety
    /// `handle` is null, or points to at least four readable bytes (the tag).
    #[inline(always)]
    unsafe fn with_tag(handle: *mut c_void, expected: u32) -> Option<&'static Self> {
        let tag = handle.cast::<AtomicU32>();
        if tag.is_null() || !tag.is_aligned() {
            return None;
        }
        // SAFETY: not null, aligned, and readable, as guaranteed by the caller.
        let tag = unsafe { &*tag };
        if tag.load(Ordering::Relaxed) != expected {
            return None;
        }
        // SAFETY: the tag shows that this is one of our slots, and slots live for ever.
        Some(unsafe { &*handle.cast::<Self>() })
    }

    /// Returns the content of the slot.
    #[inline(always)]
    pub(crate) fn body(&self) -> &T {
        &self.body
    }

    /// True if the handle is still valid. The content that its owner published is then visible.
    #[inline(always)]
    pub(crate) fn is_in_use(&self) -> bool {
        self.tag.load(Ordering::Acquire) == T::TAG
    }

    /// Invalidates the handle. Returns false if it is already invalid.
    pub(crate) fn retire(&self) -> bool {
        self.retire_from(T::TAG)
    }

    /// Invalidates a handle that a forked child has inherited. The content of the slot stays.
    pub(crate) fn retire_inherited(&self) -> bool {
        self.retire_from(T::INHERITED)
    }

    fn retire_from(&self, tag: u32) -> bool {
        // If two threads destroy the object, the exchange lets one win. The body itself protects
        // its content.
        self.tag.compare_exchange(tag, UNUSED, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Marks all slots in use as inherited. Called in a forked child while it has only one thread.
    /// Takes no locks and allocates no memory.
    pub(crate) fn inherit_all() {
        for slot in T::free_slots().all().filter(|slot| slot.is_in_use()) {
            slot.tag.store(T::INHERITED, Ordering::Relaxed);
        }
    }

    /// Offers the retired, emptied slot to the next object.
    pub(crate) fn recycle(&'static self) {
        if let Some(mut list) = T::free_slots().list() {
            list.push_back(self);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Cat;
    impl SlotContent for Cat {
        const TAG: u32 = 0x0CA7;
        fn free_slots() -> &'static FreeSlots<Self> {
            static SPARE: FreeSlots<Cat> = FreeSlots::new();
            &SPARE
        }
    }

    #[derive(Debug, Default)]
    struct Dog;
    impl SlotContent for Dog {
        const TAG: u32 = 0xD06;
        fn free_slots() -> &'static FreeSlots<Self> {
            static SPARE: FreeSlots<Dog> = FreeSlots::new();
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
            assert!(Slot::<Cat>::at(handle).is_some() && slot.is_in_use());
            assert!(Slot::<Dog>::at(handle).is_none());
            assert!(slot.retire() && !slot.retire());
            assert!(Slot::<Cat>::at(handle).is_none() && !slot.is_in_use());
        }
    }

    #[derive(Debug, Default)]
    struct Bird;
    impl SlotContent for Bird {
        const TAG: u32 = 0xB14D;
        fn free_slots() -> &'static FreeSlots<Self> {
            static SPARE: FreeSlots<Bird> = FreeSlots::new();
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
    fn invalid_slot_handles_are_refused() {
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
