//! Opaque pointers that C holds. Each points to an object that starts with a tag for its kind.
//! Null, objects of another kind and (as far as the memory still shows it) destroyed objects are
//! refused.
//!
//! The exported functions of every object kind call this file. A handle owns one reference of an
//! `Arc`. A call in progress holds its own reference, so a callback may safely destroy its own
//! object.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The first field of every object behind a handle.
// Relaxed: caller, as for the tag of a slot.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct Tag(AtomicU32);

/// Tag of a destroyed object.
const DEAD: u32 = 0xDEAD_DEAD;

impl Tag {
    /// Returns the tag of a live `T`.
    pub(crate) const fn of<T: Handle>() -> Tag {
        Tag(AtomicU32::new(T::TAG))
    }
}

/// An object that C holds by pointer.
///
/// # Safety
/// The type is `#[repr(C)]` and its first field is a [`Tag`] made by `Tag::of::<Self>()`. No other
/// type has the same `TAG`.
pub(crate) unsafe trait Handle: Send + Sync {
    /// Value of the tag of a live object.
    const TAG: u32;
}

/// Turns an object into a handle for C.
pub(crate) fn into_raw<T: Handle>(object: T) -> *mut c_void {
    Arc::into_raw(Arc::new(object)).cast_mut().cast()
}

/// Returns the object behind a handle for the duration of one call; `None` if it is not a live `T`.
///
/// # Safety
/// `handle` is null or points to at least four readable bytes, and is not being destroyed at the
/// same time.
pub(crate) unsafe fn acquire<T: Handle>(handle: *mut c_void) -> Option<Arc<T>> {
    // SAFETY: the caller guarantees four readable bytes.
    let tag = unsafe { tag_at(handle) }?;
    // Relaxed: caller: the program's own synchronisation has passed the handle to this thread.
    if tag.load(Ordering::Relaxed) != T::TAG {
        return None;
    }
    // SAFETY: the tag shows that `into_raw` returned this `T` and that it is not destroyed, so the
    // handle's own reference exists. The count is raised before a second `Arc` is made of it.
    unsafe {
        Arc::increment_strong_count(handle.cast::<T>());
        Some(Arc::from_raw(handle.cast::<T>()))
    }
}

/// Takes back the handle's own reference and invalidates the handle. `None` if it is not a live
/// `T`.
///
/// # Safety
/// `handle` is null or points to at least four readable bytes, and is not being destroyed at the
/// same time.
pub(crate) unsafe fn release<T: Handle>(handle: *mut c_void) -> Option<Arc<T>> {
    // SAFETY: the caller guarantees four readable bytes.
    let tag = unsafe { tag_at(handle) }?;
    // Relaxed: caller, as in `acquire`. If two threads destroy the object, the exchange lets only
    // one win.
    tag.compare_exchange(T::TAG, DEAD, Ordering::Relaxed, Ordering::Relaxed).ok()?;
    // SAFETY: `into_raw` returned this `T`, and the exchange ensures that only this call takes its
    // reference.
    Some(unsafe { Arc::from_raw(handle.cast::<T>()) })
}

/// Returns the tag that `handle` points to, if it points to memory that could hold a tag.
///
/// # Safety
/// `handle` is null or points to at least four readable bytes.
unsafe fn tag_at<'a>(handle: *mut c_void) -> Option<&'a AtomicU32> {
    let tag = handle.cast::<AtomicU32>();
    // Objects are aligned. A misaligned pointer is not ours, and could not be read as an atomic.
    if tag.is_null() || !tag.is_aligned() {
        return None;
    }
    // SAFETY: non-null, aligned, and readable, guaranteed by the caller. It is written only after
    // it was found to be the tag of one of our objects, which are only ever accessed atomically.
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
        // SAFETY: the handle is valid until released. A reference acquired earlier keeps the memory
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
    fn invalid_handles_are_refused() {
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
