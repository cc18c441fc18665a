//! Opaque pointers given to C: each points to an object that starts with a tag telling its kind, so
//! that null, another kind of object and (as far as the memory still says so) a destroyed one are
//! refused.
//!
//! Called by the exported functions of every object kind. A handle owns one reference of an `Arc`;
//! a call in progress holds its own, so destroying an object from within its own callback is
//! harmless.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The first field of every object behind a handle.
// Relaxed: caller, as for the tag of a slot.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct Tag(AtomicU32);

/// Tag of an object whose handle was destroyed.
const DEAD: u32 = 0xDEAD_DEAD;

impl Tag {
    /// The tag of a living `T`.
    pub(crate) const fn of<T: Handle>() -> Tag {
        Tag(AtomicU32::new(T::TAG))
    }
}

/// An object that C holds by pointer.
///
/// # Safety
/// The type is `#[repr(C)]` and its first field is a [`Tag`] made by `Tag::of::<Self>()`; `TAG` is
/// its alone.
pub(crate) unsafe trait Handle: Send + Sync {
    /// What the tag of a living object reads.
    const TAG: u32;
}

/// Gives an object to C.
pub(crate) fn into_raw<T: Handle>(object: T) -> *mut c_void {
    Arc::into_raw(Arc::new(object)).cast_mut().cast()
}

/// The object behind a handle for the time of one call; `None` if it is not a living `T`.
///
/// # Safety
/// `handle` is null or points to at least four readable bytes, and it is not destroyed at the same
/// time.
pub(crate) unsafe fn acquire<T: Handle>(handle: *mut c_void) -> Option<Arc<T>> {
    // SAFETY: the caller vouches for four readable bytes.
    let tag = unsafe { tag_at(handle) }?;
    // Relaxed: caller: the handle reached this thread by some order of the program's own.
    if tag.load(Ordering::Relaxed) != T::TAG {
        return None;
    }
    // SAFETY: the tag says that this is a `T` given out by `into_raw` and not destroyed, so the
    // handle's own reference is alive; the count is raised before a second `Arc` is made of it.
    unsafe {
        Arc::increment_strong_count(handle.cast::<T>());
        Some(Arc::from_raw(handle.cast::<T>()))
    }
}

/// Takes the handle's own reference back; from here on the handle is dead. `None` if it is not a
/// living `T`.
///
/// # Safety
/// As for [`acquire`].
pub(crate) unsafe fn release<T: Handle>(handle: *mut c_void) -> Option<Arc<T>> {
    // SAFETY: the caller vouches for four readable bytes.
    let tag = unsafe { tag_at(handle) }?;
    // Relaxed: caller, as in `acquire`. The exchange lets only one of two destroyers win.
    tag.compare_exchange(T::TAG, DEAD, Ordering::Relaxed, Ordering::Relaxed).ok()?;
    // SAFETY: this is a `T` given out by `into_raw`, and the exchange makes this the only taker of
    // its reference.
    Some(unsafe { Arc::from_raw(handle.cast::<T>()) })
}

/// The tag that `handle` points to, if it points to anything that could hold one.
///
/// # Safety
/// `handle` is null or points to at least four readable bytes.
unsafe fn tag_at<'a>(handle: *mut c_void) -> Option<&'a AtomicU32> {
    let tag = handle.cast::<AtomicU32>();
    // Objects are aligned; anything else is not ours, and could not be read as an atomic either.
    if tag.is_null() || !tag.is_aligned() {
        return None;
    }
    // SAFETY: non-null, aligned, and readable by the caller's word. It is written only after it was
    // found to be the tag of one of our objects, which are only ever accessed atomically.
    Some(unsafe { &*tag })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null_mut;

    #[repr(C)]
    struct Cat {
        tag: Tag,
        lives: u8,
    }
    // SAFETY: repr(C), the tag first.
    unsafe impl Handle for Cat {
        const TAG: u32 = 0x0CA7;
    }

    #[repr(C)]
    #[derive(Debug)]
    struct Dog {
        tag: Tag,
    }
    // SAFETY: repr(C), the tag first.
    unsafe impl Handle for Dog {
        const TAG: u32 = 0xD06;
    }

    #[test]
    fn a_handle_lives_from_into_raw_to_release() {
        let handle = into_raw(Cat { tag: Tag::of::<Cat>(), lives: 9 });
        // SAFETY: the handle is alive until released; a reference acquired before keeps the memory
        // readable.
        unsafe {
            let cat = acquire::<Cat>(handle).unwrap();
            assert_eq!(cat.lives, 9);
            assert!(acquire::<Dog>(handle).is_none());
            assert!(release::<Dog>(handle).is_none());
            assert!(release::<Cat>(handle).is_some());
            assert!(acquire::<Cat>(handle).is_none());
            assert!(release::<Cat>(handle).is_none());
        }
    }

    #[test]
    fn what_is_no_object_is_refused() {
        let mut words = [0_u64; 2];
        let word: *mut c_void = words.as_mut_ptr().cast();
        // SAFETY: null, or memory of this function.
        unsafe {
            assert!(acquire::<Cat>(null_mut()).is_none());
            assert!(acquire::<Cat>(word).is_none());
            assert!(acquire::<Cat>(word.byte_add(1)).is_none());
            assert!(release::<Cat>(word).is_none());
        }
    }
}
