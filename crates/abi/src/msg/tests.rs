use super::*;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

use tautline_io::errno;

/// A C program's `zmq_msg_t`, zeroed.
#[repr(C, align(8))]
struct Object([u8; C_SIZE]);

impl Object {
    fn new() -> Self {
        Object([0; C_SIZE])
    }

    fn raw(&mut self) -> *mut Message {
        self.0.as_mut_ptr().cast()
    }

    fn with(body: &[u8]) -> Self {
        let mut object = Object::new();
        // SAFETY: an object of this size, and as many bytes as asked for.
        unsafe {
            assert_eq!(zmq_msg_init_size(object.raw(), body.len()), 0);
            std::ptr::copy(body.as_ptr(), zmq_msg_data(object.raw()).cast(), body.len());
        }
        object
    }

    fn body(&mut self) -> Vec<u8> {
        // SAFETY: an initialised object.
        unsafe {
            let data: *const u8 = zmq_msg_data(self.raw()).cast();
            std::slice::from_raw_parts(data, zmq_msg_size(self.raw())).to_vec()
        }
    }

    fn close(&mut self) -> c_int {
        // SAFETY: an object of this size.
        unsafe { zmq_msg_close(self.raw()) }
    }
}

fn fails_with(result: c_int, number: c_int) {
    assert_eq!((result, errno::last()), (-1, number));
}

#[test]
fn a_message_begins_empty_and_is_closed_once() {
    let mut object = Object::new();
    // SAFETY: an object of this size.
    unsafe {
        assert_eq!(zmq_msg_init(object.raw()), 0);
        assert_eq!(zmq_msg_size(object.raw()), 0);
        assert!(!zmq_msg_data(object.raw()).is_null());
        assert_eq!(zmq_msg_more(object.raw()), 0);
    }
    assert_eq!(object.close(), 0);
    fails_with(object.close(), errno::EFAULT);
}

#[test]
fn invalid_messages_are_efault() {
    let mut zeroed = Object::new();
    let mut good = Object::with(b"good");
    let null = null_mut();
    for bad in [null, zeroed.raw()] {
        // SAFETY: null, or objects of the right size.
        unsafe {
            fails_with(zmq_msg_close(bad), errno::EFAULT);
            fails_with(zmq_msg_move(bad, good.raw()), errno::EFAULT);
            fails_with(zmq_msg_move(good.raw(), bad), errno::EFAULT);
            fails_with(zmq_msg_copy(bad, good.raw()), errno::EFAULT);
            fails_with(zmq_msg_copy(good.raw(), bad), errno::EFAULT);
            fails_with(zmq_msg_get(bad, MORE), errno::EFAULT);
            assert!(zmq_msg_gets(bad, c"Socket-Type".as_ptr()).is_null());
            assert!(zmq_msg_data(bad).is_null());
            assert_eq!(zmq_msg_size(bad), 0);
            assert_eq!(zmq_msg_more(bad), 0);
        }
    }
    // SAFETY: null is allowed.
    unsafe {
        fails_with(zmq_msg_init(null), errno::EFAULT);
        fails_with(zmq_msg_init_size(null, 5), errno::EFAULT);
        fails_with(zmq_msg_init_data(null, null.cast(), 0, None, null.cast()), errno::EFAULT);
        fails_with(zmq_msg_init_data(zeroed.raw(), null.cast(), 1, None, null.cast()), errno::EFAULT);
    }
    assert_eq!(good.body(), b"good");
    assert_eq!(good.close(), 0);
}

#[test]
fn too_much_memory_is_enomem() {
    let mut object = Object::new();
    // On systems with 64-bit addresses, the last size alone would be possible.
    for size in [usize::MAX, isize::MAX as usize, usize::try_from(1_u64 << 62).unwrap_or(usize::MAX)] {
        // SAFETY: an object of this size.
        fails_with(unsafe { zmq_msg_init_size(object.raw(), size) }, errno::ENOMEM);
    }
    fails_with(object.close(), errno::EFAULT);
}

#[test]
fn initialising_does_not_look_at_what_was_there() {
    let mut object = MaybeUninit::<Object>::uninit();
    // SAFETY: memory of this size. It holds garbage, as C may pass it.
    unsafe {
        object.as_mut_ptr().cast::<u8>().write_bytes(0xB3, C_SIZE);
        let raw = object.as_mut_ptr().cast::<Message>();
        assert_eq!(zmq_msg_init(raw), 0);
        assert_eq!(zmq_msg_close(raw), 0);
    }
}

#[test]
fn moving_empties_the_source_and_copying_shares() {
    for size in [0, 5, 40, 41, 1000, 100_000] {
        let body = vec![7; size];
        let (mut source, mut dest) = (Object::with(&body), Object::with(b"what was there"));
        // SAFETY: initialised objects.
        unsafe {
            assert_eq!(zmq_msg_copy(dest.raw(), source.raw()), 0);
            assert_eq!((dest.body(), source.body()), (body.clone(), body.clone()));
            let shared = c_int::from(size > message::INLINE_MAX);
            assert_eq!(zmq_msg_get(dest.raw(), SHARED), shared);
            assert_eq!(zmq_msg_get(source.raw(), SHARED), shared);

            assert_eq!(zmq_msg_move(dest.raw(), source.raw()), 0);
            assert_eq!((dest.body(), source.body()), (body.clone(), vec![]));

            assert_eq!(zmq_msg_copy(dest.raw(), dest.raw()), 0);
            assert_eq!(zmq_msg_move(dest.raw(), dest.raw()), 0);
            assert_eq!(dest.body(), body);
        }
        assert_eq!((dest.close(), source.close()), (0, 0));
    }
}

unsafe extern "C" fn count_free(data: *mut c_void, hint: *mut c_void) {
    // SAFETY: the test passes a counter as hint and a first byte to read.
    unsafe {
        assert_eq!(data.cast::<u8>().read(), 42);
        (*hint.cast::<AtomicUsize>()).fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn the_callers_memory_is_freed_once_by_the_last() {
    let freed = AtomicUsize::new(0);
    let hint: *mut c_void = (&raw const freed).cast_mut().cast();
    let mut data = [42_u8; 100];
    let (mut first, mut second) = (Object::new(), Object::with(b"second"));
    // SAFETY: `data` and `freed` outlive both messages.
    unsafe {
        let rc = zmq_msg_init_data(first.raw(), data.as_mut_ptr().cast(), 100, Some(count_free), hint);
        assert_eq!(rc, 0);
        assert_eq!(zmq_msg_data(first.raw()), data.as_mut_ptr().cast());
        assert_eq!(zmq_msg_get(first.raw(), SHARED), 0);
        assert_eq!(zmq_msg_copy(second.raw(), first.raw()), 0);
    }
    assert_eq!(first.close(), 0);
    assert_eq!(freed.load(Ordering::Relaxed), 0);
    assert_eq!(second.close(), 0);
    assert_eq!(freed.load(Ordering::Relaxed), 1);
    fails_with(second.close(), errno::EFAULT);
    assert_eq!(freed.load(Ordering::Relaxed), 1);
}

#[test]
fn constant_memory_counts_as_shared() {
    let mut object = Object::new();
    // SAFETY: a constant of the program.
    unsafe {
        let data = c"TEST".as_ptr().cast_mut().cast();
        assert_eq!(zmq_msg_init_data(object.raw(), data, 5, None, null_mut()), 0);
        assert_eq!(zmq_msg_get(object.raw(), SHARED), 1);
    }
    assert_eq!(object.body(), b"TEST\0");
    assert_eq!(object.close(), 0);
}

#[test]
fn properties_come_from_the_connection() {
    let mut object = Object::with(b"body");
    // SAFETY: initialised objects, and names that are strings or null.
    unsafe {
        let gets = |object: &mut Object, name: &CStr| {
            let text = zmq_msg_gets(object.raw(), name.as_ptr());
            (!text.is_null()).then(|| CStr::from_ptr(text).to_owned())
        };
        fails_with(zmq_msg_get(object.raw(), SRCFD), errno::EINVAL);
        fails_with(zmq_msg_get(object.raw(), 99), errno::EINVAL);
        fails_with(zmq_msg_set(object.raw(), MORE, 1), errno::EINVAL);
        fails_with(zmq_msg_set(object.raw(), LOAN, 0), errno::EINVAL);
        fails_with(zmq_msg_set(null_mut(), LOAN, 1), errno::EFAULT);
        fails_with(zmq_msg_set(object.raw(), LOAN, 1), errno::ENOTSUP);
        assert_eq!((gets(&mut object, c"Socket-Type"), errno::last()), (None, errno::EINVAL));

        let known = [("Socket-Type", "DEALER"), ("Identity", "me")];
        let message = at(object.raw()).unwrap();
        message.set_metadata(Some(tautline_core::Metadata::new(known, Some(33)).into()));
        message.set_more(true);
        assert_eq!(zmq_msg_get(object.raw(), SRCFD), 33);
        assert_eq!(zmq_msg_get(object.raw(), MORE), 1);
        assert_eq!(zmq_msg_more(object.raw()), 1);
        assert_eq!(gets(&mut object, c"Socket-Type").unwrap(), c"DEALER".to_owned());
        assert_eq!(gets(&mut object, c"Identity").unwrap(), c"me".to_owned());
        assert_eq!(gets(&mut object, c"Routing-Id").unwrap(), c"me".to_owned());
        assert_eq!(gets(&mut object, c"Peer-Address"), None);
        errno::set(0);
        assert!(zmq_msg_gets(object.raw(), null()).is_null());
        assert_eq!(errno::last(), errno::EINVAL);
    }
    assert_eq!(object.close(), 0);
}
